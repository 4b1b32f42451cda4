"""One group of many libraries."""

from ..clients import named
from ..context import Record
from ..crew import Crew
from ..errors import Failure
from .registry import check, scenario

RAW = ("raw",)
# Five libraries that all know the range assignor, so that a real Kafka lets them into one group.
RANGE = ("java-4.3", "librdkafka", "franz-go", "sarama", "kafka-python-3")
# As above, and two that know only assignors of their own: a group without a client leader takes them, too.
ALL_KINDS = ("java-3.9", "librdkafka", "franz-go", "sarama", "aiokafka", "kafkajs", "platformatic")


def _join_all(context, crew, names):
    drivers = {}
    for name in names:
        drivers[name] = context.driver_of(named(name))
        crew.join(name, driver=drivers[name])
    return drivers


@scenario("mixed-spares", who=RAW, others=RANGE)
def spares(context):
    """Five libraries on one partition: one works, four stay calm; when its process is killed, another takes over."""
    crew = Crew(context, 1, keys=1, session_ms=6000)
    drivers = _join_all(context, crew, RANGE)
    crew.settle(40)
    writer = drivers["librdkafka"]
    crew.write(30, driver=writer)
    crew.drain()
    held = {name: member.assignment for name, member in crew.members.items()}

    def same():
        crew.pump(wait_ms=10)
        now = {name: member.assignment for name, member in crew.members.items()}
        return now == held or context.log(f"before {held}, now {now}")

    context.stays(4 if context.short else 40, "the assignment of five members on one partition", same)
    owner = next(name for name, pairs in held.items() if pairs)
    drivers[owner].kill()
    crew.lose(owner)
    survivor = next(driver for name, driver in drivers.items() if name != owner)
    crew.write(30, driver=survivor)
    crew.drain(16)
    crew.check()


@scenario("mixed-assignors", who=RAW, others=ALL_KINDS, beyond_kafka="a Kafka wants an assignor that all members share")
def assignors(context):
    """Seven libraries with range, round robin, cooperative and their own assignors share one group."""
    crew = Crew(context, 14, keys=14, rough=True, session_ms=10_000)
    drivers = {}
    for name in ALL_KINDS:
        drivers[name] = context.driver_of(named(name))
        options = {"franz-go": {"assignor": "cooperative-sticky"}, "librdkafka": {"assignor": "roundrobin"}}.get(name, {})
        crew.join(name, driver=drivers[name], **options)
        crew.settle(40)
        crew.write(28, driver=drivers[ALL_KINDS[0]])
        crew.drain(40)
    for name in ("kafkajs", "librdkafka"):
        crew.leave(name)
        crew.settle(40)
        crew.write(28, driver=drivers[ALL_KINDS[0]])
        crew.drain(40)
    crew.check(duplicates=True)


@scenario("mixed-protocols", who=RAW, others=("java-4.3", "java-3.9", "librdkafka", "franz-go"))
def protocols(context):
    """Classic and KIP-848 members share one group, and the group changes its kind while it runs."""
    crew = Crew(context, 8, keys=8, rough=True, session_ms=10_000)
    plan = (("java-3.9", {}), ("java-4.3", {"protocol": "consumer"}), ("librdkafka", {"protocol": "consumer"}), ("franz-go", {}))
    drivers = {}
    for name, options in plan:
        drivers[name] = context.driver_of(named(name))
        crew.join(name, driver=drivers[name], **options)
        crew.settle(40)
        crew.write(16, driver=drivers["java-3.9"])
        crew.drain(40)
    for name in ("java-4.3", "librdkafka"):
        crew.leave(name)
        crew.settle(40)
        crew.write(16, driver=drivers["java-3.9"])
        crew.drain(40)
    crew.check(duplicates=True)


@scenario("mixed-writers", who=RAW, others=RANGE)
def writers(context):
    """Five libraries write, each codec in turn, and five read the same bytes."""
    topic = context.topic()
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    drivers = {name: context.driver_of(named(name)) for name in RANGE}
    values = []
    for turn, codec in enumerate(codecs):
        for name, driver in drivers.items():
            value = f"{name} {codec} {turn} ".encode() * 50
            values.append(value)
            context.produce(topic, [Record(value, b"key", partition=0)], driver=driver, compression=codec)
    for name, driver in drivers.items():
        reader = context.consumer("reader", driver, assign=[[topic, 0, -2]])
        got = [record.value for record in reader.take_exactly(len(values))]
        if got != values:
            raise Failure(f"{name} read other bytes than were written")
    check(len(values) == 25, "a writer is missing")
