"""Counts are asserted by `assert_count!` and `assert_count_eq!` (STYLE.md, 22): a plain assertion of one would be run a second time."""

import glob
import os
import re
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
# Integration tests, and the suite that they run against every server. Unit tests are never run again.
TESTS = ("crates/*/tests/**/*.rs", "crates/conformance/src/**/*.rs")
# Never run again whatever they say: .ci/run-tests has them in no log that .ci/again reads.
NOT_REPEATED = ("/tests/truth/", "/tests/bars/", "/tests/fuzz/")
PLAIN = re.compile(r"(?<![\w!])(?:debug_)?assert(?:_eq|_ne)?!\s*[(\[{]")
# A count by its name in the record (`["lost"]`, `count("lost")`) or as a field of a structure.
NAMES = ("offered|sent|skipped_planned|skipped_disconnected|refused|unsent|expected|delivered|delivered_after_refusal|lost|unknown|"
         "duplicated|out_of_order|overlap|absent|foreign|corrupt|truncated|silent|unreached")
# What the recorder of the suite, and the statistics of our own brokers, count.
RECORDED = (r"\.(?:acknowledged|written|unanswered|sequences)\(|\brecord\.count\(|\.(?:arrived|received_requests|replies)\.(?:len|is_empty)\(|"
            r"\.(?:wills|wills_left|withheld|reauthenticated|discarded|missed|overflowed|ids_reused)\b(?!\()|"
            r"\.(?:messages_sent|messages_received|notified|dropped_\w+|expired|protocol_errors)\b(?!\()")
FIELD = rf"\.(?:{NAMES})\b(?!\()|{RECORDED}"
COUNT = re.compile(rf'"(?:{NAMES})"|{FIELD}')
# A bound that the clock moves is no count (`> 100`, `(30..50).contains(&…)`); nor are words, or that a node was lost at all.
OTHERWISE = re.compile(r'[<>]|!=|assert_ne!|\.contains\(|\.is_null\(|\.is_string\(')
FUNCTION = re.compile(r"\bfn \w+")
# Variables and closures that are counts: by what they are bound to, or because something is added to them.
BOUND = re.compile(r"\blet\s+(?:mut\s+)?(\w+|\([^()]*\))\s*(?::[^=;]+)?=\s")
BOUND_COUNT = re.compile(rf'\["(?:{NAMES})"\]|\["delivery"\]\[[a-z]|\b(?:count|number)\([^;]*(?:"(?:{NAMES})"|, name\))|{FIELD}')
BOUND_OTHERWISE = re.compile(r" [<>]=? |!=|\.as_str\(")
ADDED = re.compile(r"\b(?!\w*id\b)(\w+) \+= ")
QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')


def pieces(text, at, separator):
    """Text from `at` to the bracket that closes around it, cut at separators outside of brackets and quotes."""
    depth, begun = 1, at
    while depth and at < len(text):
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
        elif letter == separator and depth == 1:
            yield text[begun:at]
            begun = at + 1
        at += 1
    yield text[begun:at - 1]


def counters(function):
    """Names in a part of a function that are counts at its end."""
    found = {}
    for binding in BOUND.finditer(function):
        value = next(pieces(function, binding.end(), ";"))
        is_count = bool(BOUND_COUNT.search(value)) and not BOUND_OTHERWISE.search(value)
        found.update((name, is_count) for name in re.findall(r"\w+", binding.group(1)))
    found.update((name, True) for name in ADDED.findall(function))
    return {name for name, is_count in found.items() if is_count}


def plain_counts(text):
    """Line and condition of each plain assertion of an exact count."""
    without_comments = re.sub(r"(?m)^[ \t]*//.*$", "", text)
    functions = [function.start() for function in FUNCTION.finditer(without_comments)]
    for call in PLAIN.finditer(without_comments):
        two = "_eq" in call.group() or "_ne" in call.group()
        condition = ",".join(list(pieces(without_comments, call.end(), ","))[:2 if two else 1])
        if OTHERWISE.search(call.group() + condition):
            continue
        begun = max((at for at in functions if at < call.start()), default=0)
        named = re.findall(r"(?<![\w.])\w+", QUOTED.sub("", condition))
        if COUNT.search(condition) or counters(without_comments[begun:call.start()]).intersection(named):
            yield without_comments.count("\n", 0, call.start()) + 1, " ".join(condition.split())


class Counts(unittest.TestCase):
    def test_no_plain_assertion_of_a_count(self):
        files = [file for pattern in TESTS for file in glob.glob(os.path.join(ROOT, pattern), recursive=True)
                 if not any(part in file for part in NOT_REPEATED)]
        self.assertGreater(len(files), 200)
        self.assertTrue(any("conformance/src/cases" in file for file in files))
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
            ('assert_eq!(peer.record.unanswered(), 2);', True),
            ('assert_eq!(peer.record.count(|event| *event == Event::Writable(id)), 1);', True),
            ('assert_eq!(received + statistics.dropped_queued_bytes, 4_000);', True),
            ('let count = record["delivery"][name].as_u64();\nassert_eq!(count, Some(expected));', True),
            ('let of = |peer| {\n    peer.record.count(|event| true)\n};\nassert_eq!(of(&peer), COUNT);', True),
            ('let mut copies = 0;\ncopies += 1;\nassert_eq!(copies, 4);', True),
            ('fn one() {\n    let count = record.written();\n}\nfn other() {\n    assert_eq!(count, 1);\n}', False),
            ('let count = record.written();\nassert_eq!(peer.count, "count");', False),
            ('let count = record.written();\nlet count = 1;\nassert_eq!(count, 1);', False),
            ('let state = if count(&record, "lost") > 0 { "suspect" } else { "valid" };\nassert_eq!(found, state);', False),
            ('assert_count_eq!(count(&record, "lost"), 0);', False),
            ('assert_eq!(code, 0, "lost: {}", record["lost"]);', False),
            ('assert!(count(&record, "sent") > 100);', False),
            ('// assert_eq!(record["lost"], 0);', False),
        ]:
            self.assertEqual(bool(list(plain_counts(text))), is_found, text)


if __name__ == "__main__":
    unittest.main()
