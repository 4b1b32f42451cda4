"""What users of such systems ran into: records without keys, a few hot keys, consumers that come and go, a record that takes too
long, a record that cannot be worked on."""

import time

from ..errors import Late
from ..workers import FENCED_SECONDS, SOON_SECONDS, Workers, now_us
from .elastic import PLAIN, RECORDS
from .elastic_cases import RAW, several
from .registry import check, scenario


def _done_by(crew):
    """{member: records that it was the first to work on}."""
    first = {}
    for one in crew.judge().deliveries:
        first.setdefault(one.place, one.member)
    counts = {}
    for member in first.values():
        counts[member] = counts.get(member, 0) + 1
    return counts


@scenario("elastic-no-keys", who=RAW, others=("librdkafka",), beyond_kafka=PLAIN)
def no_keys(context):
    """No record has a key, four members: each does its part, in whatever order."""
    crew, names = several(context, 4, record_us=1000)
    crew.write(RECORDS, key_of=lambda number: None, batch=20)
    # All are there when it is divided: who comes a moment later gets half of what one of the others got.
    crew.gather(names[0])
    crew.order("pause")
    for name in names[1:]:
        crew.join(name)
    crew.until(SOON_SECONDS, "all are members", lambda: len(crew.shown()["members"]) == len(names))
    check(not crew.shares(), "a paused group was divided")
    crew.order("resume")
    crew.drain()
    crew.check()
    shares = {member: count / RECORDS for member, count in _done_by(crew).items()}
    check(len(shares) == 4 and all(0.15 <= share <= 0.35 for share in shares.values()), f"shares {shares}")


@scenario("elastic-hot-keys", who=RAW, others=("librdkafka",), beyond_kafka=PLAIN)
def hot_keys(context):
    """Four keys have nearly all records, four members: at least three of the keys end up with members of their own."""
    crew, names = several(context, 4, record_us=600)
    crew.write(RECORDS, key_of=lambda number: f"hot{number % 4}" if number % 9 else f"k{number // 9 % 200}")
    crew.gather(*names)
    crew.drain()
    crew.check()
    last = {crew.written[one.place][0]: one.member for one in crew.judge().deliveries}
    owners = {key: member for key, member in last.items() if key.startswith("hot")}
    check(len(set(owners.values())) >= 3, f"the hot keys ended with {owners}: {crew.story()}")


CALM_SECONDS, FLAPPING_SECONDS, VISIT_SECONDS = 10, 45, 3
# As `elastic.split.cooldown.ms` is by default, less what the clock of another process may be off.
COOLDOWN_MS = 990
STILL_MS_MAX = 500


@scenario("elastic-flapping", needs=("shares", "cooperative"), short=False, beyond_kafka=PLAIN)
def flapping(context):
    """Four members work, a fifth comes and goes every three seconds: it costs the others little, and they never stand still for it."""
    crew = Workers(context, record_us=2000, assignor="cooperative-sticky")
    crew.write(140_000)
    steady = [f"m{number}" for number in range(1, 5)]
    crew.gather(*steady)
    crew.spread(4)
    crew.until_begun(*steady)
    calm = (now_us(), now_us() + CALM_SECONDS * 1_000_000)
    time.sleep(CALM_SECONDS)
    # The visitor is a process of its own, as a pod would be.
    visitor = context.spawn()
    before, begun, visits = crew.moves(), now_us(), 0
    while now_us() - begun < FLAPPING_SECONDS * 1_000_000:
        name = f"visitor{visits}"
        crew.join(name, driver=visitor)
        crew.watch()
        time.sleep(VISIT_SECONDS)
        crew.leave(name)
        visits += 1
    flapping = (begun, now_us())
    rate = lambda window: len([one for one in crew.judge().deliveries if window[0] <= one.ended < window[1]]) / (window[1] - window[0])
    kept = rate(flapping) / rate(calm)
    still = {name: _stood_still(crew.log_of(name), flapping) for name in steady}
    divisions = sorted(row["time_ms"] for row in crew.decisions(done=True) if row["kind"] in ("split", "steal"))
    context.log(f"{visits} visits, {crew.moves() - before} moves, kept {kept:.2f} of the speed, longest pauses {still} ms")
    close = [late - early for early, late in zip(divisions, divisions[1:]) if late - early < COOLDOWN_MS]
    check(not close, f"divisions {close} ms after another")
    check(kept >= 0.7, f"{kept:.2f} of the speed was left")
    crew.drain()
    crew.check()
    # Last, and as something that is late: a machine that stood still is no fault.
    if max(still.values()) > STILL_MS_MAX:
        raise Late(f"steady members stood still for {still} ms")


