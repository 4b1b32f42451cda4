"""Live lines, the summary and RESULTS.md."""

import copy
import os
import platform
import re
import sys
import threading
import time

PASSED, FAILED, NOT_APPLICABLE = "passed", "FAILED", "n/a"
_SECOND_TRY = " at the second try; the first: "
_AGAIN = "Run again since then, alone: "


class Result:
    """One row: a scenario run with a client."""

    def __init__(self, client, version, scenario, outcome, seconds, detail="", late=False):
        self.client, self.version, self.scenario = client, version, scenario
        self.outcome, self.seconds, self.detail = outcome, seconds, detail
        # Whether it failed only for taking too long.
        self.late = late
        # Why there was a try before this one; empty if there was none.
        self.first_try = ""

    def sign(self):
        """The cell of the matrix."""
        sign = {PASSED: "ok", FAILED: "FAILED", NOT_APPLICABLE: "n/a"}[self.outcome]
        return f"{sign} (2nd try)" if self.first_try else sign


class Earlier:
    """What RESULTS.md has from before: a run of a selection replaces its own rows and leaves the others."""

    _ROW = re.compile(r"\| (\S+) \| (.*?) \| (\S+) \| (passed|FAILED|n/a)(.*) \| ([\d.]+) \|")

    def __init__(self, path):
        self.depth, self.results, self.again = None, [], []
        with open(path, encoding="utf-8") as text:
            for line in text.read().splitlines():
                self._take(line)

    def _take(self, line):
        depth = re.search(r" Depth: (\w+)\. ", line)
        row = self._ROW.fullmatch(line)
        if depth:
            self.depth = depth.group(1)
        elif line.startswith(_AGAIN):
            self.again = line.removeprefix(_AGAIN).removesuffix(".").split(", ")
        elif row:
            client, version, scenario, outcome, more, seconds = row.groups()
            result = Result(client, version, scenario, outcome, float(seconds), more.removeprefix(": "))
            result.first_try = more.partition(_SECOND_TRY)[2]
            self.results.append(result)


