"""Groups that divide a partition, with each client library as it is.

Members work by themselves and write down what they do; see workers.py. Every scenario ends with the same check of what was
written down, and proves from the broker's own interface that the partition was divided.
"""

import time

from ..workers import FENCED_SECONDS, SOON_SECONDS, Workers
from .registry import check, scenario

PLAIN = "a real Kafka does not divide a partition"
PROTOCOLS = {"": {}, "-cooperative": {"assignor": "cooperative-sticky"}, "-kip848": {"protocol": "consumer"}}
NEEDS = {"": ("shares",), "-cooperative": ("shares", "cooperative"), "-kip848": ("shares", "kip848")}
RECORDS = 20_000


def _family(context, variant):
    """The options that make members of a variant."""
    if variant == "" and context.client.eager:
        return {"assignor": context.client.eager}
    return PROTOCOLS[variant]


def elastic(name, variants=("", "-cooperative", "-kip848"), short=("", "-cooperative", "-kip848"), **details):
    """Declares a scenario for each way in which a library can be a member; `short` are those that every run has."""

    def register(run):
        for variant in variants:

            def one(context, variant=variant):
                run(context, **_family(context, variant))

            how = {"": "classic, eager", "-cooperative": "classic, cooperative", "-kip848": "KIP-848"}[variant]
            one.__doc__ = f"{run.__doc__.split(chr(10))[0]} ({how})"
            scenario(f"elastic-{name}{variant}", needs=NEEDS[variant], short=variant in short, beyond_kafka=PLAIN, **details)(one)
        return run

    return register


