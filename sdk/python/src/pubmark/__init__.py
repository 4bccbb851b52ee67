"""A client of `pubmark serve`: submits runs, follows them, gives their results as Python values and pandas frames.

import pubmark

with pubmark.serve() as client:
    run = client.run("smart-home", duration="4s", warmup="1s")
    print(run.verdict, run.delivered, run.p99)
"""

from pubmark.checked import Check, Checked
from pubmark.client import Client, run
from pubmark.errors import (
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    NotAllowed,
    NotAuthorized,
    NotFound,
    Place,
    PubmarkError,
    PubmarkWarning,
    RequestRefused,
    RunFailed,
    UnexpectedResponse,
    UsageError,
)
from pubmark.interval import Interval
from pubmark.local import serve
from pubmark.runs import Run

__version__ = "0.1.0"

__all__ = [
    "Check",
    "Checked",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "DeadlineExceeded",
    "Interval",
    "NotAllowed",
    "NotAuthorized",
    "NotFound",
    "Place",
    "PubmarkError",
    "PubmarkWarning",
    "RequestRefused",
    "Run",
    "RunFailed",
    "UnexpectedResponse",
    "UsageError",
    "run",
    "serve",
]
