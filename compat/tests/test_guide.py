"""How docs/first-split.md is read, and what its programs print is judged. Run: python3 -m unittest discover compat/tests"""

import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from runner import guide

WRITTEN = {"customer-0": [2, 4], "customer-1": [1, 3, 5]}
RIGHT = "one customer-1 order 1\none customer-0 order 2\ntwo customer-1 order 3\ntwo customer-0 order 4\none customer-1 order 5\n"


def faults(text):
    return guide.Work(text).faults(WRITTEN)


class ReadingThePage(unittest.TestCase):
    def test_every_language_has_a_program_and_commands(self):
        chapters, _ = guide.page()
        self.assertEqual(sorted(chapters), ["go", "java", "node", "python", "rust"])
        for chapter in chapters.values():
            self.assertTrue(chapter.files(), chapter.folder)

    def test_shell_blocks_have_the_title_above_them_and_no_comments(self):
        text = "# A\n```sh\none  # why\n\ntwo\n```\n```text\n# three\n```\n## B\n```sh\nfour\n```\n"
        self.assertEqual(guide.blocks(text), [("A", ["one", "two"]), ("B", ["four"])])

    def test_a_chapter_goes_to_a_folder_first_and_starts_one_at_its_end(self):
        with self.assertRaises(ValueError):
            guide.Chapter("Cobol", ["cd docs/guide/cobol", "./billing"])


class JudgingTheWork(unittest.TestCase):
    def test_each_order_once_and_in_order_is_right(self):
        self.assertEqual(faults(RIGHT), [])

    def test_orders_that_come_again_are_no_fault(self):
        self.assertEqual(faults(RIGHT.replace("two customer-1 order 3\n", "two customer-1 order 3\none customer-1 order 1\n")), [])

    def test_a_lost_order_is_noticed(self):
        self.assertIn("1 orders of customer-0", faults(RIGHT.replace("one customer-0 order 2\n", ""))[0])

    def test_an_order_that_overtakes_another_of_its_key_is_noticed(self):
        swapped = RIGHT.replace("order 1\n", "order 9\n").replace("order 3\n", "order 1\n").replace("order 9\n", "order 3\n")
        self.assertIn("order 3 of customer-1 was worked on where order 1", faults(swapped)[0])

    def test_a_key_and_a_line_that_nobody_wrote_are_noticed(self):
        self.assertEqual(len(faults(RIGHT + "two customer-7 order 8\nTraceback\n")), 2)

    def test_a_line_that_is_being_written_is_none_yet(self):
        self.assertEqual(faults(RIGHT + "two customer-1 or"), [])


if __name__ == "__main__":
    unittest.main()
