"""What a scenario sees: the broker, the client's drivers, deadlines, and its log."""

import base64
import itertools
import os
import time

from . import messages
from .driver import Driver
from .errors import ClientError, Failure, Late
from .wire import Wire

_NUMBERS = itertools.count(1)
# Between two looks at a condition.
LOOK_SECONDS = 0.03


def pack(data):
    """Bytes as JSON carries them."""
    return None if data is None else base64.b64encode(data).decode()


def unpack(text):
    """Bytes from JSON."""
    return None if text is None else base64.b64decode(text)


class Record:
    """A record as a driver takes or gives it."""

    def __init__(self, value, key=None, headers=(), timestamp=None, partition=None, topic=None, offset=None):
        self.value, self.key, self.headers = value, key, [tuple(header) for header in headers]
        self.timestamp, self.partition, self.topic, self.offset = timestamp, partition, topic, offset

    def to_json(self):
        """The form in a produce request."""
        return {
            "value": pack(self.value),
            "key": pack(self.key),
            "headers": [[name, pack(data)] for name, data in self.headers],
            "timestamp": self.timestamp,
            "partition": self.partition,
        }

    @staticmethod
    def from_json(data):
        """The form in a take answer."""
        headers = [(name, unpack(value)) for name, value in data.get("headers") or []]
        return Record(
            unpack(data["value"]),
            unpack(data["key"]),
            headers,
            data["timestamp"],
            data["partition"],
            data["topic"],
            data["offset"],
        )

    def content(self, can):
        """What must come back as it went in, as far as the client `can` tell."""
        data = [self.key, self.value, *(part for header in self.headers for part in header)]
        if not can("empty"):
            data = [b"" if part is None else part for part in data]
        return data, self.timestamp if can("timestamps") else None


class Consumer:
    """A consumer inside a driver; it polls by itself, `take` hands out what it has."""

    def __init__(self, context, driver, name, **options):
        self._context, self.driver, self.name = context, driver, name
        # Next offset to commit for each partition that was handed out since the last commit.
        self.position = {}
        self.assignment = []
        driver.call("consumer_open", name=name, bootstrap=context.broker.bootstrap, **options)

    def take(self, wait_ms=50, limit=500):
        """Records that have arrived, waiting up to `wait_ms` for the first; updates `assignment`."""
        answer = self.driver.call("take", name=self.name, max=limit, wait_ms=wait_ms)
        self.assignment = sorted(tuple(pair) for pair in answer["assignment"])
        if answer.get("error"):
            error = answer["error"]
            raise ClientError("poll", error.get("name"), error.get("code"), error.get("message"))
        records = [Record.from_json(data) for data in answer["records"]]
        for record in records:
            self.position[(record.topic, record.partition)] = record.offset + 1
        return records

    def take_exactly(self, count, seconds=25):
        """`count` records, and no more for a moment."""
        records, deadline = [], time.monotonic() + seconds
        while len(records) < count:
            if time.monotonic() > deadline:
                raise Late(f"consumer {self.name}: {len(records)} of {count} records came within {seconds} s")
            records += self.take(200)
        records += self.take(50)
        if len(records) != count:
            raise Failure(f"consumer {self.name}: {len(records)} records came where {count} were expected")
        return records

    def commit(self, offsets=None):
        """Commits what was handed out, or the given [(topic, partition, offset, metadata)]."""
        if offsets is None:
            offsets = [(topic, partition, offset, "") for (topic, partition), offset in self.position.items()]
            self.position = {}
        if offsets:
            self.driver.call("commit", name=self.name, offsets=[list(row) for row in offsets])

    def committed(self, partitions):
        """{(topic, partition): (offset, metadata)}; offset -1 where nothing is committed."""
        rows = self.driver.call("committed", name=self.name, partitions=[list(pair) for pair in partitions])["offsets"]
        return {(topic, partition): (offset, metadata) for topic, partition, offset, metadata in rows}

    def seek(self, topic, partition, offset):
        """Goes on reading at `offset`."""
        self.driver.call("seek", name=self.name, topic=topic, partition=partition, offset=offset)

    def close(self):
        """Leaves the group as the library does it."""
        self.driver.call("consumer_close", name=self.name)


