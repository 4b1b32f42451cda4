#!/usr/bin/env python3
"""Runs real Kafka clients against the real broker: see README.md beside this file."""

import argparse
import os
import sys

from runner import clients, scenarios, setup, table, target
from runner.jobs import Brokers, Run

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, "compat", "RESULTS.md")


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(prog="cargo xtask compat", description="Real Kafka clients against the real broker.")
    parser.add_argument("--short", action="store_true", help="the depth that fits a continuous-integration run")
    parser.add_argument("--client", action="append", default=[], metavar="NAME", help="only this client (repeatable)")
    parser.add_argument("--scenario", action="append", default=[], metavar="TEXT", help="only names that contain this (repeatable)")
    parser.add_argument("--target", choices=["anabranch", "kafka"], default="anabranch", help="the broker under test")
    parser.add_argument("--binary", default=os.path.join(ROOT, "target", "fast", "anabranch"), help="the anabranch binary")
    parser.add_argument("--cache", default=os.path.join(ROOT, ".cache", "compat"), help="where clients are installed")
    parser.add_argument("--lanes", type=int, default=3, help="clients run side by side (default 3)")
    parser.add_argument("--write-results", action="store_true", help="write compat/RESULTS.md; of a selection, only its rows")
    parser.add_argument("--list", action="store_true", help="print clients and scenarios and end")
    return parser.parse_args()


def selected(options):
    """The (client, scenario) pairs that the command line asks for."""
    unknown = [name for name in options.client if clients.named(name) is None]
    if unknown:
        known = ", ".join(client.name for client in clients.CLIENTS_TABLE)
        sys.exit(f"no client named {unknown[0]}; there are: {known}")
    pairs = []
    for client in clients.CLIENTS_TABLE:
        if options.client and client.name not in options.client:
            continue
        for scenario in scenarios.ALL:
            if options.scenario and not any(text in scenario.name for text in options.scenario):
                continue
            if scenario.concerns(client) and (scenario.short or not options.short):
                pairs.append((client, scenario))
    if not pairs:
        sys.exit("no scenario matches; see --list")
    return pairs


def main():
    """Sets up, runs, prints the verdict."""
    options = arguments()
    pairs = selected(options)
    if options.list:
        for client, scenario in pairs:
            print(f"{client.name:<14} {scenario.name:<24} {scenario.purpose}")
        return 0
    earlier = before(options)
    environment = setup.Environment(options.cache, os.path.abspath(options.binary))
    used = []
    for client, scenario in pairs:
        for one in [client, *map(clients.named, scenario.others)]:
            if one not in used:
                used.append(one)
    parts = {client.part for client in used if client.part}
    if options.target == "kafka":
        parts.add("tools")
    wants_binary = options.target == "anabranch" or any(client.name == "anabranch-cli" for client in used)
    if wants_binary and not os.access(environment.binary, os.X_OK):
        sys.exit(f"{environment.binary} is not there: build it (cargo build --profile fast -p anabranch) or name it with --binary")
    try:
        setup.ensure(environment, parts)
    except setup.SetupError as error:
        sys.exit(f"set-up failed: {error}")
    results = table.Table(clients.CLIENTS_TABLE, [scenario.name for scenario in scenarios.ALL])
    brokers = Brokers(options.target, environment)
    try:
        Run(environment, brokers, options.short, results).work(pairs, options.lanes)
    finally:
        brokers.close()
    if options.write_results:
        results.write(RESULTS, target.version_line(options.target, environment), depth(options), earlier)
    return table.verdict(results)


def depth(options):
    """What RESULTS.md calls the depth of a run."""
    return "short" if options.short else "full"


def before(options):
    """The results that a run of a selection is to be written into; None if there are none, or all run anew."""
    if not options.write_results or not (options.client or options.scenario) or not os.path.exists(RESULTS):
        return None
    earlier = table.Earlier(RESULTS)
    if earlier.depth != depth(options):
        sys.exit(f"RESULTS.md is of a {earlier.depth} run, so that a {depth(options)} one cannot be written into it; run all")
    return earlier


if __name__ == "__main__":
    sys.exit(main())
