"""Errors. Each has a message and, where there is something to do, a hint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pubmark.runs import Run


class PubmarkError(Exception):
    """Something failed: `message` says what and why, `hint` what to do (None if there is nothing)."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n\nhint: {self.hint}"


class PubmarkWarning(UserWarning):
    """Something is missing from a result that is usable otherwise."""


class UsageError(PubmarkError, ValueError):
    """An argument cannot be used; nothing was sent."""


class ConnectionFailed(PubmarkError):
    """The server cannot be reached, or the connection ended in the middle of a response."""


class UnexpectedResponse(PubmarkError):
    """What came is no response of `pubmark serve`, or exceeds a limit of size or time."""


class DeadlineExceeded(PubmarkError, TimeoutError):
    """A wait ended by its `timeout_s`. The run goes on: `run` is its handle (None if there is none)."""

    def __init__(self, message: str, hint: str | None = None, run: Run | None = None) -> None:
        super().__init__(message, hint)
        self.run = run


class RunFailed(PubmarkError):
    """A run failed, was cancelled or was interrupted. `run` is its handle."""

    def __init__(self, message: str, hint: str | None = None, run: Run | None = None) -> None:
        super().__init__(message, hint)
        self.run = run


@dataclass(frozen=True)
class Place:
    """A place in the text that was sent, or in a file that it names."""

    #: The file; None for the text that was sent.
    file: str | None
    #: Line, from 1.
    line: int
    #: Column, from 1.
    column: int

    def __str__(self) -> str:
        if self.file is None:
            return f"line {self.line}, column {self.column}"
        return f"{self.file}:{self.line}:{self.column}"


class RequestRefused(PubmarkError):
    """The server refused a request, in the words of the command line.

    `status` is the HTTP status, `chain` the message in its parts, outermost first, `place` where in the text it lies (None if it
    lies nowhere).
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        status: int = 0,
        chain: tuple[str, ...] = (),
        place: Place | None = None,
    ) -> None:
        # Some messages begin with their place.
        is_named = place is None or str(place) in message
        super().__init__(message if is_named else f"{message} ({place})", hint)
        self.status = status
        self.chain = chain
        self.place = place


class NotAuthorized(RequestRefused):
    """The token is missing or wrong (401)."""


class NotAllowed(RequestRefused):
    """The server was started without the right that this needs (403)."""


class NotFound(RequestRefused):
    """There is no such run, table or path (404)."""


class Conflict(RequestRefused):
    """The run is not far enough for this, or is over already (409)."""


def refusal(status: int) -> type[RequestRefused]:
    """The class for an HTTP status."""
    return {401: NotAuthorized, 403: NotAllowed, 404: NotFound, 409: Conflict}.get(status, RequestRefused)
