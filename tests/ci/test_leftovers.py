"""Tests of .ci/leftovers: files and processes that tests leave are named, and the folder goes."""

import os
import subprocess
import tempfile
import time
import unittest

LEFTOVERS = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.ci/leftovers"))


class Leftovers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pubmark-leftovers-")
        self.addCleanup(lambda: os.path.exists(self.folder) and os.rmdir(self.folder))

    def leftovers(self):
        """Ends with, and prints; called as from a script whose own environment names the folder."""
        done = subprocess.run([LEFTOVERS, self.folder], env={**os.environ, "TMPDIR": self.folder, "PUBMARK_GONE_WITHIN_S": "0.3"},
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_nothing_was_left(self):
        code, printed = self.leftovers()
        self.assertEqual(code, 0, printed)
        self.assertFalse(os.path.exists(self.folder))

    def test_a_file_is_named_and_removed(self):
        os.mkdir(os.path.join(self.folder, "forgotten"))
        code, printed = self.leftovers()
        self.assertEqual(code, 1, printed)
        self.assertIn(f"file {self.folder}/forgotten", printed)
        self.assertFalse(os.path.exists(self.folder))

    def test_a_process_is_named_by_its_environment_or_working_directory(self):
        for options in ({"env": {"PATH": os.environ["PATH"], "TMPDIR": f"{self.folder}/deeper"}}, {"cwd": self.folder}):
            os.makedirs(self.folder, exist_ok=True)
            with subprocess.Popen(["sleep", "60"], **options) as process:
                code, printed = self.leftovers()
                process.kill()
            self.assertEqual(code, 1, printed)
            self.assertIn(f"process {process.pid}: sleep 60", printed)

    def test_a_monitor_is_named_once_its_container_is_removed(self):
        with tempfile.TemporaryDirectory() as bundle:
            for name, place, is_left in [("pubmark-1-a", bundle, False), ("another", f"{bundle}/gone", False),
                                         ("pubmark-1-a", f"{bundle}/gone", True)]:
                os.makedirs(self.folder, exist_ok=True)
                # A shell that waits, with the arguments of a monitor.
                words = ["/usr/bin/conmon", "-c", "read end", "-b", place, "-n", name]
                with subprocess.Popen(words, executable="/bin/sh", stdin=subprocess.PIPE, cwd="/", env={}) as monitor:
                    code, printed = self.leftovers()
                    monitor.kill()
                self.assertEqual(code, int(is_left), printed)
                self.assertEqual(f"process {monitor.pid}: /usr/bin/conmon" in printed, is_left, printed)

    def test_a_monitor_of_an_earlier_run_is_not_of_this_one(self):
        words = ["/usr/bin/conmon", "-c", "read end", "-b", "/nowhere/gone", "-n", "pubmark-1-a"]
        with subprocess.Popen(words, executable="/bin/sh", stdin=subprocess.PIPE, cwd="/", env={}) as monitor:
            time.sleep(0.2)
            os.rmdir(self.folder)
            os.mkdir(self.folder)
            code, printed = self.leftovers()
            monitor.kill()
        self.assertEqual(code, 0, printed)


if __name__ == "__main__":
    unittest.main()
