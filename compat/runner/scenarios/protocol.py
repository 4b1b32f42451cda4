"""Raw requests: old versions, odd members, and what admin pages ask for."""

import threading
import time

from .. import batch, messages
from ..errors import Failure
from ..wire import Closed
from .registry import check, scenario

RAW = ("raw",)
COORDINATOR_ERRORS = (14, 15, 16)


def _coordinator(context, group):
    """A connection, once the group's coordinator is there (a real Kafka creates its topic first)."""
    wire = context.wire()
    context.until(30, "a coordinator", lambda: messages.find_coordinator(wire, group)[0] == 0)
    context.until(30, "the coordinator has loaded", lambda: messages.heartbeat(wire, group, 1, "x") not in COORDINATOR_ERRORS)
    return wire


@scenario("wire-api-versions", who=RAW)
def api_versions(context):
    """An unknown ApiVersions version is answered in the layout of version 0, with error 35 and the ranges."""
    wire = context.wire()
    # From version 3 on the header ends with tagged fields: none, before two names in compact form.
    error, ranges = messages.api_versions(wire, 99, b"\x00\x06hello\x02x\x00")
    check(error == 35, f"error {error}")
    check(messages.API_VERSIONS in ranges, f"ranges {ranges}")
    # The connection goes on.
    error, ranges = messages.api_versions(wire)
    check(error == 0, f"error {error}")
    for key in (messages.PRODUCE, messages.FETCH, messages.METADATA, messages.JOIN_GROUP, messages.CREATE_TOPICS):
        check(key in ranges, f"api {key} is not in {ranges}")
    check(ranges[messages.PRODUCE][0] == 0, f"Produce starts at {ranges[messages.PRODUCE][0]}: old librdkafka would not compress")


@scenario("wire-old-metadata", who=RAW)
def old_metadata(context):
    """Metadata versions 0 and 1: all topics, one topic; asking for all never creates."""
    topic = context.topic(partitions=2)
    wire = context.wire()
    for version in (0, 1, 4):
        found = messages.metadata(wire, [topic], version)
        check(found["topics"][topic][0] == 0 and len(found["topics"][topic][1]) == 2, f"version {version}: {found}")
        check(found["brokers"][0][1:] == (context.broker.host, context.broker.port), f"version {version}: {found['brokers']}")
        check(topic in messages.metadata(wire, None, version)["topics"], f"version {version}: not in the list of all")
    ghost = context.name("ghost")
    error, _ = messages.metadata(wire, [ghost], 4, False)["topics"][ghost]
    check(error == 3, f"a topic that is not there, creation forbidden: error {error}")
    messages.metadata(wire, None, 4, True)
    check(ghost not in messages.metadata(wire)["topics"], "the topic was created all the same")


@scenario("wire-old-fetch", who=RAW)
def old_fetch(context):
    """Fetch version 4 reads plain batches."""
    topic = context.topic()
    wire = context.wire()
    rows = [(b"k%d" % i, b"v%d" % i) for i in range(5)]
    check(context.raw_write(topic, batch.build(rows)) == 0, "the write landed elsewhere")
    error, high, data = messages.fetch(wire, topic, 0, 0)
    check((error, high) == (0, 5), f"error {error}, high watermark {high}")
    check(batch.parse(data) == [(i, *row) for i, row in enumerate(rows)], "other records than written")


@scenario("wire-old-fetch-zstd", who=RAW)
def old_fetch_zstd(context):
    """A zstd batch is sent by Fetch version 4, too, as Kafka 4 does: kafka-python 2 reads it that way."""
    topic = context.topic()
    wire = context.wire()
    context.raw_write(topic, batch.build([(b"k", b"v")], "zstd"))
    for version in (4, 10):
        error, _, data = messages.fetch(wire, topic, 0, 0, version)
        check(error == 0 and len(data) > 61, f"version {version} on zstd: error {error}, {len(data)} bytes")
        check(data[22] & 7 == 4, f"version {version}: the batch was repacked")


