"""Results as pandas frames. pandas is optional: `pip install 'pubmark[frames]'`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pubmark import reading
from pubmark.errors import UnexpectedResponse, UsageError
from pubmark.rows import Entry

if TYPE_CHECKING:
    import pandas


def _pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise UsageError("tables need pandas, which is not installed", "pip install 'pubmark[frames]'") from None
    return pandas


#: Columns of names and other texts in tables of the server: pandas would read the type `007` as 7, and the version `1.10` as 1.1.
_TABLE_TEXTS = (
    *("run", "cell", "folder", "version", "type", "group", "where", "step", "metric", "part", "class"),
    *("node", "publisher_node", "subscriber_node", "label", "labels", "publisher_site", "subscriber_site"),
    *("unit", "failure"),
)
#: Columns of names and other texts in a message log, where a node is a number.
_LOG_TEXTS = ("type", "topic", "subscriber_group", "outcome")


def of_csv(source: str, what: str) -> pandas.DataFrame:
    """A table of the server. An empty field, which was not measured, is NaN; names and other texts stay as they are."""
    library = _pandas()
    try:
        frame = _read_csv(io.StringIO(source), _TABLE_TEXTS)
    except (library.errors.ParserError, library.errors.EmptyDataError) as error:
        raise UnexpectedResponse(f"{what} is not CSV: {error}") from None
    return frame


def _read_csv(source: IO[str] | Path, texts: tuple[str, ...]) -> pandas.DataFrame:
    """A frame of CSV with these columns of texts, as far as it has them."""
    frame: pandas.DataFrame = _pandas().read_csv(
        source, keep_default_na=False, na_values=[""], dtype=dict.fromkeys(texts, str)
    )
    return frame


#: Media types of message logs by the ending of their file.
LOG_KINDS = {".parquet": "application/vnd.apache.parquet", ".csv": "text/csv", ".ndjson": "application/x-ndjson"}


def of_log(path: Path) -> pandas.DataFrame:
    """A message log: Parquet (needs pyarrow), CSV or NDJSON by its ending. What is not known is NaN."""
    library = _pandas()
    readers: dict[str, Any] = {
        ".parquet": library.read_parquet,
        ".csv": lambda file: _read_csv(file, _LOG_TEXTS),
        # JSON has types of its own: without `dtype=False`, a text that looks like a number becomes one.
        ".ndjson": lambda file: library.read_json(file, lines=True, dtype=False),
    }
    reader = readers.get(path.suffix)
    if reader is None:
        raise UnexpectedResponse(f"the message log `{path.name}` has none of the endings {', '.join(readers)}")
    try:
        frame: pandas.DataFrame = reader(path)
    except ImportError:
        raise UsageError("Parquet needs pyarrow, which is not installed", "pip install 'pubmark[parquet]'") from None
    except OSError as error:
        raise UsageError(f"failed to read the message log `{os.fspath(path)}`: {error.strerror or error}") from None
    return frame


#: Columns of a frame of runs, each with where a list has it.
_COLUMNS = ("id", "kind", "state", "name")
_FIGURES = ("verdict", "delivered", "expected", "holds_per_s")
_QUANTILES = ("p50_us", "p99_us", "max_us")


def of_entries(entries: list[Entry]) -> pandas.DataFrame:
    """One row a run. A latency has a column for each bound, µs; what was not measured is NaN or None."""
    frame: pandas.DataFrame = _pandas().DataFrame([_row(entry) for entry in entries], columns=_names())
    return frame


def _names() -> list[str]:
    bounds = [f"{bound}_{quantile}" for quantile in _QUANTILES for bound in ("lower", "upper")]
    return [*_COLUMNS, "systems", "started_at", *_FIGURES, *bounds]


def _row(entry: Entry) -> dict[str, Any]:
    headline = _part(entry, "headline")
    latency = _part(headline, "latency")
    row: dict[str, Any] = {name: entry.get(name) for name in _COLUMNS}
    row["systems"] = ", ".join(entry["systems"])
    row["started_at"] = entry.get("started_at")
    row.update({name: headline.get(name) for name in _FIGURES})
    for bound in ("lower", "upper"):
        quantiles = _part(latency, bound)
        row.update({f"{bound}_{name}": quantiles.get(name) for name in _QUANTILES})
    return row


def _part(whole: Mapping[str, Any], name: str) -> dict[str, Any]:
    """An object in another one; empty where there is none."""
    found = whole.get(name)
    return {} if found is None else reading.mapping(found, f"`{name}` of a run in the list")
