"""Tests of .ci/licences: what deny.toml allows passes, another licence and a NOTICE that drifted do not."""

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
SCRIPT = os.path.join(ROOT, ".ci/licences")


def script():
    loader = importlib.machinery.SourceFileLoader("licences", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("licences", loader))
    loader.exec_module(module)
    return module


class Expressions(unittest.TestCase):
    def test_what_is_taken(self):
        allowed = {"MIT", "Apache-2.0", "BSD-3-Clause", "Apache-2.0 WITH LLVM-exception"}
        for expression, expected in [
            ("MIT", ["MIT"]),
            ("GPL-3.0", None),
            ("GPL-3.0 OR MIT", ["MIT"]),
            ("MIT/Apache-2.0", ["MIT"]),
            ("Apache-2.0 / GPL-3.0", ["Apache-2.0"]),
            ("MIT AND GPL-3.0", None),
            ("(MIT OR GPL-3.0) AND BSD-3-Clause", ["MIT", "BSD-3-Clause"]),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", ["Apache-2.0 WITH LLVM-exception"]),
            ("MIT WITH other-exception", None),
        ]:
            self.assertEqual(script().taken(expression, allowed), expected, expression)


class Files(unittest.TestCase):
    def check(self, deny=lambda text: text, notice=lambda text: text):
        """Checks the repository's packages by its files with a change."""
        with tempfile.TemporaryDirectory() as folder:
            for name, change in (("deny.toml", deny), ("NOTICE", notice)):
                with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                    text = change(file.read())
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            os.mkdir(os.path.join(folder, ".ci"))
            shutil.copy(SCRIPT, os.path.join(folder, ".ci"))
            words = [os.path.join(folder, ".ci/licences"), "check", "--manifest-path", os.path.join(ROOT, "Cargo.toml")]
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

    def test_the_repository(self):
        code, printed = self.check()
        self.assertEqual(code, 0, printed)

    def test_a_licence_that_is_not_allowed(self):
        code, printed = self.check(deny=lambda text: text.replace('  "ISC",\n', ""))
        self.assertNotEqual(code, 0)
        self.assertIn("ISC", printed)
        self.assertIn("is not allowed", printed)

    def test_an_exception_is_for_one_crate(self):
        code, printed = self.check(deny=lambda text: text.replace('crate = "option-ext"', 'crate = "another"'))
        self.assertNotEqual(code, 0)
        self.assertIn("option-ext", printed)

    def test_a_library_that_is_banned_is_named_with_who_uses_it(self):
        for change, words in [
            (lambda text: text.replace('["zenoh-config"]', '["another"]'), "serde_yaml is used by zenoh-config"),
            (lambda text: text.replace('["zenoh-config"]', '["zenoh-config", "another"]'), "another does not use serde_yaml"),
            (lambda text: text.replace('crate = "native-tls"', 'crate = "rustls"'), "rustls is used by"),
        ]:
            code, printed = self.check(deny=change)
            self.assertNotEqual(code, 0)
            self.assertIn(words, printed)

    def test_any_version_is_none(self):
        found = {"packages": [{"id": "a", "name": "a", "source": None, "dependencies": [
            {"name": "b", "req": "*"}, {"name": "c", "req": "^1"}, {"name": "d", "req": "*", "path": "../d"}]}],
            "resolve": {"nodes": []}}
        self.assertEqual(script().banned(found, {"deny": [], "wildcards": "deny"}), ["a takes any version of b"])

    def test_several_versions_are_listed(self):
        packages = [{"name": name, "version": version} for name, version in (("a", "2.0"), ("b", "1.0"), ("a", "1.0"))]
        self.assertEqual(script().duplicates(packages), ["a 1.0 2.0"])

    def test_a_notice_that_drifted(self):
        code, printed = self.check(notice=lambda text: text.replace("\nzenoh ", "\nzenox "))
        self.assertNotEqual(code, 0)
        self.assertIn("NOTICE is not what is linked", printed)


if __name__ == "__main__":
    unittest.main()
