"""Outcomes of limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pubmark import reading


@dataclass(frozen=True)
class Check:
    """A limit, or a change from a baseline, with its outcome."""

    #: Cell of an experiment; None in a run.
    cell: str | None
    #: What is checked: `p99<50ms`.
    name: str
    kind: str
    #: `passed`, `warned`, `failed`, `undecided` or `not-measured`.
    outcome: str
    #: Lower bound of the figure, the figure, and that of the baseline; None where there is none.
    lower: float | None
    value: float | None
    baseline: float | None
    #: In words.
    detail: str


@dataclass(frozen=True)
class Checked:
    """Outcomes of all limits. It is true if `passed` is: `assert client.check(run, require="loss=0")`."""

    #: Nothing failed, and nothing is undecided.
    passed: bool
    #: Something is undecided, and nothing failed.
    undecided: bool
    checks: tuple[Check, ...]
    notes: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        lines = (
            f"{check.outcome:12} {check.cell or ''}{' ' if check.cell else ''}{check.name}: {check.detail}"
            for check in self.checks
        )
        return "\n".join([*lines, *self.notes])


def of_response(value: Any) -> Checked:
    """Reads the response of `POST /check`."""
    what = "the response to the check"
    found = reading.mapping(value, what)
    return Checked(
        passed=reading.flag(found.get("passed"), f"`passed` of {what}"),
        undecided=reading.flag(found.get("undecided"), f"`undecided` of {what}"),
        checks=tuple(_check(row) for row in reading.rows(found.get("checks"), f"`checks` of {what}")),
        notes=tuple(reading.texts(found.get("notes"), f"`notes` of {what}")),
    )


def _check(row: dict[str, Any]) -> Check:
    def text(key: str) -> str:
        return reading.text(row.get(key), f"`{key}` of a check")

    def number(key: str) -> float | None:
        return reading.maybe_number(row.get(key), f"`{key}` of a check")

    return Check(
        cell=reading.maybe_text(row.get("cell"), "`cell` of a check"),
        name=text("name"),
        kind=text("kind"),
        outcome=text("outcome"),
        lower=number("lower"),
        value=number("value"),
        baseline=number("baseline"),
        detail=text("detail"),
    )
