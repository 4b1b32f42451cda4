"""What web interfaces show of a broker, by the client libraries that they are built on.

Kafbat, AKHQ and Kafdrop ask with the Java client's admin client, Redpanda Console with franz-go's. The drivers' operations `ui_*` make
the calls of one page each (WebUi.java, franz_ui.go); what must be on the pages stands here. The broker has a divided group, a topic
in queue mode and a group of KIP-848 meanwhile, and its own console is open.
"""

import threading
import time
import urllib.request

from ..context import Record
from ..errors import ClientError
from ..workers import Workers
from .queues import SETTINGS, Readers
from .registry import check, scenario

LIBRARIES = ("java-4.3", "java-3.9", "franz-go")
RECORDS = 20_000
# Error numbers of the protocol.
UNKNOWN_MEMBER_ID, NON_EMPTY_GROUP, GROUP_SUBSCRIBED_TO_TOPIC, INVALID_CONFIG = 25, 68, 86, 40
ALTER_USER_SCRAM_CREDENTIALS = 51


class OpenConsole:
    """The broker's own console in a browser: its page was loaded, and its stream of events is read."""

    def __init__(self, broker):
        root = f"http://{broker.host}:{broker.port + 1}"
        with urllib.request.urlopen(root + "/", timeout=10) as page:
            check(b"<html" in page.read(), "the console has no page")
        self._stream = urllib.request.urlopen(root + "/api/v1/events", timeout=20)
        self.events = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            for line in self._stream:
                self.events += line.startswith(b"data:")
        except (OSError, ValueError, AttributeError):
            # Closed at the end of the scenario.
            pass

    def close(self):
        """Closes the page."""
        self._stream.close()


class Pages:
    """The pages of an interface."""

    def __init__(self, context):
        self._call, self._address = context.driver.call, context.broker.bootstrap

    def __getattr__(self, page):
        return lambda **arguments: self._call(f"ui_{page}", bootstrap=self._address, **arguments)


def _refused(act, code, *words):
    try:
        act()
    except ClientError as error:
        check(error.is_kafka(code, *words), f"not error {code} but {error}")
    else:
        check(False, f"error {code} was expected")


@scenario("ui-pages", who=LIBRARIES, own_broker=True, beyond_kafka="a real Kafka does not divide a partition")
def pages_of_interfaces(context):
    """Every page of the web interfaces shows what there is, with a divided group, a topic in queue mode, and our own console open."""
    console, show = OpenConsole(context.broker), Pages(context)
    crew = Workers(context, record_us=1500)
    crew.write(RECORDS)
    crew.gather("first", "second")
    crew.spread(2)
    queues = context.topic("queues", 6, **SETTINGS)
    readers = Readers(context, queues, 2, protocol="consumer")
    context.produce(queues, [Record(b"%d" % number, partition=number % 6) for number in range(60)])
    plain, times = context.topic("plain", 3), [1_700_000_000_000 + number for number in range(10)]
    context.produce(plain, [Record(b"x", partition=0, timestamp=time) for time in times], idempotent=True)

    def are_read():
        readers.pump()
        return len({number for number, _ in readers.came}) == 60 and sum(map(len, (m.assignment for m in readers.members))) == 2

    context.until(40, "the queues are read, by two members", are_read)

    topics = _the_cluster(show, crew, queues, plain)
    _the_groups(show, crew, readers, queues, topics)
    _security(show, plain)
    begun = console.events
    context.until(10, "the console is told what happens", lambda: console.events > begun)
    console.close()


