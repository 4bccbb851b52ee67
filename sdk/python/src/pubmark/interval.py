"""A latency is known as an interval: the system's own latency lies between both bounds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """Bounds of a latency, µs (docs/explanation/latency-intervals.md)."""

    #: Without the delays of pubmark itself; None where it was not measured.
    lower_us: float | None
    #: As it was measured: the delays of pubmark are in it.
    upper_us: float

    def is_below(self, limit_us: float) -> bool | None:
        """Is the latency below a limit? None if the limit lies between both bounds, so that it is not known.

        Without a lower bound, a latency that is not known to be below the limit is undecided.

        Only both bounds are compared. If the verdict of the run says that the system was held up (V01, V02, V06, V18 or
        V28 in its reasons), the system alone could have been faster, and a False is not known: `Client.check` leaves such
        a limit undecided.
        """
        if self.upper_us < limit_us:
            return True
        if self.lower_us is not None and self.lower_us >= limit_us:
            return False
        return None

    def __str__(self) -> str:
        if self.lower_us is None:
            return f"at most {_milliseconds(self.upper_us)} ms"
        return f"{_milliseconds(self.lower_us)}–{_milliseconds(self.upper_us)} ms"


def _milliseconds(us: float) -> str:
    """Three significant digits, or whole microseconds where those are fewer; never in powers of ten."""
    ms = us / 1e3
    places = 0 if ms >= 100 else 1 if ms >= 10 else 2 if ms >= 1 else 3
    return f"{ms:.{places}f}"
