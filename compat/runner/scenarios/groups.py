"""Groups that grow, shrink and come back, by each protocol and assignor."""

from ..crew import Crew
from .registry import check, scenario


def _grow_and_shrink(context, **options):
    crew = Crew(context, 6, **options)
    crew.write(60)
    crew.join("m1")
    crew.settle()
    crew.drain()
    for name in ("m2", "m3"):
        crew.join(name)
        crew.settle()
        crew.write(60)
        crew.drain()
    for name in ("m1", "m3"):
        crew.leave(name)
        crew.settle()
        crew.write(60)
        crew.drain()
    # Each record was committed before the next change, so nothing may come twice.
    crew.check()
    crew.leave("m2")


def _eager(context):
    """The options of the library's plainest eager assignor."""
    return {"assignor": context.client.eager} if context.client.eager else {}


@scenario("group-eager")
def by_range(context):
    """Classic, range or the library's own: 1, 2, 3, 2, 1 members; nothing lost, nothing twice, keys in order."""
    _grow_and_shrink(context, **_eager(context))


@scenario("group-roundrobin", needs=("roundrobin",), short=False)
def by_round_robin(context):
    """Classic, round robin: the same."""
    _grow_and_shrink(context, assignor="roundrobin")


@scenario("group-sticky", needs=("sticky",), short=False)
def by_sticky(context):
    """Classic, eager sticky: the same."""
    _grow_and_shrink(context, assignor="sticky")


@scenario("group-cooperative", needs=("cooperative",))
def by_cooperative(context):
    """Classic, cooperative sticky: the same."""
    _grow_and_shrink(context, assignor="cooperative-sticky")


@scenario("group-kip848", needs=("kip848",))
def by_kip848(context):
    """The group protocol of KIP-848: the same."""
    _grow_and_shrink(context, protocol="consumer")


@scenario("group-kip848-range", needs=("kip848", "remote_assignor"), short=False)
def by_kip848_range(context):
    """KIP-848 with the server's range assignor: the same."""
    _grow_and_shrink(context, protocol="consumer", assignor="range")


def _restart(context, **options):
    crew = Crew(context, 4, **options)
    crew.write(80)
    crew.join("first")
    crew.join("second")
    crew.settle()
    crew.drain()
    for name in ("first", "second"):
        crew.leave(name)
    crew.write(40)
    crew.join("third")
    crew.settle()
    crew.drain()
    crew.check()


@scenario("group-restart")
def restart(context):
    """All members leave and others come: they go on exactly at the commits."""
    _restart(context)


@scenario("group-restart-kip848", needs=("kip848",), short=False)
def restart_848(context):
    """The same by KIP-848."""
    _restart(context, protocol="consumer")


@scenario("group-uncommitted")
def uncommitted(context):
    """What was read but never committed is read again by the next member, and only that."""
    crew = Crew(context, 1, keys=1)
    crew.write(30)
    first = crew.join("first")
    got = first.take_exactly(30)
    first.commit([(crew.topic, 0, 12, "")])
    crew.leave("first")
    second = crew.join("second")
    again = second.take_exactly(18)
    check([r.offset for r in again] == list(range(12, 30)), f"got {[r.offset for r in again]}")
    check([r.value for r in again] == [r.value for r in got[12:]], "other records than before")


def _churn(context, rounds, **options):
    crew = Crew(context, 6, rough=True, **options)
    crew.join("m0")
    crew.settle()
    for number in range(1, rounds):
        # Written and read while the group changes: repeats are allowed here, loss and disorder are not.
        crew.join(f"m{number}")
        for _ in range(4):
            crew.write(30)
            crew.pump()
        if number % 2 == 0:
            crew.leave(f"m{number - 2}")
    crew.settle(40)
    crew.drain(40)
    crew.check(duplicates=True)


@scenario("group-churn", short=False)
def churn(context):
    """Members come and go while records flow: nothing lost, keys in order."""
    _churn(context, 8)


@scenario("group-churn-kip848", needs=("kip848",), short=False)
def churn_848(context):
    """The same by KIP-848."""
    _churn(context, 8, protocol="consumer")
