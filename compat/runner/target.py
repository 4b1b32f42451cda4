"""The broker under test: the real Anabranch binary or a real Apache Kafka, each in a fresh data folder on loopback."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

from . import messages
from .errors import Failure, Late
from .setup import KAFKA_VERSION
from .wire import Closed, Wire

# Ports this run may listen on; two for each broker (clients, then HTTP or the Kafka controller).
PORTS = range(23000, 23200, 2)
# Kafka needs a few seconds, more when the machine is busy.
READY_SECONDS = 60
# What both brokers are told, so that scenarios end quickly: Kafka's names, understood by both.
COMMON = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}


class Ports:
    """Hands out free ports in turn, so that a straggler of one scenario does not meet the broker of the next."""

    def __init__(self, ports=PORTS):
        self._ports, self._at, self._lock = list(ports), 0, threading.Lock()

    def take(self):
        """A port that is free now, with its successor."""
        with self._lock:
            for _ in self._ports:
                port = self._ports[self._at % len(self._ports)]
                self._at += 1
                if _is_free(port) and _is_free(port + 1):
                    return port
        raise Failure(f"no free port from {self._ports[0]} to {self._ports[-1]}")


def _is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Broker:
    """One broker process with its folder; `kill` and `start` again keep the data."""

    # "anabranch" or "kafka".
    kind = None

    def __init__(self, folder, port):
        self.folder, self.port, self.host = folder, port, "127.0.0.1"
        self.log_path = os.path.join(folder, "broker.log")
        self._process = None
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)

    @property
    def bootstrap(self):
        """HOST:PORT for clients."""
        return f"{self.host}:{self.port}"

    def start(self):
        """Starts the process and waits until it answers requests."""
        with open(self.log_path, "ab") as log:
            # A session of its own: an interrupt at the keyboard ends the run, which then ends its brokers.
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            if self._process.poll() is not None:
                raise Failure(f"the broker ended with {self._process.returncode} at its start; its log: {self.log_path}")
            if time.monotonic() > deadline:
                raise Late(f"the broker did not answer within {READY_SECONDS} s; its log: {self.log_path}")
            time.sleep(0.02)
        return self

    def alive(self):
        """Whether the process runs."""
        return self._process is not None and self._process.poll() is None

    def kill(self):
        """SIGKILL: no goodbye, no flush."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(timeout=20)

    def stop(self):
        """SIGTERM, then SIGKILL if it lingers."""
        if not self.alive():
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.kill()

    def remove(self):
        """Deletes the data, but leaves the log."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)

    def _answers(self):
        try:
            with Wire(self.host, self.port, seconds=5) as wire:
                error, _ = messages.api_versions(wire)
                # A broker that does not know itself yet has no leader to name.
                return error == 0 and bool(messages.metadata(wire, topics=[])["brokers"])
        except (OSError, Closed, ValueError):
            return False

    def _command(self):
        raise NotImplementedError


class Anabranch(Broker):
    """`anabranch serve`."""

    kind = "anabranch"

    def __init__(self, folder, port, binary, settings=None):
        super().__init__(folder, port)
        self._binary = binary
        settings = dict(settings or {})
        # Further loopback addresses to listen on, beside the first.
        self._hosts = [self.host, *settings.pop("listen", [])]
        self._config = os.path.join(folder, "anabranch.toml")
        with open(self._config, "w", encoding="utf-8") as out:
            for key, value in {**COMMON, **settings}.items():
                out.write(f"{json.dumps(key)} = {json.dumps(value)}\n")

    def _command(self):
        return [
            self._binary,
            "serve",
            "--config",
            self._config,
            *(part for host in self._hosts for part in ("--listen", f"{host}:{self.port}")),
            "--http",
            f"{self.host}:{self.port + 1}",
            "--data",
            os.path.join(self.folder, "data"),
        ]


class Kafka(Broker):
    """Apache Kafka, one node that is broker and controller."""

    kind = "kafka"

    def __init__(self, folder, port, jars, heap="512m", settings=None):
        super().__init__(folder, port)
        self._jars, self._heap = jars, heap
        self._properties = os.path.join(folder, "server.properties")
        controller = f"{self.host}:{port + 1}"
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": os.path.join(folder, "data"),
            "num.partitions": "1",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "4",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            # A node that was killed is fenced for this long before its successor may serve.
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "1000",
            "producer.id.expiration.check.interval.ms": "500",
            **COMMON,
            **(settings or {}),
        }
        with open(self._properties, "w", encoding="utf-8") as out:
            out.writelines(f"{key}={value}\n" for key, value in lines.items())
        subprocess.run(
            self._java("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", self._properties),
            check=True,
            capture_output=True,
            timeout=60,
        )

    def _java(self, name, *arguments):
        return [
            "java",
            f"-Xms{self._heap}",
            f"-Xmx{self._heap}",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            os.path.join(self._jars, "*"),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            name,
            *arguments,
        ]

    def _command(self):
        return self._java("kafka.Kafka", self._properties)


def version_line(kind, environment):
    """What RESULTS.md calls the broker."""
    if kind == "kafka":
        return f"Apache Kafka {KAFKA_VERSION}"
    said = subprocess.run([environment.binary, "--version"], capture_output=True, text=True, timeout=20, check=False)
    return said.stdout.strip() or "anabranch"