@scenario("wire-fetch-bounds", who=RAW)
def fetch_bounds(context):
    """Offsets below and above the log are OFFSET_OUT_OF_RANGE; the end is empty after the wait; a batch over the limit is whole."""
    topic = context.topic()
    wire = context.wire()
    data = batch.build([(b"k", b"x" * 5000)])
    for number in range(3):
        check(context.raw_write(topic, data) == number, "the write landed elsewhere")
    for offset in (-1, 4):
        error, _, _ = messages.fetch(wire, topic, 0, offset)
        check(error == 1, f"offset {offset}: error {error}")
    begun = time.monotonic()
    error, high, got = messages.fetch(wire, topic, 0, 3, wait_ms=300)
    check((error, high, got) == (0, 3, b""), f"the end: error {error}, high {high}, {len(got)} bytes")
    check(time.monotonic() - begun >= 0.25, "the end was answered before the wait was over")
    for version in (4, 10):
        error, _, got = messages.fetch(wire, topic, 0, 0, version, partition_bytes=100, total_bytes=100)
        check(error == 0 and len(batch.parse(got)) >= 1, f"version {version}: error {error}, {len(got)} bytes")
    check(messages.list_offset(wire, topic, 0, -1)[2] == 3, "the end by ListOffsets")
    check(messages.list_offset(wire, topic, 0, -2)[2] == 0, "the start by ListOffsets")


@scenario("wire-produce-errors", who=RAW)
def produce_errors(context):
    """Too large is 10, a broken checksum is 2, an unknown partition is 3; the connection lives on."""
    topic = context.topic()
    context.raw_write(topic, batch.build([(b"k", b"first")]))
    wire = context.wire()
    error, _ = messages.produce(wire, topic, 0, batch.build([(None, b"x" * 2_000_000)]))
    check(error == 10, f"2 MB: error {error}")
    broken = bytearray(batch.build([(b"k", b"value")]))
    broken[-1] ^= 1
    error, _ = messages.produce(wire, topic, 0, bytes(broken))
    check(error == 2, f"a broken checksum: error {error}")
    error, _ = messages.produce(wire, topic, 7, batch.build([(b"k", b"v")]))
    check(error == 3, f"partition 7 of 1: error {error}")
    check(messages.produce(wire, topic, 0, batch.build([(b"k", b"v")])) == (0, 1), "a good batch after the bad ones")


@scenario("wire-sequences", who=RAW)
def sequences(context):
    """A repeated idempotent batch keeps its offset; a gap in the sequence is 45."""
    topic = context.topic()
    wire = context.wire()
    # InitProducerId version 0: no transactional id, a timeout.
    def identity():
        answer = wire.call(22, 0, b"\xff\xff" + (60000).to_bytes(4, "big"))
        answer.unpack("i")
        error, producer, epoch = answer.unpack("hqh")
        check(error in (0, *COORDINATOR_ERRORS), f"InitProducerId: error {error}")
        return None if error else (producer, epoch)

    producer, epoch = context.until(10, "a producer id", identity)

    def write(sequence, count=2):
        rows = [(b"k", b"%d" % (sequence + i)) for i in range(count)]
        return messages.produce(wire, topic, 0, batch.build(rows, producer_id=producer, producer_epoch=epoch, sequence=sequence))

    context.until(10, "the first batch is taken", lambda: write(0) == (0, 0))
    check(write(2) == (0, 2), "the second batch")
    error, offset = write(2)
    check((error, offset) in ((0, 2), (46, -1)), f"the repeated batch: error {error}, offset {offset}")
    error, _ = write(8)
    check(error == 45, f"a gap: error {error}")
    check(write(4) == (0, 4), "the third batch after the refused one")
    error, high, data = messages.fetch(wire, topic, 0, 0)
    check(high == 6 and [row[2] for row in batch.parse(data)] == [b"%d" % i for i in range(6)], f"high {high}")


class OldMember:
    """A member that speaks the first versions of the group protocol and, if it is told to lead, assigns."""

    def __init__(self, context, group, topic, partitions):
        self.context, self.group, self.topic, self.partitions = context, group, topic, partitions
        self.wire = context.wire()
        self.member, self.generation, self.assigned = "", -1, None
        self.pending = None
        self.joins = 0

    def ask(self, session_ms=6000):
        """Sends JoinGroup version 0."""
        self.joins += 1
        self.pending = messages.send_join(self.wire, self.group, self.member, [self.topic], 0, session_ms)

    def joined(self):
        """Reads the answer and, as a leader, hands out the partitions in turn; then syncs."""
        answer = messages.read_join(self.wire, self.pending, 0)
        self.pending = None
        if answer["error"]:
            raise Failure(f"JoinGroup: error {answer['error']}")
        self.member, self.generation = answer["member"], answer["generation"]
        plan = []
        if answer["leader"] == self.member:
            names = [name for name, _ in answer["members"]]
            shares = {name: [p for p in range(self.partitions) if p % len(names) == i] for i, name in enumerate(names)}
            plan = [(name, messages.assignment(self.topic, share)) for name, share in shares.items()]
        self.sync = messages.send_sync(self.wire, self.group, self.generation, self.member, plan)

    def synced(self):
        """Reads the assignment; False if the group changed meanwhile."""
        error, data = messages.read_sync(self.wire, self.sync)
        if error in (22, 27):
            return False
        if error:
            raise Failure(f"SyncGroup: error {error}")
        self.assigned = messages.read_assignment(data)
        return True

    def beat(self):
        """A heartbeat; True while the group is calm."""
        error = messages.heartbeat(self.wire, self.group, self.generation, self.member)
        if error not in (0, 22, 27):
            raise Failure(f"Heartbeat: error {error}")
        return error == 0


