"""The package agrees with the description of the interface, and can be installed with its types."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import pubmark
from pubmark import rows, submission

FOLDER = Path(__file__).parents[1]
SCHEMAS: dict[str, Any] = json.loads((FOLDER / "../../docs/reference/openapi.json").read_text())["components"][
    "schemas"
]


@pytest.mark.parametrize(
    ("mine", "name"),
    [
        (rows.Entry, "RunEntry"),
        (rows.Note, "Note"),
        (rows.Headline, "Headline"),
        (rows.Bounds, "TrialLatency"),
        (rows.Quantiles, "TrialQuantiles"),
        (rows.Failure, "Failure"),
        (rows.Validated, "Validated"),
        (rows.System, "SystemRow"),
        (rows.Workload, "WorkloadRow"),
        (rows.Experiment, "ExperimentRow"),
        (rows.Protocol, "ProtocolRow"),
        (rows.Link, "LinkRow"),
        (rows.Finding, "DoctorRow"),
        (pubmark.Check, "CheckRow"),
        (pubmark.Checked, "Checked"),
    ],
)
def test_types_of_what_is_read_have_the_fields_of_the_interface(mine: type, name: str) -> None:
    assert sorted(get_type_hints(mine)) == sorted(SCHEMAS[name]["properties"])


@pytest.mark.parametrize(
    ("mine", "name", "head"),
    [
        (submission.RunFields, "RunSubmission", {"workload"}),
        (submission.Metric, "MetricProgram", set()),
        (submission.ExperimentFields, "ExperimentSubmission", {"experiment", "text"}),
        (submission.CapacityFields, "CapacitySubmission", {"capacity"}),
        (submission.ChoiceFields, "Requirements", {"workload"}),
    ],
)
def test_types_of_what_is_submitted_have_the_fields_of_the_interface(mine: type, name: str, head: set[str]) -> None:
    assert set(get_type_hints(mine)) | head == set(SCHEMAS[name]["properties"])


@pytest.mark.parametrize(
    ("mine", "name"), [(rows.State, "State"), (rows.Kind, "Kind"), (rows.Verdict, "VerdictStatus")]
)
def test_words_are_those_of_the_interface(mine: Any, name: str) -> None:
    words = [word for choice in SCHEMAS[name]["oneOf"] for word in choice.get("enum", [choice.get("const")])]
    assert sorted(get_args(mine)) == sorted(words)


def test_the_orders_of_a_list_are_those_of_the_interface() -> None:
    documented = re.search(
        r"`sort` is an order of `GET /runs`:(.*?)\. A folder", pubmark.Client.runs.__doc__ or "", re.DOTALL
    )
    assert documented is not None
    words = [word for choice in SCHEMAS["Sort"]["oneOf"] for word in choice.get("enum", [choice.get("const")])]
    assert sorted(re.findall(r"`(\w+)`", documented[1])) == sorted(words)


def test_the_version_is_that_of_the_program(program: str) -> None:
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert printed.split()[1] == pubmark.__version__


def test_what_is_installed_has_every_module_and_its_types(tmp_path: Path) -> None:
    # In a copy: building writes beside the sources.
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(FOLDER), str(copy)], check=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-q",
        "-w",
        str(tmp_path),
        str(copy),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ, "PIP_NO_INPUT": "1"})
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {f"pubmark/{path.name}" for path in (FOLDER / "src/pubmark").iterdir() if path.is_file()}
    assert sources <= names
    assert "pubmark/py.typed" in names


@pytest.mark.parametrize(
    "command",
    [["mypy"], ["ruff", "check", ".", "../../contrib/ci"], ["ruff", "format", "--check", ".", "../../contrib/ci"]],
)
def test_sources_pass_the_checks_of_types_and_style(command: list[str], tmp_path: Path) -> None:
    environment = {**os.environ, "RUFF_CACHE_DIR": str(tmp_path)}
    program = [sys.executable, "-m", *command]
    done = subprocess.run(program, cwd=FOLDER, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
