"""A client of `pubmark serve`."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from pubmark import address, checked, frames, reading, submission
from pubmark.checked import Checked
from pubmark.connection import Connection
from pubmark.deadline import Deadline
from pubmark.errors import PubmarkWarning, UnexpectedResponse, UsageError
from pubmark.rows import Entry, Experiment, Finding, Link, Nodes, Protocol, State, System, Validated, Workload
from pubmark.runs import WAIT_S, Run, cancel_quietly, entry_of
from pubmark.submission import CapacityFields, ChoiceFields, ExperimentFields, RunFields, Source

if TYPE_CHECKING:
    import pandas

#: Entries that are requested at once; the server gives no more.
_PAGE = 500
# A server that gives more than these in one answer after the other does not end.
_MOST_UNUSABLE = 20 * _PAGE


class Client:
    """A server, as a program uses it. Its methods may be called from several threads.

    Without arguments it is the server of `PUBMARK_URL`, or of this machine (`http://127.0.0.1:7780`), with the token of
    `PUBMARK_TOKEN`, or that of `runs/.serve/token`.

    `verify` is a file of certificates to trust (PEM), in place of those of this machine. `request_timeout_s` is the longest time of a
    request, `reconnect_s` the longest time for which a wait tries to reach a server that is away. `runs_folder` is the server's folder
    of results, if it is on this machine: `Run.messages` reads from it, and the server need not send the log.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        verify: str | os.PathLike[str] | None = None,
        request_timeout_s: float = 60.0,
        reconnect_s: float = 30.0,
        runs_folder: str | os.PathLike[str] | None = None,
    ) -> None:
        server = address.address(url)
        if verify is not None and not server.is_encrypted:
            raise UsageError(f"`verify` is given, and `{server.url}` is not encrypted", "write https://")
        trust = address.trust(verify) if server.is_encrypted else None
        self._token = address.token(token, server)
        self.url = server.url
        self.reconnect_s = Deadline(reconnect_s).timeout_s
        self.runs_folder = None if runs_folder is None else Path(runs_folder)
        self.connection = Connection(server, self._token, trust, request_timeout_s)

    def __repr__(self) -> str:
        return f"<pubmark.Client {self.url}>"

    def run(self, workload: Source, *, timeout_s: float = WAIT_S, **fields: Unpack[RunFields]) -> Run:
        """Submits a run as `submit` does, waits for its end and gives it with its results.

        Ctrl-C cancels it.

        Raises `RunFailed` if it fails, is cancelled or is interrupted, `DeadlineExceeded` after `timeout_s` seconds.
        """
        deadline = Deadline(timeout_s)
        return self._finished(self.submit(workload, **fields), deadline)

    def submit(self, workload: Source, **fields: Unpack[RunFields]) -> Run:
        """Submits a run and returns at once.

        `workload` is the name of a built-in one, or a file of this machine: a `Path`, or a name that ends with `.yaml`. The fields
        are those of a `run.yaml` (docs/reference/run.schema.json), the commonest under the names of the command line: `system`,
        `endpoint`, `protocol`, `duration`, `warmup`, `drain`, `scale`, `rate`, `qos`, `seed`, `tls`, `slo`, `message_log`,
        `repetitions`. Times have their unit: `duration="30s"`. Groups are mappings: `load={"set": ["interval=10ms"]}`.

        Raises `RequestRefused` with what is wrong, `NotAllowed` for what the server may not do.
        """
        return self.submit_document(submission.run(workload, fields))

    def experiment(self, experiment: Source, *, timeout_s: float = WAIT_S, **fields: Unpack[ExperimentFields]) -> Run:
        """Submits an experiment as `submit_experiment` does and waits for its end, as `run` does."""
        deadline = Deadline(timeout_s)
        return self._finished(self.submit_experiment(experiment, **fields), deadline)

    def submit_experiment(self, experiment: Source, **fields: Unpack[ExperimentFields]) -> Run:
        """Submits an experiment and returns at once: the name of a built-in one, or a file of this machine.

        Fields: `quick`, `only` (a list of `AXIS=VALUE,…`), `repeat`, `duration`, `warmup`, `wait` (for a quiet machine, before each
        run).
        """
        return self.submit_document(submission.experiment(experiment, fields))

    def capacity(self, workload: Source, *, timeout_s: float = WAIT_S, **fields: Unpack[CapacityFields]) -> Run:
        """Submits a search for capacity as `submit_capacity` does and waits for its end, as `run` does."""
        deadline = Deadline(timeout_s)
        return self._finished(self.submit_capacity(workload, **fields), deadline)

    def submit_capacity(self, workload: Source, **fields: Unpack[CapacityFields]) -> Run:
        """Submits a search for the highest load that a system carries within `slo`, and returns at once.

        `workload` is as of a run. Fields: `system`, `endpoint`, `protocol`, `profile`, `limit`, `slo`, `vary` (`rate` or `scale`), `qos`,
        `links`, `faults`, `seed`, `tls`, `user`, `password`, `within`, `duration`, `warmup`, `most`.
        """
        return self.submit_document(submission.capacity(workload, fields))

    def choose(self, workload: Source, *, timeout_s: float = WAIT_S, **fields: Unpack[ChoiceFields]) -> Run:
        """Submits a choice of a system as `submit_choice` does and waits for its end, as `run` does."""
        deadline = Deadline(timeout_s)
        return self._finished(self.submit_choice(workload, **fields), deadline)

    def submit_choice(self, workload: Source, **fields: Unpack[ChoiceFields]) -> Run:
        """Submits a choice: which of the `candidates` meet the `objectives`, and at what cost. It returns at once.

        `workload` is as of a run. Fields: `load`, `growth`, `objectives`, `recovery`, `resources`, `needs`, `candidates`, `within`,
        `headroom`, `window`, `generator`, `connection` (docs/how-to/choose-a-system.md).
        """
        return self.submit_document(submission.choice(workload, fields))

    def submit_document(self, document: str) -> Run:
        """Submits a text as it is, YAML or JSON: a `run.yaml`, the definition of an experiment, a search for capacity, a choice."""
        return Run(self, entry_of(self.connection.json("POST", "/runs", body=submission.utf8(document)), "/runs"))

    def validate(self, document: str) -> Validated:
        """Judges a text as `submit_document` takes it, and starts nothing."""
        found = self.connection.json("POST", "/validate", body=submission.utf8(document))
        return cast(Validated, reading.mapping(found, "the response to /validate"))

    def get(self, id: str) -> Run:
        """A submission, or a folder of results, by its name."""
        if not reading.is_name(id):
            raise UsageError(f"no run can be called `{reading.plain(id)}`", "`client.runs()` lists them")
        return Run(self, entry_of(self.connection.json("GET", f"/runs/{id}"), f"/runs/{id}"))

    def runs(
        self,
        filter: str | None = None,
        *,
        state: State | None = None,
        kind: str | None = None,
        since: str | None = None,
        sort: str | None = None,
        limit: int | None = 50,
    ) -> list[Run]:
        """Submissions and results, the newest first, `limit` of them at most (None: all).

        `filter` has words and `key=value` as `pubmark runs` takes them: `mosquitto verdict=valid`. `since` is a time ago (`2h`) or a
        date, `sort` is an order of `GET /runs`: `newest`, `oldest`, `name`, `system`, `state`, `verdict`, `load`, `delivered`, `p50` or
        `p99`. A folder whose record cannot be read, or whose name no run can have, is left out with a `PubmarkWarning`.
        """
        if limit is not None and limit < 1:
            raise UsageError("`limit` is at least 1", "`limit=None` lists all")
        given = {"filter": filter, "state": state, "kind": kind, "since": since, "sort": sort}
        query = {name: value for name, value in given.items() if value is not None}
        found: list[Run] = []
        unusable: list[str] = []
        read = 0
        while limit is None or len(found) < limit:
            size = _PAGE if limit is None else min(_PAGE, limit - len(found))
            page = self.connection.json("GET", "/runs", query={**query, "offset": str(read), "limit": str(size)})
            page = reading.mapping(page, "the response to /runs")
            rows = reading.rows(page.get("runs"), "`runs` of the response to /runs")[:size]
            if read == 0:
                unreadable = reading.rows(page.get("unreadable"), "`unreadable` of the response to /runs")
                _warn_of("the records of {} folders cannot be read", [str(row.get("folder")) for row in unreadable])
            read += len(rows)
            for row in rows:
                # Any name is one of a folder, and a server refuses requests for this one.
                if isinstance(row.get("id"), str) and not reading.is_name(row["id"]):
                    unusable.append(row["id"])
                    if len(unusable) > _MOST_UNUSABLE:
                        raise UnexpectedResponse("the response to /runs names runs as none can be called")
                else:
                    found.append(Run(self, entry_of(row, "/runs")))
            if not rows or read >= reading.count(page.get("total"), "`total` of the response to /runs"):
                break
        _warn_of("{} folders have names that no run can have", unusable)
        return found

    def frame(self, runs: list[Run] | None = None) -> pandas.DataFrame:
        """A table with a row for each of these runs, or of `client.runs()`: verdict, messages, latency with both bounds."""
        # The entry of a repetition has the name of its submission.
        named = [cast(Entry, {**run.entry, "id": run.id}) for run in (self.runs() if runs is None else runs)]
        return frames.of_entries(named)

    def check(
        self,
        run: Run | str,
        require: str | None = None,
        fail_on: str | None = None,
        baseline: Run | str | None = None,
        strict: bool = False,
    ) -> Checked:
        """Holds a run or an experiment against limits: `require="p99<50ms,loss=0"`, or a change from a baseline:
        `fail_on="p99>+10%"`. With `strict`, suspect runs fail, too.
        """
        fields = {
            "run": _id_of(run),
            "require": require,
            "fail_on": fail_on,
            "baseline": None if baseline is None else _id_of(baseline),
            "strict": strict or None,
        }
        return checked.of_response(self.connection.json("POST", "/check", body=submission.document(fields)))

    def systems(self) -> list[System]:
        """Systems that can be started; `allowed` says whether this server may."""
        return cast(list[System], self._rows("/systems"))

    def workloads(self) -> list[Workload]:
        """Built-in workloads."""
        return cast(list[Workload], self._rows("/workloads"))

    def experiments(self) -> list[Experiment]:
        """Built-in experiments."""
        return cast(list[Experiment], self._rows("/experiments"))

    def protocols(self) -> list[Protocol]:
        """What clients can speak."""
        return cast(list[Protocol], self._rows("/protocols"))

    def links(self) -> list[Link]:
        """Built-in emulated networks."""
        return cast(list[Link], self._rows("/links"))

    def doctor(self) -> list[Finding]:
        """Is the server's machine fit to measure?"""
        return cast(list[Finding], self._rows("/doctor"))

    def nodes(self, *, offset: int = 0, limit: int = 50) -> Nodes:
        """Nodes that joined the run under way, by name: `limit` of them, 1 to 500, behind the first `offset`."""
        page = self.connection.json("GET", "/nodes", query={"offset": str(offset), "limit": str(limit)})
        return cast(Nodes, reading.mapping(page, "the response to /nodes"))

    def masked(self, text: str) -> str:
        """A text of the server for a message: without the token, control characters written out."""
        return reading.plain(self._token.masked(text))

    def _rows(self, path: str) -> list[dict[str, Any]]:
        return reading.rows(self.connection.json("GET", path), f"the response to {path}")

    def _finished(self, run: Run, deadline: Deadline) -> Run:
        try:
            return run.wait(deadline.timeout_s).raise_unless_complete()
        except KeyboardInterrupt:
            cancel_quietly(run)
            raise


def run(
    workload: Source,
    *,
    url: str | None = None,
    token: str | None = None,
    verify: str | os.PathLike[str] | None = None,
    timeout_s: float = WAIT_S,
    **fields: Unpack[RunFields],
) -> Run:
    """Makes one run on a server that runs already, waits for its end and gives it with its results.

    `url`, `token` and `verify` are those of `Client`, which says what stands for them if they are left out; the rest is as for
    `Client.run`.
    """
    return Client(url, token=token, verify=verify).run(workload, timeout_s=timeout_s, **fields)


def _id_of(run: Run | str) -> str:
    return run.id if isinstance(run, Run) else run


def _warn_of(reason: str, folders: list[str]) -> None:
    if folders:
        named = ", ".join(reading.plain(folder) for folder in folders[:5])
        more = "" if len(folders) <= 5 else ", …"
        words = f"{reason.format(len(folders))} and are left out: {named}{more}"
        warnings.warn(words, PubmarkWarning, stacklevel=3)
