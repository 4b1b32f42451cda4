"""The requests of the raw client: one function for each, in one or two non-flexible versions."""

from .wire import In, Out

PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP = 8, 9, 10, 11
HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS, LIST_GROUPS = 12, 13, 14, 15, 16
API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS = 18, 19, 20, 21
DESCRIBE_LOG_DIRS, DELETE_GROUPS, OFFSET_DELETE = 35, 42, 47


def _api_range(answer):
    key, low, high = answer.unpack("hhh")
    return key, (low, high)


def api_versions(wire, version=0, body=b""):
    """(error, {api key: (min, max)}), the answer being read in the version 0 layout."""
    answer = wire.call(API_VERSIONS, version, body)
    error = answer.unpack("h")
    return error, dict(answer.array(_api_range) or [])


def metadata(wire, topics=None, version=1, allow_auto_creation=None):
    """{"brokers": [(id, host, port)], "topics": {name: (error, [(partition, leader)])}} for versions 0, 1 and 4.

    `topics` None asks for all; version 0 has an empty list for that.
    """
    body = Out().array([] if version == 0 and topics is None else topics, Out.text)
    if version >= 4:
        body.pack("?", True if allow_auto_creation is None else allow_auto_creation)
    answer = wire.call(METADATA, version, body.data())
    if version >= 3:
        answer.unpack("i")

    def broker(item):
        node, host, port = item.unpack("i"), item.text(), item.unpack("i")
        if version >= 1:
            item.text()
        return node, host, port

    def partition(item):
        _, index, leader = item.unpack("hii")
        item.array(lambda replica: replica.unpack("i"))
        item.array(lambda replica: replica.unpack("i"))
        return index, leader

    def topic(item):
        error, name = item.unpack("h"), item.text()
        if version >= 1:
            item.unpack("b")
        return name, (error, item.array(partition))

    brokers = answer.array(broker)
    if version >= 2:
        answer.text()
    if version >= 1:
        answer.unpack("i")
    return {"brokers": brokers, "topics": dict(answer.array(topic))}


def create_topic(wire, name, partitions=1, configs=None, validate_only=False):
    """(error, message) of CreateTopics version 2."""
    body = Out().pack("i", 1).text(name).pack("ihi", partitions, 1, 0)
    body.array(sorted((configs or {}).items()), lambda out, item: out.text(item[0]).text(item[1]))
    answer = wire.call(CREATE_TOPICS, 2, body.pack("i?", 15000, validate_only).data())
    answer.unpack("ii")
    answer.text()
    return answer.unpack("h"), answer.text()


def delete_topic(wire, name):
    """The error of DeleteTopics version 1."""
    answer = wire.call(DELETE_TOPICS, 1, Out().array([name], Out.text).pack("i", 15000).data())
    answer.unpack("ii")
    answer.text()
    return answer.unpack("h")


def delete_records(wire, topic, partition, offset):
    """(low watermark, error) of DeleteRecords version 0; offset -1 means all."""
    body = Out().pack("i", 1).text(topic).pack("iiqi", 1, partition, offset, 15000)
    answer = wire.call(DELETE_RECORDS, 0, body.data())
    answer.unpack("ii")
    answer.text()
    _, _, low, error = answer.unpack("iiqh")
    return low, error


def produce(wire, topic, partition, batch, acks=-1):
    """(error, base offset) of Produce version 3, or 7 for zstd."""
    version = 7 if batch[22] & 7 == 4 else 3
    body = Out().text(None).pack("hi", acks, 15000).pack("i", 1).text(topic).pack("ii", 1, partition).blob(batch)
    answer = wire.call(PRODUCE, version, body.data())
    answer.unpack("i")
    answer.text()
    answer.unpack("ii")
    return answer.unpack("hq")


