"""Apache Kafka's own command-line tools."""

import json
import os
import re
import subprocess

from ..errors import Failure
from ..crew import Crew
from .. import batch
from .registry import check, scenario

SECONDS = 60
# What a tool is told to wait for: as long as we wait for the tool, less its start and its end.
PATIENCE_MS = "50000"
WHO = ("kafka-tools",)
CLASSES = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "configs": "kafka.admin.ConfigCommand",
    "producer": "org.apache.kafka.tools.ConsoleProducer",
    "consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "cluster": "org.apache.kafka.tools.ClusterTool",
    "producer-perf": "org.apache.kafka.tools.ProducerPerformance",
    "consumer-perf": "org.apache.kafka.tools.ConsumerPerformance",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
}


def command(context, tool):
    """The start of a tool's command line."""
    jars = os.path.join(context.environment.path("tools", "jars"), "*")
    quick = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
    return ["java", *quick, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars, CLASSES[tool]]


def run(context, tool, *arguments, data=None, fails=False, bootstrap=True):
    """Runs a tool to its end; what it printed on standard output, or on both if it is expected to fail."""
    address = ["--bootstrap-server", context.broker.bootstrap] if bootstrap else []
    done = subprocess.run(
        [*command(context, tool), *arguments, *address], input=data, capture_output=True, timeout=SECONDS, check=False
    )
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    context.log(f"{tool} {' '.join(arguments)}: {done.returncode}\n{out[-800:]}\n{err[-800:]}")
    if bool(done.returncode) != fails:
        raise Failure(f"{tool} {' '.join(arguments)} ended with {done.returncode}: {(err or out)[-600:]}")
    return out + err if fails else out


def _fill(context, topic, count, partition=0):
    context.raw_write(topic, batch.build([(b"k%d" % i, b"v%d" % i) for i in range(count)]), partition)


@scenario("tools-topics", who=WHO)
def topics(context):
    """kafka-topics: create, list, describe, more partitions, delete."""
    topic = context.name("tools")
    run(context, "topics", "--create", "--topic", topic, "--partitions", "3", "--config", "retention.ms=3600000")
    check(topic in run(context, "topics", "--list").split(), "not listed")
    said = run(context, "topics", "--describe", "--topic", topic)
    check("PartitionCount: 3" in said and "retention.ms=3600000" in said, f"described as {said}")
    check(len(re.findall(r"Leader: \d+", said)) == 3, f"partitions without a leader: {said}")
    run(context, "topics", "--alter", "--topic", topic, "--partitions", "5")
    check("PartitionCount: 5" in run(context, "topics", "--describe", "--topic", topic), "no fifth partition")
    run(context, "topics", "--delete", "--topic", topic)
    context.until(20, "the topic is gone", lambda: topic not in run(context, "topics", "--list").split())


@scenario("tools-console", who=WHO)
def console(context):
    """Console producer and consumer, with keys and headers, each codec."""
    topic = context.topic()
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd") if not context.short else ("none", "zstd")):
        line = f"h1:one,h2:two\tkey{number}\tvalue {number}\n".encode()
        options = ["--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"]
        run(context, "producer", "--topic", topic, "--compression-codec", codec, *options, data=line)
        extra = [f"--formatter-property=print.{what}=true" for what in ("key", "headers", "offset")]
        said = run(
            context, "consumer", "--topic", topic, "--partition", "0", "--offset", str(number), "--max-messages", "1",
            "--timeout-ms", PATIENCE_MS, *extra,
        )
        check(said.strip() == f"Offset:{number}\th1:one,h2:two\tkey{number}\tvalue {number}", f"read {said!r}")