class Household:
    """Old members that live side by side, each in a thread: join, sync, heartbeats, join again when told."""

    def __init__(self, context, group, topic, partitions, count):
        self._context = context
        self.members = [OldMember(context, group, topic, partitions) for _ in range(count)]
        self._wanted = [(topic, partition) for partition in range(partitions)]
        self._stop, self._errors = threading.Event(), []

    def __enter__(self):
        for number, member in enumerate(self.members):
            threading.Thread(target=self._live, args=(member,), daemon=True).start()
            # The next one comes once this one has joined: each arrival is a change of the group.
            self._context.until(20, f"member {number} is assigned", lambda m=member: m.assigned is not None or self._errors)
        return self

    def __exit__(self, *_):
        self._stop.set()

    def is_spread(self):
        """Whether the members hold one partition each, all together every one."""
        if self._errors:
            raise Failure(self._errors[0])
        held = sorted(pair for member in self.members for pair in member.assigned or [])
        return held == self._wanted and all(len(member.assigned) == 1 for member in self.members)

    def joins(self):
        """How often each has joined so far."""
        return [member.joins for member in self.members]

    def _live(self, member):
        try:
            while not self._stop.is_set():
                member.ask()
                member.joined()
                if not member.synced():
                    continue
                while not self._stop.wait(0.1) and member.beat():
                    pass
        except (Failure, OSError, ValueError, Closed) as error:
            if not self._stop.is_set():
                self._errors.append(f"{type(error).__name__}: {error}")


@scenario("wire-join-v0", who=RAW)
def join_v0(context):
    """Three members that speak JoinGroup version 0 (no rebalance timeout) become one calm group."""
    topic, group = context.topic(partitions=3), context.name("group")
    _coordinator(context, group)
    with Household(context, group, topic, 3, 3) as house:
        context.until(12, "the members share the partitions", house.is_spread)
        joins = house.joins()
        seconds = 3 if context.short else 10
        context.stays(seconds, "nobody joins again", lambda: house.is_spread() and house.joins() == joins)


@scenario("wire-dead-joiner", who=RAW)
def dead_joiner(context):
    """A member whose connection is reset in the middle of a join does not hold up the others."""
    topic, group = context.topic(partitions=2), context.name("group")
    _coordinator(context, group)
    dead = OldMember(context, group, topic, 2)
    dead.ask()
    dead.wire.reset()
    with Household(context, group, topic, 2, 2) as house:
        context.until(25, "the two others share the partitions", house.is_spread)


@scenario("wire-commit-metadata", who=RAW)
def commit_metadata(context):
    """In one request, a commit text of 4096 bytes is stored and one of 4097 refused alone."""
    topic, group = context.topic(partitions=2), context.name("group")
    wire = _coordinator(context, group)
    text = "m" * 4096
    rows = messages.offset_commit(wire, group, [(topic, 0, 5, text), (topic, 1, 6, text + "m")])
    check(rows == [(0, 0), (1, 12)], f"answered {rows}")
    found = messages.offset_fetch(wire, group, topic, [0, 1])
    check(found[0] == (5, text, 0), "the first was not stored")
    check(found[1][0] == -1, f"the second was stored: {found[1][0]}")


@scenario("wire-late-commit", who=RAW)
def late_commit(context):
    """A commit by a stranger or of an old generation is refused and changes nothing."""
    topic, group = context.topic(), context.name("group")
    wire = _coordinator(context, group)
    member = OldMember(context, group, topic, 1)
    member.ask()
    member.joined()
    check(member.synced(), "the only member's group changed")
    commit = lambda generation, name: messages.offset_commit(wire, group, [(topic, 0, 3, "")], generation, name)[0][1]
    check(commit(member.generation, member.member) == 0, "the member's own commit")
    error = commit(member.generation + 7, member.member)
    check(error == 22, f"another generation: error {error}")
    error = commit(member.generation, "stranger")
    check(error == 25, f"a stranger: error {error}")
    check(messages.offset_fetch(wire, group, topic, [0])[0][0] == 3, "the commit changed")
    check(member.beat(), "the group was disturbed")


