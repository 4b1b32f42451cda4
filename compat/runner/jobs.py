"""Pairs every client with every scenario that concerns it, and runs the pairs on a few lanes.

A lane takes a client and runs all its scenarios in a row, so that a client's driver (a Java machine, say) starts once.
Each scenario has a fresh broker. Against a real Kafka, whose start takes seconds, scenarios share one broker and only those
that stop it have one of their own.
"""

import os
import queue
import threading
import time
import traceback

from . import scenarios, target
from .context import Context, Pool
from .errors import Failure, NotApplicable, is_late
from .stalls import Stalls
from .table import FAILED, NOT_APPLICABLE, PASSED, Result


class Brokers:
    """Makes the brokers of a run."""

    def __init__(self, kind, environment):
        self.kind, self._environment = kind, environment
        self._ports = target.Ports()
        self._shared, self._lock = None, threading.Lock()
        # One Kafka beside the shared one at a time: they are large.
        self._own_kafka = threading.Lock()

    def lend(self, scenario, label):
        """A running broker for a scenario."""
        if self.kind == "kafka" and not scenario.own_broker:
            with self._lock:
                if self._shared is None:
                    self._shared = self._make("shared", {}).start()
                return self._shared
        if self.kind == "kafka":
            self._own_kafka.acquire()
        try:
            return self._make(label, scenario.settings).start()
        except BaseException:
            if self.kind == "kafka":
                self._own_kafka.release()
            raise

    def give_back(self, broker, keep):
        """Ends a scenario's broker; its folder stays if `keep`."""
        if broker is self._shared:
            return
        try:
            broker.stop()
            if not keep:
                broker.remove()
        finally:
            if self.kind == "kafka":
                self._own_kafka.release()

    def close(self):
        """Ends the shared broker."""
        if self._shared is not None:
            self._shared.stop()
            self._shared.remove()

    def _make(self, label, settings):
        folder = self._environment.path("brokers", f"{self.kind}-{label}")
        port = self._ports.take()
        if self.kind == "kafka":
            return target.Kafka(folder, port, self._environment.path("tools", "jars"), settings=settings)
        return target.Anabranch(folder, port, self._environment.binary, settings)


def _last_lines(path, count):
    try:
        with open(path, encoding="utf-8", errors="replace") as text:
            return "".join(text.readlines()[-count:])
    except OSError:
        return ""


class Run:
    """A whole run."""

    def __init__(self, environment, brokers, short, table):
        self._environment, self._brokers, self._short, self._table = environment, brokers, short, table
        self._stalls = Stalls(environment.cache)

    def work(self, pairs, lanes):
        """Runs all (client, scenario) pairs."""
        todo = queue.Queue()
        clients = []
        for client, _ in pairs:
            if client not in clients:
                clients.append(client)
        for client in clients:
            todo.put((client, [scenario for owner, scenario in pairs if owner is client]))
        threads = [threading.Thread(target=self._lane, args=(todo,)) for _ in range(lanes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._stalls.close()

    def _lane(self, todo):
        pool = Pool(self._environment, self._environment.logs)
        while True:
            try:
                client, mine = todo.get_nowait()
            except queue.Empty:
                return
            try:
                for scenario in mine:
                    self._table.add(self._judge(client, scenario, pool))
            finally:
                pool.close()

    def _judge(self, client, scenario, pool):
        begun = time.monotonic()
        result = self._one(client, scenario, pool)
        stall = self._stalls.worst_since(begun)
        # A wrong result is wrong on the slowest machine; only what came too late gets another chance.
        if not (result.late and stall):
            return result
        self._table.note(f"{client.name} {scenario.name} again: the machine stood still for {stall:.1f} s")
        self._table.note(result.detail)
        again = self._one(client, scenario, pool)
        again.first_try = f"{result.detail.splitlines()[0]}, while the machine stood still for {stall:.1f} s"
        return again

    def _one(self, client, scenario, pool):
        for capability in scenario.needs:
            if not client.can(capability):
                return Result(client.name, "", scenario.name, NOT_APPLICABLE, 0.0, client.lacks[capability])
        if self._brokers.kind == "kafka" and scenario.beyond_kafka:
            return Result(client.name, "", scenario.name, NOT_APPLICABLE, 0.0, scenario.beyond_kafka)
        begun = time.monotonic()
        context = broker = None
        outcome, detail, version, late = PASSED, "", "", False
        try:
            broker = self._brokers.lend(scenario, f"{client.name}-{scenario.name}")
            context = Context(client, broker, self._short, pool, self._environment.logs, self._environment)
            version = scenarios.version_of(context)
            scenario.run(context)
            if not broker.alive():
                raise Failure("the broker is gone")
        except NotApplicable as reason:
            outcome, detail = NOT_APPLICABLE, str(reason)
        except Exception as error:  # whatever happens in a scenario is a row of the table
            outcome, detail, late = FAILED, self._explain(error, context, broker, client), is_late(error)
        finally:
            self._end(context, broker, outcome)
        return Result(client.name, version, scenario.name, outcome, time.monotonic() - begun, detail, late)

    def _explain(self, error, context, broker, client):
        text = str(error) if isinstance(error, Failure) else "".join(traceback.format_exception(error)).rstrip()
        lines = [text]
        if context:
            lines += [f"| {note}" for note in context.notes]
        if broker:
            lines.append(f"broker's log: {broker.log_path}; its last lines:")
            lines += [f"> {line}" for line in _last_lines(broker.log_path, 8).splitlines()]
        if client.kind == "library":
            path = os.path.join(self._environment.logs, f"{client.name}-main.log")
            lines.append(f"client's log: {path}; its last lines:")
            lines += [f"> {line}" for line in _last_lines(path, 6).splitlines()]
        return "\n".join(lines)

    def _end(self, context, broker, outcome):
        if context:
            try:
                context.close()
            except (Failure, OSError) as error:
                print(f"        closing a scenario: {error}", flush=True)
        if broker:
            self._brokers.give_back(broker, keep=outcome == FAILED)
