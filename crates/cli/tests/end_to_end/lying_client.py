"""The Paho client of clients/, which lies or dies as its argument says, from its twentieth report on."""

import importlib.util
import os
import sys

spec = importlib.util.spec_from_file_location("client", sys.argv[1])
client = importlib.util.module_from_spec(spec)
spec.loader.exec_module(client)
honest, count = client.pubmark.written, 0


def written(connection, *fields):
    global count
    count += 1
    if count > 20 and sys.argv[2] == "future":
        fields = (*fields[:-1], fields[-1] + 3_600_000_000_000)
    if count > 20 and sys.argv[2] == "dies":
        print("out of ideas", file=sys.stderr, flush=True)
        os._exit(7)
    return honest(connection, *fields)


def delivered(client_number, connection, retained, stamp, payload):
    """The beginning of a payload in place of all of it."""
    return whole(client_number, connection, retained, stamp, payload[:32], len(payload))


if sys.argv[2] == "part":
    whole, client.pubmark.delivered = client.pubmark.delivered, delivered
client.pubmark.written = written
client.Program().run()
