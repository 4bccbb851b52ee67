"""The commonest figures of a record under short names. What was not measured is None, never 0."""

from __future__ import annotations

from typing import Any, cast

from pubmark import reading
from pubmark.errors import UnexpectedResponse, UsageError
from pubmark.interval import Interval
from pubmark.rows import Kind, Verdict

#: The version of records that these names belong to.
SCHEMA_VERSION = 2
_VERDICTS = ("valid", "suspect", "invalid")


class Figures:
    """Reads figures from `record`, which a subclass has."""

    @property
    def id(self) -> str:
        """Its name on the server."""
        raise NotImplementedError

    @property
    def kind(self) -> Kind:
        """`run`, `experiment` or `capacity`."""
        raise NotImplementedError

    @property
    def record(self) -> dict[str, Any]:
        """The record as JSON."""
        raise NotImplementedError

    @property
    def verdict(self) -> Verdict:
        """How far the run may be believed: `valid`, `suspect` or `invalid`."""
        status = self._group("verdict").get("status")
        if status not in _VERDICTS:
            raise UnexpectedResponse(f"`verdict.status` of the record is none of {', '.join(_VERDICTS)}")
        return cast(Verdict, status)

    @property
    def reasons(self) -> list[str]:
        """Why it is not valid, each with its code: `pubmark explain CODE` says more."""
        found = reading.rows(self._group("verdict").get("reasons"), "`verdict.reasons` of the record")
        return [f"{row.get('code')}: {row.get('text')}" for row in found]

    @property
    def expected(self) -> int:
        """Messages that subscribers should have received."""
        return self._count("expected")

    @property
    def delivered(self) -> int:
        """Messages that arrived, first copies alone."""
        return self._count("delivered")

    @property
    def lost(self) -> int:
        """Messages that were expected and did not arrive."""
        return self._count("lost")

    @property
    def duplicated(self) -> int:
        """Further copies of messages that were delivered."""
        return self._count("duplicated")

    @property
    def delivered_per_s(self) -> float | None:
        """Messages delivered per second of the measured window."""
        found = self._group("throughput").get("delivered_per_s")
        return reading.maybe_number(found, "`throughput.delivered_per_s` of the record")

    @property
    def p50(self) -> Interval | None:
        """Median latency from the due time; None with too few messages, as of the others."""
        return self.latency("p50")

    @property
    def p95(self) -> Interval | None:
        """95th percentile of the latency."""
        return self.latency("p95")

    @property
    def p99(self) -> Interval | None:
        """99th percentile of the latency."""
        return self.latency("p99")

    @property
    def p999(self) -> Interval | None:
        """99.9th percentile of the latency."""
        return self.latency("p999")

    @property
    def max_latency(self) -> Interval | None:
        """Largest latency."""
        return self.latency("max")

    def latency(self, statistic: str, of: str = "total") -> Interval | None:
        """A statistic of the latency: `p50`, `p99`, `mean`, `max` and those that the record has beside them.

        `of` is `total` (from the due time) or `service` (from the start of the write).
        """
        what = f"`latency.{of}` of the record"
        latency = self._group("latency").get(of)
        if latency is None:
            if of not in ("total", "service"):
                raise UsageError(f"there is no latency `{of}`", "`of` is `total` or `service`")
            return None
        bounds = reading.mapping(latency, what)
        upper = reading.mapping(bounds.get("upper"), f"`upper` of {what}")
        key = f"{statistic}_us"
        if key not in _STATISTICS:
            raise UsageError(
                f"there is no statistic `{statistic}`", f"they are {', '.join(name[:-3] for name in _STATISTICS)}"
            )
        upper_us = reading.maybe_number(upper.get(key), f"`upper.{key}` of {what}")
        lower = bounds.get("lower")
        lower_us = None
        if lower is not None:
            lower_us = reading.maybe_number(
                reading.mapping(lower, f"`lower` of {what}").get(key), f"`lower.{key}` of {what}"
            )
        return None if upper_us is None else Interval(lower_us, upper_us)

    def _count(self, name: str) -> int:
        return reading.count(self._group("delivery").get(name), f"`delivery.{name}` of the record")

    def _group(self, name: str) -> dict[str, Any]:
        if self.kind != "run":
            raise UsageError(
                f"`{self.id}` is of kind {self.kind}, and has such figures for each of its runs only",
                "`table()` has a row for each; `record` has all of them",
            )
        record = self.record
        version = record.get("schema_version")
        if version != SCHEMA_VERSION:
            raise UnexpectedResponse(
                f"the record has schema version {reading.plain(str(version))}, and this package reads {SCHEMA_VERSION}",
                "install the package of the server's version; `record` has the record as it is",
            )
        return reading.mapping(record.get(name), f"`{name}` of the record")


_STATISTICS = ("min_us", "mean_us", "p25_us", "p50_us", "p75_us", "p90_us", "p95_us", "p99_us", "p999_us", "max_us")
