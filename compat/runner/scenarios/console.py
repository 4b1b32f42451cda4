"""Anabranch's own produce, consume and group commands: the Rust bindings of librdkafka behind a command line."""

import json
import random
import subprocess

from ..errors import Failure
from .. import messages
from .registry import check, scenario

WHO = ("anabranch-cli",)
SECONDS = 60


def run(context, *arguments, data=None, fails=None):
    """Runs a command against the broker; what it printed, or with `fails` the expected exit code, its complaint."""
    command = [context.environment.binary, *arguments, "--bootstrap", context.broker.bootstrap]
    done = subprocess.run(command, input=data, capture_output=True, timeout=SECONDS, check=False)
    context.log(f"{' '.join(arguments)}: {done.returncode}; {done.stderr.decode(errors='replace')[-500:]}")
    if done.returncode != (fails or 0):
        raise Failure(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr.decode(errors='replace')[-300:]}")
    return done.stderr if fails else done.stdout


def _lines(count):
    noise = random.Random(count)
    return [f"{number} {noise.getrandbits(64):x} zeile ä".encode() for number in range(count)]


def _round_trip(context, codec):
    topic, lines = context.topic(), _lines(500)
    run(context, "produce", topic, "--compression", codec, data=b"\n".join(lines) + b"\n")
    check(run(context, "consume", topic, "--until-end").splitlines() == lines, "what was read differs from what was written")


def _declare(codec):
    def trip(context):
        _round_trip(context, codec)

    trip.__doc__ = f"500 lines in and out through {codec}."
    scenario(f"cli-{codec}", who=WHO)(trip)


for _codec in ("none", "gzip", "snappy", "lz4", "zstd"):
    _declare(_codec)


@scenario("cli-json", who=WHO)
def as_json(context):
    """JSON in and out: keys, null keys, null values."""
    topic = context.topic()
    rows = [{"key": "k1", "value": "v1"}, {"key": None, "value": "no key"}, {"key": "gone", "value": None}, {"key": "", "value": ""}]
    run(context, "produce", topic, "--input", "json", data="".join(json.dumps(row) + "\n" for row in rows).encode())
    got = [json.loads(line) for line in run(context, "consume", topic, "--until-end", "--output", "json").splitlines()]
    found = [(row.get("key"), row.get("value")) for row in got]
    check(found == [(row["key"], row["value"]) for row in rows], f"read {found}")
    check([row["offset"] for row in got] == [0, 1, 2, 3], f"read {got}")


@scenario("cli-offsets", who=WHO)
def offsets(context):
    """Start at an offset, so many from the end, by count; idempotent writes."""
    topic = context.topic()
    lines = _lines(50)
    run(context, "produce", topic, "--idempotent", data=b"\n".join(lines) + b"\n")
    read = lambda *where: run(context, "consume", topic, *where).splitlines()
    check(read("--from", "45", "--until-end") == lines[45:], "an offset")
    check(read("--from", "-7", "--until-end") == lines[-7:], "seven from the end")
    check(read("--count", "9") == lines[:9], "the first nine")


@scenario("cli-group", who=WHO)
def group(context):
    """Reading as a group, its description, reset and deletion; a live group refuses both."""
    topic, name, lines = context.topic(), context.name("group"), _lines(30)
    run(context, "produce", topic, data=b"\n".join(lines) + b"\n")
    check(run(context, "consume", topic, "--group", name, "--count", "20").splitlines() == lines[:20], "the first twenty")
    check(run(context, "consume", topic, "--group", name, "--until-end").splitlines() == lines[20:], "the rest")
    check(name.encode() in run(context, "group", "list"), "the group is not listed")
    said = run(context, "group", "describe", name)
    check(topic.encode() in said, f"described as {said!r}")
    run(context, "group", "reset", name, "--topic", topic, "--to-offset", "25", "--execute")
    check(run(context, "consume", topic, "--group", name, "--until-end").splitlines() == lines[25:], "after the reset")
    run(context, "group", "delete", name)
    check(name.encode() not in run(context, "group", "list"), "the group is still listed")


@scenario("cli-topics", who=WHO)
def topics(context):
    """Topics are created, listed, described, altered and deleted; what is not there is exit code 3."""
    topic = context.name("cli")
    run(context, "topic", "create", topic, "--partitions", "2")
    check(topic.encode() in run(context, "topic", "list"), "not listed")
    check(topic.encode() in run(context, "topic", "describe", topic), "not described")
    found = messages.metadata(context.wire(), [topic])["topics"][topic]
    check(found[0] == 0 and len(found[1]) == 2, f"metadata says {found}")
    run(context, "topic", "delete", topic)
    context.until(10, "the topic is gone", lambda: topic.encode() not in run(context, "topic", "list"))
    run(context, "topic", "describe", topic, fails=3)


@scenario("cli-restart", who=WHO, own_broker=True)
def restart(context):
    """Lines written before a kill of the broker are there after it, byte for byte."""
    topic, lines = context.topic(), _lines(2000 if context.short else 100_000)
    run(context, "produce", topic, "--idempotent", data=b"\n".join(lines) + b"\n")
    check(run(context, "consume", topic, "--until-end").splitlines() == lines, "before the kill")
    context.broker.kill()
    context.broker.start()
    check(run(context, "consume", topic, "--until-end").splitlines() == lines, "after the kill")