@scenario("wire-validate-only", who=RAW)
def validate_only(context):
    """A validate-only CreateTopics checks everything and makes nothing."""
    wire = context.wire()
    name = context.name("ghost")
    check(messages.create_topic(wire, name, 2, validate_only=True)[0] == 0, "a good one was refused")
    error, _ = messages.create_topic(wire, name, 2, {"no.such.key": "1"}, validate_only=True)
    check(error == 40, f"an unknown config: error {error}")
    error, _ = messages.create_topic(wire, "no/good name", 1, validate_only=True)
    check(error == 17, f"a bad name: error {error}")
    check(name not in messages.metadata(wire)["topics"], "the topic was made")


@scenario("wire-delete-compacted", who=RAW)
def delete_compacted(context):
    """DeleteRecords is refused (POLICY_VIOLATION) where the policy is compact alone, and works where delete is part of it."""
    wire = context.wire()
    records = batch.build([(b"k%d" % i, b"v") for i in range(4)])
    kept = context.topic("kept", cleanup_policy="compact")
    context.raw_write(kept, records)
    low, error = messages.delete_records(wire, kept, 0, 2)
    check((low, error) == (-1, 44), f"compact: low watermark {low}, error {error}")
    check(messages.list_offset(wire, kept, 0, -2)[-1] == 0, "the start of the log has moved all the same")
    both = context.topic("both", cleanup_policy="compact,delete")
    context.raw_write(both, records)
    low, error = messages.delete_records(wire, both, 0, 2)
    check((low, error) == (2, 0), f"compact,delete: low watermark {low}, error {error}")
    check(messages.list_offset(wire, both, 0, -2)[-1] == 2, "the start of the log has not moved")


@scenario("wire-admin-walk", who=RAW)
def admin_walk(context):
    """What admin pages do: sizes of logs, groups live, empty and never committed; deletion of offsets and groups."""
    topic, group = context.topic(), context.name("walk")
    wire = _coordinator(context, group)
    context.raw_write(topic, batch.build([(b"k", b"v" * 1000)]))
    folders = messages.log_dirs(wire)
    check(folders and all(error == 0 for error, _, _ in folders), f"log dirs {folders}")
    size = max(sizes.get((topic, 0), 0) for _, _, sizes in folders)
    check(size >= 1000, f"the size of the log is {size}")
    member = OldMember(context, group, topic, 1)
    member.ask()
    member.joined()
    check(member.synced(), "the only member's group changed")
    check(messages.list_groups(wire)[1].get(group) == "consumer", "the live group is not listed")
    found = messages.describe_group(wire, group)
    check(found["state"] == "Stable" and list(found["members"]) == [member.member], f"described as {found}")
    check(found["members"][member.member][1] == [(topic, 0)], f"described as {found}")
    error = messages.delete_group(wire, group)
    check(error == 68, f"deleting a live group: error {error}")
    messages.offset_commit(wire, group, [(topic, 0, 1, "")], member.generation, member.member)
    errors = messages.offset_delete(wire, group, topic, 0)
    check(errors == (0, 86), f"deleting offsets of a subscribed topic: {errors}")
    check(messages.leave_group(wire, group, member.member) == 0, "leaving failed")
    context.until(5, "the group is empty", lambda: messages.describe_group(wire, group)["state"] == "Empty")
    errors = messages.offset_delete(wire, group, topic, 0)
    check(errors == (0, 0), f"deleting offsets of an empty group: {errors}")
    check(messages.offset_fetch(wire, group, topic, [0])[0][0] == -1, "the offset is still there")
    error = messages.delete_group(wire, group)
    # Kafka forgets a group when its last offset is deleted and it has no members, or keeps it until then.
    check(error in (0, 69), f"deleting the empty group: error {error}")
    check(group not in messages.list_groups(wire)[1], "the group is still listed")
    never = context.name("never")
    error = messages.delete_group(wire, never)
    check(error == 69, f"deleting a group that never was: error {error}")
    other = OldMember(context, never, topic, 1)
    other.ask()
    other.joined()
    check(other.synced(), "the only member's group changed")
    check(messages.leave_group(wire, never, other.member) == 0, "leaving failed")
    context.until(5, "it is empty", lambda: messages.describe_group(wire, never)["state"] in ("Empty", "Dead"))
    error = messages.delete_group(wire, never)
    check(error in (0, 69), f"deleting a group that never committed: error {error}")
