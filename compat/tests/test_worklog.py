"""What the judge of work logs finds. Run: python3 -m unittest discover compat/tests"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from runner.errors import Failure
from runner.worklog import LOG_BITS, Judge, WorkLog

WRITTEN = {(0, 0): ("a", 0), (0, 1): ("b", 0), (0, 2): ("a", 1), (0, 3): (None, 0)}
GOOD = "R 10 20 0 0 a:0\nR 10 20 0 1 b:0\nC 21 0 2\nR 30 40 0 2 a:1\nR 30 40 0 3 -\nC 41 0 4\n"


def at(number, offset):
    """An offset in a slice."""
    return number << LOG_BITS | offset


class Worklogs(unittest.TestCase):
    """Each fault, and nothing where there is none."""

    def judge(self, texts, expelled=()):
        """The judge of these work logs, by member."""
        logs = []
        with tempfile.TemporaryDirectory() as folder:
            for member, text in texts.items():
                path = os.path.join(folder, member)
                with open(path, "w", encoding="utf-8") as out:
                    out.write(text)
                logs.append(WorkLog(member, path))
                logs[-1].read()
        self.logs = logs
        return Judge(WRITTEN, logs, expelled)

    def fails(self, word, texts, **more):
        """The judge complains with this word."""
        with self.assertRaisesRegex(Failure, word):
            self.judge(texts, **more).check()

    def test_good_work_is_good(self):
        self.judge({"one": GOOD}).check()
        # Repeats of what was not committed are allowed, in order and by one at a time.
        self.judge({"one": "R 10 20 0 0 a:0\n", "two": GOOD.replace(" 10 20 ", " 20 25 ")}).check()

    def test_offsets_in_slices_are_places_in_the_log(self):
        judge = self.judge({"one": "R 10 20 0 0 a:0\nC 21 0 1\n", "two": f"R 10 20 0 {at(2, 1)} b:0\nR 30 40 0 {at(3, 2)} a:1\nR 30 40 0 3 -\n"})
        judge.check()
        self.assertEqual([one.slice for one in self.logs[1].deliveries], [2, 3, 0])
        self.assertEqual(self.logs[1].first_in_slice, 10)

    def test_what_nobody_had_is_missing(self):
        self.fails("came to nobody", {"one": GOOD.replace("R 30 40 0 3 -\n", "")})

    def test_half_a_line_counts_for_nothing(self):
        self.fails("came to nobody", {"one": GOOD[: GOOD.index("R 30 40 0 3") + 8]})

    def test_the_order_of_a_key_holds_over_members(self):
        self.fails("came after", {"one": "R 30 40 0 0 a:0\nR 30 40 0 1 b:0\n", "two": "R 10 20 0 2 a:1\nR 10 20 0 3 -\n"})

    def test_two_members_at_one_key_are_found_also_in_repeats(self):
        self.fails("at a time", {"one": "R 10 20 0 0 a:0\nR 10 20 0 1 b:0\n", "two": "R 19 25 0 2 a:1\nR 19 25 0 3 -\n"})
        self.fails("at a time", {"one": GOOD.replace("C", "X"), "two": "R 19 25 0 0 a:0\n"})

    def test_records_without_a_key_have_no_order(self):
        self.judge({"one": GOOD, "two": "R 30 40 0 3 -\n"}).check()

    def test_what_was_committed_does_not_come_again(self):
        self.fails("came again", {"one": GOOD, "two": "R 50 60 0 2 a:1\n"})
        self.judge({"one": GOOD.replace("C 41", "F 41 commit"), "two": "R 50 60 0 2 a:1\n"}).check()

    def test_other_records_than_were_written_are_found(self):
        self.fails("never written", {"one": GOOD + "R 50 60 0 9 c:0\n"})
        self.fails("was written where", {"one": GOOD.replace("b:0", "b:1")})

    def test_work_of_an_expelled_member_counts_for_nothing_until_it_notices(self):
        late = "R 50 90 0 2 a:1\nV 95\n"
        self.fails("came again", {"one": GOOD, "two": late})
        self.judge({"one": GOOD, "two": late}, expelled=[("two", 45, 95)]).check()
        self.fails("came again", {"one": GOOD, "two": "V 49\n" + late}, expelled=[("two", 45, 49)])


if __name__ == "__main__":
    unittest.main()
