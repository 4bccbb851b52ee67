"""What is submitted, as JSON. The server judges it; here is only what it cannot know: files and types of this side."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypedDict, get_type_hints

from pubmark.errors import UsageError

#: A name that the server knows, or a file of this machine.
Source = str | os.PathLike[str]
#: A time with its unit (`30s`, `2m`), or a `timedelta`.
Time = str | timedelta

#: Largest file that is sent, bytes; the server takes no larger request.
_FILE_BYTES = 2 << 20


class Metric(TypedDict, total=False):
    """A metric of your own: a program that reads the message log and prints a value (docs/how-to/metrics-of-your-own.md)."""

    name: str
    command: list[str]
    unit: str
    within: str


class RunFields(TypedDict, total=False):
    """Fields of a run (docs/reference/openapi.json, `RunSubmission`)."""

    spec_version: int
    system: str
    endpoint: str
    protocol: str
    duration: Time
    warmup: Time
    drain: Time
    scale: int
    rate: float
    qos: int
    seed: int
    tls: bool
    slo: str
    load: Mapping[str, Any]
    target: Mapping[str, Any]
    protocols: Mapping[str, Any]
    connection: Mapping[str, Any]
    window: Mapping[str, Any]
    generator: Mapping[str, Any]
    nodes: Mapping[str, Any]
    objectives: str
    message_log: Literal["parquet", "csv", "ndjson"]
    metrics: list[Metric]
    repetitions: int


class ExperimentFields(TypedDict, total=False):
    """Fields of an experiment (`ExperimentSubmission`)."""

    quick: bool
    only: list[str]
    repeat: int
    duration: Time
    warmup: Time
    wait: Time


class CapacityFields(TypedDict, total=False):
    """Fields of a search for capacity (`CapacitySubmission`)."""

    system: str
    endpoint: str
    protocol: str
    slo: str
    vary: Literal["rate", "scale"]
    qos: int
    profile: str
    limit: str
    links: list[str]
    faults: list[str]
    seed: int
    tls: bool
    user: str
    password: str
    within: Time
    duration: Time
    warmup: Time
    most: float


class ChoiceFields(TypedDict, total=False):
    """Fields of a choice of a system (`Requirements`)."""

    load: Mapping[str, Any]
    growth: float
    objectives: str
    recovery: Time
    resources: str
    needs: Mapping[str, Any]
    candidates: list[str | Mapping[str, Any]]
    within: Time
    headroom: bool
    window: Mapping[str, Any]
    exact_warmup: bool
    local_nodes: int
    nodes: int
    observers: int
    system_host: str
    system_node: str
    generator: Mapping[str, Any]
    connection: Mapping[str, Any]


#: Fields that are times.
_TIMES = ("duration", "warmup", "drain", "wait", "within", "recovery")


def run(source: Source, fields: RunFields) -> str:
    """A run."""
    path = _file(source)
    named: Any = os.fspath(source) if path is None else {"file_name": path.name, "text": _read(path)}
    return _document({"workload": named}, fields, RunFields)


def experiment(source: Source, fields: ExperimentFields) -> str:
    """An experiment."""
    path = _file(source)
    if path is None:
        return _document({"experiment": os.fspath(source)}, fields, ExperimentFields)
    return _document({"experiment": path.name, "text": _read(path)}, fields, ExperimentFields)


def capacity(source: Source, fields: CapacityFields) -> str:
    """A search for capacity."""
    path = _file(source)
    named: Any = os.fspath(source) if path is None else {"file_name": path.name, "text": _read(path)}
    return _document({"capacity": named}, fields, CapacityFields)


def choice(source: Source, fields: ChoiceFields) -> str:
    """A choice of a system."""
    path = _file(source)
    named: Any = os.fspath(source) if path is None else {"file_name": path.name, "text": _read(path)}
    given = {name: value for name, value in _checked(fields, ChoiceFields).items() if value is not None}
    return document({"choose": {"workload": named, **given}})


def _document(head: dict[str, Any], fields: Mapping[str, Any], known: type) -> str:
    return document({**head, **_checked(fields, known)})


def _checked(fields: Mapping[str, Any], known: type) -> dict[str, Any]:
    """The fields, all of which are known, with times as the server reads them."""
    names = list(get_type_hints(known))
    for name in fields:
        if name not in names:
            near = difflib.get_close_matches(name, [*names, "timeout_s"], 1)
            meant = f"; did you mean `{near[0]}`?" if near else ""
            raise UsageError(f"there is no field `{name}`{meant}", f"the fields are {', '.join(names)}")
    times = {name: _time(name, fields[name]) for name in _TIMES if fields.get(name) is not None}
    return {**fields, **times}


def document(fields: dict[str, Any]) -> str:
    """JSON with a line for each field, so that the line of a refusal is that of a field. What is None is left out."""
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return json.dumps(given, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise UsageError(f"a field cannot be written as JSON: {error}") from None


def utf8(text: str) -> str:
    """A text that can be sent."""
    if not isinstance(text, str):
        raise UsageError("a submission is a text", 'read the file first: `Path("run.yaml").read_text()`')
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"the text cannot be written as UTF-8: {error.reason}") from None
    return text


def _time(name: str, value: Any) -> str:
    """A time as the server reads it."""
    if isinstance(value, str):
        return value
    if isinstance(value, timedelta):
        return f"{value // timedelta(milliseconds=1)}ms"
    raise UsageError(f"`{name}` has no unit: {value!r}", f'write `{name}="{value}s"`')


def _file(source: Source) -> Path | None:
    if isinstance(source, str) and not source.endswith((".yaml", ".yml")):
        return None
    try:
        return Path(source)
    except TypeError:
        raise UsageError(f"a workload or experiment is a name or a file, and not {source!r}") from None


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _FILE_BYTES:
            raise UsageError(f"`{path}` is larger than {_FILE_BYTES >> 20} MiB, which the server does not take")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"failed to read `{path}`: {error.strerror}", "`client.workloads()` lists the names of those built in"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"`{path}` is not UTF-8") from None