class Context:
    """One run of one scenario with one client."""

    def __init__(self, client, broker, short, pool, folder, environment):
        self.client, self.broker, self.short, self.environment = client, broker, short, environment
        self._pool, self._folder = pool, folder
        self._extra, self._wires = [], []
        self.notes = []
        self._topics = 0
        self.run_id = next(_NUMBERS)

    def log(self, text):
        """A line of the scenario's log, shown when it fails."""
        self.notes.append(text)

    @property
    def ours(self):
        """Whether the broker is Anabranch and not a real Kafka."""
        return self.broker.kind == "anabranch"

    def name(self, what):
        """A name that no other scenario uses."""
        return f"compat-{os.getpid()}-{self.run_id}-{what}"

    def wire(self, host=None):
        """A raw connection."""
        wire = Wire(host or self.broker.host, self.broker.port)
        self._wires.append(wire)
        return wire

    def topic(self, what="topic", partitions=1, **configs):
        """Creates a topic and returns its name."""
        name = self.name(what)
        configs = {key.replace("_", "."): str(value) for key, value in configs.items()}
        with Wire(self.broker.host, self.broker.port) as wire:
            error, text = messages.create_topic(wire, name, partitions, configs)
            if error:
                raise Failure(f"creating topic {name}: error {error} ({text})")
            # A real Kafka's own metadata follows the controller's answer by a moment.
            self.until(10, f"topic {name} has leaders", lambda: self._has_leaders(wire, name, partitions))
        return name

    @staticmethod
    def _has_leaders(wire, name, partitions):
        error, rows = messages.metadata(wire, [name], 4, False)["topics"][name]
        return error == 0 and len(rows) == partitions and all(leader >= 0 for _, leader in rows)

    @property
    def driver(self):
        """The client's driver process, shared by its scenarios."""
        return self._pool.get(self.client)

    def spawn(self):
        """A driver process of this scenario's own, which it may kill."""
        driver = self._pool.launch(self.client, f"extra-{self.run_id}-{len(self._extra)}")
        self._extra.append(driver)
        return driver

    def driver_of(self, client):
        """A driver process of another client, for groups of many libraries."""
        driver = self._pool.launch(client, f"{client.name}-{self.run_id}")
        self._extra.append(driver)
        return driver

    def consumer(self, name="c1", driver=None, **options):
        """Opens a consumer."""
        return Consumer(self, driver or self.driver, name, **options)

    def produce(self, topic, records, producer=None, driver=None, **options):
        """Writes records with a producer of their own (or the named one); returns [(partition, offset)]."""
        driver = driver or self.driver
        name = producer or "p-once"
        if producer is None:
            driver.call("producer_open", name=name, bootstrap=self.broker.bootstrap, **options)
        rows = driver.call("produce", name=name, topic=topic, records=[record.to_json() for record in records])["results"]
        if producer is None:
            driver.call("producer_close", name=name)
        return [(partition, offset) for partition, offset in rows]

    def raw_write(self, topic, data, partition=0):
        """Writes one batch over a raw connection; the offset of its first record."""
        wire = self.wire()
        answer = (None, None)

        def write():
            nonlocal answer
            answer = messages.produce(wire, topic, partition, data)
            # A real Kafka names a leader a moment before that leader knows it.
            return self.ours or answer[0] not in (3, 6)

        self.until(10, f"{topic} takes a batch", write)
        if answer[0]:
            raise Failure(f"the raw write: error {answer[0]}")
        return answer[1]

    def reader(self, name, topic, partitions=(0,), driver=None, start="earliest", **options):
        """A consumer of the whole topic that starts where it is told: without a group if the library can do that."""
        if self.client.can("assign"):
            where = {"earliest": -2, "latest": -1}
            assign = [[topic, partition, where.get(start, start)] for partition in partitions]
            return self.consumer(name, driver, assign=assign, **options)
        return self.consumer(name, driver, group=self.name(f"reader-{name}"), topics=[topic], reset=start, **options)

    def until(self, seconds, what, look):
        """Looks until `look()` is true (and returns that), at most `seconds`."""
        deadline = time.monotonic() + seconds
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > deadline:
                raise Late(f"not within {seconds} s: {what}")
            time.sleep(LOOK_SECONDS)

    def stays(self, seconds, what, look):
        """Looks for `seconds` that `look()` stays true."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not look():
                raise Failure(f"did not stay so for {seconds} s: {what}")
            time.sleep(LOOK_SECONDS)

    def file(self, name):
        """A path for a scenario's own file."""
        return os.path.join(self._folder, f"{self.run_id}-{name}")

    def close(self):
        """Ends what the scenario opened."""
        for wire in self._wires:
            wire.close()
        for driver in self._extra:
            driver.kill()
        self._pool.reset(self.client)


class Pool:
    """The driver processes of one lane: one for each client, kept from scenario to scenario."""

    def __init__(self, environment, log_folder):
        self._environment, self._folder = environment, log_folder
        self._drivers = {}

    def launch(self, client, name):
        """Starts a driver process."""
        command, env, cwd = client.command(self._environment)
        log = os.path.join(self._folder, f"{client.name}-{name}.log")
        return Driver(client.name, command, log, {**os.environ, **env}, cwd)

    def get(self, client):
        """The client's driver, started if need be."""
        driver = self._drivers.get(client.name)
        if driver is None or not driver.alive():
            driver = self._drivers[client.name] = self.launch(client, "main")
        return driver

    def reset(self, client):
        """Lets the driver close whatever a scenario left open; one that cannot is ended."""
        driver = self._drivers.get(client.name)
        if driver is None:
            return
        try:
            driver.call("reset", seconds=20)
        except Failure:
            driver.kill()
            del self._drivers[client.name]

    def close(self, client=None):
        """Ends the client's driver, or all."""
        for name in [client.name] if client else list(self._drivers):
            driver = self._drivers.pop(name, None)
            if driver:
                driver.stop()
