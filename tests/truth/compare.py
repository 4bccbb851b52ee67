#!/usr/bin/env python3
"""Compares the lying broker's journal with the record of a run.

    compare.py JOURNAL RECORD     compare; exit 0 if they agree, 1 if they differ or the journal contradicts itself
    compare.py --print JOURNAL RUN_ID START_NS END_NS
                                  print what a record would have to say, as JSON

Works out from raw events alone what the books must be, independently of every line of Rust: payload headers are decoded
here (crates/protocol/src/header.rs describes them), journal lines as crates/broker/src/liar/journal.rs describes them, and
the books as docs/explanation/message-accounting.md defines them. Python 3 standard library only.
"""

import json
import sys
import zlib
from collections import defaultdict
from urllib.parse import unquote_to_bytes

EVENTS = ["open", "subscribed", "unsubscribed", "received", "repeated", "discarded", "acked", "forwarded", "dropped",
          "unwritten", "written", "stalled", "closed"]
FIELDS = {"open": 5, "subscribed": 5, "unsubscribed": 2, "received": 7, "repeated": 7, "discarded": 7, "acked": 4,
          "forwarded": 9, "dropped": 3, "unwritten": 2, "written": 2, "stalled": 1, "closed": 3, "end": len(EVENTS)}
LATE_AFTER_NS = 2_000_000_000
# The broker's clock is read before the message is on its way, the reader's when it has come: whatever goes out so shortly before
# the limit may be late for the one and not for the other.
ON_ITS_WAY_NS = 100_000_000
HEAD_BYTES = 32
FIRST_FAILURE = 0x80


class Contradiction(Exception):
    """The journal cannot be true."""


def demand(condition, number, text):
    if not condition:
        raise Contradiction(f"line {number}: {text}")


def text_of(field):
    return "" if field == "%" else unquote_to_bytes(field).decode()


def lines_of(path, check=True):
    """Yields (number, time_ns, event, fields) after checking numbers, times, checksums and the totals at the end."""
    checksum, expected, before_ns, counts, ended = 1, 1, 0, dict.fromkeys(EVENTS, 0), False
    stalled_until_ns = 0
    with open(path, "rb") as journal:
        for raw in journal:
            demand(raw.endswith(b"\n") and not ended, expected, "the journal does not end with its `end` line")
            body, _, written = raw[:-1].rpartition(b" ")
            if check:
                checksum = zlib.adler32(body, checksum)
                demand(written == b"%08x" % checksum, expected, "the checksum is wrong")
                checksum = zlib.adler32(raw[len(body):], checksum)
            number, time_ns, event, *fields = body.decode().split(" ")
            demand(number == str(expected), expected, f"is numbered {number}")
            time_ns = int(time_ns)
            demand(time_ns >= before_ns, expected, "goes back in time")
            demand(time_ns >= stalled_until_ns, expected, "something happened while the broker stood still")
            demand(len(fields) == FIELDS.get(event, -1), expected, f"`{event}` with {len(fields)} fields")
            if event == "end":
                ended = True
                demand(fields == [str(counts[name]) for name in EVENTS], expected, "the totals are wrong")
            else:
                counts[event] += 1
            if event == "stalled":
                stalled_until_ns = time_ns + int(fields[0])
            yield expected, time_ns, event, fields
            before_ns = time_ns
            expected += 1
    demand(ended, expected, "the journal has no end")


