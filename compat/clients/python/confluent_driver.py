"""Driver for confluent-kafka (librdkafka)."""

import confluent_kafka
from base import Driver, Member, OperationError, pack, unpack
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, NewPartitions, NewTopic

SPECIAL = {-1: confluent_kafka.OFFSET_END, -2: confluent_kafka.OFFSET_BEGINNING, -1000: confluent_kafka.OFFSET_STORED}


def translate(error):
    """A KafkaException or KafkaError with its number; librdkafka's own errors have negative ones."""
    if isinstance(error, OperationError):
        return error
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    if isinstance(inner, confluent_kafka.KafkaError):
        return OperationError(inner.name(), inner.code(), inner.str())
    return OperationError(type(error).__name__, None, str(error))


class ConfluentMember(Member):
    """A librdkafka consumer."""

    def translate(self, error):
        return translate(error)

    def open(self):
        options = self.options
        config = {
            "bootstrap.servers": options["bootstrap"],
            "group.id": options.get("group") or "compat-no-group",
            "enable.auto.commit": False,
            "auto.offset.reset": {"none": "error"}.get(options.get("reset"), options.get("reset") or "earliest"),
            "fetch.wait.max.ms": 200,
            "allow.auto.create.topics": options.get("auto_create", False),
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "check.crcs": True,
            "topic.metadata.refresh.interval.ms": options.get("refresh_ms", 300000),
        }
        if options.get("protocol") == "consumer":
            config["group.protocol"] = "consumer"
            if options.get("assignor"):
                config["group.remote.assignor"] = options["assignor"]
        else:
            config["session.timeout.ms"] = options.get("session_ms", 6000)
            config["heartbeat.interval.ms"] = options.get("heartbeat_ms", 500)
            config["partition.assignment.strategy"] = options.get("assignor", "range")
        if options.get("isolation"):
            config["isolation.level"] = options["isolation"]
        if options.get("instance"):
            config["group.instance.id"] = options["instance"]
        if options.get("max_poll_ms"):
            config["max.poll.interval.ms"] = options["max_poll_ms"]
        if options.get("fetch_bytes"):
            config["fetch.message.max.bytes"] = options["fetch_bytes"]
            config["fetch.max.bytes"] = max(options["fetch_bytes"], 1000)
            config["message.max.bytes"] = 1000
        self._cooperative = config.get("partition.assignment.strategy") == "cooperative-sticky"
        self._consumer = Consumer(config)
        if options.get("assign"):
            rows = [TopicPartition(t, p, SPECIAL.get(o, o)) for t, p, o in options["assign"]]
            self._consumer.assign(rows)
        else:
            self._consumer.subscribe(options["topics"], on_revoke=self._revoked, on_lost=self._revoked)

    def _revoked(self, _, partitions):
        self.gave_up({(row.topic, row.partition) for row in partitions})

    def poll(self):
        records = []
        for message in self._consumer.consume(self.batch, 0.05):
            if message.error():
                raise KafkaException(message.error())
            kind, timestamp = message.timestamp()
            records.append(
                {
                    "topic": message.topic(),
                    "partition": message.partition(),
                    "offset": message.offset(),
                    "key": pack(message.key()),
                    "value": pack(message.value()),
                    "headers": [[name, pack(value)] for name, value in message.headers() or []],
                    "timestamp": timestamp if kind else None,
                }
            )
        return records

    def assigned(self):
        return [(row.topic, row.partition) for row in self._consumer.assignment()]

    def commit(self, offsets):
        """Commits synchronously; an error of one partition is an error."""
        rows = [TopicPartition(t, p, o, metadata=m) for t, p, o, m in offsets]
        for row in self._consumer.commit(offsets=rows, asynchronous=False):
            if row.error:
                raise KafkaException(row.error)

    def committed(self, partitions):
        """Committed offsets and metadata."""
        rows = self._consumer.committed([TopicPartition(t, p) for t, p in partitions], timeout=15)
        return [[r.topic, r.partition, r.offset if r.offset >= 0 else -1, r.metadata or ""] for r in rows]

    def seek(self, topic, partition, offset):
        """Seeks."""
        self._consumer.seek(TopicPartition(topic, partition, SPECIAL.get(offset, offset)))

    def offset_for_time(self, topic, partition, timestamp):
        """First offset whose time is at least `timestamp`; librdkafka gives -1 (the end) if there is none."""
        row = self._consumer.offsets_for_times([TopicPartition(topic, partition, timestamp)], timeout=15)[0]
        return row.offset if row.offset >= 0 else -1

    def shut(self):
        self._consumer.close()


