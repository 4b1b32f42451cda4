"""Queue mode: of the partitions that clients see, as many are in use as the largest group has members."""

from ..context import Record
from .registry import check, scenario

PARTITIONS = 12
# Minutes by default.
SETTINGS = {
    "elastic_mode": "queues",
    "elastic_queues_write_delay_ms": 300,
    "elastic_queues_drain_delay_ms": 500,
    "elastic_queues_shrink_grace_ms": 300,
}
OURS = "queue mode is Anabranch's own"


class Readers:
    """A group whose members commit what they were handed at once."""

    def __init__(self, context, topic, size, **options):
        # The number of each record that came, and from where.
        self.came = []
        group = context.name(f"group-of-{size}")
        self.members = [
            context.consumer(f"g{size}-m{number}", group=group, topics=[topic], reset="earliest", **options)
            for number in range(size)
        ]

    def pump(self):
        """Takes what has come."""
        for member in self.members:
            records = member.take(30)
            self.came += [(int(record.value), record.partition) for record in records]
            if records:
                member.commit()

    def shares(self, queues):
        """How many queues each member has, if together they have exactly the first `queues`; else nothing."""
        held = sorted(partition for member in self.members for _, partition in member.assignment)
        return sorted(len(member.assignment) for member in self.members) if held == list(range(queues)) else []


def _three_groups(context, **options):
    topic = context.topic("queues", PARTITIONS, **SETTINGS)
    groups = [Readers(context, topic, size, **options) for size in (1, 2, 3)]
    written = 0

    def write(count):
        nonlocal written
        values = [b"%d" % number for number in range(written, written + count)]
        written += count
        context.produce(topic, [Record(text, text, partition=at % PARTITIONS) for at, text in enumerate(values)])

    def pump():
        for group in groups:
            group.pump()

    def is_spread(queues, shares):
        pump()
        return [group.shares(queues) for group in groups] == shares

    def all_came():
        pump()
        return all({number for number, _ in group.came} == set(range(written)) for group in groups)

    def write_to(queues, so_far=0):
        """While nobody joins or leaves, each record comes to each group once. All from number `so_far` on come from queues in use."""
        before = written
        write(120)
        context.until(40, "each group has every record", all_came)
        for group in groups:
            used = {partition for number, partition in group.came if number >= so_far}
            check(used <= set(range(queues)), f"records came from partitions {sorted(used)}")
            last = sorted(number for number, _ in group.came if number >= before)
            check(last == list(range(before, written)), f"{len(last)} records came of the last {written - before}")

    # While members join, a commit may come too late for the next owner, as with Kafka: what was read comes again.
    write(60)
    spread = [[3], [1, 2], [1, 1, 1]]
    context.until(40, "three queues are shared evenly and were read", lambda: is_spread(3, spread) and all_came())
    write_to(3)

    # The largest group has two members now: a queue goes once all groups have read it.
    groups[2].members.pop().close()
    groups[2].members.pop().close()
    context.until(40, "two queues are shared evenly", lambda: is_spread(2, [[2], [1, 1], [2]]))
    write_to(2, so_far=written)


@scenario("queues", beyond_kafka=OURS)
def three_groups(context):
    """Three groups of one, two and three members: three queues in even shares, then two; every record comes to each."""
    _three_groups(context)


@scenario("queues-kip848", needs=("kip848",), beyond_kafka=OURS)
def three_groups_848(context):
    """The same by KIP-848."""
    _three_groups(context, protocol="consumer")
