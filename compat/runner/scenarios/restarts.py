"""The broker is killed and comes back on the same data."""

from ..context import Record
from ..crew import Crew
from ..oracle import Oracle, value
from .registry import check, scenario


def _produce_through(context, kills, rounds, size, **options):
    """Writes rounds of records one after the other and kills the broker in the middle; returns topic and oracle."""
    topic = context.topic(partitions=2)
    oracle = Oracle()
    driver = context.driver
    driver.call("producer_open", name="p", bootstrap=context.broker.bootstrap, timeout_ms=60000, **options)
    pending = []
    for number in range(rounds):
        records, rows = [], []
        for index in range(size):
            key, seq = index % 2, number * size + index
            records.append(Record(value("p", key, seq, 200), b"%d" % key, partition=key).to_json())
            rows.append(("p", key, seq))
        # Sent ahead: the driver works through them in order, so that a kill meets it in the middle.
        pending.append((rows, driver.start("produce", name="p", topic=topic, records=records)))
    for number, (rows, reply) in enumerate(pending):
        if number in kills:
            context.broker.kill()
            context.broker.start()
        for row, (partition, offset) in zip(rows, reply.wait(90)["results"]):
            oracle.acknowledged(topic, partition, offset, *row)
    driver.call("producer_close", name="p")
    return topic, oracle


@scenario("idempotent-restart", needs=("idempotent",), own_broker=True)
def idempotent(context):
    """An idempotent producer writes through two kills of the broker: no error, nothing lost, nothing twice, in order."""
    topic, oracle = _produce_through(context, {3, 8}, 12, 40, idempotent=True)
    reader = context.reader("c1", topic, partitions=(0, 1))
    for record in reader.take_exactly(len(oracle.written), 40):
        oracle.seen("c1", record)
    oracle.check()


@scenario("produce-restart", own_broker=True)
def plain(context):
    """A plain producer with retries writes through a kill: what was acknowledged is there."""
    topic, oracle = _produce_through(context, {3}, 8, 40)
    reader = context.reader("c1", topic, partitions=(0, 1))

    def look():
        for record in reader.take(200):
            oracle.seen("c1", record)
        return not oracle.missing()

    context.until(40, "every acknowledged record is read", look)


def _consume_through(context, **options):
    crew = Crew(context, 4, rough=True, session_ms=10_000, **options)
    crew.join("m1")
    crew.join("m2")
    crew.settle()
    crew.write(40)
    crew.drain()
    context.broker.kill()
    context.broker.start()
    crew.write(40)
    crew.drain(40)
    crew.settle(40)
    # A third one during the next kill: it comes back in the middle of a join.
    crew.join("m3")
    context.broker.kill()
    context.broker.start()
    crew.write(40)
    crew.drain(60)
    crew.settle(60)
    # Commits were acknowledged before the kills; a rebalance after them may repeat what was in flight.
    crew.check(duplicates=True)


@scenario("group-broker-restart", own_broker=True)
def consume(context):
    """Group members go on by themselves after the broker was killed, once while idle and once in the middle of a join."""
    _consume_through(context)


@scenario("group-broker-restart-848", needs=("kip848",), own_broker=True)
def consume_848(context):
    """The same by KIP-848."""
    _consume_through(context, protocol="consumer")


@scenario("commits-restart", own_broker=True)
def commits(context):
    """Commits survive a kill: the next member starts exactly there."""
    crew = Crew(context, 1, keys=1)
    crew.write(30)
    first = crew.join("first")
    first.take_exactly(30)
    first.commit([(crew.topic, 0, 17, "")])
    context.broker.kill()
    context.broker.start()
    second_driver = context.spawn()
    context.driver.call("reset", seconds=40)
    second = crew.join("second", driver=second_driver, session_ms=6000)
    got = second.take_exactly(13, 40)
    check([record.offset for record in got] == list(range(17, 30)), f"read {[r.offset for r in got]}")


@scenario(
    "idempotent-idle",
    needs=("idempotent",),
    short=False,
    settings={"producer.id.expiration.ms": "3000"},
)
def idle(context):
    """An idempotent producer that was idle past its expiry goes on without an error."""
    topic = context.topic()
    context.driver.call("producer_open", name="p", bootstrap=context.broker.bootstrap, idempotent=True)
    context.produce(topic, [Record(b"%d" % i, partition=0) for i in range(7)], producer="p")
    quiet = context.reader("c1", topic)
    quiet.take_exactly(7)
    context.stays(6, "nothing comes while the producer is idle", lambda: not quiet.take(100))
    context.produce(topic, [Record(b"%d" % i, partition=0) for i in range(7, 15)], producer="p")
    got = quiet.take_exactly(8)
    check([record.value for record in got] == [b"%d" % i for i in range(7, 15)], "read something else")
