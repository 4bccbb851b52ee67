"""docs/explanation/faults-and-tests.md names tests that there are."""

import glob
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


class Table(unittest.TestCase):
    def test_every_test_that_it_names_is_there(self):
        files = [*glob.glob(os.path.join(ROOT, "crates/*/**/*.rs"), recursive=True), *glob.glob(os.path.join(ROOT, "tests/ci/*.py"))]
        names = set()
        for file in files:
            names |= set(re.findall(r"#\[test\]\s+(?:#\[[^\]]*\]\s+)*fn (\w+)|\bdef (test_\w+)", read(file)))
        names = {name for pair in names for name in pair}
        cells = [line.rsplit(" | ", 1)[1] for line in read("docs/explanation/faults-and-tests.md").splitlines() if " | " in line]
        named = [name for cell in cells for name in re.findall(r"`([a-z]\w+)`", cell)]
        self.assertGreater(len(named), 80)
        self.assertEqual([name for name in named if name not in names], [])
        self.assertEqual([cell for cell in cells if "`" not in cell and cell.strip() not in ("tests |", "---|")], [])


if __name__ == "__main__":
    unittest.main()
