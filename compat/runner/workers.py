"""A group that shares one partition: members that work by themselves, their work logs, and what the broker says of them."""

import json
import os
import time

from .errors import Failure, Late
from .shown import Shown
from .worklog import Judge, WorkLog, head
from .scenarios import console
from .scenarios.registry import check

# Most records that a member works on at once.
BATCH = 100
FOREVER_US = 1 << 62
# Within this time comes whatever nobody else is waited for.
SOON_SECONDS = 20
# And whatever may wait for a fence: slots of a member that has drained wait for a commit that does not come as long as
# `elastic.fence.timeout.ms` (30 s by default) says, and then there is work to be done.
FENCED_SECONDS = 60


class Workers(Shown):
    """Members of one group on a topic with one partition; that it may be divided is the default.

    Each works `record_us` on a record, `BATCH` records at a time, and commits behind each batch, all in the thread that polls:
    as the simplest application does it.
    """

    def __init__(self, context, partitions=1, record_us=200, work=None, settings=None, client=None, **options):
        topic = context.topic("shared", partitions, **(settings or {}))
        super().__init__(context, topic, context.name("group"))
        self.record_us, self.options = record_us, options
        # Whose members these are, if no other client is named; another one than the scenario's works in one process of its own.
        self.client, self._driver = client or context.client, client and context.driver_of(client)
        # What else the work is like, for all members.
        self.work = work or {}
        self.members, self.logs = {}, []
        # {(partition, offset): (key, number among the records of that key)}
        self.written = {}
        # [(work log, when its process was stopped, when it went on)]
        self.expelled = []
        # The committed offset that outsiders saw last, by partition.
        self._committed = {}
        self._seqs = {}

    def write(self, count, keys=64, size=120, codec="none", key_of=None, null_every=0, batch=None):
        """Appends `count` records to partition 0, keys in turn or as `key_of(number)` says; each `null_every`-th has no value;
        `batch` records go together at most."""
        begin = len(self.written)
        lines = []
        for number in range(count):
            key = key_of(number) if key_of else f"k{number % keys}"
            seq = self._seqs.get(key, 0)
            self._seqs[key] = seq + 1
            self.written[(0, begin + number)] = (key, seq)
            text = None if null_every and number % null_every == null_every - 1 else f"{head(key, seq)}|".ljust(size, "x")
            lines.append(json.dumps({"key": key, "value": text}))
        arguments = ["--input", "json", "--partition", "0", "--compression", codec]
        if batch:
            arguments += ["-X", f"batch.num.messages={batch}"]
        console.run(self.context, "produce", self.topic, *arguments, data="\n".join(lines).encode() + b"\n")

    def join(self, name, driver=None, client=None, **options):
        """Starts a member."""
        client = client or self.client
        log = self.context.file(f"work-{name}-{len(self.logs)}.log")
        if os.path.exists(log):
            os.remove(log)
        self.logs.append(WorkLog(name, log))
        work = {"log": log, "batch": BATCH, "record_us": self.record_us, **self.work}
        options = {"session_ms": 6000, **self.options, **options}
        if client.client_ids:
            options["client_id"] = f"{self.group}-{name}"
        member = self.context.consumer(name, driver or self._driver, group=self.group, topics=[self.topic], work=work, **options)
        self.members[name] = member
        return member

    def gather(self, first, *others, apart=False, **options):
        """The first member works and commits alone; then the others join, with these options. `apart`: each in a process of its
        own."""
        driver = self.context.spawn if apart else lambda: None
        self.join(first, driver=driver())
        self.until_committed(first)
        for name in others:
            self.join(name, driver=driver(), **options)

    def leave(self, name):
        """Closes a member in the library's way."""
        self.members.pop(name).close()

    def lose(self, name):
        """Forgets a member whose process was killed."""
        del self.members[name]

    def log_of(self, name):
        """The newest work log of a member."""
        self.read()
        return next(log for log in reversed(self.logs) if log.member == name)

    def read(self):
        """Takes in what the members have written down."""
        for log in self.logs:
            log.read()

    def judge(self):
        """The judge of what has happened so far."""
        self.read()
        expelled = []
        for log, since, resumed in self.expelled:
            noticed = next((moment for moment in log.given_up if moment > resumed), FOREVER_US)
            expelled.append((log.member, since, noticed))
        return Judge(self.written, self.logs, expelled)

    def until(self, seconds, what, look):
        """Waits for a condition, looking at the group as outsiders see it meanwhile; if it does not come, says what the broker
        thinks."""

        def watch():
            self.watch()
            return look()

        try:
            return self.context.until(seconds, what, watch)
        except Late as error:
            raise Late(f"{error}; {self.story()}") from error

    def watch(self):
        """What holds for outsiders at every moment: lag is never negative, and what is committed stays committed."""
        try:
            rows = self.shown()["partitions"]
        except OSError:
            # There is no such group yet, or the broker is being restarted.
            return
        for row in rows:
            place = (row["topic"], row["partition"])
            check(0 <= row["lag"] <= row["log_end"] - row["log_start"], f"lag {row['lag']} of {row['log_end']} records")
            check(row["committed"] <= row["log_end"], f"{row['committed']} is committed of {row['log_end']} records")
            before = self._committed.get(place, -1)
            check(row["committed"] >= before, f"the committed offset went back from {before} to {row['committed']}")
            self._committed[place] = row["committed"]

    def forget_committed(self):
        """The group was reset, or the broker was restarted: what outsiders see begins anew."""
        self._committed = {}

    def spread(self, count):
        """Waits until so many members hold a share, with nothing on its way."""

        def look():
            rows = self.shown()["partitions"]
            return self.holders() == count and not any(row["transits"] or row["loose"] for row in rows)

        self.until(FENCED_SECONDS, f"{count} members hold shares", look)

    def moves(self):
        """How many decisions have moved something."""
        return len([row for row in self.decisions(done=True) if row["kind"] in ("split", "steal", "merge", "isolate")])

    def stop(self, name, driver):
        """Stops a member's process, as a machine that stands still."""
        driver.pause()
        self.expelled.append((self.log_of(name), now_us(), FOREVER_US))

    def go_on(self, driver):
        """Lets the process that was stopped go on."""
        log, since, _ = self.expelled.pop()
        self.expelled.append((log, since, now_us()))
        driver.resume()

    def story(self):
        """What members have done and what the broker says, in one line each, for a failure."""
        self.read()
        lines = [f"{log.member}: {len(log.deliveries)} records, {len(log.given_up)} given up, failures {log.failures[-2:]}" for log in self.logs]
        try:
            lines += [f"{row['kind']}: {row['text']} ({row['result']})" for row in self.decisions()[-8:]]
            lines.append(json.dumps({key: value for key, value in self.shown().items() if key != "members"})[:1500])
        except OSError as error:
            lines.append(f"the broker's interface: {error}")
        for line in lines:
            self.context.log(line)
        return lines[0]

    def done_by(self, name):
        """How many records a member has worked on."""
        return len(self.log_of(name).deliveries)

    def until_begun(self, *names, seconds=SOON_SECONDS):
        """Waits until members have worked on a record each."""
        self.until(seconds, f"{' '.join(names)} at work", lambda: all(self.done_by(name) > 0 for name in names))

    def until_committed(self, name, seconds=SOON_SECONDS):
        """Waits until a member has worked and committed. A library that does not tell counts once it has worked for long."""

        def look():
            log = self.log_of(name)
            return log.last_commit is not None or len(log.deliveries) > 5 * BATCH

        self.until(seconds, f"{name} works and commits", look)

    def drain(self, seconds=FENCED_SECONDS):
        """Waits until all that was written was worked on."""
        self.until(seconds, "all records are worked on", lambda: not self.judge().missing())

    def check(self):
        """Loss, order, overlaps, and what came again after its commit. Notes the figures."""
        judge = self.judge()
        counts = {}
        for one in judge.deliveries:
            counts[one.member] = counts.get(one.member, 0) + 1
        self.context.log(f"delivered {counts}, of which {judge.repeats()} again")
        try:
            judge.check()
        except Failure:
            self.story()
            raise
        return judge


def now_us():
    """The time as work logs have it."""
    return time.time_ns() // 1000
