"""Driver for kafka-python, releases 2 and 3."""

import kafka
import kafka.errors
from base import Driver, Member, OperationError, pack, unpack
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewPartitions, NewTopic
from kafka.structs import OffsetAndMetadata

MODERN = int(kafka.__version__.split(".")[0]) >= 3


def translate(error):
    """A KafkaError with its number, or the name of anything else."""
    if isinstance(error, OperationError):
        return error
    number = getattr(error, "errno", None)
    if isinstance(error, kafka.errors.KafkaError) and isinstance(number, int) and number >= 0:
        return OperationError(getattr(error, "message", None) or type(error).__name__, number, str(error))
    return OperationError(type(error).__name__, None, str(error))


def at(offset, metadata):
    """A commit: the leader epoch came with release 2.1."""
    return OffsetAndMetadata(offset, metadata, -1) if "leader_epoch" in OffsetAndMetadata._fields else OffsetAndMetadata(offset, metadata)


class Listener(ConsumerRebalanceListener):
    """Drops what is queued of partitions that are taken away.

    Release 2 begins at the commits again wherever it is given a partition. Release 3 goes on behind what it has handed out
    where a partition stays, so that records dropped before the new assignment is known would never come again.
    """

    def __init__(self, member):
        self._member = member
        self._revoked = set()

    def on_partitions_revoked(self, revoked):
        gone = {(row.topic, row.partition) for row in revoked}
        if not MODERN:
            self._member.gave_up(gone)
            return
        self._revoked |= gone
        if gone:
            self._member.note_given_up()

    def on_partitions_assigned(self, assigned):
        self._member.drop(self._revoked - {(row.topic, row.partition) for row in assigned})
        self._revoked = set()


class KafkaPythonMember(Member):
    """A KafkaConsumer."""

    def translate(self, error):
        return translate(error)

    def open(self):
        options = self.options
        reset = options.get("reset") or "earliest"
        config = {
            "bootstrap_servers": options["bootstrap"],
            "group_id": options.get("group"),
            "enable_auto_commit": False,
            "auto_offset_reset": reset if reset in ("earliest", "latest") else "none",
            "fetch_max_wait_ms": 200,
            "reconnect_backoff_ms": 50,
            "reconnect_backoff_max_ms": 500,
            "metadata_max_age_ms": options.get("refresh_ms", 300000),
            "check_crcs": True,
            "max_poll_records": self.batch,
        }
        if options.get("group"):
            config["session_timeout_ms"] = options.get("session_ms", 6000)
            config["heartbeat_interval_ms"] = 500
            config["max_poll_interval_ms"] = options.get("max_poll_ms", 300000)
            if options.get("instance"):
                config["group_instance_id"] = options["instance"]
            config["partition_assignment_strategy"] = [assignor(options.get("assignor") or "range")]
        if options.get("fetch_bytes"):
            config["max_partition_fetch_bytes"] = options["fetch_bytes"]
            config["fetch_max_bytes"] = options["fetch_bytes"]
        if MODERN:
            config["allow_auto_create_topics"] = options.get("auto_create", False)
        self._consumer = KafkaConsumer(**config)
        if options.get("assign"):
            rows = {TopicPartition(t, p): o for t, p, o in options["assign"]}
            self._consumer.assign(list(rows))
            for row, offset in rows.items():
                if offset == -2:
                    self._consumer.seek_to_beginning(row)
                elif offset == -1:
                    self._consumer.seek_to_end(row)
                else:
                    self._consumer.seek(row, offset)
        else:
            self._consumer.subscribe(options["topics"], listener=Listener(self))

    def poll(self):
        records = []
        for rows in self._consumer.poll(timeout_ms=50).values():
            for row in rows:
                records.append(
                    {
                        "topic": row.topic,
                        "partition": row.partition,
                        "offset": row.offset,
                        "key": pack(row.key),
                        "value": pack(row.value),
                        "headers": [[name, pack(value)] for name, value in row.headers],
                        "timestamp": row.timestamp,
                    }
                )
        return records

    def assigned(self):
        return [(row.topic, row.partition) for row in self._consumer.assignment() or []]

    def commit(self, offsets):
        """Commits synchronously."""
        self._consumer.commit({TopicPartition(t, p): at(o, m) for t, p, o, m in offsets})

    def committed(self, partitions):
        """Committed offsets and metadata."""
        found = []
        for topic, partition in partitions:
            row = self._consumer.committed(TopicPartition(topic, partition), metadata=True)
            found.append([topic, partition, row.offset if row else -1, row.metadata if row else ""])
        return found

    def seek(self, topic, partition, offset):
        """Seeks."""
        self._consumer.seek(TopicPartition(topic, partition), offset)

    def offset_for_time(self, topic, partition, timestamp):
        """First offset whose time is at least `timestamp`, or -1."""
        row = TopicPartition(topic, partition)
        found = self._consumer.offsets_for_times({row: timestamp})[row]
        return found.offset if found else -1

    def shut(self):
        self._consumer.close()


