"""Tests of .ci/again: which failed tests are run again, and what they come to."""

import os
import stat
import subprocess
import tempfile
import unittest

AGAIN = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.ci/again"))
# In place of cargo: notes its arguments, and ends as the file `code` says, in each run the next line of it.
CARGO = """#!/bin/sh
echo "$@" >>runs
code=$(sed -n "$(wc -l <runs)p" code)
[ "$code" = skipped ] && echo "a	b	c" >>"$PUBMARK_SKIPS" && code=0
[ "$code" = 0 ] && echo "test result: ok. 1 passed; 0 failed;"
exit "$code"
"""
TIME = "thread 'slow' panicked at crates/cli/tests/e2e/run.rs:7:5:\nassertion failed: took < limit"
LOST = "thread 'slow' panicked at crates/cli/tests/e2e/run.rs:7:5:\nCOUNT: lost == 0\n  left: 1\n right: 0"


def program(name, failed, targets=True):
    """What cargo prints of a program whose tests failed as given: name and words of each."""
    lines = [f"     Running {name} (target/debug/deps/{name.replace('/', '_')}-1)", "running 9 tests", "test fine ... ok"]
    lines += [f"test {test} ... FAILED" for test in failed] + ["", "failures:", ""]
    for test, words in failed.items():
        lines += [f"---- {test} stdout ----", "", words, "note: run with `RUST_BACKTRACE=1`", ""]
    lines += ["failures:", *(f"    {test}" for test in failed), ""]
    lines += [f"test result: FAILED. 1 passed; {len(failed)} failed; 0 ignored"]
    lines += [f"error: test failed, to rerun pass `-p a --test {name}`"]
    return "\n".join(lines) + "\n" + (f"error: 1 target failed:\n    `-p a --test {name}`\n" if targets else "")


class Again(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def read(self, name):
        if not os.path.exists(self.path(name)):
            return ""
        with open(self.path(name)) as file:
            return file.read()

    def again(self, log, codes="0\n" * 9):
        """Ends with, prints; the runs alone are in the file `runs`."""
        self.write("log", log)
        self.write("code", codes)
        self.write("cargo", CARGO)
        os.chmod(self.path("cargo"), os.stat(self.path("cargo")).st_mode | stat.S_IXUSR)
        environment = {**os.environ, "CARGO": self.path("cargo")}
        done = subprocess.run([AGAIN, "log", "unsteady"], cwd=self.folder.name, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_a_test_of_the_clock_is_run_again_and_named_as_unsteady(self):
        code, printed = self.again(program("tests/e2e/main.rs", {"run::slow": TIME}))
        self.assertEqual(code, 0, printed)
        self.assertEqual(self.read("runs"), "test --workspace --test e2e -- --exact run::slow\n" * 3)
        self.assertIn("UNSTEADY: run::slow", self.read("unsteady"))
        self.assertIn("not known to have been before", self.read("unsteady"))

    def test_the_next_time_its_history_is_shown(self):
        log = program("tests/e2e/main.rs", {"run::slow": TIME})
        self.again(log)
        self.write("runs", "")
        self.again(log)
        self.assertIn("it was 1 times before\n", self.read("unsteady"))
        self.assertIn("\n  before: ", self.read("unsteady"))

    def test_the_reason_of_the_failure_is_in_the_last_lines(self):
        self.again(program("tests/e2e/main.rs", {"run::slow": TIME}))
        self.assertIn("run.rs:7:5:\n  assertion failed: took < limit\n", self.read("unsteady"))

    def test_a_count_stands_in_whichever_file_it_failed(self):
        code, printed = self.again(program("tests/e2e/main.rs", {"run::slow": LOST}))
        self.assertEqual((code, self.read("runs")), (1, ""), printed)
        self.assertIn("counts are never repeated (COUNT: lost == 0)", printed)

    def test_a_count_stands_behind_another_panic_of_the_same_test(self):
        code, printed = self.again(program("tests/e2e/main.rs", {"run::slow": f"{TIME}\n{LOST}\nlast words"}))
        self.assertEqual((code, self.read("runs")), (1, ""), printed)

    def test_a_count_of_one_test_holds_up_the_other(self):
        code, printed = self.again(program("tests/e2e/main.rs", {"run::slow": TIME, "run::lost": LOST}))
        self.assertEqual((code, self.read("runs")), (1, ""), printed)
        self.assertNotIn("run::slow has failed and is not", printed)

    def test_what_fails_alone_has_failed(self):
        code, printed = self.again(program("tests/e2e/main.rs", {"run::slow": TIME}), "0\n0\n101\n")
        self.assertEqual(code, 1, printed)
        self.assertEqual(self.read("unsteady"), "")

    def test_what_is_skipped_alone_has_not_passed(self):
        code, printed = self.again(program("tests/e2e/main.rs", {"run::slow": TIME}), "0\nskipped\n0\n")
        self.assertEqual(code, 1, printed)

    def test_two_may_be_unsteady_and_three_may_not(self):
        tests = {"a": TIME, "b": TIME}
        self.assertEqual(self.again(program("tests/e2e/main.rs", tests))[0], 0)
        code, printed = self.again(program("tests/e2e/main.rs", {**tests, "c": TIME}))
        self.assertEqual(code, 1, printed)
        self.assertIn("more than 2", printed)

    def test_unit_tests_and_those_that_wait_for_no_clock_stand(self):
        for source in ["unittests src/lib.rs", "tests/layering.rs", "tests/check/main.rs", "tests/hostile/main.rs"]:
            code, printed = self.again(program(source, {"slow": TIME}))
            self.assertEqual((code, self.read("runs")), (1, ""), printed)

    def test_a_program_that_names_no_test_is_not_overlooked_beside_one_that_does(self):
        silent = "     Running tests/unprivileged.rs (target/debug/deps/unprivileged-1)\nthread 'main' panicked at a.rs:1:1:\n"
        targets = "error: 2 targets failed:\n    `-p a --test e2e`\n    `-p b --test unprivileged`\n"
        code, printed = self.again(program("tests/e2e/main.rs", {"run::slow": TIME}, targets=False) + silent + targets)
        self.assertEqual((code, self.read("runs")), (1, ""), printed)

    def test_a_signal_a_compiler_and_an_empty_log_are_no_failed_tests(self):
        one = program("tests/e2e/main.rs", {"run::slow": TIME})
        for log in ["", one + "process didn't exit successfully (signal: 9, SIGKILL)\n", one + "error[E0308]: mismatched\n"]:
            code, printed = self.again(log)
            self.assertEqual((code, self.read("runs")), (1, ""), printed)


if __name__ == "__main__":
    unittest.main()
