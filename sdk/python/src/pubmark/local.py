"""Starts a server for a notebook, a script or continuous integration."""

from __future__ import annotations

import os
import random
import selectors
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Literal

from pubmark import reading
from pubmark.client import Client
from pubmark.deadline import Deadline
from pubmark.errors import PubmarkError, UsageError

Right = Literal["systems", "endpoints", "commands"]

#: Ports to choose from: from 32768 on, Linux gives them to clients.
_PORTS = range(20_000, 32_768)
#: Ports that are tried: another program may take one between the look and the start.
_ATTEMPTS = 5
#: Longest wait for the end of a server, whose run under way ends in order first, seconds.
_END_S = 60.0
#: What a server prints when it listens, and what it prints when it cannot.
_READY, _IN_USE = b"listening on ", "failed to listen"
#: Most of what a server prints at its start, bytes.
_PRINTED_BYTES = 64 << 10


@contextmanager
def serve(
    folder: str | os.PathLike[str] | None = None,
    *,
    allow: Sequence[Right] = (),
    program: str | os.PathLike[str] | None = None,
    start_timeout_s: float = 30.0,
) -> Iterator[Client]:
    """Starts `pubmark serve` on a free port of this machine, gives a client of it, and stops it at the end of the block.

    `folder` is the folder of results. Without one they are in a temporary folder, which is removed with the block.
    `allow` is what submissions may do beside running built-in workloads on the built-in broker: `systems`, `endpoints`, `commands`.
    `program` is the command, `pubmark` on the PATH if left out (or that of the environment variable `PUBMARK`).

    A run that is under way at the end of the block is interrupted, and its record is written. The same happens if Python is killed: the
    server ends when the pipe to it is closed. A temporary folder stays then.
    """
    command = _found(os.fspath(program) if program is not None else os.environ.get("PUBMARK", "pubmark"))
    if isinstance(allow, str):
        raise UsageError("`allow` is a list of rights", f'write `allow=["{allow}"]`')
    deadline = Deadline(start_timeout_s)
    with ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pubmark-"))) / "runs"
        runs = Path(folder).absolute()
        errors = stack.enter_context(tempfile.TemporaryFile())
        process, url = _started(command, runs, allow, errors, deadline)
        stack.callback(_stop, process)
        token = (runs / ".serve/token").read_text(encoding="ascii").strip()
        yield Client(url, token=token, runs_folder=runs)


def _found(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise UsageError(
            f"the program `{program}` is not there, or not executable",
            "put it on the PATH (`make install` in the repository of pubmark), or pass its file as `program=`",
        )
    return path


def _started(
    program: str, runs: Path, allow: Sequence[str], errors: IO[bytes], deadline: Deadline
) -> tuple[subprocess.Popen[bytes], str]:
    """A server that listens, and its URL."""
    for _ in range(_ATTEMPTS):
        command = [
            program,
            "serve",
            "--listen",
            f"127.0.0.1:{_free_port()}",
            "--runs",
            str(runs),
            "--until-stdin-closes",
        ]
        process = subprocess.Popen(
            [*command, *(["--allow", ",".join(allow)] if allow else [])],
            # The kernel closes it with this process, however that ends. Other processes that are started here do not inherit it.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # Ctrl-C of a terminal is for this program, which stops the server in order.
            start_new_session=True,
        )
        try:
            url = _url(process, deadline)
        except BaseException:
            _stop(process)
            raise
        if url is not None:
            return process, url
        _stop(process)
        errors.seek(0)
        reason = reading.plain(errors.read(_PRINTED_BYTES).decode("utf-8", errors="replace").strip())
        if _IN_USE not in reason:
            break
    raise PubmarkError(f"`{program} serve` ended with code {process.returncode}: {reason or 'it gave no reason'}")


def _free_port() -> int:
    for _ in range(100):
        port = random.choice(_PORTS)  # noqa: S311 (it protects nothing)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise PubmarkError(f"there is no free port from {_PORTS[0]} to {_PORTS[-1]}")


def _url(process: subprocess.Popen[bytes], deadline: Deadline) -> str | None:
    """The address that a server prints when it listens; None if it ended instead."""
    assert process.stdout is not None
    printed = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        # Two lines: the address, and where the token is, whose file is written before.
        while printed.count(b"\n") < 2:
            if len(printed) > _PRINTED_BYTES or not selector.select(deadline.remaining_s()):
                raise PubmarkError(f"`pubmark serve` did not listen within {deadline.timeout_s:g} s")
            chunk = os.read(process.stdout.fileno(), 4096)
            if not chunk:
                return None
            printed += chunk
    first = printed.splitlines()[0]
    if not first.startswith(_READY):
        raise PubmarkError("the program is no `pubmark serve`: it printed something else than its address")
    return first.removeprefix(_READY).decode("ascii", errors="replace")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends a server in order, or by force if it takes too long; one that has ended is left alone."""
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
