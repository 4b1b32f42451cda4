"""Driver for aiokafka."""

import asyncio
import threading

import aiokafka
import aiokafka.errors
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.structs import OffsetAndMetadata
from base import Driver, Member, OperationError, pack, unpack

ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor, "sticky": StickyPartitionAssignor}

# The library lives in one event loop, in a thread of its own.
LOOP = asyncio.new_event_loop()
threading.Thread(target=LOOP.run_forever, daemon=True).start()


def wait(coroutine, seconds=60):
    """Runs a coroutine in the loop and waits for it."""
    return asyncio.run_coroutine_threadsafe(coroutine, LOOP).result(seconds)


def translate(error):
    """A KafkaError with its number."""
    if isinstance(error, OperationError):
        return error
    number = getattr(error, "errno", None)
    if isinstance(error, aiokafka.errors.KafkaError) and isinstance(number, int) and number >= 0:
        return OperationError(getattr(error, "message", None) or type(error).__name__, number, str(error))
    return OperationError(type(error).__name__, None, str(error))


class Listener(ConsumerRebalanceListener):
    """Drops what is queued of partitions that are taken away.

    The library rebalances beside the application. One that works lets the batch in work come to its end first, and begins none
    before the assignment is known.
    """

    def __init__(self, member):
        self._member = member

    async def on_partitions_revoked(self, revoked):
        self._member.rebalancing = True
        if self._member.work:
            await LOOP.run_in_executor(None, self._wait_for_batch)
        self._member.gave_up({(row.topic, row.partition) for row in revoked})

    def _wait_for_batch(self):
        with self._member.work.busy:
            pass

    async def on_partitions_assigned(self, assigned):
        self._member.rebalancing = False


class AiokafkaMember(Member):
    """An AIOKafkaConsumer."""

    rebalancing = False

    def translate(self, error):
        return translate(error)

    def open(self):
        wait(self._open())

    async def _open(self):
        options = self.options
        config = {
            "bootstrap_servers": options["bootstrap"],
            "group_id": options.get("group"),
            "enable_auto_commit": False,
            "auto_offset_reset": options.get("reset") or "earliest",
            "fetch_max_wait_ms": 200,
            "retry_backoff_ms": 50,
            "metadata_max_age_ms": options.get("refresh_ms", 300000),
            "session_timeout_ms": options.get("session_ms", 6000),
            "rebalance_timeout_ms": 10000,
            "heartbeat_interval_ms": 500,
            "max_poll_interval_ms": options.get("max_poll_ms", 300000),
            "partition_assignment_strategy": [ASSIGNORS[options.get("assignor") or "range"]],
            "check_crcs": True,
        }
        if options.get("client_id"):
            config["client_id"] = options["client_id"]
        if options.get("instance"):
            config["group_instance_id"] = options["instance"]
        if options.get("fetch_bytes"):
            config["max_partition_fetch_bytes"] = options["fetch_bytes"]
            config["fetch_max_bytes"] = options["fetch_bytes"]
        self._consumer = AIOKafkaConsumer(**config)
        if options.get("assign"):
            self._consumer.assign([TopicPartition(t, p) for t, p, _ in options["assign"]])
        else:
            self._consumer.subscribe(options["topics"], listener=Listener(self))
        await self._consumer.start()
        for topic, partition, offset in options.get("assign") or []:
            row = TopicPartition(topic, partition)
            if offset == -2:
                await self._consumer.seek_to_beginning(row)
            elif offset == -1:
                await self._consumer.seek_to_end(row)
            else:
                self._consumer.seek(row, offset)

    def poll(self):
        return wait(self._poll())

    async def _poll(self):
        records = []
        if self.work and self.rebalancing:
            await asyncio.sleep(0.01)
            return records
        for rows in (await self._consumer.getmany(timeout_ms=50, max_records=self.batch)).values():
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
        return [(row.topic, row.partition) for row in self._consumer.assignment()]

    def commit(self, offsets):
        """Commits."""
        wait(self._consumer.commit({TopicPartition(t, p): OffsetAndMetadata(o, m) for t, p, o, m in offsets}))

    def committed(self, partitions):
        """Committed offsets; the library does not hand out the text."""
        rows = [[t, p, wait(self._consumer.committed(TopicPartition(t, p)))] for t, p in partitions]
        return [[t, p, -1 if offset is None else offset, ""] for t, p, offset in rows]

    def seek(self, topic, partition, offset):
        """Seeks."""

        async def there():
            self._consumer.seek(TopicPartition(topic, partition), offset)

        wait(there())

    def offset_for_time(self, topic, partition, timestamp):
        """First offset whose time is at least `timestamp`, or -1."""
        row = TopicPartition(topic, partition)
        found = wait(self._consumer.offsets_for_times({row: timestamp}))[row]
        return found.offset if found else -1

    def shut(self):
        wait(self._consumer.stop())


