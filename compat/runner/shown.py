"""What the broker says of a group and its shares of a partition, over the administration API."""

import json
import urllib.error
import urllib.request

HTTP_SECONDS = 10


class Shown:
    """A group as the broker shows it; its shares are those of partition 0 of one topic."""

    def __init__(self, context, topic, group):
        self.context, self.topic, self.group = context, topic, group

    def get(self, path):
        """An answer of the administration API."""
        return self._ask("GET", path)

    def order(self, verb):
        """Tells the planner to leave the group alone (`pause`), or not to (`resume`)."""
        self._ask("POST", f"groups/{self.group}/{verb}")

    def _ask(self, method, path):
        url = f"http://{self.context.broker.host}:{self.context.broker.port + 1}/api/v1/{path}"
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=HTTP_SECONDS) as answer:
            return json.load(answer)

    def shown(self):
        """The group, as the broker shows it."""
        return self.get(f"groups/{self.group}")

    def shares(self):
        """{member's client id and id: [share]} of partition 0; empty while it is plain."""
        try:
            rows = self.shown()["partitions"]
        except urllib.error.HTTPError:
            return {}
        row = next((row for row in rows if (row["topic"], row["partition"]) == (self.topic, 0)), None)
        if row is None or row["form"] != "divided":
            return {}
        held = {}
        for share in row["shares"]:
            held.setdefault(share["member"], []).append(share)
        return held

    def decisions(self, kind=None, done=False):
        """The group's decisions."""
        rows = self.get(f"decisions?group={self.group}&limit=1000")["decisions"]
        return [row for row in rows if (not kind or row["kind"] == kind) and (not done or row["outcome"] == "decided")]

    def holders(self):
        """How many members hold a share that is open."""
        return sum(1 for shares in self.shares().values() if any(share["end"] is None for share in shares))