def assignor(name):
    """The library's class."""
    if name == "range":
        from kafka.coordinator.assignors.range import RangePartitionAssignor as found
    elif name == "roundrobin":
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as found
    elif name == "cooperative-sticky":
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor as found
    else:
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as found
    return found


class KafkaPythonDriver(Driver):
    """The operations with kafka-python."""

    def __init__(self):
        super().__init__()
        self._admin, self._address = None, None

    def version(self):
        return kafka.__version__

    def translate(self, error):
        return translate(error)

    def member(self, options):
        return KafkaPythonMember(options)

    def op_producer_open(self, name, bootstrap, **options):
        config = {
            "bootstrap_servers": bootstrap,
            "compression_type": None if options.get("compression", "none") == "none" else options["compression"],
            "acks": {-1: "all"}.get(options.get("acks", -1), options.get("acks")),
            "linger_ms": 5,
            "max_request_size": options.get("max_bytes", 1048576 + 4096),
            "request_timeout_ms": 30000,
            "retry_backoff_ms": 50,
            "reconnect_backoff_ms": 50,
            "reconnect_backoff_max_ms": 500,
            "retries": options.get("retries", 1000),
            "max_block_ms": 60000,
        }
        if MODERN:
            config["enable_idempotence"] = options.get("idempotent", False)
            config["delivery_timeout_ms"] = options.get("timeout_ms", 60000)
        elif options.get("retries") is None:
            # Retries may not overtake each other.
            config["max_in_flight_requests_per_connection"] = 1
        if MODERN and options.get("retries") == 0:
            config["enable_idempotence"] = False
        self.producers[name] = KafkaProducer(**config)
        return {}

    def op_produce(self, name, topic, records):
        producer = self.producers[name]
        futures = [
            producer.send(
                topic,
                value=unpack(record["value"]),
                key=unpack(record["key"]),
                headers=[(key, unpack(value)) for key, value in record["headers"]],
                partition=record["partition"],
                timestamp_ms=record["timestamp"],
            )
            for record in records
        ]
        producer.flush(60)
        rows = [future.get(timeout=60) for future in futures]
        return {"results": [[row.partition, row.offset] for row in rows]}

    def close_producer(self, producer):
        producer.close(timeout=5)

    def _admin_of(self, bootstrap):
        if self._address != bootstrap:
            if self._admin:
                self._admin.close()
            self._admin, self._address = KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=20000), bootstrap
        return self._admin

    def op_reset(self):
        if self._admin:
            self._admin.close()
        self._admin = self._address = None
        return super().op_reset()

    def op_metadata(self, bootstrap):
        admin = self._admin_of(bootstrap)
        topics = admin.describe_topics()
        cluster = admin.describe_cluster()
        return {
            "brokers": [[row.get("node_id", row.get("broker_id")), row["host"], row["port"]] for row in cluster["brokers"]],
            "topics": {row.get("name", row.get("topic")): len(row["partitions"]) for row in topics},
        }

    def op_create_topic(self, bootstrap, topic, partitions, configs=None, validate_only=False):
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, topic_configs=configs or {})
        self._admin_of(bootstrap).create_topics([new], timeout_ms=15000, validate_only=validate_only)
        return {}

    def op_delete_topic(self, bootstrap, topic):
        self._admin_of(bootstrap).delete_topics([topic], timeout_ms=15000)
        return {}

    def op_add_partitions(self, bootstrap, topic, partitions):
        self._admin_of(bootstrap).create_partitions({topic: NewPartitions(partitions)})
        return {}

    def op_topic_configs(self, bootstrap, topic):
        everything = {"config_filter": "all"} if MODERN else {}
        found = self._admin_of(bootstrap).describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)], **everything)
        return {"configs": configs_of(found, topic)}

    def op_set_topic_config(self, bootstrap, topic, key, value):
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: value})
        if MODERN:
            # Without the library's own check, so that the broker is asked.
            found = self._admin_of(bootstrap).alter_configs([resource], raise_on_unknown=False)
            said = next(iter(found.values()))[topic]
            if said not in ("OK", None):
                raise OperationError(str(said), 40 if "InvalidConfig" in str(said) else None, "")
        else:
            found = self._admin_of(bootstrap).alter_configs([resource])
            row = (found[0] if isinstance(found, list) else found).resources[0]
            if row[0]:
                raise kafka.errors.for_code(row[0])(row[1])
        return {}

    def op_list_groups(self, bootstrap):
        admin = self._admin_of(bootstrap)
        found = admin.list_groups() if hasattr(admin, "list_groups") else admin.list_consumer_groups()
        rows = [(row["group_id"], row.get("group_state", "")) if isinstance(row, dict) else (row[0], row[1]) for row in found]
        return {"groups": dict(rows)}

    def op_describe_group(self, bootstrap, group):
        admin = self._admin_of(bootstrap)
        describe = getattr(admin, "describe_groups", None) or admin.describe_consumer_groups
        found = describe([group])
        return group_of(found, group)

    def op_delete_group(self, bootstrap, group):
        admin = self._admin_of(bootstrap)
        delete = getattr(admin, "delete_groups", None) or admin.delete_consumer_groups
        found = delete([group])
        said = dict(found)[group]
        if said not in ("OK", kafka.errors.NoError):
            # Release 3 hands out the name of the error's class, release 2 the class.
            raise (getattr(kafka.errors, said) if isinstance(said, str) else said)()
        return {}

    def op_delete_records(self, bootstrap, topic, partition, offset):
        found = self._admin_of(bootstrap).delete_records({TopicPartition(topic, partition): offset})
        row = found[TopicPartition(topic, partition)]
        return {"low": row["low_watermark"] if isinstance(row, dict) else row.low_watermark}