class ConfluentDriver(Driver):
    """The operations with librdkafka."""

    def __init__(self):
        super().__init__()
        self._admins = {}

    def op_reset(self):
        self._admins = {}
        return super().op_reset()

    def version(self):
        return f"{confluent_kafka.__version__} (librdkafka {confluent_kafka.libversion()[0]})"

    def translate(self, error):
        return translate(error)

    def member(self, options):
        return ConfluentMember(options)

    def op_producer_open(self, name, bootstrap, **options):
        config = {
            "bootstrap.servers": bootstrap,
            "compression.type": options.get("compression", "none"),
            "enable.idempotence": options.get("idempotent", False),
            "acks": options.get("acks", -1),
            "linger.ms": options.get("linger_ms", 5),
            "message.timeout.ms": options.get("timeout_ms", 30000),
            "message.max.bytes": options.get("max_bytes", 1000000),
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
        }
        if "retries" in options:
            config["message.send.max.retries"] = options["retries"]
        self.producers[name] = Producer(config)
        return {}

    def op_produce(self, name, topic, records):
        producer, results, errors = self.producers[name], [None] * len(records), []

        def done(index):
            def report(error, message):
                if error:
                    errors.append(error)
                else:
                    results[index] = [message.partition(), message.offset()]

            return report

        for index, record in enumerate(records):
            producer.produce(
                topic,
                value=unpack(record["value"]),
                key=unpack(record["key"]),
                headers=[(key, unpack(value)) for key, value in record["headers"]],
                timestamp=record["timestamp"] or 0,
                partition=-1 if record["partition"] is None else record["partition"],
                on_delivery=done(index),
            )
        producer.flush(40)
        if errors:
            raise KafkaException(errors[0])
        return {"results": results}

    def close_producer(self, producer):
        producer.flush(5)

    def _admin(self, bootstrap):
        # Kept: results of a client that is gone never come. The address tells the brokers of two scenarios apart.
        if bootstrap not in self._admins:
            self._admins = {bootstrap: AdminClient({"bootstrap.servers": bootstrap})}
        return self._admins[bootstrap]

    def op_metadata(self, bootstrap):
        found = self._admin(bootstrap).list_topics(timeout=15)
        return {
            "brokers": [[b.id, b.host, b.port] for b in found.brokers.values()],
            "topics": {name: len(topic.partitions) for name, topic in found.topics.items()},
        }

    def op_create_topic(self, bootstrap, topic, partitions, configs=None, validate_only=False):
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=configs or {})
        self._admin(bootstrap).create_topics([new], validate_only=validate_only, request_timeout=15)[topic].result(20)
        return {}

    def op_delete_topic(self, bootstrap, topic):
        self._admin(bootstrap).delete_topics([topic], request_timeout=15)[topic].result(20)
        return {}

    def op_add_partitions(self, bootstrap, topic, partitions):
        self._admin(bootstrap).create_partitions([NewPartitions(topic, partitions)])[topic].result(20)
        return {}

    def op_topic_configs(self, bootstrap, topic):
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        found = self._admin(bootstrap).describe_configs([resource])[resource].result(20)
        return {"configs": {name: entry.value for name, entry in found.items()}}

    def op_set_topic_config(self, bootstrap, topic, key, value):
        entry = ConfigEntry(key, value, incremental_operation=confluent_kafka.admin.AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        self._admin(bootstrap).incremental_alter_configs([resource])[resource].result(20)
        return {}

    def op_list_groups(self, bootstrap):
        found = self._admin(bootstrap).list_consumer_groups(request_timeout=15).result(20)
        return {"groups": {row.group_id: row.state.name for row in found.valid}}

    def op_describe_group(self, bootstrap, group):
        found = self._admin(bootstrap).describe_consumer_groups([group], request_timeout=15)[group].result(20)
        members = [
            sorted([row.topic, row.partition] for row in (member.assignment.topic_partitions or []))
            for member in found.members
        ]
        return {"state": found.state.name, "members": members}

    def op_delete_group(self, bootstrap, group):
        self._admin(bootstrap).delete_consumer_groups([group], request_timeout=15)[group].result(20)
        return {}

    def op_delete_records(self, bootstrap, topic, partition, offset):
        row = TopicPartition(topic, partition, offset)
        found = self._admin(bootstrap).delete_records([row])
        return {"low": list(found.values())[0].result(20).low_watermark}


if __name__ == "__main__":
    ConfluentDriver().serve()
