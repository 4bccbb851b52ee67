"""Server-sent events of a run, followed over interruptions.

The server sends all events of a run from the beginning to whoever connects, and numbers none. So after an interruption those that were
given already are read again and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pubmark import reading
from pubmark.connection import Connection
from pubmark.deadline import Deadline
from pubmark.errors import ConnectionFailed, DeadlineExceeded, UnexpectedResponse
from pubmark.rows import Event

#: Longest event, bytes.
EVENT_BYTES = 1 << 20
#: Longest time without a byte, seconds: the server sends a comment each 15 s.
SILENCE_S = 45.0
#: Time between two attempts to connect again, seconds.
_PAUSE_S = 0.5
_KIND = "text/event-stream"


def follow(connection: Connection, path: str, deadline: Deadline, reconnect_s: float) -> Iterator[Event]:
    """Each event once, until the one named `end`, which is the last.

    A connection that fails is made again for `reconnect_s` seconds since the last event.
    """
    given = 0
    newest: Event | None = None
    patience = Deadline(reconnect_s)
    while True:
        failure: ConnectionFailed | None = None
        try:
            for index, event in enumerate(_once(connection, path, deadline)):
                if index < given:
                    if index == given - 1 and event != newest:
                        raise UnexpectedResponse(f"GET {path} gave other events than before the connection failed")
                    continue
                given, newest, patience = index + 1, event, Deadline(reconnect_s)
                yield event
                if event["event"] == "end":
                    return
        except ConnectionFailed as error:
            failure = error
        if deadline.is_over():
            raise _too_late(path, deadline)
        if patience.is_over():
            raise failure or ConnectionFailed(f"the server ended GET {path} before the end of the run")
        deadline.sleep(_PAUSE_S)


def _once(connection: Connection, path: str, deadline: Deadline) -> Iterator[Event]:
    """The events of one connection, from the beginning."""
    with connection.stream(path, _KIND, silence_s=SILENCE_S, deadline=deadline) as chunks:
        data: list[str] = []
        for line in _lines(chunks, path):
            if line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
                if sum(map(len, data)) > EVENT_BYTES:
                    raise _too_large(path)
            elif not line and data:
                yield _event("\n".join(data), path)
                data = []


def _event(data: str, path: str) -> Event:
    what = f"an event of GET {path}"
    event: dict[str, Any] = reading.mapping(reading.document(data.encode(), what), what)
    reading.text(event.get("event"), f"`event` of {what}")
    return event


def _lines(chunks: Iterator[bytes], path: str) -> Iterator[str]:
    """Lines; the last one is left out if its end did not come."""
    rest = b""
    for chunk in chunks:
        # A carriage return alone ends a line, too (HTML standard, server-sent events); this server sends none.
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > EVENT_BYTES:
            raise _too_large(path)
        for line in whole:
            try:
                yield line.removesuffix(b"\r").decode("utf-8")
            except UnicodeDecodeError:
                raise UnexpectedResponse(f"GET {path} gave a line that is not UTF-8") from None


def _too_large(path: str) -> UnexpectedResponse:
    return UnexpectedResponse(f"GET {path} gave an event of more than {EVENT_BYTES >> 20} MiB")


def _too_late(path: str, deadline: Deadline) -> DeadlineExceeded:
    return DeadlineExceeded(
        f"the events of GET {path} did not end within {deadline.timeout_s:g} s",
        "the run goes on; follow it longer with `events(timeout_s=…)`",
    )
