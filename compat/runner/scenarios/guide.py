"""docs/first-split.md, done: its commands and its program, in each language that it has."""

import os
import signal
import subprocess

from .. import guide
from ..errors import Failure
from ..shown import Shown
from .registry import check, scenario

# The page's backlog takes one member a minute; this one fifteen seconds.
PAGES_COUNT, COUNT, KEYS = 60_000, 15_000, 200
# A member that is started may have to wait for two heartbeats of the other, of three seconds each; a Java machine starts in two.
SOON_SECONDS = 40
STOP_SECONDS = 20
# Less than the shortest session that a library has by default (10 s): who is gone by then has said so.
LEFT_SECONDS = 8
# Ended by the signal, in good order: Java tells it so.
ENDED = (0, 128 + signal.SIGTERM)


class _Shell:
    """Runs lines of the page against the scenario's broker."""

    def __init__(self, context):
        self._context = context
        host, port = context.broker.host, context.broker.port
        folder = os.path.dirname(context.environment.binary)
        self.env = {
            **os.environ,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "ANABRANCH_BOOTSTRAP": f"{host}:{port}",
            "ANABRANCH_ADMIN": f"http://{host}:{port + 1}",
            "BOOTSTRAP_SERVERS": f"{host}:{port}",
        }
        # With it, Python writes a line in several pieces, and those of two programs would get mixed up in the file.
        self.env.pop("PYTHONUNBUFFERED", None)

    def run(self, line):
        """Runs a line to its end."""
        line = line.replace(str(PAGES_COUNT), str(COUNT))
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], env=self.env, capture_output=True, timeout=60, check=False)
        said = (done.stdout + done.stderr).decode(errors="replace")
        self._context.log(f"$ {line}: {done.returncode}\n{said}")
        check(done.returncode == 0, f"`{line}` ended with {done.returncode}")
        return said

    def start(self, line, folder, out, errors):
        """Starts a line; the process is the program itself."""
        with open(out, "ab") as log, open(errors, "ab") as complaints:
            return subprocess.Popen(
                ["bash", "-euc", f"exec {line}"], cwd=folder, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=complaints
            )


def _stop(context, name, process):
    process.send_signal(signal.SIGTERM)
    try:
        code = process.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"`{name}` did not stop within {STOP_SECONDS} s") from error
    context.log(f"`{name}` ended with {code}")
    check(code in ENDED, f"`{name}` ended with {code}")


def _read(path):
    with open(path, encoding="utf-8", errors="replace") as text:
        return text.read()


def _is_serve(line):
    return line.startswith("anabranch serve")


@scenario("guide-first-split", who=("guide",), beyond_kafka="a real Kafka does not divide a partition")
def first_split(context):
    """The program of docs/first-split.md, started twice before a backlog, shares it: nothing lost, each key in order, stopped in good order."""
    chapters, lines = guide.page()
    chapter = chapters[context.client.language]
    before = [line for line in lines if " topic create " in line or " produce " in line]
    after = [line for line in lines if line not in before and not _is_serve(line)]
    check(len(before) == 2 and len(after) >= 3, f"the page's commands are others than expected: {lines}")
    shell, shown = _Shell(context), Shown(context, "orders", "billing")
    for line in before:
        shell.run(line)
    out, errors = context.file(f"guide-{chapter.name}.out"), context.file(f"guide-{chapter.name}.err")
    for path in (out, errors):
        if os.path.exists(path):
            os.remove(path)
    processes = {}
    work = lambda: guide.Work(_read(out))

    def begin(name):
        start = context.client.start_line(context.environment, chapter).removesuffix("one") + name
        processes[name] = shell.start(start, context.client.folder(context.environment, chapter), out, errors)
        context.until(SOON_SECONDS, f"`{name}` works", lambda: work().by(name) > 0)

    try:
        for name in guide.NAMES:
            begin(name)
        context.until(SOON_SECONDS, "both hold a share", lambda: shown.holders() == 2)
        for line in after:
            said = shell.run(line)
            check("billing" in said or "orders" in said, f"`{line}` speaks neither of the group nor of the topic")
        context.until(SOON_SECONDS, "everything is read and committed", lambda: all(row["lag"] == 0 for row in shown.shown()["partitions"]))
        for name, process in processes.items():
            _stop(context, name, process)
        context.until(LEFT_SECONDS, "both have left the group", lambda: not shown.shown()["members"])
        check(shown.decisions("split", done=True), "no split in the log of decisions")
        _judge(context, work())
    except Failure:
        context.log(f"what the programs complained of: {_read(errors)[-2000:]}")
        raise
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.kill()
                process.wait()


def _judge(context, work):
    written = {}
    for order in range(1, COUNT + 1):
        written.setdefault(f"customer-{order % KEYS}", []).append(order)
    done = {name: work.by(name) for name in guide.NAMES}
    context.log(f"worked on {done}, of which {sum(done.values()) - COUNT} again")
    faults = work.faults(written)
    check(not faults, lambda: f"{len(faults)} faults: {'; '.join(faults[:5])}")
    for name, count in done.items():
        check(count > COUNT // 10, f"`{name}` worked on {count} of {COUNT} records only")
