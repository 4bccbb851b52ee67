"""Tests of .ci/mutations: each break is of a text that is still there, once, and changes it."""

import importlib.machinery
import importlib.util
import os
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))


def load():
    """The program as a module: its name has no ending."""
    loader = importlib.machinery.SourceFileLoader("mutations", os.path.join(ROOT, ".ci/mutations"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutations", loader))
    loader.exec_module(module)
    return module


class Mutations(unittest.TestCase):
    mutations = load()

    def test_each_text_is_found_once_in_its_file(self):
        wrong = []
        for number, (crate, name, text, replacement) in enumerate(self.mutations.MUTATIONS, 1):
            with open(os.path.join(ROOT, f"crates/{crate}/src/{name}"), encoding="utf-8") as file:
                product = self.mutations.product(file.read())
            if (count := product.count(text)) != 1:
                wrong.append(f"#{number} {crate}/{name}: {count} times {text}")
            self.assertNotEqual(text, replacement, number)
        self.assertGreater(len(self.mutations.MUTATIONS), 60)
        self.assertEqual(wrong, [])

    def test_no_break_is_listed_twice(self):
        self.assertEqual(len(set(self.mutations.MUTATIONS)), len(self.mutations.MUTATIONS))

    def test_words_choose_by_number_crate_file_and_text(self):
        def names(*words):
            return {f"{one[0]}/{one[1]}" for _, one in self.mutations.chosen(words)}
        self.assertEqual(names("threshold"), {"record/threshold/mod.rs"})
        self.assertEqual(names("bounds.rs", "pacing.rs"), {"metrics/bounds.rs", "engine/pacing.rs"})
        self.assertEqual([number for number, _ in self.mutations.chosen(["#3 "])], [3])
        self.assertEqual(len(list(self.mutations.chosen([]))), len(self.mutations.MUTATIONS))


if __name__ == "__main__":
    unittest.main()
