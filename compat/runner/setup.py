"""Installs what the clients need into the cache folder, from the ordinary package clients.

Each part has a stamp: the hash of the files that describe it. A part whose stamp is right is not touched again. A runtime
that is missing is an error that names it, never a reason to leave a client out.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time

from . import guide

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLIENTS = os.path.join(HERE, "clients")
# The release that Kafka's own tools, and the real Kafka of `--target kafka`, come from.
KAFKA_VERSION = "4.3.1"
JAVA_CLIENT_VERSIONS = ("4.3.1", "3.9.1")
# A cold fetch of all Java archives on a slow line.
STEP_SECONDS = 900


class SetupError(Exception):
    """A runtime or package could not be had."""


class Environment:
    """Where things lie: the cache, the logs, the broker binary."""

    def __init__(self, cache, binary):
        self.cache, self.binary = cache, binary
        self.logs = os.path.join(cache, "logs")
        os.makedirs(self.logs, exist_ok=True)

    def path(self, *names):
        """A path in the cache."""
        return os.path.join(self.cache, *names)


def _need(program, advice):
    if not shutil.which(program):
        raise SetupError(f"{program} is not installed: {advice}")


def _run(environment, part, command, cwd=None, env=None):
    log = os.path.join(environment.logs, f"setup-{part}.log")
    with open(log, "ab") as out:
        out.write(f"$ {' '.join(command)}\n".encode())
        out.flush()
        try:
            done = subprocess.run(
                command,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=STEP_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SetupError(f"{part}: {' '.join(command[:3])}: {error}; its log: {log}") from error
    if done.returncode:
        with open(log, encoding="utf-8", errors="replace") as text:
            tail = "".join(text.readlines()[-15:])
        raise SetupError(f"{part}: {' '.join(command[:4])} ended with {done.returncode}; its log: {log}\n{tail}")


def _hash(*paths):
    digest = hashlib.sha256()
    for path in sorted(paths):
        with open(path, "rb") as data:
            digest.update(os.path.basename(path).encode() + b"\0" + data.read() + b"\0")
    return digest.hexdigest()


def _sources(folder, *endings):
    found = []
    for base, _, names in os.walk(os.path.join(CLIENTS, folder)):
        found += [os.path.join(base, name) for name in names if name.endswith(endings)]
    return found


def _python(requirements):
    def install(environment, part):
        home = environment.path(part)
        shutil.rmtree(home, ignore_errors=True)
        _run(environment, part, [sys.executable, "-m", "venv", home])
        listed = os.path.join(CLIENTS, "python", requirements)
        quiet = ["--quiet", "--disable-pip-version-check", "--no-deps"]
        _run(environment, part, [os.path.join(home, "bin", "pip"), "install", *quiet, "-r", listed])

    return install, lambda: [os.path.join(CLIENTS, "python", requirements)]


def _node(environment, part):
    _need("npm", "Node 20 or newer is needed for the Node clients")
    home = environment.path(part)
    os.makedirs(home, exist_ok=True)
    for path in _sources("node", ".json", ".npmrc", "js"):
        if "node_modules" not in path:
            shutil.copy(path, home)
    _run(environment, part, ["npm", "ci", "--no-audit", "--no-fund"], cwd=home)


def _go(environment, part):
    _need("go", "Go 1.26 or newer is needed for the Go clients")
    os.makedirs(environment.path(part), exist_ok=True)
    output = environment.path(part, "driver")
    _run(environment, part, ["go", "build", "-mod=readonly", "-o", output, "."], cwd=os.path.join(CLIENTS, "go"))


def _maven(environment, part, pom, folder, version):
    _need("java", "Java 17 or newer is needed for the Java clients and Kafka's tools")
    _need("mvn", "Maven is needed for the Java clients and Kafka's tools")
    # Maven writes beside the file it is given, so it is given a copy.
    work = environment.path(part, "pom-" + os.path.basename(folder))
    os.makedirs(work, exist_ok=True)
    shutil.copy(os.path.join(CLIENTS, "java", pom), os.path.join(work, "pom.xml"))
    shutil.rmtree(folder, ignore_errors=True)
    _run(
        environment,
        part,
        ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-Dkafka.version={version}", f"-DoutputDirectory={folder}"],
        cwd=work,
    )


def _tools(environment, part):
    _maven(environment, part, "tools-pom.xml", environment.path(part, "jars"), KAFKA_VERSION)


def _java(environment, part):
    _need("javac", "a Java development kit is needed for the Java driver")
    for version in JAVA_CLIENT_VERSIONS:
        _maven(environment, part, "driver-pom.xml", environment.path(part, f"jars-{version}"), version)
    classes = environment.path(part, "classes")
    shutil.rmtree(classes, ignore_errors=True)
    # Compiled once against the oldest, run with each.
    libraries = os.path.join(environment.path(part, f"jars-{JAVA_CLIENT_VERSIONS[-1]}"), "*")
    _run(environment, part, ["javac", "-nowarn", "-d", classes, "-cp", libraries, *_sources("java", ".java")])


def _kcat(environment, part):
    if shutil.which("kcat"):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise SetupError("kcat is not installed: install the Debian package kcat")
    _run(environment, part, ["apt-get", "update", "-q"])
    _run(environment, part, ["apt-get", "install", "-q", "-y", "--no-install-recommends", "kcat"])


def _nothing():
    return []


def _guide(language):
    """The program of a chapter of docs/first-split.md: in a copy of its folder, by the page's own commands."""

    def chapter():
        return guide.page()[0][language]

    def install(environment, part):
        home = environment.path(part)
        shutil.rmtree(home, ignore_errors=True)
        for path in chapter().files():
            copy = os.path.join(home, os.path.relpath(path, chapter().folder))
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copy(path, copy)
        for line in chapter().prepare:
            program = line.split()[0]
            if "/" not in program:
                _need(program, f"the {chapter().name} program of docs/first-split.md needs it")
            _run(environment, part, ["bash", "-euc", line], cwd=home)

    return install, lambda: [guide.PAGE, *chapter().files()]


# part -> (install, the files that it depends on)
PARTS = {
    "python": _python("requirements.txt"),
    "python-old": _python("requirements-old.txt"),
    "node": (_node, lambda: [path for path in _sources("node", ".json", ".npmrc", "js") if "node_modules" not in path]),
    "go": (_go, lambda: _sources("go", ".go", ".mod", ".sum")),
    "java": (_java, lambda: _sources("java", ".java", "driver-pom.xml")),
    "tools": (_tools, lambda: _sources("java", "tools-pom.xml")),
    "kcat": (_kcat, _nothing),
    "guide-java": _guide("java"),
    "guide-python": _guide("python"),
    "guide-go": _guide("go"),
    "guide-node": _guide("node"),
}


def _ensure(environment, part):
    install, files = PARTS[part]
    wanted = _hash(*files())
    stamp = environment.path(f"{part}.stamp")
    # kcat is the system's, and may have gone since.
    if part != "kcat" and os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as text:
            if text.read() == wanted:
                return
    begun = time.monotonic()
    install(environment, part)
    with open(stamp, "w", encoding="utf-8") as out:
        out.write(wanted)
    if time.monotonic() - begun > 1:
        print(f"set up {part} in {time.monotonic() - begun:.0f} s", flush=True)


def ensure(environment, parts):
    """Installs the parts, side by side; raises SetupError with every failure."""
    errors = []

    def work(part):
        try:
            _ensure(environment, part)
        except (SetupError, OSError) as error:
            errors.append(f"{part}: {error}")

    threads = [threading.Thread(target=work, args=(part,)) for part in sorted(parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise SetupError("\n".join(errors))