def fetch(wire, topic, partition, offset, version=4, partition_bytes=1 << 20, total_bytes=1 << 24, wait_ms=500):
    """(error, high watermark, bytes of the records) of Fetch version 4 or 10."""
    body = Out().pack("iiiib", -1, wait_ms, 1, total_bytes, 0)
    if version >= 7:
        body.pack("ii", 0, -1)
    body.pack("i", 1).text(topic).pack("ii", 1, partition)
    if version >= 9:
        body.pack("i", -1)
    body.pack("q", offset)
    if version >= 5:
        body.pack("q", -1)
    body.pack("i", partition_bytes)
    if version >= 7:
        body.pack("i", 0)
    answer = wire.call(FETCH, version, body.data())
    answer.unpack("i")
    if version >= 7:
        answer.unpack("hi")
    answer.unpack("i")
    answer.text()
    _, _, error, high, _ = answer.unpack("iihqq")
    if version >= 5:
        answer.unpack("q")
    answer.array(lambda item: item.unpack("qq"))
    return error, high, answer.blob() or b""


def list_offset(wire, topic, partition, timestamp):
    """(error, timestamp, offset) of ListOffsets version 1; -1 is the end, -2 the start."""
    body = Out().pack("ii", -1, 1).text(topic).pack("iiq", 1, partition, timestamp)
    answer = wire.call(LIST_OFFSETS, 1, body.data())
    answer.unpack("i")
    answer.text()
    _, _, error, found, offset = answer.unpack("iihqq")
    return error, found, offset


def find_coordinator(wire, group):
    """(error, node, host, port) of FindCoordinator version 0."""
    answer = wire.call(FIND_COORDINATOR, 0, Out().text(group).data())
    return answer.unpack("h"), answer.unpack("i"), answer.text(), answer.unpack("i")


def subscription(topics):
    """The metadata that a consumer sends when it joins (version 0)."""
    return Out().pack("h", 0).array(topics, Out.text).blob(None).data()


def send_join(wire, group, member, topics, version=0, session_ms=6000, rebalance_ms=10000, protocols=("range",)):
    """Sends JoinGroup version 0 to 4 without waiting; answer with `read_join`."""
    body = Out().text(group).pack("i", session_ms)
    if version >= 1:
        body.pack("i", rebalance_ms)
    body.text(member).text("consumer")
    body.array(protocols, lambda out, name: out.text(name).blob(subscription(topics)))
    return wire.send(JOIN_GROUP, version, body.data())


def read_join(wire, request, version=0):
    """{"error", "generation", "protocol", "leader", "member", "members"} of a JoinGroup answer."""
    answer = wire.receive(request)
    if version >= 2:
        answer.unpack("i")
    error, generation = answer.unpack("hi")
    joined = {"error": error, "generation": generation, "protocol": answer.text()}
    joined["leader"], joined["member"] = answer.text(), answer.text()
    joined["members"] = answer.array(lambda item: (item.text(), item.blob()))
    return joined


def assignment(topic, partitions):
    """What a leader hands to a member (version 0)."""
    body = Out().pack("h", 0).pack("i", 1).text(topic)
    return body.array(partitions, lambda out, item: out.pack("i", item)).blob(None).data()


def read_assignment(data):
    """[(topic, partition)] of an assignment; empty bytes are none."""
    if not data:
        return []
    answer = In(data)
    answer.unpack("h")
    topics = answer.array(lambda item: (item.text(), item.array(lambda number: number.unpack("i")))) or []
    return sorted((topic, partition) for topic, partitions in topics for partition in partitions)


def sync_group(wire, group, generation, member, assignments=()):
    """(error, assignment bytes) of SyncGroup version 0."""
    return read_sync(wire, send_sync(wire, group, generation, member, assignments))


def send_sync(wire, group, generation, member, assignments=()):
    """Sends SyncGroup version 0 without waiting; answer with `read_sync`."""
    body = Out().text(group).pack("i", generation).text(member)
    body.array(list(assignments), lambda out, item: out.text(item[0]).blob(item[1]))
    return wire.send(SYNC_GROUP, 0, body.data())


