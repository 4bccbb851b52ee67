"""A client program without a system: what is published comes back to the subscribers of the same process. It lies as its argument says."""

import os
import subprocess
import sys
import time

sys.path.insert(0, sys.argv[1])
import pubmark_client as pubmark

MODE = sys.argv[2]
HELLO = {
    "versions": [1],
    "name": "scripted",
    "version": "1",
    "stamps": True,
    "protocols": [{"name": "mqtt5", "qos": [0, 1]}],
}
# What "revokes-…" sends of a subscription: of the client that publishes, or of the one that subscribed.
REVOKED = {
    "revokes-of-unknown-client": lambda own, other: pubmark.revoked(4_000_000_000, 1, 0),
    "revokes-of-unknown-connection": lambda own, other: pubmark.revoked(own[0], own[1] + 1, 0),
    "revokes-unknown-filter": lambda own, other: pubmark.revoked(*other, 1),
    "revokes-filter-of-another": lambda own, other: pubmark.revoked(*own, 0),
    "revokes-refused": lambda own, other: pubmark.revoked(*other, 0, 135, "not authorized"),
    "revokes-with-unknown-code": lambda own, other: pubmark.revoked(*own, 0, 3, "not authorized"),
    "revokes": lambda own, other: pubmark.revoked(*other, 0, 135, f"no {passwords[other[0]]}\x1b {'x' * 300}"),
    "revokes-twice": lambda own, other: pubmark.revoked(*other, 0) + pubmark.revoked(*other, 0),
    "revokes-and-grants": lambda own, other: pubmark.revoked(*other, 0) + pubmark.granted(*other, 0, 0),
}
topics, filters, subscribers, passwords = {}, {}, [], {}


def clock():
    return 0 if MODE == "no-stamps" else time.monotonic_ns()


def publish(fields):
    client, connection, payload = fields["client"], fields["connection"], fields["payload"]
    message = (client, connection, fields["publication"], fields["sequence"])
    topic, qos = topics[client, fields["publication"]]
    stamp = clock()
    if MODE == "stamp-in-future":
        stamp += 3_600_000_000_000
    if MODE == "stamp-before-due":
        stamp = fields["due_ns"] - 50_000_000
    if MODE == "dies":
        print("no more messages, please", file=sys.stderr, flush=True)
        os._exit(3)
    if MODE == "prints-password":
        print(f"\x1b[31mno use: {passwords[client]}", file=sys.stderr, flush=True)
        os._exit(3)
    if MODE == "says-password":
        return pubmark.send(pubmark.closed(client, connection, pubmark.REFUSED, 4, f"no use: {passwords[client]}"))
    if MODE == "stalls":
        time.sleep(1_000)
    if MODE == "breaks-off":
        pubmark.send(b"\x09\x00\x00\x00\x8cgarbage!")
    if MODE == "too-long":
        pubmark.send(b"\xff\xff\xff\x7f\x8a")
    if MODE == "abandons":
        return pubmark.send(pubmark.abandoned(*message))
    if MODE != "never-writes":
        pubmark.send(pubmark.written(*message, stamp))
    lies = {
        "written-twice": pubmark.written(*message, stamp),
        "unknown-message": pubmark.written(client, connection, fields["publication"], 4_000_000_000, stamp),
        "sequence-zero": pubmark.written(client, connection, fields["publication"], 0, stamp),
        "unknown-client": pubmark.connected(4_000_000_000, 1),
        "unknown-connection": pubmark.connected(client, connection + 1),
        "unknown-subscription": pubmark.granted(client, connection, 77, 0),
        "out-of-turn": pubmark.connected(client, connection),
        "unknown-ping": pubmark.pong(4_000_000_000_000, 0),
    }
    if MODE in lies:
        pubmark.send(lies[MODE])
    if MODE in REVOKED:
        pubmark.send(REVOKED[MODE]((client, connection), subscribers[0][0] if subscribers else None))
    if qos:
        pubmark.send(pubmark.acknowledged(*message))
        if MODE == "acknowledged-twice":
            pubmark.send(pubmark.acknowledged(*message))
    if MODE.startswith("delivers-late"):
        time.sleep(0.05)
    if MODE == "delivers-late-without-stamp":
        stamp = 0
    if MODE == "delivers-before-write":
        stamp = fields["due_ns"] + 1_000_000
    for subscriber, topic_filter in subscribers:
        if topic_filter == topic:
            part = payload[:32] if MODE == "headers-only" else payload
            pubmark.send(pubmark.delivered(*subscriber, False, stamp, part, len(payload)))


def handle(name, fields):
    if name == "ping":
        pubmark.send(pubmark.pong(fields["number"], clock()))
    elif name == "topic":
        topics[fields["client"], fields["publication"]] = (fields["topic"], fields["qos"])
    elif name == "connect" and MODE != "never-connects":
        names = (fields["client"], fields["connection"])
        passwords[fields["client"]] = fields["login"] and fields["login"][1]
        if MODE == "slow-connects":
            time.sleep(0.45)
        pubmark.send(pubmark.connected(*names))
        for number, topic_filter, qos in filters.pop(names, []):
            subscribers.append((names, topic_filter))
            pubmark.send(pubmark.granted(*names, number, 135 if MODE == "revokes-refused" else qos))
    elif name == "subscribe":
        names = (fields["client"], fields["connection"])
        filters.setdefault(names, []).append((fields["subscription"], fields["filter"], fields["qos"]))
    elif name == "publish":
        publish(fields)
    elif name == "goodbye" and MODE != "stays":
        sys.exit(0)


if MODE == "no-hello":
    time.sleep(1_000)
if MODE == "has-a-child":
    child = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    print(f"child {child.pid}", file=sys.stderr, flush=True)
    with open(sys.argv[3], "w") as file:
        file.write(str(child.pid))
pubmark.send(pubmark.hello(HELLO))
buffer = bytearray()
while piece := os.read(0, 1 << 16):
    buffer += piece
    for one in pubmark.read_frames(buffer):
        handle(*one)
if MODE == "stays":
    time.sleep(1_000)
