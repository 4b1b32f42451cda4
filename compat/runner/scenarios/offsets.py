"""Where reading starts: earliest, latest, seeks, times, commits."""

from ..context import Record
from ..errors import ClientError
from .registry import check, scenario
from .records import TIME


def _numbered(first, last, step_ms=1000):
    return [Record(b"%d" % i, timestamp=TIME + i * step_ms, partition=0) for i in range(first, last)]


def _meets_the_end(context, reader, topic, end):
    """Writes single records until the reader, which starts at the end, sees the newest; from there on it sees each."""
    written = end
    seen = []
    context.driver.call("producer_open", name="probe", bootstrap=context.broker.bootstrap)

    def probe():
        nonlocal written
        context.produce(topic, _numbered(written, written + 1), producer="probe")
        written += 1
        seen.extend(record.offset for record in reader.take(100))
        return seen

    context.until(25, "a reader that starts at the end sees new records", probe)
    check(seen[0] >= end, f"a reader that starts at the end ({end}) got offset {seen[0]}")
    context.produce(topic, _numbered(written, written + 3), producer="probe")
    written += 3
    while len(seen) < written - seen[0]:
        seen.extend(record.offset for record in reader.take_exactly(written - seen[0] - len(seen)))
    check(seen == list(range(seen[0], written)), f"read {seen} of what was written up to {written}")


@scenario("offsets-start", needs=("assign",))
def start(context):
    """Without a group: earliest, latest, a given offset."""
    topic = context.topic()
    context.produce(topic, _numbered(0, 50))
    check([r.offset for r in context.reader("early", topic).take_exactly(50)] == list(range(50)), "earliest")
    middle = context.reader("middle", topic, start=30)
    check([r.offset for r in middle.take_exactly(20)] == list(range(30, 50)), "start at 30")
    late = context.reader("late", topic, start="latest")
    _meets_the_end(context, late, topic, 50)


@scenario("offsets-seek", needs=("assign", "seek"))
def seek(context):
    """Without a group: seeks back and forth."""
    topic = context.topic()
    context.produce(topic, _numbered(0, 50))
    reader = context.reader("c1", topic, start=30)
    reader.take_exactly(20)
    for offset in (5, 48, 0):
        reader.seek(topic, 0, offset)
        got = [record.offset for record in reader.take_exactly(50 - offset)]
        check(got == list(range(offset, 50)), f"seek to {offset}: read {got}")


@scenario("group-seek", needs=("seek",))
def group_seek(context):
    """A member of a group seeks back and forth in its partition."""
    topic = context.topic()
    context.produce(topic, _numbered(0, 30))
    member = context.consumer(group=context.name("group"), topics=[topic])
    member.take_exactly(30)
    for offset in (7, 28, 0):
        member.seek(topic, 0, offset)
        got = [record.offset for record in member.take_exactly(30 - offset)]
        check(got == list(range(offset, 30)), f"seek to {offset}: read {got}")


@scenario("offsets-by-time", needs=("times", "timestamps"))
def by_time(context):
    """A lookup by time gives the first record at or after it, and none behind the last."""
    topic = context.topic()
    context.produce(topic, _numbered(0, 40))
    context.produce(topic, _numbered(40, 60), compression="gzip")
    reader = context.reader("c1", topic)
    reader.take_exactly(60)
    for timestamp, expected in [(TIME - 5, 0), (TIME, 0), (TIME + 17_000, 17), (TIME + 16_001, 17), (TIME + 52_500, 53), (TIME + 59_000, 59)]:
        found = reader.driver.call("offsets_for_times", name="c1", topic=topic, partition=0, timestamp=timestamp)["offset"]
        check(found == expected, f"time {timestamp - TIME:+d} ms: offset {found} instead of {expected}")
    found = reader.driver.call("offsets_for_times", name="c1", topic=topic, partition=0, timestamp=TIME + 59_001)["offset"]
    check(found in (-1, None, 60), f"a time after the last record gave offset {found}")


@scenario("commit-metadata", needs=("commit_metadata",))
def commit_metadata(context):
    """The text of a commit: 4096 bytes are kept, 4097 refused, alone."""
    topic = context.topic(partitions=2)
    context.produce(topic, [Record(b"x", partition=0), Record(b"y", partition=1)])
    group = context.name("group")
    consumer = context.consumer(group=group, topics=[topic])
    consumer.take_exactly(2)
    text = "m" * context.client.metadata_bytes
    consumer.commit([(topic, 0, 1, text)])
    check(consumer.committed([(topic, 0)])[(topic, 0)] == (1, text), "a text at the limit was not kept")
    try:
        consumer.commit([(topic, 1, 1, text + "m")])
        check(False, "one byte above the limit was accepted")
    except ClientError as error:
        check(error.is_kafka(12, "metadata"), f"not OFFSET_METADATA_TOO_LARGE but {error}")
    check(consumer.committed([(topic, 1)])[(topic, 1)][0] == -1, "the refused commit was stored")
    check(consumer.committed([(topic, 0)])[(topic, 0)] == (1, text), "the earlier commit changed")


@scenario("reset-policies")
def resets(context):
    """A group without commits: `earliest` reads all, `latest` only what follows; with commits both go on there."""
    topic = context.topic()
    context.produce(topic, _numbered(0, 10))
    group = context.name("early")
    early = context.consumer("early", group=group, topics=[topic], reset="earliest")
    check(len(early.take_exactly(10)) == 10, "earliest")
    early.commit([(topic, 0, 6, "")])
    early.close()
    again = context.consumer("again", group=group, topics=[topic], reset="latest")
    check([r.offset for r in again.take_exactly(4)] == [6, 7, 8, 9], "the commit was not honoured")
    again.close()
    late = context.consumer("late", group=context.name("late"), topics=[topic], reset="latest")
    _meets_the_end(context, late, topic, 10)