def read_sync(wire, request):
    """(error, assignment bytes) of a SyncGroup answer."""
    answer = wire.receive(request)
    return answer.unpack("h"), answer.blob()


def heartbeat(wire, group, generation, member):
    """The error of Heartbeat version 0."""
    return wire.call(HEARTBEAT, 0, Out().text(group).pack("i", generation).text(member).data()).unpack("h")


def leave_group(wire, group, member):
    """The error of LeaveGroup version 0."""
    return wire.call(LEAVE_GROUP, 0, Out().text(group).text(member).data()).unpack("h")


def offset_commit(wire, group, offsets, generation=-1, member=""):
    """[(partition, error)] of OffsetCommit version 2; `offsets` is [(topic, partition, offset, metadata)] of one topic."""
    body = Out().text(group).pack("i", generation).text(member).pack("q", -1).pack("i", 1).text(offsets[0][0])
    body.array(offsets, lambda out, item: out.pack("iq", item[1], item[2]).text(item[3]))
    answer = wire.call(OFFSET_COMMIT, 2, body.data())
    answer.unpack("i")
    answer.text()
    return answer.array(lambda item: item.unpack("ih"))


def offset_fetch(wire, group, topic, partitions):
    """{partition: (offset, metadata, error)} of OffsetFetch version 1."""
    body = Out().text(group).pack("i", 1).text(topic).array(partitions, lambda out, item: out.pack("i", item))
    answer = wire.call(OFFSET_FETCH, 1, body.data())
    if answer.unpack("i") == 0:
        return {}
    answer.text()
    rows = answer.array(lambda item: (item.unpack("i"), (item.unpack("q"), item.text(), item.unpack("h"))))
    return dict(rows)


def list_groups(wire):
    """(error, {group: protocol type}) of ListGroups version 0."""
    answer = wire.call(LIST_GROUPS, 0, b"")
    return answer.unpack("h"), dict(answer.array(lambda item: (item.text(), item.text())))


def describe_group(wire, group):
    """{"error", "state", "protocol", "members": {member: (client, assignment)}} of DescribeGroups version 0."""
    answer = wire.call(DESCRIBE_GROUPS, 0, Out().array([group], Out.text).data())
    answer.unpack("i")
    described = {"error": answer.unpack("h")}
    answer.text()
    described["state"] = answer.text()
    answer.text()
    described["protocol"] = answer.text()

    def member(item):
        name, client, _ = item.text(), item.text(), item.text()
        item.blob()
        return name, (client, read_assignment(item.blob()))

    described["members"] = dict(answer.array(member))
    return described


def delete_group(wire, group):
    """The error of DeleteGroups version 0."""
    answer = wire.call(DELETE_GROUPS, 0, Out().array([group], Out.text).data())
    answer.unpack("ii")
    answer.text()
    return answer.unpack("h")


def offset_delete(wire, group, topic, partition):
    """(group error, partition error) of OffsetDelete version 0; the second is None if the first is set."""
    body = Out().text(group).pack("i", 1).text(topic).pack("ii", 1, partition)
    answer = wire.call(OFFSET_DELETE, 0, body.data())
    error, _ = answer.unpack("hi")
    rows = answer.array(lambda item: (item.text(), item.array(lambda part: part.unpack("ih"))))
    return error, rows[0][1][0][1] if rows else None


def log_dirs(wire):
    """[(error, path, {(topic, partition): bytes})] of DescribeLogDirs version 1 for everything."""
    answer = wire.call(DESCRIBE_LOG_DIRS, 1, Out().array(None, Out.text).data())
    answer.unpack("i")

    def topic(item):
        name = item.text()
        return [((name, index), size) for index, size, _, _ in item.array(lambda part: part.unpack("iqq?"))]

    def folder(item):
        error, path = item.unpack("h"), item.text()
        return error, path, dict(row for rows in item.array(topic) for row in rows)

    return answer.array(folder)