def _the_cluster(show, crew, queues, plain):
    """The pages about the broker and its topics; the topics."""
    cluster = show.cluster()
    check(cluster["id"] and cluster["nodes"] == [cluster["controller"]], f"the cluster is {cluster['id']}, {cluster['nodes']}")
    for key in ("inter.broker.protocol.version", "num.partitions", "log.retention.ms", "auto.create.topics.enable"):
        check(cluster["configs"].get(key), f"the broker has no {key}")
    # franz-go guesses a release by the requests that are served, and takes one without transactions for an old one.
    check(cluster.get("version", "a guess"), "no version")
    check(cluster.get("features", 1) > 0, "no features")
    hidden = cluster.get("hidden", [ALTER_USER_SCRAM_CREDENTIALS])
    check(hidden == [ALTER_USER_SCRAM_CREDENTIALS], f"pages are hidden for want of {hidden}")
    sizes = {(topic, partition): size for topic, partition, size in cluster["logs"]}

    topics = show.topics()
    for name, count, records in ((crew.topic, 1, RECORDS), (queues, 6, 60), (plain, 3, 10)):
        rows = topics[name]["partitions"]
        check(len(rows) == count and not topics[name]["internal"], f"{name} is shown as {topics[name]}")
        healthy = all((row["leader"], row["replicas"], row["in_sync"]) == (cluster["controller"], 1, 1) for row in rows)
        check(healthy, f"{name} has partitions without a leader: {rows}")
        check(sum(row["end"] - row["start"] for row in rows) == records, f"{name} has not {records} records: {rows}")
        check(all(row["start"] <= row["newest"] < row["end"] or row["end"] == 0 for row in rows), f"newest of {name}: {rows}")
        check(all(sizes[(name, partition)] > 0 for partition, row in enumerate(rows) if row["end"]), f"{name} has no size")
    # Of an empty partition franz-go says the end instead.
    newest = [row["newest"] for row in topics[plain]["partitions"]]
    check(newest in ([9, -1, -1], [9, 0, 0]), f"newest of {plain}: {newest}")
    for name, mode in ((crew.topic, "slices"), (queues, "queues"), (plain, "slices")):
        value, source, _ = topics[name]["configs"]["elastic.mode"]
        check(value == mode, f"elastic.mode of {name} is {value}")
        check(("TOPIC" in source) == (name == queues), f"elastic.mode of {name} comes from {source}")
    texts = [row[2] for row in topics[plain]["configs"].values()]
    check(all(texts) or not any(texts), "some settings have an explanation and others have none")
    return topics


def _the_groups(show, crew, readers, queues, topics):
    """The pages about consumer groups."""
    groups = show.groups()
    group = groups[crew.group]
    check(group["state"].lower() == "stable" and len(group["members"]) == 2, f"the divided group is shown as {group}")
    check(len({member["id"] for member in group["members"]}) == 2, "two members have one id")
    assigned = [pair for member in group["members"] for pair in member["assigned"]]
    check(assigned == [[crew.topic, 0]] * 2, f"the divided partition is assigned so: {assigned}")
    rows = {(topic, partition): offset for topic, partition, offset in group["committed"]}
    check(0 <= rows[(crew.topic, 0)] <= topics[crew.topic]["partitions"][0]["end"], f"committed {rows}")

    other = next(groups[name] for name in groups if name != crew.group)
    check(other["state"].lower() == "stable", f"the group of the queues is {other['state']}")
    held = sorted(pair for member in other["members"] for pair in member["assigned"])
    check(held == [[queues, 0], [queues, 1]], f"the queues are assigned so: {held}")
    check(len(other["committed"]) > 0, "the group of the queues has committed nothing")
    check(all(member["client"] and member["host"] for one in groups.values() for member in one["members"]), f"{groups}")


def _security(show, plain):
    """The pages about what this broker does not have: a number, or a word that interfaces know."""
    shown = show.security(topic=plain)
    check(shown.pop("acls") == "SECURITY_DISABLED", f"not that there are no access rules: {shown}")
    check(shown.pop("producers") == 1, f"the producer of {plain} is not shown: {shown}")
    check(shown.pop("quorum", "UNSUPPORTED_VERSION") == "UNSUPPORTED_VERSION", f"a quorum of one broker: {shown}")
    check(all(count == 0 for count in shown.values()), f"security: {shown}")


