"""`.ci/install-pages` puts what the program writes where man and the shells look, and nothing anywhere else."""

import os
import pathlib
import stat
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / ".ci/install-pages"
# Writes a page, prints a script: what `pubmark manual DIR` and `pubmark completions SHELL` do.
PROGRAM = """#!/bin/sh
case $1 in
manual) echo page >"$2/pubmark.1" ;;
completions) echo "script of $2" ;;
esac
"""


class InstallPages(unittest.TestCase):
    def test_each_file_is_where_it_is_looked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "pubmark")
            program.write_text(PROGRAM)
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
            prefix = pathlib.Path(folder, "a prefix")
            environment = {"PATH": os.environ["PATH"], "PREFIX": str(prefix)}
            subprocess.run([SCRIPT, program], env=environment, check=True, capture_output=True)
            found = {str(path.relative_to(prefix)): path.read_text() for path in prefix.rglob("*") if path.is_file()}
        self.assertEqual(
            found,
            {
                "share/man/man1/pubmark.1": "page\n",
                "share/bash-completion/completions/pubmark": "script of bash\n",
                "share/zsh/site-functions/_pubmark": "script of zsh\n",
                "share/fish/vendor_completions.d/pubmark.fish": "script of fish\n",
            },
        )

    def test_a_program_that_fails_is_not_passed_over(self):
        with tempfile.TemporaryDirectory() as folder:
            ended = subprocess.run([SCRIPT, "/bin/false"], env={"PATH": os.environ["PATH"], "PREFIX": folder}, capture_output=True)
        self.assertNotEqual(ended.returncode, 0)


if __name__ == "__main__":
    unittest.main()
