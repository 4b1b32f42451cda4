"""A group under test: its members, what was written for it, and what they read."""

from . import messages
from .context import Record
from .errors import ClientError, Late
from .oracle import Oracle, value
from .wire import Closed


# Errors that a member may meet while its group or its broker changes: it goes on afterwards.
PASSING = {6, 14, 15, 16, 22, 25, 27, 110, 113, -185, -195, None}


class Crew:
    """Members of one group on one topic; every member commits what it was handed at once.

    `rough` is for scenarios in which the group or the broker changes while records flow: errors that pass are noted only.
    """

    def __init__(self, context, partitions, keys=12, rough=False, **options):
        self.context, self.partitions, self.keys, self.rough = context, partitions, keys, rough
        self.topic = context.topic("group-topic", partitions)
        self.group = context.name("group")
        self._wire = context.wire()
        self.options = options
        self.members = {}
        self.oracle = Oracle()
        self._next = {}

    def join(self, name, driver=None, **options):
        """Starts a member."""
        options = {**self.options, **options}
        member = self.context.consumer(name, driver, group=self.group, topics=[self.topic], **options)
        self.members[name] = member
        return member

    def leave(self, name):
        """Closes a member in the library's way."""
        self.members.pop(name).close()

    def lose(self, name):
        """Forgets a member whose process was killed."""
        del self.members[name]

    def write(self, count, driver=None):
        """Writes `count` records, keys in turn, each key in one partition."""
        records, identities = [], []
        for number in range(count):
            key = number % self.keys
            seq = self._next.get(key, 0)
            self._next[key] = seq + 1
            records.append(Record(value("w", key, seq), b"%d" % key, partition=key % self.partitions))
            identities.append(("w", key, seq))
        places = self.context.produce(self.topic, records, driver=driver)
        for identity, (partition, offset) in zip(identities, places):
            self.oracle.acknowledged(self.topic, partition, offset, *identity)

    def pump(self, wait_ms=30):
        """Lets every member hand out what it has, and commit it."""
        for name, member in self.members.items():
            try:
                records = member.take(wait_ms)
                for record in records:
                    self.oracle.seen(name, record)
                if records:
                    member.commit()
            except ClientError as error:
                if not self.rough or error.code not in PASSING:
                    raise
                self.context.log(f"{name}: {error}")

    def shares(self):
        """The number of partitions of each member, sorted."""
        return sorted(len(member.assignment) for member in self.members.values())

    def is_spread(self):
        """Whether the members hold every partition once, as evenly as can be."""
        held = [pair for member in self.members.values() for pair in member.assignment]
        if sorted(held) != [(self.topic, partition) for partition in range(self.partitions)]:
            return False
        shares = self.shares()
        return shares[-1] - shares[0] <= 1

    def has_all(self):
        """Whether the broker counts the group's members as we do, and calls it stable.

        Without this, a member that has not joined yet would pass for one that got nothing. Groups of KIP-848 are not shown by
        this old request; there the answer is yes.
        """
        found = messages.describe_group(self._wire, self.group)
        if found["error"] or found["state"] == "Dead":
            return True
        return found["state"] == "Stable" and len(found["members"]) == len(self.members)

    def settle(self, seconds=25):
        """Waits until all members are in the group and share the partitions evenly."""

        def look():
            self.pump()
            if not self.is_spread():
                return False
            try:
                return self.has_all()
            except (OSError, Closed):
                # The broker was restarted meanwhile.
                self._wire = self.context.wire()
                return False

        try:
            self.context.until(seconds, f"{len(self.members)} members share {self.partitions} partitions", look)
        except Late as error:
            held = {name: [p for _, p in member.assignment] for name, member in self.members.items()}
            raise Late(f"{error}; they hold {held}") from error

    def drain(self, seconds=25):
        """Waits until everything acknowledged was read."""

        def look():
            self.pump()
            return not self.oracle.missing()

        try:
            self.context.until(seconds, "all records are read", look)
        except Late as error:
            missing = self.oracle.missing()
            held = {name: [p for _, p in member.assignment] for name, member in self.members.items()}
            raise Late(f"{error}; {len(missing)} are missing, first {missing[:3]}; members hold {held}") from error

    def check(self, duplicates=False):
        """Loss, order, duplicates."""
        # The writer of a crew is a plain one: its retries may store a record twice.
        self.oracle.check(duplicates, copies=True)
