import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/**
 * What web interfaces that are built on the Java client ask for (Kafbat, AKHQ, Kafdrop), one operation for each of their pages.
 * A call that fails fails the page, but on the page about security, where interfaces show what the broker refuses.
 */
final class WebUi {
    private final Admin client;

    WebUi(Admin client) {
        this.client = client;
    }

    ObjectNode page(String page, JsonNode a) throws Exception {
        ObjectNode said = Driver.JSON.createObjectNode();
        switch (page) {
            case "ui_cluster" -> cluster(said);
            case "ui_topics" -> topics(said);
            case "ui_groups" -> groups(said);
            case "ui_security" -> security(a.get("topic").asText(), said);
            case "ui_reset" -> reset(a);
            case "ui_forget" -> forget(a);
            case "ui_reassign" -> reassign(a);
            case "ui_replace_configs" -> replaceConfigs(a);
            default -> throw new IllegalArgumentException("no page " + page);
        }
        return said;
    }

    private static <T> T get(KafkaFuture<T> future) throws Exception {
        try {
            return future.get(20, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            throw error.getCause() instanceof Exception inner ? inner : error;
        }
    }

    private void cluster(ObjectNode said) throws Exception {
        DescribeClusterResult found = client.describeCluster(new DescribeClusterOptions().includeAuthorizedOperations(true));
        said.put("id", get(found.clusterId())).put("controller", get(found.controller()).id());
        get(found.authorizedOperations());
        Collection<Integer> nodes = get(found.nodes()).stream().map(node -> node.id()).toList();
        nodes.forEach(said.putArray("nodes")::add);
        List<ConfigResource> brokers =
            nodes.stream().map(id -> new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(id))).toList();
        ObjectNode configs = said.putObject("configs");
        for (Config config : get(client.describeConfigs(brokers).all()).values()) {
            config.entries().forEach(entry -> configs.put(entry.name(), entry.value()));
        }
        ArrayNode logs = said.putArray("logs");
        get(client.describeLogDirs(nodes).allDescriptions()).values().stream()
            .flatMap(folders -> folders.values().stream())
            .flatMap(folder -> folder.replicaInfos().entrySet().stream())
            .forEach(log -> logs.addArray().add(log.getKey().topic()).add(log.getKey().partition()).add(log.getValue().size()));
        said.put("features", get(client.describeFeatures().featureMetadata()).finalizedFeatures().size());
    }

    private void topics(ObjectNode said) throws Exception {
        Set<String> names = get(client.listTopics(new ListTopicsOptions().listInternal(true)).names());
        Map<String, TopicDescription> topics = get(client.describeTopics(names).allTopicNames());
        List<ConfigResource> resources =
            names.stream().map(name -> new ConfigResource(ConfigResource.Type.TOPIC, name)).toList();
        DescribeConfigsOptions wanted = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        Map<ConfigResource, Config> configs = get(client.describeConfigs(resources, wanted).all());
        List<TopicPartition> all = topics.values().stream()
            .flatMap(topic -> topic.partitions().stream().map(row -> new TopicPartition(topic.name(), row.partition())))
            .toList();
        Map<TopicPartition, Long> starts = offsets(all, OffsetSpec.earliest());
        Map<TopicPartition, Long> ends = offsets(all, OffsetSpec.latest());
        Map<TopicPartition, Long> newest = offsets(all, OffsetSpec.maxTimestamp());
        topics.forEach((name, topic) -> {
            ObjectNode shown = said.putObject(name).put("internal", topic.isInternal());
            ObjectNode rows = shown.putObject("configs");
            for (ConfigEntry entry : configs.get(new ConfigResource(ConfigResource.Type.TOPIC, name)).entries()) {
                rows.putArray(entry.name()).add(entry.value()).add(String.valueOf(entry.source())).add(entry.documentation());
            }
            ArrayNode partitions = shown.putArray("partitions");
            topic.partitions().forEach(row -> {
                TopicPartition where = new TopicPartition(name, row.partition());
                partitions.addObject()
                    .put("leader", row.leader().id())
                    .put("replicas", row.replicas().size())
                    .put("in_sync", row.isr().size())
                    .put("start", starts.get(where))
                    .put("end", ends.get(where))
                    .put("newest", newest.get(where));
            });
        });
    }

