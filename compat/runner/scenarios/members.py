"""Members that die, come back, have nothing to do, or work too slowly."""

import time

from ..crew import Crew
from ..errors import ClientError
from .registry import check, scenario

SESSION_SECONDS = 6


def _die(context, **options):
    crew = Crew(context, 4, session_ms=SESSION_SECONDS * 1000, **options)
    victim = context.spawn()
    crew.join("survivor")
    crew.join("victim", driver=victim)
    crew.settle()
    crew.write(40)
    crew.drain()
    died = time.monotonic()
    victim.kill()
    crew.lose("victim")
    crew.write(40)
    # The session, the next look of the broker, the survivor's next heartbeat and the fetches.
    crew.drain(SESSION_SECONDS + 9)
    context.log(f"taken over {time.monotonic() - died:.1f} s after the kill")
    crew.settle()
    crew.check()


@scenario("group-die")
def die(context):
    """A member's process is killed: the other takes over within the session timeout and a little."""
    _die(context)


@scenario("group-die-kip848", needs=("kip848",))
def die_848(context):
    """The same by KIP-848, whose session timeout is the broker's."""
    _die(context, protocol="consumer")


def _static(context, **options):
    crew = Crew(context, 4, session_ms=20_000, **options)
    crew.join("one", instance="instance-1")
    second = context.spawn()
    crew.join("two", driver=second, instance="instance-2")
    # It is there before it is needed: a JVM may need seconds for its start, and a session of KIP-848 has no more than six.
    successor = context.spawn()
    crew.settle()
    crew.write(40)
    crew.drain()
    held = {name: member.assignment for name, member in crew.members.items()}
    # A static member that is gone for less than its session keeps its partitions, and nobody else is bothered.
    if options.get("protocol") == "consumer":
        # Here a successor is let in only once the one before has said goodbye, or its session is over.
        crew.leave("two")
    else:
        second.kill()
        crew.lose("two")
    crew.write(40)
    context.stays(2, "the other member keeps its partitions", lambda: (crew.pump(), crew.members["one"].assignment == held["one"])[1])
    crew.join("two", driver=successor, instance="instance-2")
    crew.drain()
    again = {name: member.assignment for name, member in crew.members.items()}
    check(again == held, f"assignment before {held}, after {again}")
    crew.check()


@scenario("group-static", needs=("static",))
def static(context):
    """A static member is killed and comes back: the assignment is as before, without a change for the other."""
    _static(context)


@scenario("group-static-kip848", needs=("static", "kip848", "static_848"), short=False)
def static_848(context):
    """The same by KIP-848, where the static member stops in an orderly way."""
    _static(context, protocol="consumer")


def _spare(context, **options):
    crew = Crew(context, 2, session_ms=SESSION_SECONDS * 1000, **options)
    for name in ("a", "b", "c", "d"):
        crew.join(name)
    crew.settle()
    crew.write(40)
    crew.drain()
    check(crew.shares() == [0, 0, 1, 1], f"shares {crew.shares()}")
    held = {name: member.assignment for name, member in crew.members.items()}

    def same():
        crew.pump()
        now = {name: member.assignment for name, member in crew.members.items()}
        return now == held or context.log(f"before {held}, now {now}")

    # An empty assignment is a quiet state: no re-joining without end.
    context.stays(3 if context.short else 15, "the assignment of four members on two partitions", same)
    owner = next(name for name, pairs in held.items() if pairs)
    crew.leave(owner)
    crew.settle()
    crew.write(40)
    crew.drain()
    crew.check()


@scenario("group-spare")
def spare(context):
    """More members than partitions: the spare ones stay calm, and take over when an owner leaves."""
    _spare(context)


@scenario("group-spare-kip848", needs=("kip848",), short=False)
def spare_848(context):
    """The same by KIP-848."""
    _spare(context, protocol="consumer")


@scenario("slow-work", needs=("max_poll",))
def slow_work(context):
    """A member that works longer than its poll interval loses its partition; its late commit is refused and harms nobody."""
    crew = Crew(context, 1, keys=1, session_ms=SESSION_SECONDS * 1000, max_poll_ms=6000)
    slow = crew.join("slow")
    crew.settle()
    crew.write(20)
    taken = slow.take_exactly(20)
    slow.driver.call("stall", name="slow", stalled=True)
    # In a driver of its own, since a stalled consumer may hold up everything else in a single-threaded library.
    other = crew.join("other", driver=context.spawn())
    found = []
    context.until(30, "the other member has the partition", lambda: found.extend(other.take(200)) or found)
    other.commit()
    try:
        slow.commit([(crew.topic, 0, len(taken), "")])
        check(False, "the late commit was accepted")
    except ClientError as error:
        context.log(f"the late commit: {error}")
    crew.lose("slow")
    while len(found) < 20:
        found.extend(other.take_exactly(20 - len(found)))
    other.commit()
    check([record.offset for record in found] == list(range(20)), f"the other member read {[r.offset for r in found]}")
    crew.write(10)
    check(len(other.take_exactly(10)) == 10, "the group stopped")
