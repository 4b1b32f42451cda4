"""What members did, from the files that they write while they work, and what must hold of it.

A member that works by itself (the option `work` of `consumer_open`) writes one line for each thing that happens, times in
microseconds since 1970:

  R begun ended partition offset head   a record was worked on; `head` is its value up to the first "|", "-" if there is none
  C time partition offset               a commit was answered
  F time what error                     a poll, a commit or the application failed
  V time                                partitions were taken away
  E time                                the consumer was closed

A record's offset is what the library says. In a divided group that is not its offset in the log, but carries the number of the
share in its upper bits.
"""

from .errors import Failure

# Bits of an offset that say where in the log a record is; the others are the number of the share.
LOG_BITS = 46


class Delivery:
    """A record in a member's hands."""

    __slots__ = ("begun", "committed", "ended", "head", "member", "offset", "partition", "position", "slice")

    def __init__(self, member, words):
        begun, ended, partition, offset, head = words
        self.member, self.begun, self.ended, self.head = member, int(begun), int(ended), head
        # What the library calls its offset, and where that is in the log.
        self.partition, self.position = int(partition), int(offset)
        self.offset, self.slice = self.position & (1 << LOG_BITS) - 1, self.position >> LOG_BITS
        # When a commit that covers it was answered.
        self.committed = None

    @property
    def place(self):
        """The record, whoever has it: partition and offset in the log."""
        return self.partition, self.offset

    def __repr__(self):
        return f"{self.head} at {self.offset} in slice {self.slice} by {self.member} from {self.begun} to {self.ended}"


class WorkLog:
    """The file of one member, read as it grows."""

    def __init__(self, member, path):
        self.member, self.path = member, path
        self.deliveries, self.failures = [], []
        # When partitions were taken away, and when the last commit was answered.
        self.given_up, self.last_commit = [], None
        self._open = []
        self._at, self._rest = 0, b""

    def read(self):
        """Takes in what is new."""
        try:
            with open(self.path, "rb") as log:
                log.seek(self._at)
                data = log.read()
        except FileNotFoundError:
            return
        self._at += len(data)
        # A member that was killed may have left half a line: it did not get as far as committing that.
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(line.decode())

    def _take(self, line):
        kind, *words = line.split(" ")
        if kind == "R":
            delivery = Delivery(self.member, words)
            self.deliveries.append(delivery)
            self._open.append(delivery)
        elif kind == "C":
            self._commit(*map(int, words))
        elif kind == "F":
            self.failures.append((int(words[0]), " ".join(words[1:])))
            self._open = []
        elif kind == "V":
            self.given_up.append(int(words[0]))
        elif kind != "E":
            raise Failure(f"{self.path} has a line that is none of a work log: {line!r}")

    def _commit(self, moment, partition, position):
        self.last_commit = moment
        covered = lambda one: one.partition == partition and one.position < position
        for delivery in filter(covered, self._open):
            delivery.committed = moment
        self._open = [one for one in self._open if one.committed is None]

    @property
    def first_in_slice(self):
        """When the member began its first record of a share, or None."""
        return next((delivery.begun for delivery in self.deliveries if delivery.slice), None)


class Judge:
    """The rules. `written` is {(partition, offset): (key, seq)}, key None for records without one.

    `expelled` are [(member, from, to)]: a member that was expelled while it stood still may go on with what it holds until it
    notices; that work counts for nothing.
    """

    def __init__(self, written, logs, expelled=()):
        self._written = written
        late = lambda one: any(one.member == who and one.ended > since and one.begun < until for who, since, until in expelled)
        self.deliveries = [one for log in logs for one in log.deliveries if not late(one)]
        # Stable: what a member did in one go stays in its order.
        self.deliveries.sort(key=lambda one: one.begun)

    def missing(self):
        """Places that nobody has worked on."""
        return sorted(set(self._written) - {one.place for one in self.deliveries})

    def repeats(self):
        """How many deliveries were not the first of their record."""
        return len(self.deliveries) - len({one.place for one in self.deliveries})

    def check(self):
        """Everything was worked on, each key in order and by one member at a time, nothing again after its commit."""
        self._check_identity()
        missing = self.missing()
        if missing:
            raise Failure(f"{len(missing)} of {len(self._written)} records came to nobody, first {missing[:3]}")
        self._check_order()
        self._check_overlap()
        self._check_commits()

    def _check_identity(self):
        for one in self.deliveries:
            known = self._written.get(one.place)
            if known is None:
                raise Failure(f"a record that was never written: {one}")
            if one.head != "-" and one.head != head(*known):
                raise Failure(f"{head(*known)} was written where {one} was read")

    def _check_order(self):
        seen, last = set(), {}
        for one in self.deliveries:
            key, seq = self._written[one.place]
            if key is None or one.place in seen:
                continue
            seen.add(one.place)
            before = last.get((one.partition, key))
            if before and before[0] > seq:
                raise Failure(f"key {key}: record {seq} ({one}) came after record {before[0]} ({before[1]})")
            last[(one.partition, key)] = (seq, one)

    def _check_overlap(self):
        busy = {}
        for one in self.deliveries:
            key, _ = self._written[one.place]
            if key is None:
                continue
            before = busy.get((one.partition, key))
            if before and before.member != one.member and before.ended > one.begun:
                raise Failure(f"two members at key {key} at a time: {before}, and {one}")
            if not before or one.ended >= before.ended:
                busy[(one.partition, key)] = one

    def _check_commits(self):
        committed = [one for one in self.deliveries if one.committed is not None]
        # The latest first, so that of each record the one that was committed first stays.
        done = {one.place: one for one in sorted(committed, key=lambda one: -one.committed)}
        for one in self.deliveries:
            by = done.get(one.place)
            if by and one.begun > by.committed:
                raise Failure(f"{by} was committed at {by.committed}, and came again: {one}")


def head(key, seq):
    """How a record's value begins."""
    return f"{'' if key is None else key}:{seq}"