def _stood_still(log, window):
    """The longest time between two batches of a member, in milliseconds."""
    within = [one for one in log.deliveries if window[0] <= one.begun and one.ended < window[1]]
    return max((late.begun - early.ended for early, late in zip(within, within[1:])), default=0) // 1000


# So that what lies behind a record that holds its member up is not too little to be moved.
FINE = {"elastic_split_min_remaining": "50", "elastic_steal_min_remaining": "50"}
# aiokafka leaves the group then, and was not seen to come back by itself.
SLOW = ("librdkafka", "kafka-python-3")


@scenario("elastic-slow-record", who=SLOW, short=False, beyond_kafka=PLAIN)
def slow_record(context):
    """A record takes longer than the poll interval: the other keys go on, late commits have no effect, and with patience all ends well."""
    work = {"slow_key": "slow", "slow_ms": 9000}
    crew = Workers(context, record_us=500, work=work, settings=FINE, max_poll_ms=6500)
    count, at = 12_000, 8_000
    crew.write(count, key_of=lambda number: "slow" if number == at else f"k{number % 200}")
    crew.gather("m1", "m2", "m3", apart=True)
    crew.until_begun("m2", "m3")
    begun = now_us()

    def others_done():
        done = {one.place for one in crew.judge().deliveries}
        return not [place for place, (key, _) in crew.written.items() if key != "slow" and place not in done]

    crew.until(FENCED_SECONDS, "the other keys are done", others_done)
    context.log(f"the other keys took {(now_us() - begun) / 1e6:.1f} s")
    place = (0, at)
    late = lambda: [one for one in crew.judge().deliveries if one.place == place]
    crew.until(SOON_SECONDS, "the slow record was tried", lambda: len(late()) > 0)
    check(all(one.committed is None for one in late()), f"the late commit of {late()} was taken")
    check(crew.shown()["partitions"][0]["committed"] <= at, "what is not done is committed")
    given_up = {log.member: len(log.given_up) for log in crew.logs}
    check(max(given_up.values()) <= 10, f"members gave up {given_up} times")
    for name in list(crew.members):
        crew.leave(name)
    crew.join("patient", max_poll_ms=60_000)
    done = lambda: crew.shown()["partitions"][0]["lag"] == 0
    crew.until(FENCED_SECONDS, "everything is committed", done)
    check(not crew.judge().missing(), "a record came to nobody")


@scenario("elastic-poison", who=("kafkajs",), short=False, beyond_kafka=PLAIN)
def poison(context):
    """No member can work on a certain record: the other keys go on, nothing is divided again and again; mended, the rest follows in order."""
    crew = Workers(context, record_us=500, work={"poison_key": "bad"}, settings=FINE)
    count = 12_000
    crew.write(count, key_of=lambda number: "bad" if number == 2 * count // 3 else f"k{number % 500}")
    crew.gather("m1", "m2", "m3", apart=True)
    crew.spread(3)
    innocent = {place for place, (key, _) in crew.written.items() if key != "bad"}

    def mostly():
        done = {one.place for one in crew.judge().deliveries}
        return len(innocent & done) > 0.95 * len(innocent)

    crew.until(FENCED_SECONDS, "the other keys are done", mostly)
    check(crew.moves() <= 8, lambda: f"{crew.moves()} moves: {crew.story()}")
    for name in list(crew.members):
        crew.leave(name)
    crew.work = {}
    crew.join("mended")
    crew.drain()
    crew.check()
