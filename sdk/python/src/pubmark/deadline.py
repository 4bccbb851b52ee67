"""Deadlines: every wait has one."""

from __future__ import annotations

import math
import time

from pubmark.errors import UsageError


class Deadline:
    """A moment after which nothing is waited for any more."""

    def __init__(self, timeout_s: float) -> None:
        is_number = isinstance(timeout_s, int | float) and not isinstance(timeout_s, bool)
        if not is_number or not math.isfinite(timeout_s) or timeout_s <= 0:
            raise UsageError(
                f"`{timeout_s!r}` is no time to wait", "give seconds as a number, for instance `timeout_s=600`"
            )
        self.timeout_s = float(timeout_s)
        self._at = time.monotonic() + self.timeout_s

    def remaining_s(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self._at - time.monotonic())

    def is_over(self) -> bool:
        """Is it past?"""
        return self.remaining_s() == 0.0

    def sleep(self, seconds: float) -> None:
        """Sleeps, but not beyond it."""
        time.sleep(min(seconds, self.remaining_s()))
