"""When a scenario is run a second time, and how that is shown. Run: python3 -m unittest discover compat/tests"""

import io
import os
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stdout

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from runner.errors import ClientError, Failure, Late, is_late
from runner.jobs import Run
from runner.table import FAILED, NOT_APPLICABLE, PASSED, Earlier, Result, Table, verdict


class Named:
    """A client or a scenario, as far as the judge looks at it."""

    def __init__(self, name):
        self.name = name


class Stalls:
    """The machine stood still for so many seconds."""

    def __init__(self, seconds):
        self._seconds = seconds

    def worst_since(self, _begun):
        return self._seconds


class Scripted(Run):
    """A run whose scenarios end as the test says."""

    def __init__(self, stall, *results):
        self._stalls, self._left = Stalls(stall), list(results)
        self._table = self.table = Table([Named("client")], ["scenario"])

    def _one(self, _client, _scenario, _pool):
        return self._left.pop(0)

    def judged(self):
        """The row that comes of it, and what is printed."""
        said = io.StringIO()
        with redirect_stdout(said):
            result = self._judge(Named("client"), Named("scenario"), None)
            self.table.add(result)
            code = verdict(self.table)
        return result, said.getvalue(), code, len(self._left)


def failed(error):
    """The row of a scenario that ended with this exception."""
    return Result("client", "1", "scenario", FAILED, 1.0, f"{error}\n| a line of its log", is_late(error))


def passed():
    """The row of a scenario that met its expectation."""
    return Result("client", "1", "scenario", PASSED, 1.0)


class Judge(unittest.TestCase):
    """What gets a second try."""

    def test_late_while_the_machine_stood_still_is_tried_again_and_shown(self):
        run = Scripted(5.5, failed(Late("not within 25 s: all records are read")), passed())
        result, said, code, left = run.judged()
        self.assertEqual((result.outcome, code, left), (PASSED, 0, 0))
        self.assertIn("ok (2nd try)", said)
        self.assertIn("not within 25 s: all records are read, while the machine stood still for 5.5 s", said)
        self.assertEqual(said.splitlines()[-1], "1 passed (1 of them at the second try), 0 failed")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "RESULTS.md")
            run.table.write(path, "a broker", "short")
            with open(path, encoding="utf-8") as text:
                written = text.read()
        self.assertIn("1 passed (1 of them at the second try), 0 failed", written)
        self.assertIn("passed at the second try; the first: not within 25 s", written)

    def test_a_second_failure_stays_one(self):
        late = failed(Late("late"))
        result, said, code, left = Scripted(5.5, late, failed(Failure("wrong"))).judged()
        self.assertEqual((result.outcome, code, left), (FAILED, 1, 0))
        self.assertIn("FAILED (2nd try)", said)

    def test_a_wrong_result_is_never_tried_again(self):
        wrong = (
            Failure("record 3 came after record 4"),
            ClientError("produce", "CORRUPT_MESSAGE", 2, "the checksum is wrong"),
            ValueError("a fault of the runner"),
        )
        for error in wrong:
            result, _, code, left = Scripted(60.0, failed(error), passed()).judged()
            self.assertEqual((result.outcome, code, left), (FAILED, 1, 1), error)

    def test_nothing_is_tried_again_on_a_quiet_machine(self):
        result, said, _, left = Scripted(0, failed(Late("late")), passed()).judged()
        self.assertEqual((result.outcome, left), (FAILED, 1))
        self.assertNotIn("2nd try", said)

    def test_what_is_late(self):
        self.assertTrue(is_late(Late("x")))
        self.assertTrue(is_late(subprocess.TimeoutExpired("kcat", 40)))
        self.assertTrue(is_late(ClientError("produce", "REQUEST_TIMED_OUT", 7, "")))
        self.assertFalse(is_late(ClientError("commit", "ILLEGAL_GENERATION", 22, "")))
        self.assertFalse(is_late(ClientError("poll", "Error", None, "timed out")))


class Results(unittest.TestCase):
    """What RESULTS.md has after a run of a selection."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "RESULTS.md")

    def written(self, results, earlier=None):
        """The page after a run with these results."""
        table = Table([Named("java"), Named("go")], ["plain", "elastic-split", "elastic-grow"])
        table.results = results
        table.write(self.path, "a broker", "full", earlier)
        with open(self.path, encoding="utf-8") as text:
            return text.read()

    def all(self):
        """A row of each kind."""
        twice = Result("go", "v2", "elastic-split", PASSED, 3.2)
        twice.first_try = "not within 25 s, while the machine stood still for 5.5 s"
        return [
            Result("java", "1 (of 2)", "plain", PASSED, 1.0),
            Result("java", "", "elastic-split", NOT_APPLICABLE, 0.0, "has none: never"),
            Result("go", "v2", "plain", PASSED, 2.0),
            twice,
            Result("go", "v2", "elastic-grow", FAILED, 40.1, "a broken order"),
        ]

    def test_what_is_read_is_what_was_written(self):
        page = self.written(self.all())
        earlier = Earlier(self.path)
        self.assertEqual((earlier.depth, earlier.again), ("full", []))
        self.assertEqual(self.written(earlier.results), page)

    def test_a_selection_replaces_its_own_rows_and_is_named(self):
        self.written(self.all())
        page = self.written([Result("go", "v3", "elastic-grow", PASSED, 30.0)], Earlier(self.path))
        self.assertIn("4 passed (1 of them at the second try), 0 failed, 1 not applicable", page)
        self.assertIn("\nRun again since then, alone: go elastic-grow.\n", page)
        self.assertIn("| elastic-grow |  | ok |", page)
        self.assertIn("| go | v3 | elastic-grow | passed | 30.0 |", page)
        self.assertIn("| go | v2 | plain | passed | 2.0 |", page)
        again = [Result("go", "v3", "elastic-grow", PASSED, 31.0), Result("java", "1", "plain", FAILED, 1.0, "wrong")]
        page = self.written(again, Earlier(self.path))
        self.assertIn("\nRun again since then, alone: go elastic-grow, java plain.\n", page)
        self.assertIn("3 passed (1 of them at the second try), 1 failed", page)
        self.assertEqual(page.count("elastic-grow | passed"), 1)

    def test_a_row_of_a_scenario_that_is_gone_goes(self):
        self.written(self.all())
        earlier = Earlier(self.path)
        earlier.results.append(Result("go", "v2", "no-more", FAILED, 1.0))
        self.assertNotIn("no-more", self.written([], earlier))


if __name__ == "__main__":
    unittest.main()