@scenario("tools-groups", who=WHO)
def groups(context):
    """kafka-consumer-groups: list, describe with lag, members, state; reset, delete of offsets, delete."""
    topic, group = context.topic(partitions=2), context.name("group")
    _fill(context, topic, 10, 0)
    _fill(context, topic, 6, 1)
    consume = ["consumer", "--topic", topic, "--group", group, "--timeout-ms", PATIENCE_MS, "--from-beginning"]
    said = run(context, *consume, "--max-messages", "16")
    check(len(said.split()) == 16, f"read {said!r}")
    check(group in run(context, "groups", "--list").split(), "not listed")
    _fill(context, topic, 4, 1)
    rows = _describe(context, group)
    check(rows == {(topic, 0): ("10", "10", "0"), (topic, 1): ("6", "10", "4")}, f"described as {rows}")
    said = run(context, "groups", "--describe", "--state", "--group", group)
    check("Empty" in said, f"state: {said}")
    # While members live, a reset is refused.
    reset = ["groups", "--reset-offsets", "--group", group, "--topic", topic]
    run(context, *reset, "--to-offset", "3", "--execute")
    rows = _describe(context, group)
    check(rows == {(topic, 0): ("3", "10", "7"), (topic, 1): ("3", "10", "7")}, f"after the reset {rows}")
    run(context, *reset, "--to-earliest", "--execute")
    run(context, *reset, "--to-datetime", "2030-01-01T00:00:00.000", "--execute")
    rows = _describe(context, group)
    check(rows == {(topic, 0): ("10", "10", "0"), (topic, 1): ("10", "10", "0")}, f"after the reset by time {rows}")
    run(context, "groups", "--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    rows = _describe(context, group)
    check(list(rows) == [(topic, 0)], f"after the deletion of offsets {rows}")
    run(context, "groups", "--delete", "--group", group)
    check(group not in run(context, "groups", "--list").split(), "still listed after its deletion")


def _describe(context, group):
    rows = {}
    for line in run(context, "groups", "--describe", "--group", group).splitlines():
        cells = line.split()
        if cells and cells[0] == group:
            rows[(cells[1], int(cells[2]))] = tuple(cells[3:6])
    return rows


@scenario("tools-live-group", who=WHO, others=("librdkafka",))
def live_group(context):
    """kafka-consumer-groups on a live group: members and their partitions; reset and delete are refused."""
    from ..clients import named

    crew = Crew(context, 3)
    driver = context.driver_of(named("librdkafka"))
    crew.write(9, driver=driver)
    crew.join("m1", driver=driver)
    crew.settle()
    crew.drain()
    rows = _describe(context, crew.group)
    check(rows == {(crew.topic, p): ("3", "3", "0") for p in range(3)}, f"described as {rows}")
    said = run(context, "groups", "--describe", "--members", "--verbose", "--group", crew.group)
    check(re.search(r"rdkafka.*\b3\b", said), f"members: {said}")
    said = run(context, "groups", "--describe", "--state", "--group", crew.group)
    check("Stable" in said, f"state: {said}")
    reset = ["--reset-offsets", "--group", crew.group, "--topic", crew.topic, "--to-earliest", "--execute"]
    out = _either(context, "groups", *reset)
    check("inactive" in out or "not empty" in out.lower() or "Stable" in out, f"a reset of a live group said {out[-400:]}")
    out = _either(context, "groups", "--delete", "--group", crew.group)
    check("GroupNotEmpty" in out or "not empty" in out, f"deleting a live group said {out[-400:]}")
    crew.write(3, driver=driver)
    crew.drain()
    crew.check()


def _either(context, tool, *arguments):
    """Both outputs of a tool whose exit code for a refusal differs between releases."""
    done = subprocess.run(
        [*command(context, tool), "--bootstrap-server", context.broker.bootstrap, *arguments],
        capture_output=True, timeout=SECONDS, check=False,
    )
    return (done.stdout + done.stderr).decode(errors="replace")


@scenario("tools-configs", who=WHO)
def configs(context):
    """kafka-configs: describe and alter a topic; describe the broker."""
    topic = context.topic()
    entity = ["--entity-type", "topics", "--entity-name", topic]
    run(context, "configs", "--alter", *entity, "--add-config", "retention.ms=7200000,cleanup.policy=delete")
    said = run(context, "configs", "--describe", *entity)
    check("retention.ms=7200000" in said, f"described as {said}")
    run(context, "configs", "--alter", *entity, "--delete-config", "retention.ms")
    check("retention.ms=7200000" not in run(context, "configs", "--describe", *entity), "the config is still there")
    said = run(context, "configs", "--describe", "--all", *entity)
    check("max.message.bytes=1048588" in said, f"no default of max.message.bytes in {said[-600:]}")
    said = run(context, "configs", "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")
    check("log.retention" in said, f"the broker's configs: {said[-600:]}")
    out = run(context, "configs", "--alter", *entity, "--add-config", "no.such.key=1", fails=True)
    check("nvalid" in out or "nknown" in out, f"an unknown key said {out[-300:]}")


@scenario("tools-offsets", who=WHO)
def offsets(context):
    """kafka-get-offsets at the start, the end, the largest time; kafka-delete-records."""
    topic = context.topic(partitions=2)
    _fill(context, topic, 10, 0)
    _fill(context, topic, 5, 1)
    look = lambda time: sorted(run(context, "offsets", "--topic", topic, "--time", time).split())
    check(look("latest") == [f"{topic}:0:10", f"{topic}:1:5"], "latest")
    plan = {"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 4}]}
    path = context.file("delete.json")
    with open(path, "w", encoding="utf-8") as out:
        json.dump(plan, out)
    said = run(context, "delete-records", "--offset-json-file", path)
    check("low_watermark: 4" in said, f"deleting said {said}")
    check(look("earliest") == [f"{topic}:0:4", f"{topic}:1:0"], "earliest")
    check(look("max-timestamp")[1] in (f"{topic}:1:0", f"{topic}:1:4"), "the largest time")


@scenario("tools-api-versions", who=WHO)
def versions(context):
    """kafka-broker-api-versions; kafka-cluster; kafka-log-dirs."""
    said = run(context, "api-versions")
    check("Produce(0)" in said, f"said {said[:300]}")
    check("ERROR" not in said, f"said {said[:300]}")
    check("Cluster ID" in run(context, "cluster", "cluster-id"), "no cluster id")
    topic = context.topic()
    _fill(context, topic, 10)
    said = run(context, "log-dirs", "--describe", "--topic-list", topic)
    found = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    parts = found["brokers"][0]["logDirs"][0]["partitions"]
    check([row["partition"] for row in parts] == [f"{topic}-0"] and parts[0]["size"] > 0, f"log dirs: {found}")


@scenario("tools-perf", who=WHO)
def perf(context):
    """kafka-producer-perf-test and kafka-consumer-perf-test."""
    topic, count = context.topic(partitions=2), 20000 if context.short else 200_000
    said = run(
        context, "producer-perf", "--topic", topic, "--num-records", str(count), "--record-size", "100", "--throughput", "-1",
        "--command-property", f"bootstrap.servers={context.broker.bootstrap}", bootstrap=False,
    )
    check(f"{count} records sent" in said, f"said {said[-300:]}")
    said = run(context, "consumer-perf", "--topic", topic, "--num-records", str(count), "--timeout", PATIENCE_MS)
    cells = [cell.strip() for cell in said.splitlines()[-1].split(",")]
    check(int(float(cells[4])) >= count, f"the consumer said {said[-300:]}")


@scenario("tools-verifiable", who=WHO)
def verifiable(context):
    """VerifiableProducer's acknowledged values are what VerifiableConsumer reads, classic and KIP-848."""
    topic, count = context.topic(partitions=2), 500
    said = run(context, "verifiable-producer", "--topic", topic, "--max-messages", str(count), "--acks", "-1")
    acked = [row for row in map(json.loads, said.splitlines()) if row["name"] == "producer_send_success"]
    check(len(acked) == count, f"{len(acked)} acknowledged")
    for protocol in ("classic", "consumer"):
        options = ["--group-protocol", protocol] + (["--session-timeout", "6000"] if protocol == "classic" else [])
        said = run(
            context, "verifiable-consumer", "--topic", topic, "--group-id", context.name(protocol), "--reset-policy", "earliest",
            "--max-messages", str(count), *options,
        )
        rows = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        consumed = sum(row["count"] for row in rows if row["name"] == "records_consumed")
        check(consumed == count, f"{protocol}: {consumed} consumed")
        failed = [row for row in rows if row["name"] == "offsets_committed" and not row["success"]]
        check(not failed, f"{protocol}: failed commits {failed}")
