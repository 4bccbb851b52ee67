#!/usr/bin/env python3
"""Tests of compare.py: it finds the right figures, and no line of a journal can be left out, doubled or changed unnoticed,
even by somebody who numbers the lines again and repairs checksums and totals."""

import json
import os
import struct
import tempfile
import unittest
import zlib

import compare

RUN, START_NS, END_NS = 7, 1_000_000_000, 2_000_000_000


def head(publisher, sequence, due_ns=1_500_000_000, run=RUN):
    header = b"\xc1" + run.to_bytes(3, "little") + struct.pack("<IIQI", publisher, sequence, due_ns, 0)
    return header.ljust(compare.HEAD_BYTES, b"\0").hex()


def write(path, events, totals=None, numbers=None):
    """Writes events, each a time and its fields as text, as a journal whose form is right."""
    counts = dict.fromkeys(compare.EVENTS, 0)
    for _, text in events:
        counts[text.split()[0]] += 1
    last_ns = max((time_ns for time_ns, _ in events), default=0)
    for _, text in events:
        if text.startswith("stalled"):
            last_ns += int(text.split()[1])
    lines = events + [(last_ns, "end " + " ".join(str(counts[name]) for name in compare.EVENTS))]
    checksum = 1
    with open(path, "wb") as file:
        for number, (time_ns, text) in enumerate(lines, 1):
            body = f"{number} {time_ns} {text}".encode()
            checksum = zlib.adler32(body, checksum)
            rest = b" %08x\n" % checksum
            checksum = zlib.adler32(rest, checksum)
            file.write(body + rest)


def run_of_every_event():
    """A run in which every event occurs, and every line has something that depends on it. Times are filled in afterwards."""
    lines = [
        "open sub 5 0 0 0",
        "open keep 5 1 0 0",
        "open pub 5 0 0 0",
        "subscribed sub a/+ 1 1 1",
        "subscribed keep a/# 2 0 1",
        "subscribed sub b 1 1 1",
        "unsubscribed sub b",
        f"received pub a/x 1 1 0 100 {head(1, 1)}",                       # 8
        f"forwarded sub 8 a/x 1 1 0 0 first {head(1, 1)}",
        f"forwarded keep 8 a/x - 0 0 0 first {head(1, 1)}",
        "acked pub 8 1 0",
        f"received pub a/x 2 2 0 100 {head(1, 2)}",                       # 12
        "dropped sub 12 lie",
        f"forwarded keep 12 a/x - 0 0 0 first {head(1, 2)}",
        "acked pub 12 2 0",
        f"repeated pub a/x 2 2 1 100 {head(1, 2)}",
        "acked pub 16 2 0",
        f"received pub a/x 3 1 0 100 {head(1, 3)}",                       # 18
        "dropped sub 18 refused",
        "dropped keep 18 refused",
        "acked pub 18 3 151",
        f"received pub a/x 4 1 0 100 {head(1, 4)}",                       # 22
        f"received pub a/x 5 1 0 100 {head(1, 5)}",                       # 23
        f"forwarded sub 23 a/x 2 1 0 0 first {head(1, 5)}",
        f"forwarded sub 22 a/x 3 1 0 0 first {head(1, 4)}",               # out of order
        f"forwarded sub 22 a/x 4 1 0 0 duplicate {head(1, 4)}",
        f"forwarded sub 22 a/x 5 1 0 0 foreign {head(1, 4, run=8)}",
        f"forwarded sub 22 a/x 6 1 1 0 retained {head(1, 4)}",
        f"forwarded keep 23 a/x - 0 0 0 first {head(1, 5)}",
        f"forwarded keep 22 a/x - 0 0 0 first {head(1, 4)}",              # 30: unwritten
        "acked pub 22 4 0",
        "acked pub 23 5 0",
        "written pub 32",
        "stalled 1000",
        "unwritten keep 30",
        "closed keep cut 1",
        f"received pub a/x 6 1 0 100 {head(1, 6)}",                       # 37
        f"forwarded sub 37 a/x 7 1 0 0 first {head(1, 6)}",
        "dropped keep 37 offline",
        "closed pub cut 0",
        f"discarded pub a/x 7 1 0 100 {head(1, 7)}",
        "open keep 5 1 1 0",
        "open other 5 0 0 135",
        "closed keep stop 1",
        "closed sub stop 1",
    ]
    time_ns, events = 1_500_000_000, []
    for text in lines:
        time_ns += 10
        events.append((time_ns, text))
        if text.startswith("stalled"):
            time_ns += 1_000
    return events


