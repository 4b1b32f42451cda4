"""The expectations. Importing a module registers its scenarios, in the order of the table."""

import subprocess

from ..clients import tool_version
from .registry import ALL
from . import records, offsets, groups, recognised, members, queues, restarts, topics, admin, mixed, elastic, elastic_cases, elastic_users, protocol, ui, console, kcat, tools, mainjob, guide

__all__ = ["ALL", "version_of"]

_KCAT = []


def version_of(context):
    """The client's version, as it tells it itself."""
    client = context.client
    if client.kind == "library":
        return context.driver.version
    if client.name == "anabranch-cli":
        command = [context.environment.binary, "version"]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout.strip()
    if client.name == "kcat":
        if not _KCAT:
            said = subprocess.run(["kcat", "-V"], capture_output=True, text=True, timeout=20, check=False).stdout
            line = next(line for line in said.splitlines() if line.startswith("Version"))
            library = line.split("librdkafka ")[1].split(" ")[0]
            _KCAT.append(f"{line.split()[1]} (librdkafka {library})")
        return _KCAT[0]
    return tool_version() if client.part == "tools" else ""
