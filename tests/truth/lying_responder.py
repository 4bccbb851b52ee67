#!/usr/bin/env python3
"""A server that speaks NATS and lies about requests and their answers, and keeps a journal of what it did.

    lying_responder.py serve JOURNAL            prints its port; ends with its standard input
    lying_responder.py compare JOURNAL RECORD   exit code 0 if the record agrees with the journal, exactly

What happens to a request follows from its sequence number, see FATES. Shares no line of code with pubmark: the layout of
payload headers is that of docs/explanation/payload-header.md.
"""

import asyncio
import json
import struct
import sys
from collections import Counter

# By sequence number modulo 8: what is done with a request or with its answer.
FATES = ["never", "late", "twice", "to another", "of another", "swallowed", "refused", "honest"]
LATE_S = 2.5
REQUEST, REPLY = 0xC1, 0xC5
NOBODY = b"NATS/1.0 503\r\n\r\n"


def header(payload):
    """(kind, publisher, sequence, due) of a payload of pubmark's with a whole header; None for others."""
    if len(payload) < 24 or payload[0] not in (REQUEST, REPLY):
        return None
    publisher, sequence, due = struct.unpack_from("<IIQ", payload, 4)
    # The highest byte is the lag.
    return payload[0], publisher, sequence, due & ((1 << 56) - 1)


def matches(pattern, subject):
    parts, levels = pattern.split("."), subject.split(".")
    for index, part in enumerate(parts):
        if part == ">":
            return len(levels) > index
        if index >= len(levels) or part not in ("*", levels[index]):
            return False
    return len(parts) == len(levels)


class Liar:
    def __init__(self, journal):
        self.journal = open(journal, "w", encoding="ascii", buffering=1)
        self.clients = {}
        self.inboxes = {}
        self.later = set()

    async def serve(self, reader, writer):
        writer.write(b'INFO {"server_id":"liar","version":"2.10.0","max_payload":1048576,"headers":true}\r\n')
        self.clients[writer] = []
        try:
            while line := await reader.readline():
                words = line.decode().split()
                if not words:
                    continue
                if words[0] == "PING":
                    writer.write(b"PONG\r\n")
                elif words[0] == "SUB":
                    self.clients[writer].append((words[1], words[-1]))
                elif words[0] == "PUB":
                    payload = (await reader.readexactly(int(words[-1]) + 2))[:-2]
                    self.on_message(words[1], words[2] if len(words) == 4 else None, payload)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        del self.clients[writer]
        writer.close()

    def send(self, subject, reply, payload, headers=None):
        for writer, subscriptions in self.clients.items():
            for pattern, number in subscriptions:
                if matches(pattern, subject):
                    answer_to = f" {reply}" if reply else ""
                    if headers is None:
                        front = f"MSG {subject} {number}{answer_to} {len(payload)}\r\n"
                    else:
                        sizes = f"{len(headers)} {len(headers) + len(payload)}"
                        front = f"HMSG {subject} {number}{answer_to} {sizes}\r\n"
                    writer.write(front.encode() + (headers or b"") + payload + b"\r\n")

    def on_message(self, subject, reply, payload):
        found = header(payload)
        if found is None:
            self.send(subject, reply, payload)
            return
        kind, publisher, sequence, due = found
        fate = FATES[sequence % len(FATES)]
        if kind == REQUEST and reply:
            self.inboxes[publisher] = reply.rsplit(".", 1)[0]
            print("request", publisher, sequence, due, fate.replace(" ", "-"), file=self.journal)
            if fate == "refused":
                self.send(reply, None, b"", NOBODY)
            elif fate != "swallowed":
                self.send(subject, reply, payload)
            return
        print("answer", publisher, sequence, due, fate.replace(" ", "-"), file=self.journal)
        if fate == "late":
            task = asyncio.get_running_loop().create_task(self.send_later(subject, payload))
            self.later.add(task)
            task.add_done_callback(self.later.discard)
        elif fate == "to another":
            other = next(inbox for number, inbox in sorted(self.inboxes.items()) if number != publisher)
            self.send(f"{other}.0-{sequence}", None, payload)
        elif fate == "of another":
            self.send(f"{self.inboxes[publisher]}.0-{sequence - 1}", None, payload)
        elif fate != "never":
            for _ in range(2 if fate == "twice" else 1):
                self.send(subject, None, payload)

    async def send_later(self, subject, payload):
        await asyncio.sleep(LATE_S)
        self.send(subject, None, payload)


async def serve(journal):
    liar = Liar(journal)
    for port in range(21000, 32000):
        try:
            server = await asyncio.start_server(liar.serve, "127.0.0.1", port, limit=1 << 20)
            break
        except OSError:
            continue
    print(port, flush=True)
    async with server:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def compare(journal, record):
    record = json.load(open(record, encoding="utf-8"))
    window = range(record["settings"]["window_start_ns"], record["settings"]["window_end_ns"])
    requests, answers = Counter(), Counter()
    for line in open(journal, encoding="ascii"):
        kind, _, _, due, fate = line.split()
        if int(due) in window:
            (requests if kind == "request" else answers)[fate] += 1
    lost = requests["swallowed"]
    given_up = ["never", "to-another", "of-another", "swallowed"]
    sent = sum(requests.values()) - requests["refused"]
    expected = {
        "sent": sent,
        "answered": requests["twice"] + requests["honest"],
        "late": requests["late"],
        "timed_out": sum(requests[fate] for fate in given_up),
        "unknown": 0,
        "duplicated": answers["twice"],
        "misdirected": answers["to-another"] + answers["of-another"],
        "after_refusal": 0,
    }
    wrong = [(name, value, record["requests"]["outcomes"][name]) for name, value in expected.items()
             if record["requests"]["outcomes"][name] != value]
    responses = {"received": sent - lost, "answered": sum(answers.values())}
    wrong += [(f"responder {name}", value, record["requests"]["responses"][name]) for name, value in responses.items()
              if record["requests"]["responses"][name] != value]
    delivery = {"sent": sent, "refused": requests["refused"], "delivered": sent - lost, "lost": lost}
    wrong += [(f"delivery {name}", value, record["delivery"][name]) for name, value in delivery.items()
              if record["delivery"][name] != value]
    for name, journal_says, record_says in wrong:
        print(f"{name}: the journal says {journal_says}, the record {record_says}")
    if min(requests[fate.replace(' ', '-')] for fate in FATES) == 0:
        wrong.append("fates")
        print(f"not every fate was met: {dict(requests)}")
    print(f"{sent} requests sent, {len(wrong)} differences: {expected}")
    return 1 if wrong else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["serve", journal]:
            asyncio.run(serve(journal))
        case ["compare", journal, record]:
            sys.exit(compare(journal, record))
        case _:
            sys.exit(__doc__)
