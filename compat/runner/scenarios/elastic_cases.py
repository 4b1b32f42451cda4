"""Divided groups of several libraries, with strangers in them, with hot keys, and under Kafka's own tools."""

from ..clients import named
from ..context import Record
from ..workers import FENCED_SECONDS, SOON_SECONDS, Workers
from . import tools
from .elastic import PLAIN, RECORDS
from .registry import check, scenario

RAW = ("raw",)
MIXED = ("librdkafka", "java-4.3", "kafkajs")


def several(context, count, **options):
    """A group of librdkafka's members in one process, and the names of so many."""
    return Workers(context, client=named("librdkafka"), **options), [f"m{number}" for number in range(1, count + 1)]


@scenario("elastic-mixed", who=RAW, others=(*MIXED, "aiokafka"), beyond_kafka=PLAIN)
def mixed(context):
    """Three libraries divide a partition; a member of an unknown one joins: what is divided stays, and the reason is shown."""
    crew = Workers(context, record_us=600)
    crew.write(30_000)
    for name in MIXED:
        client = named(name)
        crew.join(name, driver=context.driver_of(client), client=client)
        crew.until_committed(name, FENCED_SECONDS)
    crew.spread(3)
    stranger = named("aiokafka")
    # Without a client id of its own making it is known to nobody.
    crew.join("stranger", driver=context.driver_of(stranger), client=stranger, client_id="somebody")
    crew.until(FENCED_SECONDS, "the group is not divided any further", lambda: not crew.shown()["elastic"]["eligible"])
    reason = crew.shown()["elastic"]["reason"]
    check("does not say what it is" in reason, f"the reason is said to be {reason!r}")
    before = crew.moves()
    crew.drain()
    crew.check()
    check(crew.moves() == before, lambda: f"moved after the stranger came: {crew.story()}")
    check(crew.done_by("stranger") == 0, "the stranger was given records")


@scenario("elastic-unfit", who=("platformatic",), beyond_kafka=PLAIN)
def unfit(context):
    """A library that is known not to go well with shares: its group stays plain, works as on Kafka, and says why."""
    crew = Workers(context)
    crew.write(RECORDS)
    crew.gather("first", "second")
    crew.until(SOON_SECONDS, "both are in the group", lambda: len(crew.shown()["members"]) == 2)
    crew.drain()
    check(not crew.moves(), lambda: f"divided: {crew.story()}")
    reason = crew.shown()["elastic"]["reason"]
    check("after it has given it up" in (reason or ""), f"the reason is said to be {reason!r}")


@scenario("elastic-hot-key", who=RAW, others=("librdkafka",), beyond_kafka=PLAIN)
def hot_key(context):
    """Nine of ten records have one key, four members: that key stands alone and is named, the other keys do not wait for it."""
    crew, names = several(context, 4, record_us=400)
    crew.write(RECORDS, key_of=lambda number: "hot" if number % 10 else f"k{number // 10 % 200}")
    crew.gather(*names)

    def others_done():
        done = {one.place for one in crew.judge().deliveries}
        return not [place for place, (key, _) in crew.written.items() if key != "hot" and place not in done]

    crew.until(SOON_SECONDS, "the other keys are done", others_done)
    check(crew.judge().missing(), "the hot key was done as soon as all others")
    crew.until(SOON_SECONDS, "the hot key is named", lambda: any(row["reason"] == "hot-key" for row in crew.decisions()))
    check(crew.moves() <= 10, lambda: f"{crew.moves()} moves: {crew.story()}")
    crew.drain()
    crew.check()


@scenario("elastic-one-key", who=RAW, others=("librdkafka",), beyond_kafka=PLAIN)
def one_key(context):
    """All records have one key, three members: two have nothing to do and stay calm; nothing is divided again and again."""
    crew, names = several(context, 3)
    crew.write(RECORDS, keys=1)
    for name in names:
        crew.join(name)
    crew.drain()
    crew.check()
    workers = [log.member for log in crew.logs if log.deliveries]
    check(crew.moves() <= 3, lambda: f"{crew.moves()} moves: {crew.story()}")
    context.log(f"worked: {workers}")


@scenario("elastic-reset", who=("kafka-tools",), others=("librdkafka",), beyond_kafka=PLAIN)
def reset(context):
    """kafka-consumer-groups on a divided group: lag is exact; after the members left, a reset ends the division."""
    crew, names = several(context, 2, record_us=400)
    crew.write(RECORDS)
    crew.gather(*names)
    crew.spread(2)
    crew.until_committed("m2")
    said = tools.run(context, "groups", "--describe", "--group", crew.group)
    lags = [int(row.split()[5]) for row in said.splitlines() if row.startswith(crew.group)]
    check(lags and all(0 <= lag <= RECORDS for lag in lags), f"described as {said}")
    for name in names:
        crew.leave(name)
    check(crew.shares() or crew.shown()["partitions"], "the group is gone")
    ask = ["groups", "--reset-offsets", "--group", crew.group, "--topic", crew.topic, "--to-offset", "5000", "--execute"]
    tools.run(context, *ask)
    crew.forget_committed()
    row = crew.shown()["partitions"][0]
    check((row["form"], row["committed"], row["lag"]) == ("plain", 5000, RECORDS - 5000), f"after the reset {row}")
    # From here on it is another history.
    crew.logs.clear()
    crew.written = {place: identity for place, identity in crew.written.items() if place[1] >= 5000}
    crew.join("m3")
    crew.drain()
    judge = crew.check()
    check(judge.deliveries[0].offset == 5000, f"went on with {judge.deliveries[0]}")


@scenario("elastic-writers", who=RAW, others=("librdkafka", "java-4.3"), beyond_kafka=PLAIN)
def writers(context):
    """Two libraries write the same keys, each with its own hash: the broker's own divides, so that order holds for both."""
    crew, names = several(context, 3, partitions=4, record_us=1000)
    for name in ("librdkafka", "java-4.3"):
        driver = context.driver_of(named(name))
        records = [Record(b"-|%d" % number, b"k%d" % (number % 100)) for number in range(6000)]
        # Where it wants: what was written is known by the place that was acknowledged alone.
        for number, (partition, offset) in enumerate(context.produce(crew.topic, records, driver=driver)):
            crew.written[(partition, offset)] = (f"k{number % 100}", None)
    _number(crew)
    crew.gather(*names)
    crew.drain()
    crew.check()
    check(crew.moves() > 0, lambda: f"nothing was divided: {crew.story()}")


def _number(crew):
    """Numbers the records of each key in each partition in the order in which they lie there."""
    seqs = {}
    for place in sorted(crew.written):
        key, _ = crew.written[place]
        seq = seqs.get((place[0], key), 0)
        seqs[(place[0], key)] = seq + 1
        crew.written[place] = (key, seq)