    private Map<TopicPartition, Long> offsets(List<TopicPartition> of, OffsetSpec which) throws Exception {
        return get(client.listOffsets(of.stream().collect(Collectors.toMap(one -> one, one -> which))).all()).entrySet().stream()
            .collect(Collectors.toMap(Map.Entry::getKey, row -> row.getValue().offset()));
    }

    private void groups(ObjectNode said) throws Exception {
        List<String> names = get(client.listConsumerGroups().all()).stream().map(ConsumerGroupListing::groupId).toList();
        Map<String, ListConsumerGroupOffsetsSpec> wanted =
            names.stream().collect(Collectors.toMap(name -> name, name -> new ListConsumerGroupOffsetsSpec()));
        Map<String, Map<TopicPartition, OffsetAndMetadata>> committed = get(client.listConsumerGroupOffsets(wanted).all());
        get(client.describeConsumerGroups(names).all()).forEach((name, group) -> {
            ObjectNode shown = said.putObject(name)
                .put("state", String.valueOf(group.state()))
                .put("assignor", group.partitionAssignor())
                .put("coordinator", group.coordinator().id());
            ArrayNode members = shown.putArray("members");
            group.members().forEach(member -> {
                ObjectNode row = members.addObject().put("id", member.consumerId()).put("client", member.clientId()).put("host", member.host());
                ArrayNode assigned = row.putArray("assigned");
                member.assignment().topicPartitions().forEach(one -> assigned.addArray().add(one.topic()).add(one.partition()));
            });
            ArrayNode offsets = shown.putArray("committed");
            committed.get(name).forEach((where, at) -> {
                if (at != null) {
                    offsets.addArray().add(where.topic()).add(where.partition()).add(at.offset());
                }
            });
        });
    }

    private void security(String topic, ObjectNode said) throws Exception {
        count(said, "acls", client.describeAcls(AclBindingFilter.ANY).values());
        count(said, "users", client.describeUserScramCredentials().users());
        shown(said, "quotas", client.describeClientQuotas(ClientQuotaFilter.all()).entities(), Map::size);
        count(said, "transactions", client.listTransactions().all());
        shown(said, "reassignments", client.listPartitionReassignments().reassignments(), Map::size);
        TopicPartition first = new TopicPartition(topic, 0);
        shown(said, "producers", client.describeProducers(List.of(first)).all(), rows -> rows.get(first).activeProducers().size());
        // Kafbat shows the controllers of a cluster that has several.
        shown(said, "quorum", client.describeMetadataQuorum().quorumInfo(), quorum -> quorum.voters().size());
    }

    private static <T> void count(ObjectNode said, String name, KafkaFuture<? extends Collection<T>> future) {
        shown(said, name, future, rows -> rows.size());
    }

    private static <T> void shown(ObjectNode said, String name, KafkaFuture<T> future, java.util.function.ToIntFunction<T> size) {
        try {
            said.put(name, size.applyAsInt(get(future)));
        } catch (Exception error) {
            said.put(name, Driver.describe(error).get("name").asText());
        }
    }

    private static TopicPartition where(JsonNode a) {
        return new TopicPartition(a.get("topic").asText(), a.get("partition").asInt());
    }

    private void reset(JsonNode a) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> to = new HashMap<>();
        to.put(where(a), new OffsetAndMetadata(a.get("offset").asLong()));
        get(client.alterConsumerGroupOffsets(a.get("group").asText(), to).all());
    }

    private void forget(JsonNode a) throws Exception {
        get(client.deleteConsumerGroupOffsets(a.get("group").asText(), Set.of(where(a))).all());
    }

    private void reassign(JsonNode a) throws Exception {
        NewPartitionReassignment target = new NewPartitionReassignment(List.of(a.get("node").asInt()));
        get(client.alterPartitionReassignments(Map.of(where(a), Optional.of(target))).all());
    }

    /** All of a topic's settings in one, as before there was a way to change one of them. Gone from version 4 of the client. */
    @SuppressWarnings("deprecation")
    private void replaceConfigs(JsonNode a) throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, a.get("topic").asText());
        Config only = new Config(List.of(new ConfigEntry(a.get("key").asText(), a.get("value").asText())));
        get(client.alterConfigs(Map.of(topic, only)).all());
    }
}
