"""The map of crates in CONTRIBUTING.md."""
import importlib.machinery
import importlib.util
import pathlib
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / ".ci" / "crate-map"


def load():
    loader = importlib.machinery.SourceFileLoader("crate_map", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("crate_map", loader))
    loader.exec_module(module)
    return module


class CrateMap(unittest.TestCase):
    def test_the_first_sentence_may_take_two_lines_and_loses_its_links(self):
        source = "//! From a record to [`Page`] or\n//! [`Text`](text::Text). Everything else.\n//!\n//! More.\nmod a;\n"
        self.assertEqual(load().first_sentence(source), "From a record to `Page` or `Text`.")

    def test_a_crate_without_a_comment_is_an_error(self):
        with self.assertRaises(SystemExit):
            load().first_sentence("mod a;\n")

    def test_every_crate_has_a_row_a_binary_too(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, source in (("engine", "lib.rs"), ("cli", "main.rs")):
                sources = root / "crates" / name / "src"
                sources.mkdir(parents=True)
                (sources.parent / "Cargo.toml").touch()
                (sources / source).write_text(f"//! The {name}.\n")
            self.assertEqual(
                load().table(root),
                "| crate | what it is |\n|---|---|\n| `cli` | The cli. |\n| `engine` | The engine. |\n",
            )

    def test_a_page_without_marks_is_refused_and_one_with_marks_keeps_the_rest(self):
        module = load()
        with self.assertRaises(SystemExit):
            module.inserted("# Contributing\n", "rows\n")
        page = f"before\n{module.BEGIN}old\n{module.END}\nafter\n"
        self.assertEqual(module.inserted(page, "new\n"), f"before\n{module.BEGIN}new\n{module.END}\nafter\n")


if __name__ == "__main__":
    unittest.main()
