"""How a scenario is declared."""

from ..errors import Failure

LIBRARY = ("library",)


class Scenario:
    """One expectation, written once, run with every client that it concerns.

    `needs` are capabilities (a client that lacks one is shown as not applicable, with its reason); `own_broker` says that
    the scenario stops the broker or changes its settings; `beyond_kafka`, if set, says why a real Kafka does not meet it;
    `others` names further clients that take part.
    """

    def __init__(self, name, run, who, needs, short, own_broker, settings, beyond_kafka, others):
        self.name, self.run, self.who, self.needs, self.short = name, run, who, needs, short
        self.own_broker, self.settings = own_broker or bool(settings), settings
        self.beyond_kafka, self.others = beyond_kafka, others
        self.purpose = (run.__doc__ or "").split("\n")[0].strip()

    def concerns(self, client):
        """Whether it is for this client."""
        return client.kind in self.who or client.name in self.who


ALL = []


def scenario(name, who=LIBRARY, needs=(), short=True, own_broker=False, settings=None, beyond_kafka=None, others=()):
    """Declares a function as a scenario; `who` holds kinds or names of clients."""

    def register(run):
        ALL.append(Scenario(name, run, who, needs, short, own_broker, settings, beyond_kafka, others))
        return run

    return register


def check(condition, text):
    """An expectation of a scenario; the text says what was seen instead."""
    if not condition:
        raise Failure(text() if callable(text) else text)
