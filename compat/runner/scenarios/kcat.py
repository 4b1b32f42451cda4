"""kcat: an old librdkafka behind a command line."""

import json
import subprocess

from ..errors import Failure
from .. import batch
from .registry import check, scenario

SECONDS = 40


def run(context, *arguments, data=None):
    """Runs kcat against the broker and returns what it printed."""
    command = ["kcat", "-b", context.broker.bootstrap, "-X", "broker.address.family=v4", *arguments]
    done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS, check=False)
    context.log(f"{' '.join(command)}: {done.returncode}; {done.stderr.decode(errors='replace')[-500:]}")
    if done.returncode:
        raise Failure(f"kcat ended with {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}")
    return done.stdout


def _plain_lines(count):
    return [b"line %d of kcat" % number for number in range(count)]


def _round_trip(context, codec):
    topic = context.topic()
    lines = _plain_lines(300)
    run(context, "-P", "-t", topic, "-p", "0", "-z", codec, data=b"\n".join(lines) + b"\n")
    got = run(context, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q")
    check(got.splitlines() == lines, "what was read differs from what was written")


def _declare(codec):
    def trip(context):
        _round_trip(context, codec)

    trip.__doc__ = f"300 lines in and out through {codec}."
    scenario(f"kcat-{codec}", who=("kcat",))(trip)


for _codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    _declare(_codec)


@scenario("kcat-keys-headers", who=("kcat",))
def keys(context):
    """Keys, null values and headers by kcat's JSON output."""
    topic = context.topic()
    run(context, "-P", "-t", topic, "-p", "0", "-K", ":", "-Z", "-H", "a=1", "-H", "b=two", data=b"k1:v1\nk2:v2\nk3:\n")
    rows = [json.loads(line) for line in run(context, "-C", "-t", topic, "-e", "-q", "-J").splitlines()]
    found = [(row["key"], row["payload"], row["headers"]) for row in rows]
    headers = ["a", "1", "b", "two"]
    check(found == [("k1", "v1", headers), ("k2", "v2", headers), ("k3", None, headers)], f"read {found}")


@scenario("kcat-offsets", who=("kcat",))
def offsets(context):
    """Start at an offset, from the end, by time; the metadata list; the offset query."""
    topic = context.topic()
    for number in range(20):
        data = batch.build([(b"k", b"%d" % number)], timestamp=1_700_000_000_000 + number * 1000)
        check(context.raw_write(topic, data) == number, "the raw write landed elsewhere")
    read = lambda start: run(context, "-C", "-t", topic, "-p", "0", "-o", start, "-e", "-q").split()
    check(read("15") == [b"15", b"16", b"17", b"18", b"19"], "an offset")
    check(read("-3") == [b"17", b"18", b"19"], "three from the end")
    check(read("s@1700000016500") == [b"17", b"18", b"19"], "a time")
    said = run(context, "-Q", "-t", f"{topic}:0:1700000005000").decode()
    check("offset 5" in said, f"the query by time said {said!r}")
    listed = json.loads(run(context, "-L", "-J"))
    check(topic in [row["topic"] for row in listed["topics"]], "the topic is not in the metadata")
    check(listed["brokers"][0]["name"] == context.broker.bootstrap, f"brokers {listed['brokers']}")


@scenario("kcat-group", who=("kcat",))
def group(context):
    """The balanced consumer, twice: the second goes on where the first stopped."""
    topic, name = context.topic(partitions=2), context.name("group")
    run(context, "-P", "-t", topic, data=b"\n".join(_plain_lines(40)) + b"\n")
    options = ["-q", "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000"]
    first = run(context, "-G", name, *options, "-c", "25", topic).splitlines()
    second = run(context, "-G", name, *options, "-e", topic).splitlines()
    check(len(first) == 25, f"the first read {len(first)}")
    check(sorted(first + second) == sorted(_plain_lines(40)), f"the second read {len(second)}")


@scenario("kcat-small-fetch", who=("kcat",))
def small_fetch(context):
    """A 2 MB record among small ones, with a fetch limit of 10 kB."""
    topic = context.topic(max_message_bytes=4_000_000)
    big = b"b" * 2_000_000
    for value in (b"before", big, b"after"):
        context.raw_write(topic, batch.build([(None, value)]))
    small = ["-X", "fetch.message.max.bytes=10000", "-X", "message.max.bytes=10000", "-X", "fetch.max.bytes=20000"]
    got = run(context, "-C", "-t", topic, "-e", "-q", *small).splitlines()
    check(got == [b"before", big, b"after"], f"read {[line[:10] for line in got]}")


@scenario("kcat-auto-create", who=("kcat",))
def auto_create(context):
    """A first write makes the topic; a reader's does not."""
    topic = context.name("kcat-auto")
    retries = ["-X", "message.send.max.retries=0"] if context.ours else []
    run(context, "-P", "-t", topic, *retries, data=b"hello\n")
    check(run(context, "-C", "-t", topic, "-e", "-q") == b"hello\n", "the record is not there")


@scenario("kcat-idempotent", who=("kcat",))
def idempotent(context):
    """The idempotent producer of an old librdkafka."""
    topic = context.topic()
    lines = _plain_lines(1000)
    run(context, "-P", "-t", topic, "-X", "enable.idempotence=true", data=b"\n".join(lines) + b"\n")
    check(run(context, "-C", "-t", topic, "-e", "-q").splitlines() == lines, "what was read differs")