@scenario("ui-actions", who=LIBRARIES, own_broker=True, beyond_kafka="a real Kafka does not divide a partition")
def actions_of_interfaces(context):
    """What web interfaces change: topics, settings, partitions, records, offsets; what cannot be is refused in Kafka's words."""
    show, call, address = Pages(context), context.driver.call, context.broker.bootstrap
    crew = Workers(context, record_us=1500)
    crew.write(RECORDS)
    crew.gather("first", "second")
    crew.spread(2)

    topic = context.name("made")
    call("create_topic", bootstrap=address, topic=topic, partitions=1, configs={"retention.ms": "3600000", "elastic.mode": "queues"})
    call("add_partitions", bootstrap=address, topic=topic, partitions=2)
    context.until(10, "two partitions", lambda: len(show.topics().get(topic, {}).get("partitions", [])) == 2)
    setting = lambda key: show.topics()[topic]["configs"][key][0]
    call("set_topic_config", bootstrap=address, topic=topic, key="retention.ms", value="7200000")
    check(setting("retention.ms") == "7200000", f"retention.ms is {setting('retention.ms')}")
    _refused(lambda: call("set_topic_config", bootstrap=address, topic=topic, key="elastic.mode", value="maybe"), INVALID_CONFIG, "config")
    if context.client.can("replace_configs"):
        show.replace_configs(topic=topic, key="retention.bytes", value="1000000")
        check((setting("retention.bytes"), setting("elastic.mode")) == ("1000000", "slices"), "settings that were left out are not the default")
    show.reassign(topic=topic, partition=0, node=show.cluster()["controller"])

    before = int(time.time() * 1000)
    context.produce(topic, [Record(b"%d" % number, partition=0) for number in range(20)])
    reader = context.reader("browser", topic, partitions=(0,))
    check(len(reader.take_exactly(20)) == 20, "messages")
    at = call("offsets_for_times", name="browser", topic=topic, partition=0, timestamp=before)["offset"]
    check(at == 0, f"the first record since then is at {at}")
    low = call("delete_records", bootstrap=address, topic=topic, partition=0, offset=5)["low"]
    check(low == 5 and show.topics()[topic]["partitions"][0]["start"] == 5, f"records are deleted up to {low}")
    # A reader that is no member sees the divided partition as the log that it is.
    outsider = context.consumer("outsider", assign=[[crew.topic, 0, -2]])
    first = outsider.take(5000, limit=100)
    check([record.offset for record in first] == list(range(len(first))) and first, "the divided partition, read by an outsider")

    _offsets(context, show, crew)
    call("delete_topic", bootstrap=address, topic=topic)
    context.until(10, "the topic is gone", lambda: topic not in show.topics())


def _offsets(context, show, crew):
    """Offsets of a group: not while it has members, and then as one likes."""
    place = {"group": crew.group, "topic": crew.topic, "partition": 0}
    _refused(lambda: show.reset(offset=7, **place), UNKNOWN_MEMBER_ID, "unknown_member", "unknown member")
    _refused(lambda: show.forget(**place), GROUP_SUBSCRIBED_TO_TOPIC, "subscribed")
    delete = lambda: context.driver.call("delete_group", bootstrap=context.broker.bootstrap, group=crew.group)
    _refused(delete, NON_EMPTY_GROUP, "not empty", "non_empty", "nonempty", "non-empty")
    crew.leave("first")
    crew.leave("second")
    context.until(20, "the group is empty", lambda: show.groups()[crew.group]["state"].lower() == "empty")
    show.reset(offset=7, **place)
    check(show.groups()[crew.group]["committed"] == [[crew.topic, 0, 7]], f"after the reset {show.groups()[crew.group]}")
    show.forget(**place)
    context.until(10, "no offset is left", lambda: not show.groups().get(crew.group, {}).get("committed"))
    if crew.group in show.groups():
        delete()
    context.until(10, "the group is gone", lambda: crew.group not in show.groups())
