"""One client program, spoken to in JSON lines.

A driver reads one request a line, `{"id": 7, "op": "produce", ...}`, and answers each with one line,
`{"id": 7, "ok": {...}}` or `{"id": 7, "error": {"name": ..., "code": ..., "message": ...}}`, in order. Its first line, of
its own accord, is `{"ready": true, "version": "..."}`. What it prints on standard error goes to its log. A driver ends when
its standard input ends.
"""

import json
import queue
import signal
import subprocess
import threading
import time

from .errors import ClientError, Failure, Late

# A driver's start: a Java machine on a busy two-core box takes a few seconds.
START_SECONDS = 60
# An operation for which the scenario names no limit.
CALL_SECONDS = 45


class Reply:
    """An answer that is still to come, so that a scenario can do something to the broker meanwhile."""

    def __init__(self, driver, request_id, operation):
        self._driver, self._id, self._operation = driver, request_id, operation

    def wait(self, seconds=CALL_SECONDS):
        """The answer's content; raises ClientError if the driver reports one."""
        return self._driver.wait(self._id, self._operation, seconds)


class Driver:
    """A running driver process."""

    def __init__(self, name, command, log_path, env=None, cwd=None):
        self.name = name
        self.log_path = log_path
        self._log = open(log_path, "ab")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, env=env, cwd=cwd
        )
        self._next = 0
        self._answers = queue.Queue()
        self._early = {}
        threading.Thread(target=self._read, daemon=True).start()
        hello = self._take(time.monotonic() + START_SECONDS, "start")
        if not hello.get("ready"):
            raise Failure(f"driver {name} did not say that it is ready but {hello}; its log: {log_path}")
        self.version = hello["version"]

    @property
    def pid(self):
        """Process id."""
        return self._process.pid

    def alive(self):
        """Whether the process still runs."""
        return self._process.poll() is None

    def start(self, operation, **arguments):
        """Sends a request and returns its Reply without waiting."""
        self._next += 1
        line = json.dumps({"id": self._next, "op": operation, **arguments})
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise Failure(f"driver {self.name} is gone ({error}); its log: {self.log_path}") from error
        return Reply(self, self._next, operation)

    def call(self, operation, seconds=CALL_SECONDS, **arguments):
        """Sends a request and waits for its answer."""
        return self.start(operation, **arguments).wait(seconds)

    def wait(self, request_id, operation, seconds):
        """The answer to one request; answers to other requests that come first are kept."""
        deadline = time.monotonic() + seconds
        while request_id not in self._early:
            answer = self._take(deadline, operation)
            self._early[answer.get("id")] = answer
        answer = self._early.pop(request_id)
        if "error" in answer:
            error = answer["error"]
            raise ClientError(operation, error.get("name"), error.get("code"), error.get("message"))
        return answer["ok"]

    def kill(self):
        """Ends the process at once, as a crash would: no goodbye to the broker."""
        self._end(signal.SIGKILL)

    def pause(self):
        """Stops the process where it is; whoever talks to it waits."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self):
        """Lets a stopped process go on."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self):
        """Closes the driver's input and gives it a moment to end by itself."""
        try:
            self._process.stdin.close()
            self._process.wait(timeout=5)
        except (OSError, subprocess.TimeoutExpired):
            pass
        self._end(signal.SIGKILL)

    def _end(self, number):
        if self.alive():
            self._process.send_signal(number)
        self._process.wait(timeout=10)
        self._log.close()

    def _read(self):
        for line in self._process.stdout:
            if line.startswith(b"{"):
                try:
                    self._answers.put(json.loads(line))
                    continue
                except ValueError:
                    pass
            # A library that prints on standard output: keep it with the rest of the noise.
            if not self._log.closed:
                self._log.write(line)
                self._log.flush()
        self._answers.put(None)

    def _take(self, deadline, operation):
        try:
            answer = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise Late(f"driver {self.name}: no answer to '{operation}' in time; its log: {self.log_path}") from None
        if answer is None:
            self._answers.put(None)
            raise Failure(f"driver {self.name} ended during '{operation}'; its log: {self.log_path}")
        return answer
