"""Server-sent events of a run, followed over interruptions.

Each event of the server has an id. After an interruption the client asks for those behind the newest one that it has.
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
#: Longest id, digits.
_LONGEST_ID = 20
#: Time between two attempts to connect again, seconds.
_PAUSE_S = 0.5
_KIND = "text/event-stream"


def follow(connection: Connection, path: str, deadline: Deadline, reconnect_s: float) -> Iterator[Event]:
    """Each event once, until the one named `end`, which is the last.

    A connection that fails is made again for `reconnect_s` seconds since it failed, until an event or a comment shows that the server is
    there. Where the server does not have all events behind the newest one any more, an event `current` stands in their place.
    """
    newest: int | None = None
    # Not before a failure: a run that waits in the queue has no events, and a silent connection fails after `SILENCE_S` only.
    patience: Deadline | None = None
    while True:
        failure: ConnectionFailed | None = None
        try:
            for found in _once(connection, path, deadline, newest):
                patience = None
                if found is None:
                    continue
                number, event = found
                if event["event"] == "end":
                    yield event
                    return
                if number is None:
                    raise UnexpectedResponse(f"GET {path} gave an event without an id")
                if newest is not None and number <= newest and event["event"] != "current":
                    raise UnexpectedResponse(f"GET {path} gave an event again that was read before")
                newest = number
                yield event
        except ConnectionFailed as error:
            failure = error
        if deadline.is_over():
            raise _too_late(path, deadline)
        if patience is None:
            patience = Deadline(reconnect_s)
        if patience.is_over():
            raise failure or ConnectionFailed(f"the server ended GET {path} before the end of the run")
        deadline.sleep(_PAUSE_S)


def _once(
    connection: Connection, path: str, deadline: Deadline, newest: int | None
) -> Iterator[tuple[int | None, Event] | None]:
    """The events of one connection with their ids, from the beginning or behind the newest; None for a comment."""
    headers = None if newest is None else {"last-event-id": str(newest)}
    with connection.stream(path, _KIND, silence_s=SILENCE_S, deadline=deadline, headers=headers) as chunks:
        data: list[str] = []
        number: int | None = None
        for line in _lines(chunks, path):
            if line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
                if sum(map(len, data)) > EVENT_BYTES:
                    raise _too_large(path)
            elif line.startswith("id:"):
                number = _number(line[3:].removeprefix(" "), path)
            elif line.startswith(":"):
                yield None
            elif not line and data:
                yield number, _event("\n".join(data), path)
                data, number = [], None


def _number(text: str, path: str) -> int:
    """An id: an event's place in the order of all."""
    if not text.isascii() or not text.isdecimal() or len(text) > _LONGEST_ID:
        raise UnexpectedResponse(f"GET {path} gave an event with an id that is no number")
    return int(text)


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
