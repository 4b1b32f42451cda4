"""What the Python drivers share: the line protocol, and a consumer that polls in a thread of its own.

Requests are answered one after the other. A consumer's library object is touched by its own thread alone: that thread polls,
keeps the records in a queue, and between two polls carries out what requests ask for (commit, seek, close).
"""

import base64
import collections
import json
import sys
import threading
import time
import traceback


def pack(data):
    """Bytes as JSON carries them."""
    return None if data is None else base64.b64encode(data).decode()


def unpack(text):
    """Bytes from JSON."""
    return None if text is None else base64.b64decode(text)


class OperationError(Exception):
    """An error with Kafka's number and name, as far as the library tells them."""

    def __init__(self, name, code=None, message=""):
        super().__init__(f"{name} ({code}): {message}")
        self.name, self.code, self.message = name, code, message


class Work:
    """What an application does with records: it works on them for a while, writes down what it has done, and commits.

    The file survives a kill of the process; `README.md` has its lines.
    """

    def __init__(self, log, batch, record_us, slow_key=None, slow_ms=0):
        # Line by line: what is written is in the file even if the process is killed.
        self._log = open(log, "a", buffering=1)
        self.batch, self._record_us = batch, record_us
        self._slow_key, self._slow_ms = slow_key, slow_ms
        # Held while a batch is in work, until it is committed.
        self.busy = threading.Lock()

    def note(self, *words):
        """Writes a line with the time."""
        self._log.write(" ".join([words[0], str(time.time_ns() // 1000), *map(str, words[1:])]) + "\n")

    @staticmethod
    def _head(value):
        return "-" if value is None else value.split(b"|")[0].decode()

    def on(self, records, commit):
        """Works on `records`, in JSON form, then commits behind them."""
        heads = [self._head(unpack(record["value"])) for record in records]
        slow = sum(1 for head in heads if head.split(":")[0] == self._slow_key)
        begun = time.time_ns() // 1000
        time.sleep(len(records) * self._record_us / 1e6 + slow * self._slow_ms / 1e3)
        ended = time.time_ns() // 1000
        rows, offsets = [], {}
        for record, head in zip(records, heads):
            rows.append(f"R {begun} {ended} {record['partition']} {record['offset']} {head}\n")
            offsets[(record["topic"], record["partition"])] = record["offset"] + 1
        self._log.write("".join(rows))
        try:
            commit([(topic, partition, offset, "") for (topic, partition), offset in offsets.items()])
        except Exception as error:  # the application goes on; what it did not commit comes again
            self.note("F", "commit", repr(error).replace("\n", " "))
            return
        for (_, partition), offset in offsets.items():
            self.note("C", partition, offset)


class Member(threading.Thread):
    """A consumer. Libraries fill in `open`, `poll`, `assigned`, `shut` and the operations."""

    # The most records of one poll, for libraries that have no limit of their own.
    BATCH = 500

    def __init__(self, options):
        super().__init__(daemon=True)
        self.options = options
        self._records = collections.deque()
        self._work = collections.deque()
        self._changed = threading.Condition()
        self._error = None
        self._assignment = []
        self._closing = False
        self.do_not_poll = threading.Event()
        # Set for a member that works by itself instead of keeping records for `take`.
        self.work = Work(**options["work"]) if options.get("work") else None
        self.batch = self.work.batch if self.work else self.BATCH

    def open(self):
        """Creates the library's consumer and subscribes or assigns."""
        raise NotImplementedError

    def poll(self):
        """A list of records in JSON form; waits a short moment at most."""
        raise NotImplementedError

    def assigned(self):
        """[(topic, partition)] held now."""
        raise NotImplementedError

    def shut(self):
        """Closes the library's consumer."""
        raise NotImplementedError

    def translate(self, error):
        """The library's error as an OperationError."""
        raise NotImplementedError

    def gave_up(self, partitions):
        """Partitions were taken away: forgets what is queued of them."""
        if partitions:
            self.drop(partitions)
            self.note_given_up()

    def note_given_up(self):
        """Writes down that something was taken away."""
        if self.work:
            self.work.note("V")

    def drop(self, partitions=None):
        """Forgets queued records of the partitions, or all: they were given up."""
        with self._changed:
            keep = [] if partitions is None else [r for r in self._records if (r["topic"], r["partition"]) not in partitions]
            self._records = collections.deque(keep)

    def run(self):
        """The consumer's thread."""
        while not self._closing:
            while self._work:
                self._carry_out(*self._work.popleft())
            if self._closing:
                break
            try:
                if self.do_not_poll.is_set():
                    with self._changed:
                        self._changed.wait(0.05)
                    continue
                if self.work:
                    self._poll_and_work()
                    records = []
                else:
                    records = self.poll()
                assignment = [list(pair) for pair in sorted(self.assigned())]
            except Exception as error:  # whatever the library throws is what the scenario wants to see
                traceback.print_exc()
                if self.work:
                    self.work.note("F", "poll", repr(error).replace("\n", " "))
                with self._changed:
                    self._error = self.translate(error)
                    self._changed.notify_all()
                    self._changed.wait(0.2)
                continue
            with self._changed:
                self._assignment = assignment
                self._records.extend(records)
                if records:
                    self._changed.notify_all()

    def _poll_and_work(self):
        with self.work.busy:
            records = self.poll()
            if records:
                self.work.on(records, self.commit)

    def take(self, limit, wait_ms):
        """Queued records, the assignment, and the error of the last poll if there was one."""
        with self._changed:
            self._changed.wait_for(lambda: self._records or self._error, wait_ms / 1000)
            records = [self._records.popleft() for _ in range(min(limit, len(self._records)))]
            error, self._error = self._error, None
            answer = {"records": records, "assignment": self._assignment}
        if error:
            answer["error"] = {"name": error.name, "code": error.code, "message": error.message}
        return answer

    def ask(self, action, *arguments, seconds=40):
        """Runs `action(*arguments)` on the consumer's thread and returns its result."""
        done, box = threading.Event(), {}
        self._work.append((done, box, action, arguments))
        with self._changed:
            self._changed.notify_all()
        if not done.wait(seconds):
            raise OperationError("DRIVER_TIMEOUT", None, f"{action.__name__} took over {seconds} s")
        if "error" in box:
            raise self.translate(box["error"])
        return box.get("result")

    def end(self):
        """Closes the consumer and its thread."""

        def finish():
            self._closing = True
            self.shut()
            if self.work:
                self.work.note("E")

        self.ask(finish)

    def _carry_out(self, done, box, action, arguments):
        try:
            box["result"] = action(*arguments)
        except Exception as error:  # handed to the asking side
            traceback.print_exc()
            box["error"] = error
        done.set()


class Driver:
    """The request loop. Libraries fill in the operations `op_*`."""

    def __init__(self):
        self.producers, self.members = {}, {}

    def version(self):
        """The library's version."""
        raise NotImplementedError

    def member(self, options):
        """A Member, not yet started."""
        raise NotImplementedError

    def translate(self, error):
        """The library's error as an OperationError."""
        raise NotImplementedError

    def op_consumer_open(self, name, **options):
        member = self.member(options)
        member.open()
        self.members[name] = member
        member.start()
        return {}

    def op_take(self, name, max, wait_ms):
        return self.members[name].take(max, wait_ms)

    def op_commit(self, name, offsets):
        member = self.members[name]
        member.ask(member.commit, offsets)
        return {}

    def op_committed(self, name, partitions):
        member = self.members[name]
        return {"offsets": member.ask(member.committed, partitions)}

    def op_seek(self, name, topic, partition, offset):
        member = self.members[name]

        def seek():
            member.seek(topic, partition, offset)
            member.drop({(topic, partition)})

        member.ask(seek)
        return {}

    def op_offsets_for_times(self, name, topic, partition, timestamp):
        member = self.members[name]
        return {"offset": member.ask(member.offset_for_time, topic, partition, timestamp)}

    def op_stall(self, name, stalled):
        """Stops or resumes polling, as an application does whose work takes too long."""
        flag = self.members[name].do_not_poll
        flag.set() if stalled else flag.clear()
        return {}

    def op_consumer_close(self, name):
        self.members.pop(name).end()
        return {}

    def op_producer_close(self, name):
        self.close_producer(self.producers.pop(name))
        return {}

    def close_producer(self, producer):
        """Closes the library's producer."""
        raise NotImplementedError

    def op_reset(self):
        for name in list(self.members):
            self.op_consumer_close(name)
        for name in list(self.producers):
            self.op_producer_close(name)
        return {}

    def answer(self, request):
        """The answer to one request."""
        request_id, operation = request.pop("id"), request.pop("op")
        try:
            return {"id": request_id, "ok": getattr(self, f"op_{operation}")(**request)}
        except Exception as error:  # every error belongs to the scenario
            if not isinstance(error, OperationError):
                traceback.print_exc()
                error = self.translate(error)
            return {"id": request_id, "error": {"name": error.name, "code": error.code, "message": error.message}}

    def serve(self):
        """Reads requests until the input ends."""
        out = sys.stdout
        sys.stdout = sys.stderr
        print(json.dumps({"ready": True, "version": self.version()}), file=out, flush=True)
        for line in sys.stdin:
            print(json.dumps(self.answer(json.loads(line))), file=out, flush=True)
