"""Reads what a server sent. Nothing in it is trusted: what has another form than the interface says is an `UnexpectedResponse`."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from typing import Any, NoReturn

from pubmark.errors import UnexpectedResponse

#: Longest text of a server that becomes part of a message, characters.
SHOWN = 2_000
#: What a run can be called: a submission, or a folder of results.
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}\Z")


def document(text: bytes, what: str) -> Any:
    """JSON. Deep nesting, invalid UTF-8, and the constants NaN and Infinity, which JSON does not have, are refused."""
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UnexpectedResponse(f"{what} is not JSON: {plain(reason)}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def mapping(value: Any, what: str) -> dict[str, Any]:
    """An object."""
    if not isinstance(value, dict):
        raise UnexpectedResponse(f"{what} is not an object")
    return value


def rows(value: Any, what: str) -> list[dict[str, Any]]:
    """A list of objects."""
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise UnexpectedResponse(f"{what} is not a list of objects")
    return value


def text(value: Any, what: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise UnexpectedResponse(f"{what} is not a text")
    return value


def maybe_text(value: Any, what: str) -> str | None:
    """A text, or null."""
    return None if value is None else text(value, what)


def texts(value: Any, what: str) -> list[str]:
    """A list of texts."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UnexpectedResponse(f"{what} is not a list of texts")
    return value


def flag(value: Any, what: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise UnexpectedResponse(f"{what} is neither true nor false")
    return value


def count(value: Any, what: str) -> int:
    """A count of something."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UnexpectedResponse(f"{what} is not a count")
    return value


def maybe_number(value: Any, what: str) -> float | None:
    """A finite number, or null for what was not measured."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UnexpectedResponse(f"{what} is not a number")
    return float(value)


def is_name(value: str) -> bool:
    """Can a run be called so? Such a name is one component of a path."""
    return _NAME.match(value) is not None


def plain(value: str) -> str:
    """A text of others for a message: control characters are written out, and it is cut to `SHOWN` characters."""
    shown = value if len(value) <= SHOWN else value[:SHOWN] + "…"
    return "".join(_shown(letter) for letter in shown)


def _shown(letter: str) -> str:
    is_control = unicodedata.category(letter) in ("Cc", "Cf", "Cs") and letter not in "\n\t"
    return f"\\u{ord(letter):04x}" if is_control else letter
