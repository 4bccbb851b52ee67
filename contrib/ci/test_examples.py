"""The examples, as a runner executes them: each step by a shell, with the real program, until one fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
#: A short run; limits that no machine misses.
VALUES = {"WORKLOAD": "hello", "WARMUP": "0s", "DURATION": "2s", "LIMITS": "max<60s,loss=0", "REGRESSIONS": "loss>50%"}
NAMES = ("github.yml", "gitlab.yml")


@dataclass(frozen=True)
class Example:
    """An example as data."""

    variables: dict[str, str]
    #: Each a script, in order.
    steps: list[str]
    #: Those that run after a failure, too.
    always: list[str]
    #: Paths that are uploaded.
    paths: list[str]
    #: Exit codes that are no failure.
    allowed: list[int]


def example(name: str) -> Example:
    found: dict[str, Any] = yaml.safe_load((HERE / name).read_text())
    if name == "github.yml":
        steps = found["jobs"]["benchmark"]["steps"]
        scripts = [step["run"] for step in steps if "run" in step and "if" not in step]
        always = [step["run"] for step in steps if "run" in step and "if" in step]
        (upload,) = (step for step in steps if step.get("uses", "").startswith("actions/upload-artifact@"))
        return Example(found["env"], scripts, always, upload["with"]["path"].split(), [])
    job = found["benchmark"]
    artifacts = job["artifacts"]
    assert artifacts["when"] == "always"
    # The lines of both are one script for a runner's shell.
    script = "\n".join([*job["before_script"], *job["script"]])
    paths = [*artifacts["paths"], *artifacts["reports"]["junit"]]
    return Example(job["variables"], [script], [], paths, [job["allow_failure"]["exit_codes"]])


class Runner:
    """A folder with the program on the PATH, in which steps are executed."""

    def __init__(self, folder: Path, program: str | None = None) -> None:
        program = program or os.environ.get("PUBMARK")
        if program is None:
            pytest.fail("set PUBMARK to the program: PUBMARK=target/debug/pubmark", pytrace=False)
        self.folder = folder / "work"
        self.folder.mkdir()
        (folder / "bin").mkdir()
        (folder / "bin/pubmark").symlink_to(Path(program).absolute())
        self.summary = folder / "summary.md"
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        #: Variables that a step of GitHub leaves for the next ones.
        self._left = folder / "environment"
        self._left.touch()
        github = {"GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_ENV": str(self._left)}
        self._environment = {"PATH": path, "HOME": str(folder), "CI": "true", **github}
        self.printed = ""

    def step(self, script: str, values: dict[str, str]) -> int:
        """Executes a script; gives its exit code."""
        left = dict(line.split("=", 1) for line in self._left.read_text().splitlines())
        done = subprocess.run(
            ["sh", "-e", "-c", script],
            cwd=self.folder,
            env={**self._environment, **left, **values},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        self.printed += done.stdout
        return done.returncode

    def job(self, found: Example, **values: str) -> int:
        """All steps until one fails, then those that run always; the code of the first failure, or 0."""
        known = {**found.variables, **VALUES, **values}
        code = 0
        for script in found.steps:
            code = code or self.step(script, known)
        for script in found.always:
            assert self.step(script, known) == 0, self.printed
        return code

    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "runs/latest/record.json").read_text())
        return found

    def cases(self, file: str = "checks.xml") -> dict[str, ElementTree.Element]:
        """Test cases of a JUnit file by name."""
        suites = ElementTree.parse(self.folder / file).getroot()
        return {case.attrib["name"]: case for case in suites.iter("testcase")}


def unless_invalid(runner: Runner, code: int) -> int:
    """The code that is expected: an invalid run, which a busy machine may give, fails whatever the limits say."""
    return 5 if runner.record()["verdict"]["status"] == "invalid" else code


def of_change(runner: Runner, found: Example, code: int) -> set[int]:
    """The codes that are expected of a change. Of a baseline that is invalid, some figures are not compared."""
    verdict = json.loads((runner.folder / "baseline/record.json").read_text())["verdict"]["status"]
    undecided = {8 if found.allowed == [8] else 0} if verdict == "invalid" else set()
    return {unless_invalid(runner, expected) for expected in {code} | undecided}


@pytest.mark.parametrize("name", NAMES)
def test_a_run_within_its_limits_passes(name: str, tmp_path: Path) -> None:
    runner, found = Runner(tmp_path), example(name)
    code = runner.job(found)
    assert code == unless_invalid(runner, 0), runner.printed
    assert runner.cases()["loss=0"].find("failure") is None
    assert (runner.folder / "runs/latest/report.html").is_file()
    assert "runs/" in found.paths
    assert "checks.xml" in found.paths
    if found.always:
        assert "hello" in runner.summary.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_missed_limit_fails_with_its_report_and_its_case(name: str, tmp_path: Path) -> None:
    runner, found = Runner(tmp_path), example(name)
    code = runner.job(found, LIMITS="lost>5")
    assert code == unless_invalid(runner, 3), runner.printed
    assert runner.cases()["lost>5"].find("failure") is not None
    assert (runner.folder / "runs/latest/report.html").is_file()
    if found.always:
        assert "hello" in runner.summary.read_text()


@pytest.mark.parametrize("name", NAMES)
def test_a_regression_fails(name: str, tmp_path: Path) -> None:
    runner, found = Runner(tmp_path), example(name)
    assert runner.job(found) == unless_invalid(runner, 0), runner.printed
    latest = (runner.folder / "runs/latest").resolve()
    shutil.copytree(latest, runner.folder / "baseline")
    # The same load as before is no regression; nor is it a fifth more.
    assert runner.job(found, REGRESSIONS="delivered<-50%") in of_change(runner, found, 0), runner.printed
    assert runner.job(found, REGRESSIONS="delivered<+20%") in of_change(runner, found, 4), runner.printed
    assert (runner.folder / "regressions.xml").is_file()
    assert "regressions.xml" in found.paths


def check_again(runner: Runner, found: Example, **values: str) -> int:
    """Checks the last run again, without another one."""
    (check,) = (script for script in found.steps if "--require" in script)
    check = "\n".join(line for line in check.splitlines() if "pubmark run" not in line)
    return runner.step(check, {**found.variables, **VALUES, **values})


def between_the_bounds(runner: Runner) -> str:
    """A latency that the largest one of the last run can be told from neither way."""
    latency = runner.record()["latency"]["total"]
    lower, upper = (latency[bound]["max_us"] for bound in ("lower", "upper"))
    assert lower < upper
    return f"{(lower + upper) / 2:.0f}us"


@pytest.mark.parametrize("name", NAMES)
def test_an_undecided_limit_is_a_warning(name: str, tmp_path: Path) -> None:
    runner, found = Runner(tmp_path), example(name)
    runner.job(found)
    code = check_again(runner, found, LIMITS=f"max<{between_the_bounds(runner)}")
    assert code == unless_invalid(runner, 8 if found.allowed == [8] else 0), runner.printed
    if not found.allowed and code == 0:
        assert "::warning::" in runner.printed


@pytest.mark.parametrize("name", NAMES)
def test_an_undecided_regression_is_a_warning_and_hides_no_missed_limit(name: str, tmp_path: Path) -> None:
    runner, found = Runner(tmp_path), example(name)
    runner.job(found)
    shutil.copytree((runner.folder / "runs/latest").resolve(), runner.folder / "baseline")
    (runner.folder / "checks.xml").unlink()
    regressions = f"delivered<-50%,max>{between_the_bounds(runner)}"
    code = check_again(runner, found, REGRESSIONS=regressions)
    assert code == unless_invalid(runner, 8 if found.allowed == [8] else 0), runner.printed
    assert runner.cases("checks.xml").keys() >= {"loss=0"}, "limits are checked, too"
    assert check_again(runner, found, REGRESSIONS=regressions, LIMITS="lost>5") == unless_invalid(runner, 3)
    assert runner.cases("checks.xml")["lost>5"].find("failure") is not None


@pytest.mark.parametrize("name", NAMES)
def test_a_missed_or_undecided_limit_hides_no_regression(name: str, tmp_path: Path) -> None:
    runner, found = Runner(tmp_path), example(name)
    runner.job(found)
    shutil.copytree((runner.folder / "runs/latest").resolve(), runner.folder / "baseline")
    worse = "delivered<+20%"
    undecided = f"max<{between_the_bounds(runner)}"
    assert check_again(runner, found, LIMITS=undecided, REGRESSIONS=worse) == unless_invalid(runner, 4), runner.printed
    (runner.folder / "regressions.xml").unlink()
    assert check_again(runner, found, LIMITS="lost>5", REGRESSIONS=worse) == unless_invalid(runner, 3), runner.printed
    assert runner.cases("regressions.xml")[worse].find("failure") is not None


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_cannot_begin_fails_with_its_reason(name: str, tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    assert runner.job(example(name), WORKLOAD="no-such-workload") == 2
    assert "no-such-workload" in runner.printed
    assert "runs/latest" not in runner.printed, "nothing is checked"
    assert not (runner.folder / "checks.xml").exists()


#: Ends as the test says, and writes down what was checked.
STAND_IN = """#!/bin/sh
case "$*" in
  run*) mkdir -p runs/latest; exit "$RUN" ;;
  *--require*) echo limits >> checked; exit "$CHECKED" ;;
  *--baseline*) echo regressions >> checked; exit "$COMPARED" ;;
