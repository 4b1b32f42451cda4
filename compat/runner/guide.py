"""docs/first-split.md as something to do: its commands, and the programs that it shows.

The page is what is tried. A chapter of it is about one language, and has a block of commands: the first goes to the program's
folder, the last starts it, those in between prepare it, once. The page's other commands are run as they stand, too.
"""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "docs", "first-split.md")
# What the page calls the two members.
NAMES = ("one", "two")
_LINE = re.compile(r"(one|two) (customer-\d+) order (\d+)")


class Chapter:
    """What the page says about one language."""

    def __init__(self, name, lines):
        self.name, self.prepare, self.start = name, lines[1:-1], lines[-1]
        if not lines[0].startswith("cd ") or not self.start.endswith(" one"):
            raise ValueError(f"the commands of the chapter {name} neither begin with a folder nor end with the start of `one`")
        self.folder = os.path.join(ROOT, lines[0].removeprefix("cd "))

    def files(self):
        """The files of the program that are kept."""
        made = ("node_modules", ".venv", "target", "billing")
        found = []
        for base, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if name not in made]
            found += [os.path.join(base, name) for name in names if name not in made]
        return found


def blocks(text):
    """The lines of each shell block of a page, with the title of its chapter."""
    title, inside, found = None, None, []
    for line in text.splitlines():
        if inside is not None:
            if line == "```":
                found.append((title, inside))
                inside = None
            elif line:
                inside.append(line.split("  #")[0].rstrip())
        elif line == "```sh":
            inside = []
        elif line.startswith("#"):
            title = line.lstrip("# ")
    return found


def page():
    """({language: its chapter}, the other commands in their order)."""
    with open(PAGE, encoding="utf-8") as text:
        found = blocks(text.read())
    chapters = {title.lower(): Chapter(title, lines) for title, lines in found if lines[0].startswith("cd docs/guide/")}
    others = [line for _, lines in found if not lines[0].startswith("cd ") for line in lines]
    return chapters, others


class Work:
    """What the two members printed, in the order in which they did: they write to one file."""

    def __init__(self, text):
        # (member, key, number of the order); a line that is still being written is none yet.
        self.rows, self.strange = [], []
        whole = text[: text.rfind("\n") + 1]
        for line in whole.splitlines():
            match = _LINE.fullmatch(line)
            if match:
                self.rows.append((match[1], match[2], int(match[3])))
            else:
                self.strange.append(line)

    def by(self, member):
        """How many lines a member printed."""
        return sum(1 for row in self.rows if row[0] == member)

    def faults(self, written):
        """What is wrong, in words, if `written` is {key: its orders, in order}. Orders that came again are no fault."""
        faults = [f"a line that no program prints: {line!r}" for line in self.strange]
        first = {key: [] for key in written}
        seen = set()
        for _, key, order in self.rows:
            if key not in first:
                faults.append(f"nobody wrote a key {key}")
            elif (key, order) not in seen:
                seen.add((key, order))
                first[key].append(order)
        for key, orders in written.items():
            missing = [order for order in orders if (key, order) not in seen]
            if missing:
                faults.append(f"{len(missing)} orders of {key} were not worked on, order {missing[0]} first")
            elif first[key] != orders:
                at = next(number for number, (one, other) in enumerate(zip(first[key], orders)) if one != other)
                faults.append(f"order {first[key][at]} of {key} was worked on where order {orders[at]} was next")
        return faults
