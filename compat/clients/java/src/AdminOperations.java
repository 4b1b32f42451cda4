import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The operations of the admin client, which is kept for one address at a time. */
final class AdminOperations {
    private Admin admin;
    private String address;

    private Admin of(String bootstrap) {
        if (!bootstrap.equals(address)) {
            close();
            Properties config = new Properties();
            config.put("bootstrap.servers", bootstrap);
            config.put("default.api.timeout.ms", 20000);
            config.put("request.timeout.ms", 15000);
            config.put("reconnect.backoff.max.ms", 500);
            admin = Admin.create(config);
            address = bootstrap;
        }
        return admin;
    }

    void close() {
        if (admin != null) {
            admin.close();
        }
        admin = null;
        address = null;
    }

    private static <T> T get(KafkaFuture<T> future) throws Exception {
        try {
            return future.get(20, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            throw error.getCause() instanceof Exception inner ? inner : error;
        }
    }

    JsonNode carryOut(String operation, JsonNode a) throws Exception {
        Admin client = of(a.get("bootstrap").asText());
        if (operation.startsWith("ui_")) {
            return new WebUi(client).page(operation, a);
        }
        String topic = a.path("topic").asText();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        ObjectNode said = Driver.JSON.createObjectNode();
        switch (operation) {
            case "metadata" -> metadata(client, said);
            case "create_topic" -> {
                Map<String, String> configs = new HashMap<>();
                a.path("configs").fields().forEachRemaining(row -> configs.put(row.getKey(), row.getValue().asText()));
                NewTopic one = new NewTopic(topic, Optional.of(a.get("partitions").asInt()), Optional.of((short) 1)).configs(configs);
                CreateTopicsOptions options = new CreateTopicsOptions().validateOnly(a.path("validate_only").asBoolean(false));
                get(client.createTopics(List.of(one), options).all());
            }
            case "delete_topic" -> get(client.deleteTopics(List.of(topic)).all());
            case "add_partitions" -> get(client.createPartitions(Map.of(topic, NewPartitions.increaseTo(a.get("partitions").asInt()))).all());
            case "topic_configs" -> {
                Config found = get(client.describeConfigs(List.of(resource)).all()).get(resource);
                ObjectNode configs = said.putObject("configs");
                found.entries().forEach(entry -> configs.put(entry.name(), entry.value()));
            }
            case "set_topic_config" -> {
                ConfigEntry entry = new ConfigEntry(a.get("key").asText(), a.get("value").asText());
                get(client.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET)))).all());
            }
            case "list_groups" -> {
                ObjectNode groups = said.putObject("groups");
                get(client.listConsumerGroups().all()).forEach(row -> groups.put(row.groupId(), String.valueOf(row.state().orElse(null))));
            }
            case "describe_group" -> describeGroup(client, a.get("group").asText(), said);
            case "delete_group" -> get(client.deleteConsumerGroups(List.of(a.get("group").asText())).all());
            case "delete_records" -> {
                TopicPartition where = new TopicPartition(topic, a.get("partition").asInt());
                RecordsToDelete before = RecordsToDelete.beforeOffset(a.get("offset").asLong());
                said.put("low", get(client.deleteRecords(Map.of(where, before)).lowWatermarks().get(where)).lowWatermark());
            }
            default -> throw new IllegalArgumentException("no operation " + operation);
        }
        return said;
    }

    private static void metadata(Admin client, ObjectNode said) throws Exception {
        ArrayNode brokers = said.putArray("brokers");
        get(client.describeCluster().nodes()).forEach(node -> brokers.addArray().add(node.id()).add(node.host()).add(node.port()));
        ObjectNode topics = said.putObject("topics");
        get(client.describeTopics(get(client.listTopics().names())).allTopicNames())
            .forEach((name, description) -> topics.put(name, description.partitions().size()));
    }

    private static void describeGroup(Admin client, String group, ObjectNode said) throws Exception {
        ConsumerGroupDescription found = get(client.describeConsumerGroups(List.of(group)).describedGroups().get(group));
        said.put("state", String.valueOf(found.state()));
        ArrayNode members = said.putArray("members");
        found.members().forEach(member -> {
            ArrayNode rows = members.addArray();
            member.assignment().topicPartitions().stream()
                .sorted(Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition))
                .forEach(one -> rows.addArray().add(one.topic()).add(one.partition()));
        });
    }
}
