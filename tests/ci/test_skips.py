"""Tests of .ci/skips: what may be skipped passes, anything else does not."""

import os
import subprocess
import tempfile
import unittest

SKIPS = os.path.join(os.path.dirname(__file__), "../../.ci/skips")
ALLOWED = "# a comment\n\ntcp::a: * has no wildcards (yet) => the protocol has none\n"


def run(skips, allowed=ALLOWED, strict=True, systems=()):
    """Ends with, and prints."""
    with tempfile.TemporaryDirectory() as folder:
        log, listed = os.path.join(folder, "skips"), os.path.join(folder, "allowed")
        for file, text in ((log, skips), (listed, allowed)):
            if text is not None:
                with open(file, "w") as written:
                    written.write(text)
        environment = {**os.environ, "PUBMARK_NO_SKIP": "1" if strict else ""}
        done = subprocess.run([SKIPS, log, listed, *systems], env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


class Skips(unittest.TestCase):
    def test_none(self):
        code, printed = run(None)
        self.assertEqual(code, 0, printed)
        self.assertIn("skips: 0 tests", printed)

    def test_an_allowed_skip_is_counted_with_its_reason(self):
        code, printed = run("tcp::a\tNATS has no wildcards (yet)\tx.rs:1\ntcp::a\tAMQP has no wildcards (yet)\tx.rs:1\n")
        self.assertEqual(code, 0, printed)
        self.assertIn("   2  allowed: the protocol has none", printed)

    def test_the_same_skip_in_a_second_run_counts_once(self):
        self.assertIn("skips: 1 tests", run("tcp::a\tno rights\tx.rs:1\n" * 2)[1])

    def test_any_other_skip_fails_where_none_may_be(self):
        for line in ["tcp::b\tNATS has no wildcards (yet)\tx.rs:1\n", "tcp::a\tNATS has no wildcards (yet) today\tx.rs:1\n"]:
            code, printed = run(line)
            self.assertEqual(code, 1, printed)
            self.assertIn("(x.rs:1)", printed)
            self.assertEqual(run(line, strict=False)[0], 0)

    def test_what_was_installed_may_not_be_missing_whatever_is_allowed(self):
        log, allowed = "a\tvalkey is not installed\tx.rs:1\n", "a: * is not installed => slow\n"
        self.assertEqual(run(log, allowed, systems=["nats"])[0], 0)
        self.assertEqual(run(log, allowed, systems=["nats", "valkey"], strict=False)[0], 1)

    def test_a_line_of_the_list_without_a_reason_fails(self):
        code, printed = run("", allowed="tcp::a: no wildcards\n")
        self.assertNotEqual(code, 0)
        self.assertIn("line 1", printed)


if __name__ == "__main__":
    unittest.main()
