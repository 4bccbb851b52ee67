"""The programs of the document, executed as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pubmark

PAGE = Path(__file__).parents[3] / "docs/how-to/run-from-python.md"
PROGRAMS = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE.read_text(), re.DOTALL))


def executed(name: str, text: str, program: str) -> str:
    Path(name).write_text(text)
    source = str(Path(pubmark.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "PUBMARK": program}
    done = subprocess.run([sys.executable, name], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_program_prints_figures_and_a_frame(program: str) -> None:
    printed = executed("first.py", PROGRAMS["first.py"], program)
    assert re.search(r"\d+ of \d+ messages delivered", printed)
    assert re.search(r"p50 \S+–\S+ ms", printed)
    assert "t_s" in printed
    assert Path("runs/latest/report.html").is_file()


def test_the_program_that_follows_prints_progress(program: str) -> None:
    printed = executed("follow.py", PROGRAMS["follow.py"], program)
    assert re.search(r"measure \d+ of \d+", printed)
    assert "complete http://127.0.0.1:" in printed


def test_the_program_with_limits_prints_what_became_of_them(program: str) -> None:
    # A busy machine may make the run invalid, for which the program ends with 1.
    text = PROGRAMS["gate.py"].replace("raise SystemExit(1)", "print('failed:', run.verdict)")
    printed = executed("gate.py", text, program)
    assert "loss=0" in printed
    assert "failed:" not in printed or "failed: invalid" in printed


def test_the_program_for_a_server_that_runs_lists_its_runs(
    program: str, client: pubmark.Client, run: pubmark.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.runs_folder is not None
    monkeypatch.setenv("PUBMARK_TOKEN", (client.runs_folder / ".serve/token").read_text().strip())
    # A server of this machine in place of the lab's, and whatever its runs are.
    text = PROGRAMS["lab.py"].replace('"https://lab.example:7780", verify="certificate.pem"', f'"{client.url}"')
    text = text.replace('"verdict=valid", limit=10', f'"verdict={run.verdict}", limit=None')
    assert run.id in executed("lab.py", text, program)


def test_the_program_with_one_run_finds_the_server_of_its_environment(
    program: str, client: pubmark.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.runs_folder is not None
    monkeypatch.setenv("PUBMARK_URL", client.url)
    monkeypatch.setenv("PUBMARK_TOKEN", (client.runs_folder / ".serve/token").read_text().strip())
    printed = executed("one.py", PROGRAMS["one.py"], program)
    assert re.match(r"(valid|suspect|invalid) \S+–\S+ ms", printed), printed


def test_every_program_of_the_document_is_executed() -> None:
    assert sorted(PROGRAMS) == ["first.py", "follow.py", "gate.py", "lab.py", "one.py"]
    assert PAGE.read_text().count("```python") == len(PROGRAMS)
