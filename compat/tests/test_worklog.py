"""What the judge of work logs finds. Run: python3 -m unittest discover compat/tests"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from runner.errors import Failure
from runner.worklog import LOG_BITS, Judge, WorkLog

WRITTEN = {(0, 0): ("a", 0), (0, 1): ("b", 0), (0, 2): ("a", 1), (0, 3): (None, 0)}
# The same key in two partitions, where it has nothing to do with itself.
TWO_PARTITIONS = {(0, 0): ("a", 0), (0, 1): ("a", 1), (1, 0): ("a", 0), (1, 1): ("a", 1)}
GOOD = "R 10 20 0 0 a:0\nR 10 20 0 1 b:0\nC 21 0 2\nR 30 40 0 2 a:1\nR 30 40 0 3 -\nC 41 0 4\n"


def at(number, offset):
    """An offset in a slice."""
    return number << LOG_BITS | offset


class Worklogs(unittest.TestCase):
    """Each fault, and nothing where there is none."""

    def judge(self, texts, expelled=(), written=WRITTEN):
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
        return Judge(written, logs, expelled)

    def fails(self, word, texts, **more):
        """The judge complains with this word."""
        with self.assertRaisesRegex(Failure, word):
            self.judge(texts, **more).check()

    def test_good_work_is_good(self):
        self.judge({"one": GOOD}).check()
        # Repeats of what was not committed are allowed, in order and by one at a time.
        judge = self.judge({"one": "R 10 20 0 0 a:0\n", "two": GOOD.replace(" 10 20 ", " 20 25 ")})
        judge.check()
        self.assertEqual((len(judge.deliveries), judge.repeats()), (5, 1))
        # So is work that began anew behind a record that had been ahead: of each record the first time counts.
        self.judge({"one": GOOD.replace("C 21 0 2\nR 30 40 0 2 a:1", "R 22 23 0 2 a:1\nR 24 25 0 0 a:0")}).check()

    def test_offsets_in_slices_are_places_in_the_log(self):
        far = 1 << 40
        written = {**WRITTEN, (0, far): ("b", 1)}
        two = f"R 9 10 0 3 -\nR 10 20 0 {at(2, 1)} b:0\nR 30 40 0 {at(3, 2)} a:1\nR 30 40 0 {at(3, far)} b:1\nC 41 0 {at(3, far + 1)}\n"
        self.judge({"one": "R 10 20 0 0 a:0\nC 21 0 1\n", "two": two}, written=written).check()
        self.assertEqual([one.slice for one in self.logs[1].deliveries], [0, 2, 3, 3])
        self.assertEqual(self.logs[1].first_in_slice, 10)
        self.assertEqual({one.committed for one in self.logs[1].deliveries}, {41})

    def test_partitions_have_nothing_to_do_with_each_other(self):
        text = "R 10 20 0 0 a:0\nR 20 30 0 1 a:1\nC 31 0 2\n"
        other = text.replace(" 0 0 ", " 1 0 ").replace(" 0 1 ", " 1 1 ").replace(" 31 0 ", " 31 1 ")
        self.judge({"one": text, "two": other}, written=TWO_PARTITIONS).check()
        self.fails("came to nobody", {"one": text}, written=TWO_PARTITIONS)
        # The commit of one says nothing of the other.
        both = "R 10 20 0 0 a:0\nR 10 20 0 1 a:1\nR 10 20 1 0 a:0\nR 10 20 1 1 a:1\nC 21 1 2\n"
        self.judge({"one": both, "two": "R 30 40 0 0 a:0\n"}, written=TWO_PARTITIONS).check()
        self.fails("came again", {"one": both, "two": "R 30 40 1 0 a:0\n"}, written=TWO_PARTITIONS)

    def test_a_file_is_read_as_it_grows(self):
        with tempfile.TemporaryDirectory() as folder:
            log = WorkLog("one", os.path.join(folder, "one"))
            log.read()
            for text in (GOOD[:5], GOOD[5:40], GOOD[40:] + "F 50 commit no such member\nV 51\nE 52\n"):
                with open(log.path, "a", encoding="utf-8") as out:
                    out.write(text)
                log.read()
        self.assertEqual([one.offset for one in log.deliveries], [0, 1, 2, 3])
        self.assertEqual([one.committed for one in log.deliveries], [21, 21, 41, 41])
        self.assertEqual((log.failures, log.given_up, log.last_commit), ([(50, "commit no such member")], [51], 41))

    def test_lines_that_mean_nothing_are_found(self):
        self.fails("none of a work log", {"one": GOOD + "X 50 0 4\n"})

    def test_what_nobody_had_is_missing(self):
        self.fails("came to nobody", {"one": GOOD.replace("R 30 40 0 3 -\n", "")})

    def test_half_a_line_counts_for_nothing(self):
        self.fails("came to nobody", {"one": GOOD[: GOOD.index("R 30 40 0 3") + 8]})

    def test_the_order_of_a_key_holds_over_members(self):
        self.fails("came after", {"one": "R 30 40 0 0 a:0\nR 30 40 0 1 b:0\n", "two": "R 10 20 0 2 a:1\nR 10 20 0 3 -\n"})

    def test_the_order_of_a_key_holds_within_a_piece_of_work_and_by_when_it_began(self):
        self.fails("came after", {"one": "R 10 20 0 1 b:0\nR 10 20 0 2 a:1\nR 10 20 0 0 a:0\nR 10 20 0 3 -\n"})
        # Began later, ended earlier.
        self.fails("came after", {"one": "R 10 40 0 2 a:1\nR 20 30 0 0 a:0\nR 30 40 0 1 b:0\nR 30 40 0 3 -\n"})

    def test_two_members_at_one_key_are_found_also_in_repeats(self):
        self.fails("at a time", {"one": "R 10 20 0 0 a:0\nR 10 20 0 1 b:0\n", "two": "R 19 25 0 2 a:1\nR 19 25 0 3 -\n"})
        self.fails("at a time", {"one": GOOD.replace("C", "V"), "two": "R 19 25 0 0 a:0\n"})
        # The longest work counts, not the last.
        self.fails("at a time", {"one": "R 10 90 0 0 a:0\nR 20 30 0 1 b:0\nR 20 30 0 2 a:1\n", "two": "R 60 70 0 2 a:1\nR 60 70 0 3 -\n"})
        # And the latest, if it goes on for longer.
        self.fails("at a time", {"one": "R 10 20 0 0 a:0\nR 20 90 0 2 a:1\nR 20 30 0 1 b:0\n", "two": "R 60 70 0 2 a:1\nR 60 70 0 3 -\n"})

    def test_one_member_may_be_at_a_key_twice_and_the_next_may_begin_when_it_ends(self):
        self.judge({"one": "R 10 40 0 0 a:0\nR 20 40 0 1 b:0\nR 20 40 0 2 a:1\n", "two": "R 40 50 0 2 a:1\nR 40 50 0 3 -\n"}).check()

    def test_records_without_a_key_have_no_order(self):
        written = {**WRITTEN, (0, 4): (None, 1)}
        self.judge({"one": GOOD.replace("3 -", "4 :1"), "two": "R 35 45 0 3 :0\n"}, written=written).check()
        self.judge({"one": GOOD, "two": "R 30 40 0 3 -\n"}).check()

    def test_what_was_committed_does_not_come_again(self):
        self.fails("came again", {"one": GOOD, "two": "R 50 60 0 2 a:1\n"})
        self.judge({"one": GOOD.replace("C 41", "F 41 commit"), "two": "R 50 60 0 2 a:1\n"}).check()
        # A member is no exception for itself, and a later commit does not excuse what came behind the first.
        self.fails("came again", {"one": GOOD + "R 50 60 0 2 a:1\nC 61 0 4\n"})
        self.fails("came again", {"one": GOOD, "two": "R 40 41 0 2 a:1\nC 61 0 3\n", "three": "R 45 46 0 2 a:1\n"})

    def test_a_commit_covers_what_lies_before_it_and_did_not_fail(self):
        self.judge({"one": GOOD.replace("C 41 0 4", "C 41 0 2"), "two": "R 50 60 0 2 a:1\n"}).check()
        in_slice = GOOD.replace("0 2 a:1", f"0 {at(2, 2)} a:1").replace("C 41 0 4", f"C 41 0 {at(2, 2)}")
        self.judge({"one": in_slice, "two": "R 50 60 0 2 a:1\n"}).check()
        self.judge({"one": GOOD.replace("C 21 0 2", "F 21 commit"), "two": "R 42 43 0 0 a:0\n"}).check()

    def test_other_records_than_were_written_are_found(self):
        self.fails("never written", {"one": GOOD + "R 50 60 0 9 c:0\n"})
        self.fails("was written where", {"one": GOOD.replace("b:0", "b:1")})

    def test_work_of_an_expelled_member_counts_for_nothing_until_it_notices(self):
        late = "R 50 90 0 2 a:1\nV 95\n"
        self.fails("came again", {"one": GOOD, "two": late})
        self.judge({"one": GOOD, "two": late}, expelled=[("two", 45, 95)]).check()
        self.fails("came again", {"one": GOOD, "two": "V 49\n" + late}, expelled=[("two", 45, 49)])
        # What it did before it stood still, and what others do, counts.
        self.fails("came again", {"one": GOOD, "two": late}, expelled=[("two", 90, 95)])
        self.fails("came again", {"one": GOOD, "two": late}, expelled=[("one", 45, 95)])
        self.judge({"one": GOOD}, expelled=[("one", 45, 95)]).check()
        # What was in work when it stopped or went on does not.
        self.judge({"one": GOOD, "two": late}, expelled=[("two", 60, 70)]).check()


if __name__ == "__main__":
    unittest.main()
