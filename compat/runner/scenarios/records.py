"""Records go in and come out byte for byte: every codec, odd contents, large ones."""

import random

from ..context import Record
from ..errors import ClientError
from .registry import check, scenario

# A day in 2023, so that no retention by time touches it.
TIME = 1_700_000_000_000


def odd_records(can):
    """Records with everything that tends to get lost, as far as the client can express it."""
    noise = random.Random(7)
    rows = [
        (b"plain value", b"key", []),
        (b"no key", None, []),
        (b"", b"empty value", []),
        (b"empty key", b"", []),
        (bytes(range(256)), bytes(reversed(range(256))), []),
        ("ключ 鍵 🔑".encode(), "значение".encode(), []),
        (b"repeats " * 4000, b"compresses", []),
        (noise.randbytes(20_000), b"does not compress", []),
    ]
    if can("null_value"):
        rows.append((None, b"tombstone", []))
    if can("headers"):
        rows.append((b"headers", b"key", [("one", b"1"), ("two", bytes(range(256))), ("empty", b"")]))
    if can("duplicate_headers"):
        rows.append((b"same header twice", b"key", [("h", b"1"), ("h", b"2"), ("g", b"3"), ("h", b"1")]))
    if can("null_headers"):
        rows.append((b"header without value", b"key", [("null", None), ("after", b"x")]))
    stamp = can("timestamps")
    return [Record(v, k, h, TIME + 1000 * i if stamp else None, partition=0) for i, (v, k, h) in enumerate(rows)]


def _round_trip(context, codec):
    can = context.client.can
    topic = context.topic()
    sent = odd_records(can)
    places = context.produce(topic, sent, compression=codec)
    check(places == [(0, i) for i in range(len(sent))], f"acknowledged at {places}")
    got = context.reader("c1", topic).take_exactly(len(sent))
    check([record.offset for record in got] == list(range(len(sent))), "offsets do not run on")
    for one, other in zip(sent, got):
        wanted, found = one.content(can), other.content(can)
        check(wanted == found, lambda: f"offset {other.offset}: wrote {str(wanted)[:300]}, read {str(found)[:300]}")


def _declare(codec):
    def run(context):
        _round_trip(context, codec)

    run.__doc__ = f"Keys, null keys, headers, timestamps, empty and null values through {codec}, byte for byte."
    needs = () if codec == "none" else (codec,)
    scenario(f"records-{codec}", needs=needs)(run)


for _codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    _declare(_codec)


@scenario("records-many")
def many(context):
    """Several thousand records over four partitions, in many batches: none lost, each partition in order."""
    topic = context.topic(partitions=4)
    count = 2000 if context.short else 20000
    context.driver.call("producer_open", name="p", bootstrap=context.broker.bootstrap, compression="gzip")
    sent = {partition: [] for partition in range(4)}
    for start in range(0, count, 500):
        chunk = [Record(b"value %d" % i, b"k%d" % i, partition=i % 4) for i in range(start, start + 500)]
        for record, (partition, offset) in zip(chunk, context.produce(topic, chunk, producer="p")):
            check(offset == len(sent[partition]), f"partition {partition}: offset {offset} after {len(sent[partition])}")
            sent[partition].append(record.value)
    got = {partition: [] for partition in range(4)}
    for record in context.reader("c1", topic, partitions=range(4)).take_exactly(count, 40):
        got[record.partition].append(record.value)
    check(sent == got, "what was read differs from what was written")


@scenario("large-records")
def large(context):
    """A record at the 1 MB edge passes; above it the client hears MESSAGE_TOO_LARGE; a topic that allows more takes 5 MB."""
    noise = random.Random(3)
    narrow, wide = context.topic("narrow"), context.topic("wide", max_message_bytes=6_000_000)
    # Kafka's limit of 1 MiB + 12 is for the whole batch; the rest is for its header and the record's.
    edge = noise.randbytes(1_048_588 - 200)
    context.produce(narrow, [Record(edge, b"edge", partition=0)], max_bytes=8_000_000)
    try:
        context.produce(narrow, [Record(noise.randbytes(2_000_000), b"over", partition=0)], max_bytes=8_000_000)
        check(False, "2 MB were accepted by a topic whose limit is 1 MB")
    except ClientError as error:
        check(error.is_kafka(10, "too large", "toolarge", "message_too_large", "msg_size_too_large"), f"not MESSAGE_TOO_LARGE but {error}")
    big = noise.randbytes(5_000_000)
    context.produce(wide, [Record(big, b"big", partition=0)], max_bytes=8_000_000)
    got = context.reader("c1", narrow).take_exactly(1)[0]
    check(got.value == edge, "the record at the edge came back changed")
    got = context.reader("c2", wide).take_exactly(1)[0]
    check(got.value == big, "the 5 MB record came back changed")


@scenario("fetch-limit")
def fetch_limit(context):
    """A 5 MB record among small ones does not stop a reader whose fetch limit is 64 KB."""
    topic = context.topic(max_message_bytes=6_000_000)
    big = random.Random(5).randbytes(5_000_000)
    values = [b"small %d" % i for i in range(20)] + [big] + [b"after %d" % i for i in range(20)]
    context.driver.call("producer_open", name="p", bootstrap=context.broker.bootstrap, max_bytes=8_000_000)
    for part in (values[:20], values[20:21], values[21:]):
        context.produce(topic, [Record(value, partition=0) for value in part], producer="p")
    got = context.reader("c1", topic, fetch_bytes=65536).take_exactly(len(values), 40)
    check([record.value for record in got] == values, "what was read differs from what was written")