def figures(path):
    books = compare.Books(path, RUN, (START_NS, END_NS))
    return books.delivery(), dict(books.count)


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "journal")
        self.record_path = os.path.join(folder.name, "record.json")

    def figures_of(self, events):
        write(self.path, events)
        try:
            return figures(self.path)
        except (compare.Contradiction, ValueError, KeyError):
            return None

    def test_figures_of_a_run_counted_by_hand(self):
        write(self.path, run_of_every_event())
        delivery, _ = figures(self.path)
        self.assertEqual(delivery, {
            "sent": 6, "refused": 1, "delivered": 7, "lost": 2, "unknown": 3, "expected": 12, "duplicated": 1,
            "out_of_order": 1, "late": 0, "foreign": 1, "retained_replay": 1, "overlap": 0, "absent": 0,
            "delivered_after_refusal": 0, "granted_qos_lower": 1,
        })

    def test_every_event_occurs(self):
        names = {text.split()[0] for _, text in run_of_every_event()}
        self.assertEqual(names, set(compare.EVENTS))

    def test_no_line_can_be_left_out_or_doubled(self):
        events = run_of_every_event()
        right = self.figures_of(events)
        self.assertIsNotNone(right)
        for index, (_, text) in enumerate(events):
            with self.subTest(line=index + 1, text=text):
                if not text.startswith("written"):  # It bounds times and no count, and the next one says more.
                    self.assertNotEqual(self.figures_of(self.renumbered(events, index, 0)), right, "left out")
                self.assertNotEqual(self.figures_of(self.renumbered(events, index, 2)), right, "doubled")

    def renumbered(self, events, index, times):
        """The events with one of them so many times, and references to the lines behind it put right."""
        moved = events[:index] + [events[index]] * times + events[index + 1:]
        shift = times - 1
        result = []
        for time_ns, text in moved:
            fields = text.split()
            if fields[0] in ("acked", "forwarded", "dropped", "unwritten", "written") and int(fields[2]) > index + 1:
                fields[2] = str(int(fields[2]) + shift)
            result.append((time_ns, " ".join(fields)))
        return result

    def test_no_character_can_be_changed(self):
        write(self.path, run_of_every_event())
        with open(self.path, "rb") as file:
            whole = file.read()
        for place in range(len(whole)):
            with open(self.path, "wb") as file:
                file.write(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1:])
            with self.assertRaises((compare.Contradiction, ValueError), msg=f"byte {place}"):
                figures(self.path)

    def record(self, **changes):
        delivery, _ = figures(self.path)
        told = {name: value for name, value in delivery.items() if name != "granted_qos_lower"}
        told |= {"skipped_planned": 0, "skipped_disconnected": 0, "unsent": 0, "too_large": 4, "approximate": False}
        told["refused"] += 4
        told["offered"] = told["sent"] + told["refused"]
        record = {"run": {"id": RUN}, "settings": {"window_start_ns": START_NS, "window_end_ns": END_NS},
                  "connections": {"granted_qos_lower": delivery["granted_qos_lower"]}, "delivery": told}
        told |= changes
        with open(self.record_path, "w") as file:
            json.dump(record, file)
        return compare.main([self.path, self.record_path])

    def test_a_record_agrees_only_if_every_figure_does(self):
        write(self.path, run_of_every_event())
        self.assertEqual(self.record(), 0)
        delivery, _ = figures(self.path)
        for name, value in delivery.items():
            if name != "granted_qos_lower":
                with self.subTest(name=name):
                    self.assertEqual(self.record(**{name: value + 1}), 1)
        self.assertEqual(self.record(approximate=True), 1)

    def test_a_subscriber_without_session_is_absent_not_expected(self):
        events = [
            "open sub 5 0 0 0", "subscribed sub a 0 0 1", "open pub 5 0 0 0",
            f"received pub a - 0 0 100 {head(1, 1)}", f"forwarded sub 4 a - 0 0 0 first {head(1, 1)}",
            "closed sub cut 1",
            f"received pub a - 0 0 100 {head(1, 2)}",
            "open sub 5 0 0 0", "subscribed sub a 0 0 1",
            f"received pub a - 0 0 100 {head(1, 3)}", f"forwarded sub 10 a - 0 0 0 first {head(1, 3)}",
            "closed sub goodbye 1", "closed pub goodbye 0",
        ]
        delivery, _ = self.figures_of([(1_500_000_000 + index, text) for index, text in enumerate(events)])
        names = ("sent", "expected", "delivered", "lost", "absent")
        self.assertEqual([delivery[name] for name in names], [3, 2, 2, 0, 1])

    def test_overlap_late_and_messages_outside_the_window(self):
        late_ns = END_NS + 2_000_000_001
        early = head(1, 1, due_ns=START_NS - 1)
        events = [
            (1_500_000_000, "open sub 5 0 0 0"), (1_500_000_000, "subscribed sub a/# 0 0 1"),
            (1_500_000_000, "subscribed sub a/b 0 0 1"), (1_500_000_000, "open pub 5 0 0 0"),
            (1_500_000_000, f"received pub a/b - 0 0 100 {early}"),
            (1_500_000_000, f"forwarded sub 5 a/b - 0 0 0 first {early}"),
            (1_500_000_001, f"received pub a/b - 0 0 100 {head(1, 2)}"),
            (1_500_000_001, f"forwarded sub 7 a/b - 0 0 0 first {head(1, 2)}"),
            (1_500_000_001, f"forwarded sub 7 a/b - 0 0 0 overlap {head(1, 2)}"),
            (1_500_000_001, f"forwarded sub 7 a/b - 0 0 0 duplicate {head(1, 2)}"),
            (1_500_000_002, f"received pub a/b - 0 0 100 {head(1, 3)}"),
            (late_ns, f"forwarded sub 11 a/b - 0 0 0 first {head(1, 3)}"),
            (late_ns, "closed sub stop 2"), (late_ns, "closed pub stop 0"),
        ]
        delivery, _ = self.figures_of(events)
        names = ("sent", "delivered", "overlap", "duplicated", "late")
        self.assertEqual([delivery[name] for name in names], [2, 2, 1, 1, 1])

    def test_on_the_limit_of_late_either_clock_may_be_right(self):
        for ahead_ns, allowed in ((1, (0, 1)), (compare.ON_ITS_WAY_NS - 1, (0, 1)), (compare.ON_ITS_WAY_NS, (0,)), (-1, (1,))):
            at_ns = END_NS + compare.LATE_AFTER_NS - ahead_ns
            sent = head(1, 1)
            write(self.path, [
                (1_500_000_000, "open sub 5 0 0 0"), (1_500_000_000, "subscribed sub a/b 0 0 1"),
                (1_500_000_000, "open pub 5 0 0 0"), (1_500_000_000, f"received pub a/b - 0 0 100 {sent}"),
                (at_ns, f"forwarded sub 4 a/b - 0 0 0 first {sent}"),
                (at_ns, "closed sub stop 1"), (at_ns, "closed pub stop 0"),
            ])
            for late in range(3):
                with self.subTest(ahead_ns=ahead_ns, late=late):
                    self.assertEqual(self.record(late=late), 0 if late in allowed else 1)

    def test_compact_headers_are_completed_across_the_wrap_of_48_bits(self):
        span = 1 << 48
        for due_ns, now_ns in ((span - 5, span + 5), (span + 5, span - 5), (3 * span + 1, 3 * span + 1_000_000)):
            bytes_ = b"\xc2" + b"\x07\x00" + b"\x02\x00\x00" + struct.pack("<I", 9) + (due_ns % span // 256).to_bytes(5, "little") + b"\0"
            self.assertEqual(compare.header_of(bytes_.hex(), 16, now_ns), (7, 0xFFFF, 2, 9, due_ns - due_ns % 256))

    def test_a_reaction_is_placed_by_the_due_time_of_its_root(self):
        bytes_ = b"\xc4" + b"\x07\x00\x00" + struct.pack("<IIQIQ", 2, 9, 8_000, 1, 3_000)
        self.assertEqual(compare.header_of(bytes_.hex(), 100, 10_000), (7, 0xFFFFFF, 2, 9, 3_000))
        self.assertIsNone(compare.header_of(bytes_.hex(), 31, 10_000))


if __name__ == "__main__":
    unittest.main(buffer=True)
