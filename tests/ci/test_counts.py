"""Counts are asserted by `assert_count!` and `assert_count_eq!` (STYLE.md, 22): a plain assertion of one would be run a second time."""

import glob
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
# Never run again whatever they say: .ci/run-tests has them in no log that .ci/again reads.
NOT_REPEATED = ("/tests/truth/", "/tests/bars/", "/tests/fuzz/")
PLAIN = re.compile(r"(?<![\w!])(?:debug_)?assert(?:_eq|_ne)?!\s*[(\[{]")
# A count by its name in the record (`["lost"]`, `count("lost")`) or as a field of a structure.
NAMES = ("offered|sent|skipped_planned|skipped_disconnected|refused|unsent|expected|delivered|delivered_after_refusal|lost|unknown|"
         "duplicated|out_of_order|overlap|absent|foreign|corrupt|truncated|silent|unreached")
COUNT = re.compile(rf'"(?:{NAMES})"|\.(?:{NAMES})\b(?!\()')
# A bound that the clock moves is no count (`> 100`, `(30..50).contains(&…)`); nor are words, or that a node was lost at all.
OTHERWISE = re.compile(r'[<>]|!=|assert_ne!|\.contains\(|\.is_null\(|\.is_string\(')


def arguments(text, at):
    """The arguments of a macro's call that begins before `at`, as text; brackets and words in quotes are skipped over."""
    depth, found, begun = 1, [], at
    while depth:
        letter = text[at]
        if letter == '"':
            at += 1
            while text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif letter == "'" and (quoted := re.match(r"'(?:\\.|[^\\'])'", text[at:])):
            at += quoted.end() - 1
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 1:
            found.append(text[begun:at])
            begun = at + 1
        at += 1
    return found + [text[begun:at - 1]]


def plain_counts(text):
    """Line and condition of each plain assertion of an exact count."""
    without_comments = re.sub(r"(?m)^[ \t]*//.*$", "", text)
    for call in PLAIN.finditer(without_comments):
        two = "_eq" in call.group() or "_ne" in call.group()
        condition = ",".join(arguments(without_comments, call.end())[:2 if two else 1])
        if COUNT.search(condition) and not OTHERWISE.search(call.group() + condition):
            yield without_comments.count("\n", 0, call.start()) + 1, " ".join(condition.split())


class Counts(unittest.TestCase):
    def test_no_plain_assertion_of_a_count(self):
        files = [file for file in glob.glob(os.path.join(ROOT, "crates/*/tests/**/*.rs"), recursive=True)
                 if not any(part in file for part in NOT_REPEATED)]
        self.assertGreater(len(files), 200)
        found = []
        for file in files:
            with open(file, encoding="utf-8") as text:
                found += [f"{os.path.relpath(file, ROOT)}:{line}: {words}" for line, words in plain_counts(text.read())]
        self.assertEqual("\n".join(found), "", "use assert_count! or assert_count_eq! of pubmark_testing")

    def test_what_is_found(self):
        for text, is_found in [
            ('assert_eq!(count(&record, "lost"), 0, "{record}");', True),
            ('assert_eq!(\n    record["delivery"]["sent"],\n    12\n);', True),
            ('assert!(run.books.delivered == 7);', True),
            ('assert_count_eq!(count(&record, "lost"), 0);', False),
            ('assert_eq!(code, 0, "lost: {}", record["lost"]);', False),
            ('assert!(count(&record, "sent") > 100);', False),
            ('// assert_eq!(record["lost"], 0);', False),
        ]:
            self.assertEqual(bool(list(plain_counts(text))), is_found, text)


if __name__ == "__main__":
    unittest.main()