@elastic("split")
def split(context, **options):
    """A second member joins while the first works off a backlog in one partition: both work, nobody is disturbed."""
    crew = Workers(context, **options)
    crew.write(RECORDS)
    crew.gather("first", "second")
    crew.until_begun("second")
    crew.until(SOON_SECONDS, "both hold a share", lambda: crew.holders() == 2)
    crew.drain()
    crew.check()
    check(crew.decisions("split", done=True), "no split in the log of decisions")
    first = crew.log_of("first")
    disturbed = [moment for moment in first.given_up if first.first_in_slice and moment > first.first_in_slice]
    if options.get("assignor") == "cooperative-sticky" or options.get("protocol"):
        check(not disturbed, f"the first member had to give up {len(disturbed)} times after its first share")
    check(crew.done_by("second") > RECORDS // 10, f"the second member had only {crew.done_by('second')} records")


def _two(context, **options):
    """Two members that share, the second in a process of its own, which may be killed."""
    crew = Workers(context, **options)
    crew.write(RECORDS)
    crew.gather("first")
    victim = context.spawn()
    crew.join("second", driver=victim)
    crew.spread(2)
    crew.until_committed("second")
    return crew, victim


@elastic("grow", short=("",))
def grow(context, **options):
    """One member, then three more at once: a cut in four; they leave one by one, and what they had flows to the others."""
    count = 4 if context.short else 8
    crew = Workers(context, record_us=400, **options)
    crew.write(30_000 if context.short else 100_000)
    names = [f"m{number}" for number in range(2, count + 1)]
    # Where to begin is the group's matter, never again the reset policy's.
    crew.gather("m1", *names, reset="latest")
    crew.spread(count)
    crew.until_begun(*names)
    for left, name in enumerate(names):
        crew.leave(name)
        crew.spread(count - 1 - left)
    # Most of it is left to one member.
    crew.drain(90)
    crew.check()
    kinds = {row["kind"] for row in crew.decisions(done=True)}
    check("split" in kinds, f"decisions {kinds}")


SESSION = {
    "group.min.session.timeout.ms": "3000",
    "group.consumer.min.session.timeout.ms": "4000",
    "group.consumer.session.timeout.ms": "4000",
}
SESSION_MS = 4000


@elastic("death", short=("", "-kip848"), settings=SESSION)
def death(context, **options):
    """A member's process is killed in the middle of its share: the other goes on where its commits ended."""
    crew, victim = _two(context, session_ms=SESSION_MS, **options)
    victim.kill()
    crew.lose("second")
    crew.drain(SESSION_MS / 1000 + 20)
    crew.check()


@elastic("pause", short=(), settings=SESSION)
def pause(context, **options):
    """A member's process stands still past its session, is expelled, and comes back: nothing is lost, its late work has no effect."""
    crew, victim = _two(context, session_ms=SESSION_MS, **options)
    crew.stop("second", victim)
    crew.spread(1)
    crew.go_on(victim)
    crew.drain()
    crew.check()


@elastic("broker-kill", short=("", "-kip848"), own_broker=True)
def broker_kill(context, **options):
    """The broker is killed in the phases of a division, and comes back: what was committed stays so, each key in order."""
    crew = Workers(context, record_us=400, session_ms=10_000, **options)
    crew.write(30_000)
    crew.gather("first")
    begun = time.monotonic()
    crew.join("second")
    # At once: somewhere between the join and the first division.
    _kill(crew)
    crew.until_begun("second", seconds=FENCED_SECONDS)
    _kill(crew)
    crew.join("third")
    crew.until_begun("third", seconds=FENCED_SECONDS)
    _kill(crew)
    context.log(f"three kills within {time.monotonic() - begun:.1f} s")
    crew.drain()
    crew.check()
    check(crew.decisions("split", done=True), "no split in the log of decisions")


def _kill(crew):
    crew.context.broker.kill()
    crew.context.broker.start()
    # What was searched in vain between two records of a share is not durable: outsiders may see an offset before that gap.
    crew.forget_committed()


@elastic("rolling", variants=("", "-cooperative"), short=())
def rolling(context, **options):
    """Three members are restarted one after the other while they share: each time what one had flows to the others and back."""
    crew = Workers(context, record_us=400, **options)
    crew.write(60_000)
    crew.gather("m1", "m2", "m3")
    crew.spread(3)
    for number, name in enumerate(("m1", "m2", "m3")):
        crew.leave(name)
        crew.spread(2)
        crew.join(f"n{number}")
        crew.spread(3)
    crew.drain()
    crew.check()


@scenario("elastic-rolling-static", needs=("shares", "static"), beyond_kafka=PLAIN, short=False)
def rolling_static(context):
    """Static members are restarted one after the other: each finds its share again, and nothing is divided anew."""
    crew = Workers(context, record_us=3000, session_ms=30_000, **_family(context, ""))
    crew.write(RECORDS)
    drivers = {}
    for number in (1, 2, 3):
        drivers[number] = context.spawn()
        crew.join(f"m{number}", driver=drivers[number], instance=f"i{number}")
        crew.until_committed(f"m{number}")
    crew.spread(3)
    before = crew.moves()
    for number in (1, 2, 3):
        drivers[number].kill()
        crew.lose(f"m{number}")
        crew.join(f"n{number}", driver=context.spawn(), instance=f"i{number}")
        crew.until_begun(f"n{number}", seconds=FENCED_SECONDS)
    check(crew.moves() == before, lambda: f"{crew.moves() - before} decisions during the restarts: {crew.story()}")
    crew.drain()
    crew.check()


@scenario("elastic-forms", needs=("shares",), beyond_kafka=PLAIN)
def forms(context):
    """Compressed batches, records without keys, without values, larger than the fetch limit, read_committed: all of it, divided."""
    crew = Workers(context, fetch_bytes=16_384, isolation="read_committed", **_family(context, ""))
    crew.write(4_000)
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        crew.write(3_000, keys=41, codec=codec, null_every=7)
    crew.write(3_000, key_of=lambda number: None)
    for _ in range(3):
        crew.write(1, key_of=lambda number: "k1", size=200_000)
        crew.write(500, keys=3)
    crew.gather("first", "second")
    crew.until_begun("second")
    crew.drain()
    crew.check()
    check(crew.decisions("split", done=True), "no split in the log of decisions")


@scenario("elastic-beside", needs=("shares",), short=False, beyond_kafka=PLAIN)
def beside(context):
    """While a group divides a partition, another group and a reader without a group see the plain log, and lag is true."""
    crew = Workers(context, **_family(context, ""))
    crew.write(RECORDS)
    crew.gather("first", "second")
    crew.spread(2)
    readers = [context.consumer("plain", group=context.name("plain"), topics=[crew.topic])]
    if context.client.can("assign"):
        # kafka-go and sarama ask where a partition begins before they say more than a client id, which has to be its own.
        readers.append(context.consumer("assigned", assign=[[crew.topic, 0, -2]], client_id=context.name("reader")))
    for reader in readers:
        got = []
        crew.until(40, f"{reader.name} has read all", lambda: got.extend(reader.take(50, 5000)) or len(got) >= RECORDS)
        check([record.offset for record in got] == list(range(RECORDS)), f"{reader.name} read other offsets than the log has")
        reader.close()
    crew.drain()
    crew.check()
    check(crew.decisions("split", done=True), "no split in the log of decisions")
