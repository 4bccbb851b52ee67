"""Sums of the message accounting that overflow end a run in every profile (docs/explanation/faults-and-tests.md): a count that wrapped
around would be believed."""

import os
import tomllib
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
# Crates that add up counts of messages. `pubmark-metrics` has the checks in test builds only: see Cargo.toml.
SUMMING = ("pubmark-engine", "pubmark-record")
# Profiles that cargo has by itself, with what they inherit.
BUILT_IN = {"dev": None, "release": None, "test": "dev", "bench": "release"}


def checks_overflow(profiles, name, crate):
    """Whether cargo compiles a crate with checks of overflow: what is set for the crate, then for the profile, then the default."""
    chain = [name]
    while inherited := profiles.get(chain[-1], {}).get("inherits", BUILT_IN.get(chain[-1])):
        chain.append(inherited)
    tables = [profiles.get(profile, {}) for profile in chain]
    tables = [table.get("package", {}).get(crate, {}) for table in tables] + tables
    return next((table["overflow-checks"] for table in tables if "overflow-checks" in table), chain[-1] == "dev")


class Profiles(unittest.TestCase):
    def test_sums_of_messages_are_checked_in_every_profile(self):
        with open(os.path.join(ROOT, "Cargo.toml"), "rb") as file:
            profiles = tomllib.load(file)["profile"]
        without = [f"{name}: {crate}" for name in sorted({*profiles, *BUILT_IN}) for crate in SUMMING
                   if not checks_overflow(profiles, name, crate)]
        self.assertEqual(without, [], "add `overflow-checks = true` for them to Cargo.toml")

    def test_what_cargo_does(self):
        def checked(text, name):
            return checks_overflow(tomllib.loads(text).get("profile", {}), name, "one")
        of_crate = "[profile.release.package]\none = { overflow-checks = true }\n"
        for text, name, expected in [
            ("", "release", False),
            ("", "test", True),
            (of_crate, "release", True),
            (of_crate, "bench", True),
            (of_crate + "[profile.quick]\ninherits = \"release\"\n", "quick", True),
            (of_crate + "[profile.bench.package]\none = { overflow-checks = false }\n", "bench", False),
            ("[profile.dev]\noverflow-checks = false\n", "test", False),
            (of_crate.replace("one", "other"), "release", False),
        ]:
            self.assertEqual(checked(text, name), expected, (text, name))


if __name__ == "__main__":
    unittest.main()
