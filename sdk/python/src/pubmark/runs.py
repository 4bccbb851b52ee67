"""A run, an experiment, a search for capacity or a choice on the server: how far it is, what came of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pubmark import events, frames, reading
from pubmark.checked import Checked
from pubmark.connection import RESULT_BYTES
from pubmark.deadline import Deadline
from pubmark.errors import (
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    PubmarkError,
    RunFailed,
    UnexpectedResponse,
    UsageError,
)
from pubmark.figures import Figures
from pubmark.rows import Entry, Event, Kind, State

if TYPE_CHECKING:
    import pandas

    from pubmark.client import Client

#: Largest message log that is taken from a server, bytes.
LOG_BYTES = 16 << 30
#: Longest wait unless a call says otherwise, seconds.
WAIT_S = 3_600.0
#: Shortest and longest time between two looks at a run that goes on, seconds.
_FIRST_LOOK_S, _LOOK_S = 0.1, 1.0
_STATES = ("queued", "running", "cancelling", "complete", "failed", "cancelled", "interrupted")
_UNDER_WAY = ("queued", "running", "cancelling")
_KINDS = ("run", "experiment", "capacity", "choice")


class Run(Figures):
    """A submission, or a folder of results that was made without the server.

    `verdict`, `delivered`, `p99` and the other figures are those of `record`, which is read from the server at the first use.
    """

    def __init__(self, client: Client, entry: Entry, folder: str | None = None) -> None:
        self._client = client
        self._folder = folder
        self._record: dict[str, Any] | None = None
        self._entry = entry

    @property
    def id(self) -> str:
        """Its name on the server."""
        return self._folder or self._entry["id"]

    @property
    def kind(self) -> Kind:
        """`run`, `experiment`, `capacity` or `choice`."""
        return self._entry["kind"]

    @property
    def state(self) -> State:
        """Its state in the last response of the server; `refresh` requests a new one."""
        return self._entry["state"]

    @property
    def is_over(self) -> bool:
        """Will its state change no more?"""
        return self.state not in _UNDER_WAY

    @property
    def entry(self) -> Entry:
        """The last response of the server: position in the queue, progress, times, folders of results."""
        return self._entry

    @property
    def url(self) -> str:
        """The page that shows it in a browser as it happens, and its report afterwards. The page asks for the token."""
        return f"{self._client.url}/runs/{self.id}"

    def refresh(self) -> Run:
        """Requests its state from the server."""
        self._entry = entry_of(self._client.connection.json("GET", self._path()), self._path())
        return self

    def wait(self, timeout_s: float = WAIT_S) -> Run:
        """Waits until it is over, whatever came of it: look at `state`.

        While the server cannot be reached, the client tries again for its `reconnect_s`.

        Raises `DeadlineExceeded` after `timeout_s` seconds, `ConnectionFailed` if the server stays away.
        """
        deadline = Deadline(timeout_s)
        # Not before a failure: a request may take longer than that until it fails.
        patience: Deadline | None = None
        pause_s = _FIRST_LOOK_S
        while True:
            try:
                found = self._client.connection.json("GET", self._path(), deadline=deadline)
                self._entry = entry_of(found, self._path())
                patience = None
                if self.is_over:
                    return self
            except ConnectionFailed as error:
                if patience is None:
                    patience = Deadline(self._client.reconnect_s)
                elif patience.is_over() and not deadline.is_over():
                    raise ConnectionFailed(
                        f"{error.message} (for {patience.timeout_s:g} s, while `{self.id}` was waited for)",
                        "its queue survives a restart: start the server again in the same folder, then wait again",
                    ) from None
            if deadline.is_over():
                raise DeadlineExceeded(
                    f"`{self.id}` was not over after {deadline.timeout_s:g} s: it is {self.state}",
                    "it goes on; `wait(timeout_s=…)` waits longer, `cancel()` ends it",
                    self,
                )
            deadline.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LOOK_S)

    def raise_unless_complete(self) -> Run:
        """Raises `RunFailed` if it failed, was cancelled or was interrupted."""
        if not self.is_over or self.state == "complete":
            return self
        failure = self._entry["error"]
        if failure is None:
            results = ", ".join(self._entry["folders"])
            hint = f"what was measured until then is in `{results}`" if results else None
            raise RunFailed(f"`{self.id}` is {self.state}", hint, self)
        masked = self._client.masked
        hint = failure["hint"]
        reasons = ": ".join(masked(part) for part in failure["chain"])
        raise RunFailed(f"`{self.id}` {self.state}: {reasons}", None if hint is None else masked(hint), self)

    def cancel(self) -> Run:
        """Cancels it. One that waits will not begin; one under way ends in order, with a record: `wait` for its end.

        Raises `Conflict` if it is over already.
        """
        self._entry = entry_of(self._client.connection.json("DELETE", self._path()), self._path())
        return self

    def events(self, timeout_s: float = WAIT_S) -> Iterator[Event]:
        """What goes on, from the beginning and as it happens: progress once a second, the last event is `end`.

        A connection that fails is made again for the client's `reconnect_s`; each event comes once all the same. Whoever was away for
        so long that the server does not send all of them again gets an event `current`, with `missed`, `state` and `progress`.

        Raises `DeadlineExceeded` if there is no end within `timeout_s` seconds.
        """
        deadline = Deadline(timeout_s)
        return events.follow(self._client.connection, self._path("/events"), deadline, self._client.reconnect_s)

    @property
    def record(self) -> dict[str, Any]:
        """The record as JSON (docs/reference/record.schema.json; of experiments and searches, their own).

        Raises `RunFailed` if there is none because the run failed, `Conflict` if there is none yet.
        """
        if self._record is not None:
            return self._record
        if not self.is_over:
            self.refresh()
        path = self._path("/record")
        try:
            found = reading.mapping(
                self._client.connection.json("GET", path, most=RESULT_BYTES), f"the response to GET {path}"
            )
        except Conflict:
            if self.is_over:
                self.raise_unless_complete()
            raise
        if self.is_over:
            self._record = found
        return found

    def table(self, name: str | None = None) -> pandas.DataFrame:
        """A table: of a run `by_type` or the one named (`series`, `summary`, …), of an experiment `cells` (a row for each figure of
        each cell) or `runs` (a row for each run), of a search its `trials`. What was not measured is NaN.

        Raises `NotFound` with the names that there are.
        """
        path = self._path("/table")
        query = None if name is None else {"table": name}
        return frames.of_csv(self._client.connection.text(path, "text/csv", query=query), f"the response to GET {path}")

    def report(self) -> str:
        """The report as one HTML page, which loads nothing."""
        return self._client.connection.text(self._path("/report"), "text/html")

    def notes(self) -> str:
        """Notes and warnings, as they are printed on the command line."""
        return self._client.connection.text(self._path("/notes"), "text/plain")

    def messages(self, timeout_s: float = WAIT_S) -> pandas.DataFrame:
        """The message log (docs/reference/message-log.md): a row for each message and each subscriber.

        Only for a run with `message_log=`. It is read from the client's `runs_folder`, or else sent by the server, within `timeout_s`
        seconds.
        """
        log = self.record.get("message_log")
        if log is None:
            raise UsageError(
                f"`{self.id}` has no message log", 'submit the run with `message_log="parquet"`, or `"csv"`'
            )
        file = reading.text(
            reading.mapping(log, "`message_log` of the record").get("file"), "`message_log.file` of the record"
        )
        name = reading.text(
            reading.mapping(self.record.get("run"), "`run` of the record").get("name"), "`run.name` of the record"
        )
        if not reading.is_name(name) or not reading.is_name(file):
            raise UnexpectedResponse("the message log of the record lies in no folder of results")
        folders = self._client.runs_folder
        if folders is not None:
            return frames.of_log(folders / name / file)
        kind = frames.LOG_KINDS.get(Path(file).suffix)
        if kind is None:
            raise UnexpectedResponse(f"the message log `{file}` is of no known form")
        with tempfile.TemporaryDirectory(prefix="pubmark-") as place:
            path = Path(place) / file
            with path.open("wb") as to:
                self._client.connection.save(
                    self._path("/messages"),
                    kind,
                    to,
                    silence_s=events.SILENCE_S,
                    deadline=Deadline(timeout_s),
                    most=LOG_BYTES,
                )
            return frames.of_log(path)

    def repetitions(self) -> list[Run]:
        """Each repetition of a run with `repetitions=`, with an entry and a record of its own, which are requested from the server."""
        return [self._repetition(folder) for folder in self._entry["folders"]]

    def _repetition(self, folder: str) -> Run:
        path = f"/runs/{folder}"
        return Run(self._client, entry_of(self._client.connection.json("GET", path), path), folder)

    def check(
        self,
        require: str | None = None,
        fail_on: str | None = None,
        baseline: Run | str | None = None,
        strict: bool = False,
    ) -> Checked:
        """The same as `client.check(run, …)`."""
        return self._client.check(self, require, fail_on, baseline, strict)

    def _path(self, rest: str = "") -> str:
        return f"/runs/{self.id}{rest}"

    def __repr__(self) -> str:
        entry = self._entry
        words = f"{entry['name']} on {', '.join(entry['systems'])}: {self.state}"
        headline = entry["headline"]
        if headline is not None and headline.get("verdict") is not None:
            words += f", {headline['verdict']}"
        return f"<pubmark.Run {self.id} {reading.plain(words)}>"


def entry_of(value: Any, path: str) -> Entry:
    """Reads what the server says of a submission; only what this package uses is looked at."""
    what = f"the response to {path}"
    found = reading.mapping(value, what)
    name = reading.text(found.get("id"), f"`id` of {what}")
    folders = reading.texts(found.get("folders"), f"`folders` of {what}")
    if not reading.is_name(name) or not all(map(reading.is_name, folders)):
        raise UnexpectedResponse(f"{what} names a run as none can be called")
    for key, words in (("state", _STATES), ("kind", _KINDS)):
        if found.get(key) not in words:
            raise UnexpectedResponse(f"`{key}` of {what} is none of {', '.join(words)}")
    reading.text(found.get("name"), f"`name` of {what}")
    reading.texts(found.get("systems"), f"`systems` of {what}")
    for key in ("error", "headline"):
        found.setdefault(key, None)
        if found[key] is not None:
            reading.mapping(found[key], f"`{key}` of {what}")
    if found["error"] is not None:
        reading.texts(found["error"].get("chain"), f"`error.chain` of {what}")
        found["error"]["hint"] = reading.maybe_text(found["error"].get("hint"), f"`error.hint` of {what}")
    return cast(Entry, found)


def cancel_quietly(run: Run) -> None:
    """Cancels a run whose caller was interrupted; a server that is away, or a run that is over, changes nothing."""
    try:
        run.cancel()
    except PubmarkError:
        # The interruption is raised to the caller.
        return
