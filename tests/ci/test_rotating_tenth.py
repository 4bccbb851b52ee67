"""Tests of .ci/rotating-tenth: all that `make test-all` adds is in a tenth."""

import importlib.machinery
import importlib.util
import os
import re
import subprocess
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
# Not of `make test-all`.
LEFT_OUT = {"killed::a_holder_of_links"}


def load():
    """The program as a module: its name has no ending."""
    loader = importlib.machinery.SourceFileLoader("rotating_tenth", os.path.join(ROOT, ".ci/rotating-tenth"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("rotating_tenth", loader))
    loader.exec_module(module)
    return module


def ignored_tests():
    """Target and name of every test that `make test` leaves out."""
    files = subprocess.run(["git", "ls-files", "crates/*/tests/*.rs"], cwd=ROOT, capture_output=True, text=True, check=True)
    for file in files.stdout.split():
        parts = file.split("/tests/")[1].removesuffix(".rs").removesuffix("/main").split("/")
        with open(os.path.join(ROOT, file), encoding="utf-8") as text:
            for name in re.findall(r"#\[ignore[^\]]*\](?:\s*#\[[^\]]*\])*\s*fn (\w+)", text.read()):
                yield parts[0], "::".join([*parts[1:], name])


class Tenths(unittest.TestCase):
    tenth = load()

    def test_there_are_ten_and_each_says_what_it_has(self):
        self.assertEqual(len(self.tenth.TENTHS), 10)
        self.assertEqual(len({one.title for one in self.tenth.TENTHS}), 10)

    def test_every_test_that_is_left_out_elsewhere_is_in_one(self):
        steps = [step for one in self.tenth.TENTHS for step in one.steps if isinstance(step, self.tenth.Tests) and step.ignored]
        missing, used, found = [], set(), 0
        for target, name in ignored_tests():
            if f"{target}::{name}" in LEFT_OUT:
                continue
            found += 1
            runs = [step for step in steps
                    if step.target == target and (not step.names or any(part in name for part in step.names))]
            used |= {id(step) for step in runs}
            if not runs:
                missing.append(f"{target}: {name}")
        self.assertGreater(found, 30)
        self.assertEqual(missing, [])
        self.assertEqual([step.target for step in steps if id(step) not in used], [], "they run nothing")

    def test_every_step_of_make_test_all_is_in_one_or_left_out_with_a_reason(self):
        with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as makefile:
            recipe = re.search(r"^test-all:.*\n((?:\t.*\n)+)", makefile.read(), re.MULTILINE).group(1)
        commands = [line.strip() for line in recipe.splitlines() if "echo" not in line and "install-" not in line]
        left_out = {part: [line for line in commands if part in line] for part in self.tenth.LEFT_OUT}
        self.assertNotIn([], left_out.values(), "what is left out is no longer there")
        targets = {step.target for one in self.tenth.TENTHS for step in one.steps if isinstance(step, self.tenth.Tests)}
        others = " ".join(word for one in self.tenth.TENTHS for step in one.steps for word in step.command())
        steps = 0
        for line in commands:
            if any(part in line for part in self.tenth.LEFT_OUT):
                continue
            steps += 1
            made = re.search(r"\$\(MAKE\) (\S+)|(\.ci/\S+)", line)
            if made:
                self.assertIn(made.group(1) or made.group(2), others, line)
            else:
                self.assertLessEqual(set(re.findall(r"--test (\S+)", line)), targets, line)
        self.assertGreater(steps, 5)

    def test_every_system_of_make_test_all_is_installed_in_one(self):
        with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as makefile:
            text = makefile.read()
        systems = re.search(r"^SLOW_SYSTEMS := (.*)$", text, re.MULTILINE).group(1).split()
        packages = re.search(r"^SLOW_PACKAGES := (.*)$", text, re.MULTILINE).group(1).split()
        self.assertLessEqual(set(systems), {name for one in self.tenth.TENTHS for name in one.systems})
        self.assertLessEqual(set(packages), {name for one in self.tenth.TENTHS for name in one.packages})


if __name__ == "__main__":
    unittest.main()
