"""Types of what the server lists (docs/reference/openapi.json). A missing measurement is None."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

Kind = Literal["run", "experiment", "capacity", "choice"]
State = Literal["queued", "running", "cancelling", "complete", "failed", "cancelled", "interrupted"]
Verdict = Literal["valid", "suspect", "invalid"]

#: What an event holds depends on its `event` (docs/reference/events.schema.json).
Event = dict[str, Any]


class Quantiles(TypedDict):
    """Quantiles of a latency, µs."""

    p50_us: float | None
    p99_us: float | None
    max_us: float | None


class Bounds(TypedDict):
    """Both bounds of a latency."""

    lower: Quantiles | None
    upper: Quantiles


class Headline(TypedDict):
    """What a list shows of a record."""

    kind: Kind
    folder: str
    started_at: str
    status: Literal["complete", "interrupted"]
    workload: list[str]
    variant: str | None
    system: list[str]
    protocol: list[str]
    qos: list[str]
    verdict: Verdict | None
    reasons: list[str]
    delivered: int | None
    expected: int | None
    delivered_share: float | None
    latency: Bounds | None
    cells: int | None
    runs_planned: int | None
    runs_counted: int | None
    objectives: str | None
    holds_per_s: float | None
    qualify: list[str]
    recommended: str | None
    in_progress: bool


class Failure(TypedDict):
    """Why a submission failed."""

    chain: list[str]
    hint: str | None


class Note(TypedDict):
    """What somebody noted of a result."""

    text: str
    tags: list[str]


class Entry(TypedDict):
    """A submission, or a folder of results that was made without the server."""

    id: str
    kind: Kind
    state: State
    position: int | None
    waits_for: str | None
    name: str
    systems: list[str]
    submitted_at: str | None
    started_at: str | None
    ended_at: str | None
    exit_code: int | None
    folders: list[str]
    error: Failure | None
    headline: Headline | None
    devices: int | None
    offered_per_s: float | None
    note: Note | None
    note_problem: str | None
    progress: dict[str, Any] | None


class Validated(TypedDict):
    """A submission that could be made."""

    kind: Kind
    name: str
    systems: list[str]
    notes: list[str]
    command: str
    run_yaml: str | None


class System(TypedDict):
    """A system that can be started."""

    name: str
    title: str
    description: str
    protocols: list[str]
    profiles: list[str]
    installed: str | None
    allowed: bool


class Workload(TypedDict):
    """A built-in workload."""

    name: str
    description: str
    devices: int
    subscribers: int
    messages_per_s: float | None
    variants: list[str]
    parameters: dict[str, str]


class Experiment(TypedDict):
    """A built-in experiment."""

    name: str
    title: str
    description: str
    cells: int
    repetitions: int
    varied: list[str]


class Protocol(TypedDict):
    """What clients can speak."""

    name: str
    title: str
    client: str | None
    schemes: list[str]
    qos: list[str]


class Link(TypedDict):
    """A built-in emulated network."""

    name: str
    lines: list[str]
    source: str | None


class Finding(TypedDict):
    """What `pubmark doctor` found of one thing."""

    name: str
    fitness: Literal["good", "limited", "bad"]
    text: str
    fix: str | None


class Nodes(TypedDict):
    """Nodes of the run under way: `name` and `address` of each of a page; `total` on all pages."""

    run: str | None
    total: int
    offset: int
    nodes: list[dict[str, str | None]]