esac
"""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("run", "limits", "regressions", "expected"),
    [
        (0, 0, 0, 0),
        (3, 0, 0, 3),
        (8, 0, 0, 8),
        (8, 3, 0, 3),
        (8, 0, 4, 4),
        (8, 8, 8, 8),
        (3, 8, 4, 3),
        (0, 8, 4, 4),
        (5, 5, 5, 5),
        (0, 2, 0, 2),
    ],
)
def test_the_worst_code_of_the_run_and_of_both_checks_is_that_of_the_job(
    name: str, run: int, limits: int, regressions: int, expected: int, tmp_path: Path
) -> None:
    program = tmp_path / "stand-in"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    runner, found = Runner(tmp_path, str(program)), example(name)
    (runner.folder / "baseline").mkdir()
    code = runner.job(found, RUN=str(run), CHECKED=str(limits), COMPARED=str(regressions))
    assert code == (0 if expected == 8 and not found.allowed else expected), runner.printed
    assert ("::warning::" in runner.printed) == (expected == 8 and not found.allowed)
    assert (runner.folder / "checked").read_text().split() == ["limits", "regressions"], "whatever the run's code is"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("code", [1, 2, 6, 7, 130])
def test_a_run_without_a_record_ends_the_job(name: str, code: int, tmp_path: Path) -> None:
    program = tmp_path / "stand-in"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    runner = Runner(tmp_path, str(program))
    assert runner.job(example(name), RUN=str(code)) == code
    assert not (runner.folder / "checked").exists()


def test_both_examples_have_the_same_values() -> None:
    first, second = (example(name).variables for name in NAMES)
    assert first == second
    assert set(VALUES) < set(first)
