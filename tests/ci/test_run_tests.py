"""Tests of .ci/run-tests: no test target and no bar is forgotten by its lanes."""

import glob
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


class Lanes(unittest.TestCase):
    script = read(".ci/run-tests")

    def test_every_bar_is_run(self):
        modules = set(re.findall(r"^mod (\w+);", read("crates/cli/tests/bars/main.rs"), re.MULTILINE)) - {"place", "leftovers"}
        every = re.search(r"^bars='(.+)'", self.script, re.MULTILINE).group(1).split()
        tenths = re.findall(r"\bbars\((\".*?)\)", read(".ci/rotating-tenth"))
        self.assertGreater(len(modules), 3)
        self.assertEqual({f"{name}::" for name in modules}, set(every))
        self.assertEqual(sorted(" ".join(tenths).replace('"', "").replace(",", "").split()), sorted(every), "each in one tenth")
        self.assertIn("-- --show-output leftovers::", self.script)

    def test_every_target_that_a_lane_names_is_there(self):
        targets = {re.split(r"[/.]", file.split("/tests/")[1])[0] for file in glob.glob(os.path.join(ROOT, "crates/*/tests/**/*.rs"), recursive=True)}
        waiting = re.search(r'^waiting_targets="(.*)"', self.script, re.MULTILINE).group(1).split()
        behind = re.search(r'^behind_truth="\$\(.*\) (.*)"', self.script, re.MULTILINE).group(1).split()
        behind_waiting = re.search(r'^behind_waiting="(.*)"', self.script, re.MULTILINE).group(1).split()
        lanes = waiting + behind_waiting + behind
        self.assertLessEqual(set(lanes), targets)
        self.assertEqual(len(set(lanes)), len(lanes), "each in one lane")
        # What is in one lane is in no other: the lane of the rest names all that it leaves out.
        self.assertIn("$(all_but truth fuzz bars $waiting_targets $behind_waiting $behind_truth)", self.script)


if __name__ == "__main__":
    unittest.main()