class Table:
    """All results of a run; safe to fill from several lanes."""

    def __init__(self, clients, scenarios):
        self._clients = [client.name for client in clients]
        self._scenarios = scenarios
        self.results = []
        self._lock = threading.Lock()
        self._begun = time.monotonic()

    def add(self, result):
        """Takes a result and prints its line."""
        with self._lock:
            self.results.append(result)
            name = f"{result.client:<14} {result.scenario:<24}"
            line = f"{time.monotonic() - self._begun:6.1f}  {name} {result.outcome:<7} {result.seconds:6.2f} s"
            if result.outcome == NOT_APPLICABLE:
                line += f"  ({result.detail})"
            if result.first_try:
                line += f"  (2nd try; the first: {result.first_try})"
            print(line, flush=True)
            if result.outcome == FAILED:
                print("        " + result.detail.replace("\n", "\n        "), flush=True)

    def note(self, text):
        """Prints a remark below the lines."""
        with self._lock:
            print("        " + text.replace("\n", "\n        "), flush=True)

    def count(self, outcome):
        """How many rows have this outcome."""
        return sum(1 for result in self.results if result.outcome == outcome)

    def tried_twice(self):
        """The rows that passed only at the second try."""
        return [result for result in self.results if result.first_try and result.outcome == PASSED]

    def _with(self, earlier):
        """These results in the place of the earlier ones of the same clients and scenarios."""
        whole = copy.copy(self)
        fresh = {(r.client, r.scenario) for r in self.results}
        known = [r for r in earlier.results if r.client in self._clients and r.scenario in self._scenarios]
        whole.results = [*(r for r in known if (r.client, r.scenario) not in fresh), *self.results]
        return whole

    def summary(self):
        """The matrix as lines: a column for each client, a row for each scenario."""
        clients = [name for name in self._clients if any(r.client == name for r in self.results)]
        cells = {(r.scenario, r.client): r for r in self.results}
        head = ["scenario", *clients]
        rows = []
        for scenario in self._scenarios:
            if any((scenario, client) in cells for client in clients):
                row = [cells.get((scenario, client)) for client in clients]
                rows.append([scenario, *(cell.sign() if cell else "" for cell in row)])
        widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
        return ["  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip() for line in [head, *rows]]

    def failures(self):
        """One line for each failure."""
        lines = []
        for result in self.results:
            if result.outcome == FAILED:
                lines.append(f"{result.client} {result.scenario}: {result.detail.splitlines()[0]}")
        return lines

    def write(self, path, target, depth, earlier=None):
        """Writes the results as a document; with `earlier` ones, in their place in those."""
        if earlier is None:
            return self._write(path, target, depth, [])
        ran = [f"{r.client} {r.scenario}" for r in self.results if r.outcome != NOT_APPLICABLE]
        again = [*earlier.again, *(name for name in ran if name not in earlier.again)]
        return self._with(earlier)._write(path, target, depth, again)

    def _write(self, path, target, depth, again):
        clients = [name for name in self._clients if any(r.client == name for r in self.results)]
        versions = {r.client: r.version for r in self.results if r.version}
        passed, failed, none = (self.count(outcome) for outcome in (PASSED, FAILED, NOT_APPLICABLE))
        twice = len(self.tried_twice())
        counts = f"{passed} passed{f' ({twice} of them at the second try)' if twice else ''}, {failed} failed"
        lines = [
            "# Compatibility results",
            "",
            "Written by `cargo xtask compat --write-results`; do not edit.",
            "",
            f"Broker: {target}. Depth: {depth}. {counts}, {none} not applicable.",
            f"Machine: {os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}.",
            *(["", f"{_AGAIN}{', '.join(again)}."] if again else []),
            "",
            "| client | version | passed | failed | n/a | seconds |",
            "|---|---|---|---|---|---|",
        ]
        for client in clients:
            rows = [r for r in self.results if r.client == client]
            counts = [sum(1 for r in rows if r.outcome == o) for o in (PASSED, FAILED, NOT_APPLICABLE)]
            seconds = sum(r.seconds for r in rows)
            numbers = " | ".join(str(count) for count in counts)
            lines.append(f"| {client} | {versions.get(client, '')} | {numbers} | {seconds:.0f} |")
        lines += self._divided(clients)
        lines += ["", "| client | version | scenario | result | seconds |", "|---|---|---|---|---|"]
        order = {name: number for number, name in enumerate(self._scenarios)}
        for client in clients:
            rows = sorted((r for r in self.results if r.client == client), key=lambda r: order[r.scenario])
            for r in rows:
                outcome = f"{r.outcome}: {r.detail}" if r.outcome == NOT_APPLICABLE else r.outcome
                if r.first_try:
                    outcome += f"{_SECOND_TRY}{r.first_try}".replace("|", "/")
                lines.append(f"| {r.client} | {r.version or versions.get(client, '')} | {r.scenario} | {outcome} | {r.seconds:.1f} |")
        with open(path, "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")

    def _divided(self, clients):
        """The scenarios of divided groups as a matrix: a column for each client that has any."""
        cells = {(r.scenario, r.client): r for r in self.results if r.scenario.startswith("elastic-")}
        columns = [name for name in clients if any(client == name for _, client in cells)]
        if not columns:
            return []
        lines = ["", "## Divided groups", "", f"| scenario | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
        for scenario in self._scenarios:
            row = [cells.get((scenario, client)) for client in columns]
            if any(row):
                lines.append(f"| {scenario} | {' | '.join(cell.sign() if cell else '' for cell in row)} |")
        return [*lines, "", "## All results"]


def verdict(table):
    """Prints the summary and the last line; the exit code."""
    print()
    print("\n".join(table.summary()))
    print()
    for line in table.failures():
        print(f"FAILED {line}")
    for result in table.tried_twice():
        print(f"second try: {result.client} {result.scenario}: the first: {result.first_try}")
    failed = table.count(FAILED)
    skipped = table.count(NOT_APPLICABLE)
    if skipped:
        print(f"{skipped} not applicable, each with its reason above")
    twice = len(table.tried_twice())
    print(f"{table.count(PASSED)} passed{f' ({twice} of them at the second try)' if twice else ''}, {failed} failed")
    sys.stdout.flush()
    return 1 if failed or not table.count(PASSED) else 0
