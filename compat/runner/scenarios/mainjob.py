"""What a broker is for: a real file goes in by two writers and comes out by four readers, also after a kill."""

import os
import sysconfig

from ..clients import named
from ..context import Record
from ..errors import Failure
from . import console, kcat
from .registry import check, scenario

LINES = 100_000
# Where texts lie on most machines; what is not there is made up for by the last, which every machine that runs this has.
FOLDERS = ("/usr/share/common-licenses", "/usr/share/doc", sysconfig.get_paths()["stdlib"])
# No folder may give more than its part, so that the file is a mixture.
LINES_OF_FOLDER = 40_000
# Records in one request to a driver.
CHUNK = 5_000
READERS = ("java-4.3", "librdkafka", "kafkajs")


def _texts(folder):
    """The lines of the texts below a folder, in the order of their names, as far as they are texts."""
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in ("site-packages", "__pycache__"))
        for name in sorted(names):
            path = os.path.join(base, name)
            # A link may lead anywhere, into this folder again as well.
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            try:
                with open(path, "rb") as text:
                    data = text.read()
            except OSError:
                continue
            if b"\0" not in data:
                yield from data.split(b"\n")[:-1]


def _real_file(path):
    """Writes a file of LINES lines of real text, as they stand on this machine; its lines."""
    lines = []
    for folder in FOLDERS:
        wanted = LINES - len(lines) if folder == FOLDERS[-1] else LINES_OF_FOLDER
        before = len(lines)
        for line in _texts(folder):
            if len(lines) - before == wanted:
                break
            lines.append(line)
    check(len(lines) == LINES, f"only {len(lines)} lines of text were found in {', '.join(FOLDERS)}")
    check(len(set(lines)) > LINES // 4, f"only {len(set(lines))} different lines: that is no real text")
    check(b"" in lines, "no empty line: that is no real text")
    with open(path, "wb") as out:
        out.writelines(line + b"\n" for line in lines)
    return lines


def _differs(who, got, lines):
    """Says where two lists of lines part, if they do."""
    if got == lines:
        return
    if len(got) != len(lines):
        raise Failure(f"{who} read {len(got)} lines where {len(lines)} were written")
    at = next(number for number, (one, other) in enumerate(zip(got, lines)) if one != other)
    raise Failure(f"{who} read line {at} as {got[at][:80]!r} where {lines[at][:80]!r} was written")


def _read_by(context, reader, name, topic):
    """All lines that a library reads as a new group."""
    member = context.consumer(name, reader, group=context.name(name), topics=[topic], reset="earliest")
    lines = []

    def look():
        lines.extend(record.value for record in member.take(300, CHUNK))
        return len(lines) >= LINES

    try:
        context.until(60, f"{reader.name} has read {LINES} lines of {topic}", look)
        lines.extend(record.value for record in member.take(100, CHUNK))
    finally:
        context.log(f"{reader.name} read {len(lines)} lines of {topic}")
    member.close()
    return lines


@scenario("main-job", who=("raw",), own_broker=True, others=("anabranch-cli", "franz-go", "kcat", *READERS))
def main_job(context):
    """A file of 100,000 lines of real text: in by two writers, out by four readers, killed, out again: the same bytes."""
    path = context.file("real.txt")
    lines = _real_file(path)
    drivers = {name: context.driver_of(named(name)) for name in ("franz-go", *READERS)}
    topics = {"anabranch produce": context.topic("by-command"), "franz-go": context.topic("by-library")}
    console.run(context, "produce", topics["anabranch produce"], path)
    writer = drivers["franz-go"]
    writer.call("producer_open", name="p", bootstrap=context.broker.bootstrap, compression="zstd")
    for at in range(0, LINES, CHUNK):
        records = [Record(line, partition=0) for line in lines[at : at + CHUNK]]
        places = context.produce(topics["franz-go"], records, producer="p", driver=writer)
        check(places == [(0, at + index) for index in range(len(records))], f"the lines from {at} on lie elsewhere")
    writer.call("producer_close", name="p")

    def read_all(when):
        for source, topic in topics.items():
            got = kcat.run(context, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q")
            _differs(f"kcat, {when}, written by {source},", got.split(b"\n")[:-1], lines)
            for name in READERS:
                got = _read_by(context, drivers[name], f"r-{when}-{topic}", topic)
                _differs(f"{name}, {when}, written by {source},", got, lines)

    read_all("before the kill")
    context.broker.kill()
    context.broker.start()
    read_all("after the kill")
    with open(path, "rb") as text:
        got = console.run(context, "consume", topics["franz-go"], "--until-end")
        check(got == text.read(), "anabranch consume gave other bytes than the file has")