def configs_of(found, topic):
    """{name: value} from the answer of either release."""
    if isinstance(found, dict):
        rows = next(iter(found.values()))
        if topic in rows:
            rows = rows[topic]
        return {name: (row["value"] if isinstance(row, dict) else getattr(row, "value", row)) for name, row in rows.items()}
    # Release 2 hands out raw answers: (error, message, type, name, [(name, value, ...)]).
    return {row[0]: row[1] for row in found[0].resources[0][4]}


def group_of(found, group):
    """State and assignments from the answer of either release."""
    described = found[group] if isinstance(found, dict) else found[0]
    if isinstance(described, dict):
        members = described["members"]
        state = described.get("group_state") or described.get("state")
        plans = [member.get("member_assignment") or member.get("assignment") for member in members]
    else:
        state, plans = described.state, [member.member_assignment for member in described.members]
    rows = []
    for plan in plans:
        assignment = plan.get("assigned_partitions") or plan.get("assignment") if isinstance(plan, dict) else plan.assignment
        rows.append([[topic, p] for topic, partitions in pairs(assignment) for p in sorted(partitions)])
    return {"state": state, "members": rows}


def pairs(assignment):
    """(topic, partitions) pairs of either form."""
    for row in assignment:
        yield (row["topic"], row["partitions"]) if isinstance(row, dict) else (row[0], row[1])


if __name__ == "__main__":
    KafkaPythonDriver().serve()
