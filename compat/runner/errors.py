"""The ways in which a scenario ends early."""

import subprocess

# Kafka's REQUEST_TIMED_OUT, and librdkafka's own numbers for an operation and a message that took too long.
_TIMED_OUT = (7, -185, -192)


class Failure(Exception):
    """The broker, or the client against it, did not do what the scenario expects."""


class Late(Failure):
    """What was expected has not come in time; nothing wrong has come instead."""


class NotApplicable(Exception):
    """The client cannot do what the scenario is about; the text says why."""


class ClientError(Failure):
    """A driver answered an operation with an error.

    `code` is Kafka's error number if the client library tells it, else None; `name` is Kafka's name of the error, or the
    library's own name for an error of its own.
    """

    def __init__(self, operation, name, code, message):
        super().__init__(f"{operation}: {name} ({code}): {message}")
        self.operation = operation
        self.name = name or ""
        self.code = code
        self.message = message or ""

    def is_kafka(self, code, *words):
        """Whether this is Kafka's error `code`, by number or, for libraries that hide it, by a word in its text."""
        if self.code == code:
            return True
        text = f"{self.name} {self.message}".lower()
        return any(word.lower() in text for word in words)


def is_late(error):
    """Whether an exception says only that something took too long, as opposed to a wrong result."""
    if isinstance(error, ClientError):
        return error.code in _TIMED_OUT
    return isinstance(error, (Late, subprocess.TimeoutExpired))
