"""What the broker takes each client library for: only those that it recognises may share a partition."""

import re

from .registry import check, scenario

# What the log says of each client in the classic protocol; the version follows where the library tells one. `None`: by
# the client's id or manners alone.
TITLES = {
    "java-4.3": "the Java consumer (classic protocol)",
    "java-3.9": "the Java consumer (classic protocol)",
    "librdkafka": "librdkafka",
    "kafka-python-3": "kafka-python 3",
    "kafka-python-2": "kafka-python 2",
    "aiokafka": "aiokafka",
    "kafkajs": "kafkajs",
    "platformatic": "@platformatic/kafka",
    "franz-go": "franz-go",
    "sarama": "sarama",
    "kafka-go": "segmentio/kafka-go",
}
# The same in the consumer protocol, where it differs.
CONSUMER_TITLES = {"java-4.3": "the Java consumer (consumer protocol)"}
# Libraries that tell their version neither by name nor by client id.
WITHOUT_VERSION = {"kafkajs", "kafka-go"}

LINE = re.compile(r'joined from (\S+) with client id "(.*?)": (.*) in the (classic|consumer) protocol \(client software (.*?)\)')
COLOURS = re.compile("\x1b\\[[0-9;]*m")


def _joined(context, group):
    """(what the member was taken for, protocol, software) from the broker's log, of the first member of `group`."""
    with open(context.broker.log_path, encoding="utf-8", errors="replace") as log:
        for line in log:
            line = COLOURS.sub("", line)
            found = LINE.search(line) if group in line else None
            if found:
                return found.group(3), found.group(4), found.group(5)
    return None


def _check(context, topic, protocol, titles):
    group = context.name(f"group-{protocol}")
    consumer = context.consumer(f"c-{protocol}", group=group, topics=[topic], protocol=protocol)
    taken, spoken, software = context.until(20, "the log names the member", lambda: _joined(context, group))
    context.log(f"{protocol}: {taken}; {software}")
    consumer.close()
    name = context.client.name
    title = titles.get(name) or TITLES[name]
    check(spoken == protocol, f"the member is said to speak the {spoken} protocol")
    check(taken.startswith(title), f"taken for {taken!r}, not for {title!r}; it says {software!r}")
    if name not in WITHOUT_VERSION:
        version = re.search(r"(\d+\.\d+\.\d+)$", taken)
        check(version, f"no version in {taken!r}; it says {software!r}")
        check(version.group(1) in context.driver.version, f"{taken!r}, but the library is {context.driver.version}")


@scenario("group-recognised", beyond_kafka="a real Kafka's log does not say what a client is taken for")
def recognised(context):
    """The broker recognises the library and its version, in each group protocol that it speaks."""
    topic = context.topic()
    _check(context, topic, "classic", {})
    if context.client.can("kip848"):
        _check(context, topic, "consumer", CONSUMER_TITLES)