class AiokafkaDriver(Driver):
    """The operations with aiokafka."""

    def __init__(self):
        super().__init__()
        self._admin, self._address = None, None

    def version(self):
        return aiokafka.__version__

    def translate(self, error):
        return translate(error)

    def member(self, options):
        return AiokafkaMember(options)

    def op_producer_open(self, name, bootstrap, **options):
        async def start():
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if options.get("compression", "none") == "none" else options["compression"],
                acks={-1: "all"}.get(options.get("acks", -1), options.get("acks")),
                enable_idempotence=options.get("idempotent", False),
                linger_ms=5,
                max_request_size=options.get("max_bytes", 1048576 + 4096),
                max_batch_size=options.get("max_bytes", 16384),
                request_timeout_ms=options.get("timeout_ms", 40000),
                retry_backoff_ms=50,
            )
            await producer.start()
            return producer

        self.producers[name] = wait(start())
        return {}

    def op_produce(self, name, topic, records):
        producer = self.producers[name]

        async def send():
            futures = [
                await producer.send(
                    topic,
                    value=unpack(record["value"]),
                    key=unpack(record["key"]),
                    headers=[(key, unpack(value)) for key, value in record["headers"]],
                    partition=record["partition"],
                    timestamp_ms=record["timestamp"],
                )
                for record in records
            ]
            return [[row.partition, row.offset] for row in await asyncio.gather(*futures)]

        return {"results": wait(send(), 90)}

    def close_producer(self, producer):
        wait(producer.stop())

    def _admin_of(self, bootstrap):
        if self._address != bootstrap:
            self._close_admin()

            async def start():
                admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
                await admin.start()
                return admin

            self._admin, self._address = wait(start()), bootstrap
        return self._admin

    def _close_admin(self):
        if self._admin:
            wait(self._admin.close())
        self._admin = self._address = None

    def op_reset(self):
        self._close_admin()
        return super().op_reset()

    def op_metadata(self, bootstrap):
        admin = self._admin_of(bootstrap)
        cluster = wait(admin.describe_cluster())
        topics = wait(admin.describe_topics())
        return {
            "brokers": [[row["node_id"], row["host"], row["port"]] for row in cluster["brokers"]],
            "topics": {row["topic"]: len(row["partitions"]) for row in topics},
        }

    def op_create_topic(self, bootstrap, topic, partitions, configs=None, validate_only=False):
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, topic_configs=configs or {})
        found = wait(self._admin_of(bootstrap).create_topics([new], timeout_ms=15000, validate_only=validate_only))
        raise_first(row[1] for row in found.topic_errors)
        return {}

    def op_delete_topic(self, bootstrap, topic):
        found = wait(self._admin_of(bootstrap).delete_topics([topic], timeout_ms=15000))
        raise_first(row[1] for row in found.topic_error_codes)
        return {}

    def op_add_partitions(self, bootstrap, topic, partitions):
        found = wait(self._admin_of(bootstrap).create_partitions({topic: NewPartitions(partitions)}))
        raise_first(row[1] for row in found.topic_errors)
        return {}

    def op_topic_configs(self, bootstrap, topic):
        found = wait(self._admin_of(bootstrap).describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)]))
        return {"configs": {row[0]: row[1] for row in found[0].resources[0][4]}}

    def op_set_topic_config(self, bootstrap, topic, key, value):
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: value})
        found = wait(self._admin_of(bootstrap).alter_configs([resource]))
        raise_first(row[0] for row in found[0].resources)
        return {}

    def op_list_groups(self, bootstrap):
        return {"groups": dict(wait(self._admin_of(bootstrap).list_consumer_groups()))}

    def op_delete_records(self, bootstrap, topic, partition, offset):
        from aiokafka.admin import RecordsToDelete

        row = TopicPartition(topic, partition)
        return {"low": wait(self._admin_of(bootstrap).delete_records({row: RecordsToDelete(before_offset=offset)}))[row]}


def raise_first(numbers):
    """Raises the first error of an answer."""
    for number in numbers:
        if number:
            raise aiokafka.errors.for_code(number)


if __name__ == "__main__":
    AiokafkaDriver().serve()
