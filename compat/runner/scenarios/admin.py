"""What a library's admin client does: topics, partitions, configs, groups, records."""

from ..context import Record
from ..crew import Crew
from ..errors import ClientError
from .registry import check, scenario


@scenario("admin-topics", needs=("admin",))
def topics(context):
    """Create with configs, describe, alter, add partitions, list, delete."""
    call, address, can = context.driver.call, context.broker.bootstrap, context.client.can
    topic = context.name("admin")
    call("create_topic", bootstrap=address, topic=topic, partitions=2, configs={"retention.ms": "3600000"})
    context.until(10, "the topic is listed", lambda: call("metadata", bootstrap=address)["topics"].get(topic) == 2)
    if can("topic_configs"):
        look = lambda: call("topic_configs", bootstrap=address, topic=topic)["configs"]
        check(look().get("retention.ms") == "3600000", f"retention.ms is {look().get('retention.ms')}")
        check(look().get("cleanup.policy") == "delete", f"cleanup.policy is {look().get('cleanup.policy')}")
        call("set_topic_config", bootstrap=address, topic=topic, key="retention.ms", value="7200000")
        context.until(10, "the new retention", lambda: look().get("retention.ms") == "7200000")
        try:
            call("set_topic_config", bootstrap=address, topic=topic, key="no.such.config", value="1")
            check(False, "an unknown config was accepted")
        except ClientError as error:
            check(error.is_kafka(40, "config", "unknown"), f"not INVALID_CONFIG but {error}")
    if can("add_partitions"):
        call("add_partitions", bootstrap=address, topic=topic, partitions=5)
        context.until(10, "five partitions", lambda: call("metadata", bootstrap=address)["topics"].get(topic) == 5)
        try:
            call("add_partitions", bootstrap=address, topic=topic, partitions=3)
            check(False, "partitions were taken away")
        except ClientError as error:
            check(error.is_kafka(37, "partitions"), f"not INVALID_PARTITIONS but {error}")
    call("delete_topic", bootstrap=address, topic=topic)
    context.until(10, "the topic is gone", lambda: topic not in call("metadata", bootstrap=address)["topics"])
    try:
        call("delete_topic", bootstrap=address, topic=topic)
        check(False, "a topic was deleted twice")
    except ClientError as error:
        check(error.is_kafka(3, "unknown", "not host"), f"not UNKNOWN_TOPIC_OR_PARTITION but {error}")


@scenario("admin-groups", needs=("group_admin",))
def groups(context):
    """List and describe a live group; deleting it is refused while it lives and works afterwards."""
    call, address = context.driver.call, context.broker.bootstrap
    crew = Crew(context, 3)
    crew.write(12)
    crew.join("m1")
    crew.settle()
    crew.drain()
    check(crew.group in call("list_groups", bootstrap=address)["groups"], "the group is not listed")
    found = call("describe_group", bootstrap=address, group=crew.group)
    check(found["state"].lower() == "stable", f"state {found['state']}")
    wanted = [[crew.topic, partition] for partition in range(3)]
    check(found["members"] == [wanted], f"described as {found['members']}")
    try:
        call("delete_group", bootstrap=address, group=crew.group)
        check(False, "a live group was deleted")
    except ClientError as error:
        check(error.is_kafka(68, "not empty", "non_empty", "nonempty", "non-empty"), f"not NON_EMPTY_GROUP but {error}")
    crew.leave("m1")
    context.until(15, "the group is empty", lambda: call("describe_group", bootstrap=address, group=crew.group)["state"].lower() == "empty")
    call("delete_group", bootstrap=address, group=crew.group)
    context.until(10, "the group is gone", lambda: crew.group not in call("list_groups", bootstrap=address)["groups"])
    # Its commits are gone with it.
    crew.members.clear()
    crew.join("m2")
    places = set()

    def look():
        places.update((record.partition, record.offset) for record in crew.members["m2"].take(100))
        return len(places) == 12

    context.until(20, "all records again, since the group's commits went with it", look)


@scenario("delete-records", needs=("delete_records",))
def delete_records(context):
    """Records below a point are deleted; earliest readers start there."""
    topic = context.topic()
    context.produce(topic, [Record(b"%d" % i, partition=0) for i in range(20)])
    found = context.driver.call("delete_records", bootstrap=context.broker.bootstrap, topic=topic, partition=0, offset=13)
    check(found["low"] == 13, f"the low watermark is {found['low']}")
    got = context.reader("c1", topic).take_exactly(7)
    check([record.offset for record in got] == list(range(13, 20)), f"read {[r.offset for r in got]}")
