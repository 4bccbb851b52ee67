"""What the tests share: the program under test, a server of it, one run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import pubmark


@pytest.fixture(scope="session")
def program() -> str:
    """The binary. Without it nothing here is tested, which is a failure."""
    found = os.environ.get("PUBMARK")
    if found is None:
        pytest.fail("set PUBMARK to the program: PUBMARK=target/debug/pubmark", pytrace=False)
    return str(Path(found).absolute())


@pytest.fixture(scope="session")
def client(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[pubmark.Client]:
    """A server for the tests that leave it as it is."""
    with pubmark.serve(tmp_path_factory.mktemp("server") / "runs", program=program) as client:
        yield client


@pytest.fixture(scope="session")
def run(client: pubmark.Client) -> pubmark.Run:
    """A run that has ended, with a message log."""
    return client.run(
        "smart-home", system="builtin", duration="4s", warmup="1s", scale=3, message_log="csv", timeout_s=60
    )


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment and the folder of whoever runs the tests decide nothing."""
    monkeypatch.delenv("PUBMARK_URL", raising=False)
    monkeypatch.delenv("PUBMARK_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
