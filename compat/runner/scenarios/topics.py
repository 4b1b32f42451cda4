"""Topics that appear, vanish, and the address that clients are sent to."""

from ..context import Record
from ..errors import ClientError, NotApplicable
from .. import messages
from .registry import check, scenario


@scenario("auto-create")
def auto_create(context):
    """The first write to topics that do not exist yet: they appear and the record is there."""
    if not context.ours and not context.client.can("patient_create"):
        raise NotApplicable(f"{context.client.lacks['patient_create']}, as a Kafka does in the background")
    # A real Kafka creates in the background and answers the first try with an error; we create within the lookup.
    options = {"retries": 0} if context.ours and context.client.can("no_retries") else {}
    count = 5 if context.short else 50
    context.driver.call("producer_open", name="p", bootstrap=context.broker.bootstrap, **options)
    for number in range(count):
        topic = context.name(f"auto-{number}")
        places = context.produce(topic, [Record(b"first", partition=0)], producer="p")
        check(places == [(0, 0)], f"topic {number}: {places}")


@scenario("create-then-produce", needs=("admin",))
def create_then_produce(context):
    """A topic created by the library takes a write at once; a validate-only request leaves none behind."""
    options = {"retries": 0} if context.ours and context.client.can("no_retries") else {}
    address = context.broker.bootstrap
    for number in range(3 if context.short else 20):
        topic = context.name(f"made-{number}")
        context.driver.call("create_topic", bootstrap=address, topic=topic, partitions=3)
        places = context.produce(topic, [Record(b"x", partition=2)], **options)
        check(places == [(2, 0)], f"topic {number}: {places}")
    if context.client.can("validate_only"):
        ghost = context.name("ghost")
        context.driver.call("create_topic", bootstrap=address, topic=ghost, partitions=1, validate_only=True)
        topics = messages.metadata(context.wire())["topics"]
        check(ghost not in topics, "a validate-only request made the topic")
    try:
        context.driver.call("create_topic", bootstrap=address, topic=topic, partitions=1)
        check(False, "a topic was created twice")
    except ClientError as error:
        check(error.is_kafka(36, "exist"), f"not TOPIC_ALREADY_EXISTS but {error}")


@scenario("delete-while-consuming")
def delete_while_consuming(context):
    """A topic deleted under a consumer stays deleted, and can be made again and used."""
    if not context.ours and not context.client.can("no_auto_create"):
        raise NotApplicable(f"{context.client.lacks['no_auto_create']}, and a Kafka obeys")
    topic = context.topic(partitions=2)
    context.produce(topic, [Record(b"%d" % i, partition=i % 2) for i in range(10)])
    # Fast refreshes of the metadata are what brings deleted topics back.
    consumer = context.consumer(group=context.name("group"), topics=[topic], refresh_ms=1000)
    consumer.take_exactly(10)
    wire = context.wire()
    check(messages.delete_topic(wire, topic) == 0, "the deletion failed")
    context.until(10, "the topic is gone", lambda: topic not in messages.metadata(wire)["topics"])

    def still_gone():
        # Some libraries report the loss as an error of poll, which is as it should be.
        try:
            consumer.take(100)
        except ClientError as error:
            context.log(f"poll after the deletion: {error}")
        return topic not in messages.metadata(wire)["topics"]

    context.stays(4 if context.short else 30, "the topic is deleted", still_gone)
    error, text = messages.create_topic(wire, topic, 1)
    check(error == 0, f"making it again: error {error} ({text})")
    context.until(10, "it has a leader", lambda: context._has_leaders(wire, topic, 1))
    places = context.produce(topic, [Record(b"new", partition=0)])
    check(places == [(0, 0)], f"the new topic's first record is at {places}")
    got = context.reader("fresh", topic, driver=context.spawn()).take_exactly(1)
    check(got[0].value == b"new", "the new topic holds old records")


@scenario(
    "advertised",
    settings={"listen": ["127.0.0.2"]},
    beyond_kafka="a Kafka without configuration names one address to all",
)
def advertised(context):
    """With nothing configured, clients are sent to the address that they dialled, and reach it."""
    port = context.broker.port
    # A name is resolved by the client; what the broker sees, and names, is the address.
    for dialled, named in (("127.0.0.1", "127.0.0.1"), ("127.0.0.2", "127.0.0.2"), ("localhost", "127.0.0.1")):
        context.broker.host = dialled
        topic = context.name(dialled)
        check(context.produce(topic, [Record(b"x", partition=0)]) == [(0, 0)], f"a write through {dialled}")
        found = messages.metadata(context.wire())["brokers"]
        check([row[1:] for row in found] == [(named, port)], f"dialled {dialled}, was sent to {found}")
        if context.client.can("metadata"):
            found = context.driver.call("metadata", bootstrap=context.broker.bootstrap)["brokers"]
            check([row[1:] for row in found] == [[named, port]], f"dialled {dialled}, was sent to {found}")