def header_of(head, payload_bytes, now_ns):
    """(run, mask of the run's bits, publisher, sequence, due_ns of its chain's root) of a payload's first bytes, or None."""
    payload = b"" if head == "-" else bytes.fromhex(head)
    number = lambda first, end: int.from_bytes(payload[first:end], "little")

    def time(low, bits):
        span = 1 << bits
        near_ns = (now_ns & -span) | low
        return near_ns + span * ((near_ns + span // 2 < now_ns) - (near_ns > now_ns + span // 2))

    if payload[:1] == b"\xc1" and payload_bytes >= 24:
        return number(1, 4), 0xFFFFFF, number(4, 8), number(8, 12), time(number(12, 19), 56)
    if payload[:1] == b"\xc4" and payload_bytes >= 32:
        return number(1, 4), 0xFFFFFF, number(4, 8), number(8, 12), time(number(24, 31), 56)
    if payload[:1] == b"\xc2" and 16 <= payload_bytes < 24:
        return number(1, 3), 0xFFFF, number(3, 6), number(6, 10), time(number(10, 15) * 256, 48)
    return None


def matches(topic_filter, topic):
    if topic.startswith("$") and not topic_filter.startswith("$"):
        return False
    wanted, levels = topic_filter.split("/"), topic.split("/")
    for index, level in enumerate(wanted):
        if level == "#":
            return True
        if index >= len(levels) or level not in ("+", levels[index]):
            return False
    return len(wanted) == len(levels)


class Session:
    def __init__(self, persistent):
        self.persistent = persistent
        self.online = True
        self.version = None
        self.filters = {}


class Message:
    """What the journal says of one (publisher, sequence) in the measured window."""
    __slots__ = ("qos", "owed", "absent", "acked", "refused", "delivered")

    def __init__(self, qos, owed, absent):
        self.qos, self.owed, self.absent = qos, owed, absent
        self.acked = self.refused = False
        self.delivered = None


class Books:
    def __init__(self, path, run_id, window_ns):
        self.run_id, self.window_ns = run_id, window_ns
        self.unwritten, self.subscribers = self.look_ahead(path)
        self.sessions = {}
        self.sources = {}            # line of `received` -> (topic, head, payload bytes, QoS, key or None)
        self.owed = {}               # (line of `received`, client) still without an outcome
        self.unanswered = {}         # line of `received` or `repeated` at QoS 1, 2 without `acked` -> client
        self.last = {}               # client -> line of its last `received`
        self.sent = {}               # (publisher, sequence) in the window -> Message
        self.published = set()       # (publisher, sequence) that a publisher sent, warm-up included
        self.seen = defaultdict(dict)     # (client, publisher) -> sequence -> copies
        self.highest = {}            # (client, publisher) -> highest sequence forwarded
        self.forwarded = {}          # (client, packet id) -> line of `received`, to recognise repetitions
        self.copies = {}             # lines of `acked` and `forwarded` that may turn out to be unwritten -> client
        self.written = defaultdict(int)   # client -> the last such line that is surely in its socket
        self.matching = {}           # topic -> clients, until a session changes
        self.missing = {}            # topic -> clients that subscribe at other times, until a session changes
        self.count = defaultdict(int)
        for number, time_ns, event, fields in lines_of(path, check=False):
            if event != "end":
                getattr(self, "on_" + event)(number, time_ns, *fields)
        demand(not self.owed, next(iter(self.owed), [0])[0], "somebody was owed this message and nothing says what became of it")
        online = [client for client, session in self.sessions.items() if session.online]
        demand(not online, number, f"{online} were never closed")

    def look_ahead(self, path):
        """Lines that never reached a socket, and the filters that each client ever asked for."""
        unwritten, subscribers = set(), defaultdict(set)
        for number, _, event, fields in lines_of(path):
            if event == "unwritten":
                demand(fields[1] not in unwritten, number, "a second time")
                unwritten.add(fields[1])
            elif event == "subscribed":
                subscribers[text_of(fields[0])].add(text_of(fields[1]))
        return {int(line) for line in unwritten}, subscribers

    # Connections and subscriptions

    def on_open(self, number, _time, client, version, persistent, present, code):
        if code != "0":
            demand(present == "0", number, "refused, yet with a session")
            self.count["connects_refused"] += 1
            return
        client = text_of(client)
        session = self.sessions.get(client)
        demand(session is None or not session.online, number, "is connected already")
        demand(present == "0" or session is not None, number, "there was no session")
        if present == "0":
            session = self.sessions[client] = Session(persistent == "1")
        session.online, session.persistent, session.version = True, persistent == "1", version
        self.forget_matches()

    def on_closed(self, number, _time, client, why, filters):
        client = text_of(client)
        session = self.sessions.get(client)
        demand(session is not None and session.online, number, "was not connected")
        demand(len(session.filters) == int(filters), number, "the session had other filters")
        session.online = False
        if not session.persistent:
            del self.sessions[client]
        self.forget_matches()
        # The broker answers at once, so only the message at which it cut can have no answer.
        if why == "cut":
            self.unanswered.pop(self.last.get(client), None)
        demand(client not in self.unanswered.values(), number, "a message of this client was never acknowledged")

    def session_of(self, number, client):
        session = self.sessions.get(client)
        demand(session is not None and session.online, number, f"{client} has no connection")
        return session

    def on_subscribed(self, number, _time, client, topic_filter, asked, granted, new):
        session = self.session_of(number, text_of(client))
        asked, granted = int(asked), int(granted)
        demand(granted <= asked <= 2 or granted >= FIRST_FAILURE, number, "more was granted than asked for")
        if granted < FIRST_FAILURE:
            topic_filter = text_of(topic_filter)
            demand((new == "1") == (topic_filter not in session.filters), number, "is new, or is not")
            session.filters[topic_filter] = granted
            self.count["granted_qos_lower"] += granted < asked
        else:
            self.count["subscriptions_refused"] += 1
        self.forget_matches()

    def on_unsubscribed(self, number, _time, client, topic_filter):
        session = self.session_of(number, text_of(client))
        demand(session.filters.pop(text_of(topic_filter), None) is not None, number, "was not subscribed")
        self.forget_matches()

    def forget_matches(self):
        self.matching.clear()
        self.missing.clear()

    def absent_from(self, topic):
        """Clients that asked for it at some time and do not hold a subscription to it now."""
        found = self.missing.get(topic)
        if found is None:
            found = self.missing[topic] = frozenset(
                client for client, filters in self.subscribers.items() if client not in self.subscribers_of(topic)
                and any(matches(topic_filter, topic) for topic_filter in filters))
        return found

    def subscribers_of(self, topic):
        """Clients with a session that subscribes -> (highest level granted, number of filters)."""
        found = self.matching.get(topic)
        if found is None:
            found = {}
            for client, session in self.sessions.items():
                levels = [level for topic_filter, level in session.filters.items() if matches(topic_filter, topic)]
                if levels:
                    found[client] = (max(levels), len(levels))
            self.matching[topic] = found
        return found

    # What publishers sent

    def key_of(self, head, payload_bytes, time_ns):
        """(publisher, sequence) and whether it is in the window, or None for what is not of this run."""
        header = header_of(head, payload_bytes, time_ns)
        if header is None or header[0] != self.run_id & header[1]:
            return None
        start_ns, end_ns = self.window_ns
        return (header[2], header[3]), start_ns <= header[4] < end_ns

    def note_sent(self, number, time_ns, topic, qos, payload_bytes, head):
        demand(head == "-" or len(head) == 2 * min(payload_bytes, HEAD_BYTES), number, "the payload's length is wrong")
        found = self.key_of(head, payload_bytes, time_ns)
        if found:
            self.published.add(found[0])
        if found and found[1] and found[0] not in self.sent:
            self.sent[found[0]] = Message(qos, frozenset(self.subscribers_of(topic)), self.absent_from(topic))
        return found

    def on_received(self, number, time_ns, client, topic, packet_id, qos, dup, payload_bytes, head):
        client, topic, qos, payload_bytes = text_of(client), text_of(topic), int(qos), int(payload_bytes)
        self.session_of(number, client)
        demand((packet_id == "-") == (qos == 0) and (dup == "0" or qos > 0), number, "level and identifier do not fit")
        found = self.note_sent(number, time_ns, topic, qos, payload_bytes, head)
        self.sources[number] = (topic, head, payload_bytes, qos, packet_id, found and found[0])
        for subscriber in self.subscribers_of(topic):
            self.owed[number, subscriber] = None
        self.last[client] = number
        if qos:
            self.unanswered[number] = client

    def on_repeated(self, number, time_ns, client, topic, packet_id, qos, dup, payload_bytes, head):
        client = text_of(client)
        self.session_of(number, client)
        demand(qos == "2" and packet_id != "-", number, "only messages at QoS 2 are recognised")
        found = self.key_of(head, int(payload_bytes), time_ns)
        demand(not found or not found[1] or found[0] in self.sent, number, "was not received before")
        self.sources[number] = (text_of(topic), head, int(payload_bytes), 2, packet_id, found and found[0])
        self.unanswered[number] = client

    def on_discarded(self, number, time_ns, client, topic, packet_id, qos, dup, payload_bytes, head):
        self.note_sent(number, time_ns, text_of(topic), int(qos), int(payload_bytes), head)
        self.count["discarded"] += 1

    def on_acked(self, number, _time, client, line, packet_id, code):
        client, line, code = text_of(client), int(line), int(code)
        session = self.session_of(number, client)
        source = self.sources.get(line)
        demand(source is not None and source[4] == packet_id, number, "acknowledges what was not received")
        demand(code < FIRST_FAILURE or session.version == "5", number, "3.1.1 cannot refuse a message")
        demand(self.unanswered.pop(line, None) == client, number, "is not the one answer to this message")
        self.copies[number] = client
        message = self.sent.get(source[5])
        if message is not None and number not in self.unwritten:
            if code < FIRST_FAILURE:
                message.acked = True
            else:
                message.refused = True

    # What subscribers got

    def on_dropped(self, number, _time, client, line, why):
        demand(self.owed.pop((int(line), text_of(client)), 0) is None, number, "nobody was owed this")

    def on_unwritten(self, number, _time, client, line):
        demand(self.copies.get(int(line)) == text_of(client), number, "such a line was not written for this client")
        demand(int(line) > self.written[text_of(client)], number, "this line is in the socket")

    def on_written(self, number, _time, client, line):
        client, line = text_of(client), int(line)
        demand(self.copies.get(line) == client, number, "there is no such line for this client")
        demand(line > self.written[client] and line not in self.unwritten, number, "a second time, or not at all")
        self.written[client] = line

    def on_stalled(self, number, _time, lasting_ns):
        self.count["stalled_ns"] += int(lasting_ns)

    def on_forwarded(self, number, time_ns, client, line, topic, packet_id, qos, retain, dup, why, head):
        client, line, qos = text_of(client), int(line), int(qos)
        self.session_of(number, client)
        source = self.sources.get(line)
        demand(source is not None and source[0] == text_of(topic), number, "forwards what was not received")
        demand((source[1] == head) == (why not in ("foreign", "forged")), number, "the payload is another one")
        demand((retain == "1") == (why == "retained"), number, "the retain flag does not fit")
        demand((packet_id == "-") == (qos == 0), number, "level and identifier do not fit")
        self.copies[number] = client
        if qos:
            again = self.forwarded.get((client, packet_id)) == line
            demand((dup == "1") == (why == "resend") and (again or dup == "0"), number, "is no repetition")
            self.forwarded[client, packet_id] = line
        level, filters = self.subscribers_of(source[0]).get(client, (None, 0))
        if why == "first":
            demand(self.owed.pop((line, client), 0) is None, number, "a first copy for the second time")
            # The subscription may have gone while the message waited.
            demand(level is None or qos == min(level, source[3]), number, "went out at another level than granted")
        if number in self.unwritten:
            return
        if why == "resend" and qos == 2 and not self.was_lost(client, packet_id, line):
            return  # The client recognises it by its identifier.
        self.deliver(time_ns, client, filters, retain == "1", head, source[2])

    def was_lost(self, client, packet_id, line):
        """Did no earlier copy under this identifier reach the socket?"""
        key = self.sources[line][5]
        return key is None or key[1] not in self.seen[client, key[0]]

    def deliver(self, time_ns, client, filters, retained, head, payload_bytes):
        found = self.key_of(head, payload_bytes, time_ns)
        if found is None:
            self.count["foreign"] += 1
            return
        if retained:
            self.count["retained_replay"] += 1
            return
        (publisher, sequence), measured = found
        if (publisher, sequence) not in self.published:
            self.count["foreign"] += 1
            return
        stream = (client, publisher)
        copies = self.seen[stream].get(sequence, 0)
        self.seen[stream][sequence] = copies + 1
        if copies:
            self.count["overlap" if copies < filters else "duplicated"] += measured
            return
        if sequence < self.highest.get(stream, 0):
            self.count["out_of_order"] += measured
        else:
            self.highest[stream] = sequence
        if measured:
            limit_ns = self.window_ns[1] + LATE_AFTER_NS
            self.count["late"] += time_ns > limit_ns
            self.count["late_or_not"] += limit_ns - ON_ITS_WAY_NS < time_ns <= limit_ns
            message = self.sent[publisher, sequence]
            if message.delivered is None:
                message.delivered = set()
            message.delivered.add(client)

    # The sum

    def delivery(self):
        """The books, as a record has them; `granted_qos_lower` beside them."""
        total = {name: self.count[name] for name in
                 ("duplicated", "out_of_order", "late", "foreign", "retained_replay", "overlap", "granted_qos_lower")}
        for name in ("sent", "refused", "expected", "delivered", "lost", "unknown", "absent", "delivered_after_refusal"):
            total[name] = 0
        for message in self.sent.values():
            delivered = message.delivered or ()
            if message.refused and not message.acked:
                total["refused"] += 1
                total["delivered_after_refusal"] += len(delivered)
                continue
            total["sent"] += 1
            total["delivered"] += len(delivered)
            missing = sum(client not in delivered for client in message.owed)
            total["unknown" if message.qos and not message.acked else "lost"] += missing
            total["absent"] += len(message.absent.difference(delivered))
        total["expected"] = total["delivered"] + total["lost"] + total["unknown"]
        return total


def compare(books, record):
    """Rows (name, journal, record) that must be equal."""
    told, journal = record["delivery"], books.delivery()
    if journal["late"] <= told["late"] <= journal["late"] + books.count["late_or_not"]:
        journal["late"] = told["late"]
    rows = [(name, journal[name], told[name]) for name in
            ("sent", "delivered", "duplicated", "out_of_order", "late", "overlap", "retained_replay", "foreign",
             "delivered_after_refusal")]
    # What our own limits refused never reached the broker.
    rows.append(("refused − too_large", journal["refused"], told["refused"] - told["too_large"]))
    rows.append(("granted_qos_lower", journal["granted_qos_lower"], record["connections"]["granted_qos_lower"]))
    if any(message.absent for message in books.sent.values()):
        # A session ends for the broker when it cuts, for the client when it notices; what was sent between is either lost or
        # absent, but never both and never neither.
        names = ("lost", "unknown", "absent")
        rows.append(("lost + unknown + absent", sum(journal[name] for name in names), sum(told[name] for name in names)))
    else:
        rows += [(name, journal[name], told[name]) for name in ("expected", "lost", "unknown", "absent")]
    sending = ("sent", "skipped_planned", "skipped_disconnected", "refused", "unsent")
    rows.append(("offered, as its parts add up", sum(told[name] for name in sending), told["offered"]))
    parts = ("delivered", "lost", "unknown")
    rows.append(("expected, as its parts add up", sum(told[name] for name in parts), told["expected"]))
    rows.append(("approximate", False, told["approximate"]))
    return rows


def main(arguments):
    if len(arguments) == 5 and arguments[0] == "--print":
        run_id, start_ns, end_ns = map(int, arguments[2:])
        print(json.dumps(Books(arguments[1], run_id, (start_ns, end_ns)).delivery(), sort_keys=True))
        return 0
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[1]) as file:
        record = json.load(file)
    settings = record["settings"]
    window_ns = (settings["window_start_ns"], settings["window_end_ns"])
    try:
        rows = compare(Books(arguments[0], record["run"]["id"], window_ns), record)
    except Contradiction as contradiction:
        print(f"the journal contradicts itself: {contradiction}")
        return 1
    differing = sum(ours != theirs for _, ours, theirs in rows)
    print(f"{'':<30} {'journal':>12} {'record':>12}")
    for name, ours, theirs in rows:
        print(f"{name:<30} {ours!s:>12} {theirs!s:>12}{'' if ours == theirs else '  differs'}")
    print(f"{differing} of {len(rows)} differ" if differing else f"all {len(rows)} agree")
    return 1 if differing else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Contradiction as contradiction:
        print(f"the journal contradicts itself: {contradiction}")
        sys.exit(1)
