"""The life of runs on a real server: submitted, followed, read, checked, cancelled."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from pathlib import Path

import pytest

import pubmark

EXPERIMENT = """
name: tiny
title: Tiny
description: Two levels.
workload: hello
duration: 1s
warmup: 0s
repeat: 1
axes: {system: builtin, protocol: mqtt5, qos: [0, 1]}
"""


def waited_for_load(run: pubmark.Run) -> None:
    """Waits until messages are measured."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        progress = run.refresh().entry["progress"]
        if progress is not None and progress["delivered"] > 0:
            return
        time.sleep(0.1)
    pytest.fail("no message was delivered")


def test_a_run_is_waited_for_and_read(client: pubmark.Client, run: pubmark.Run) -> None:
    assert (run.state, run.kind, run.is_over) == ("complete", "run", True)
    record = run.record
    assert record["workload"]["name"] == "smart-home"
    assert run.verdict == record["verdict"]["status"]
    assert len(run.reasons) == len(record["verdict"]["reasons"])
    assert run.delivered == record["delivery"]["delivered"] > 0
    assert run.expected == run.delivered + run.lost + record["delivery"]["unknown"]
    assert run.delivered_per_s == record["throughput"]["delivered_per_s"]
    total = record["latency"]["total"]
    assert run.p50 == pubmark.Interval(total["lower"]["p50_us"], total["upper"]["p50_us"])
    assert run.p99 == pubmark.Interval(total["lower"]["p99_us"], total["upper"]["p99_us"])
    assert run.max_latency is not None
    assert run.max_latency.upper_us == total["upper"]["max_us"]
    assert run.p999 is None, "too few messages for it"
    assert run.id in repr(run)
    assert run.url == f"{client.url}/runs/{run.id}"
    assert run.report().startswith("<!DOCTYPE html>")
    assert isinstance(run.notes(), str)
    assert client.get(run.id).record == record
    assert client.get(run.entry["folders"][0]).record == record


def test_one_run_needs_no_client_of_its_own(client: pubmark.Client) -> None:
    assert client.runs_folder is not None
    token = (client.runs_folder / ".serve/token").read_text().strip()
    run = pubmark.run("hello", url=client.url, token=token, duration="1s", warmup="0s", timeout_s=60)
    assert (run.state, run.record["workload"]["name"]) == ("complete", "hello")
    with pytest.raises(pubmark.RequestRefused, match="helo"):
        pubmark.run("helo", url=client.url, token=token)


def test_events_come_in_order_and_end(client: pubmark.Client) -> None:
    run = client.submit("hello", duration="2s", warmup=timedelta(seconds=1))
    events = list(run.events(timeout_s=60))
    kinds = [event["event"] for event in events]
    assert kinds[0] == "begins"
    assert kinds.count("begins") == 1
    assert kinds[-1] == "end"
    assert kinds.count("progress") >= 3
    assert [event["phase"] for event in events if event["event"] == "phase"] == [
        "subscribe", "connect", "warm-up", "measure", "drain", "collect",
    ]  # fmt: skip
    assert run.wait(timeout_s=10).state == "complete"
    assert list(run.events(timeout_s=10)) == events, "they can be read again"
    assert run.record["settings"]["warmup_s"] == 1.0


def test_checks_pass_fail_and_count_from_a_baseline(client: pubmark.Client, run: pubmark.Run) -> None:
    # A busy machine may make the run invalid, which no check passes.
    is_usable = run.verdict != "invalid"
    met = client.check(run, require="max<60s,loss=0")
    assert bool(met) is met.passed is is_usable
    assert {check.name: check.outcome for check in met.checks}["loss=0"] == "passed"
    assert "loss=0" in str(met)
    missed = run.check(require="lost>5")
    assert not missed
    assert not missed.undecided
    assert {check.name: check.outcome for check in missed.checks}["lost>5"] == "failed"
    assert run.p50 is not None
    assert run.p50.lower_us is not None
    assert run.p50.lower_us < run.p50.upper_us
    between = (run.p50.lower_us + run.p50.upper_us) / 2
    assert run.p50.is_below(between) is None
    undecided = client.check(run, require=f"p50<{between:.3f}us")
    assert not undecided
    assert undecided.undecided is is_usable
    assert bool(client.check(run, fail_on="delivered<-5%", baseline=run.id)) is is_usable


def test_a_run_is_cancelled_in_order(client: pubmark.Client) -> None:
    run, waiting = client.submit("smart-home", duration="120s", warmup="0s"), client.submit("hello", duration="1s")
    assert waiting.entry["position"] == 1
    waited_for_load(run)
    with pytest.raises(pubmark.Conflict, match=r"no (record|results) yet"):
        _ = run.record
    assert waiting.cancel().state == "cancelled"
    assert run.cancel().state == "cancelling"
    assert run.wait(timeout_s=60).state == "cancelled"
    assert run.record["run"]["status"] == "interrupted"
    assert run.delivered > 0
    with pytest.raises(pubmark.RunFailed, match="is cancelled"):
        run.raise_unless_complete()
    with pytest.raises(pubmark.Conflict, match="has already ended: cancelled"):
        run.cancel()
    with pytest.raises(pubmark.RunFailed, match="is cancelled"):
        _ = waiting.record


def test_a_wait_that_is_too_short_leaves_the_run_alone(client: pubmark.Client) -> None:
    with pytest.raises(pubmark.DeadlineExceeded) as late:
        client.run("hello", duration="3s", timeout_s=0.5)
    assert late.value.run is not None
    assert late.value.run.wait(timeout_s=60).state == "complete"


def test_an_interrupted_wait_cancels_the_run(client: pubmark.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pubmark.deadline.time.sleep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        client.run("smart-home", duration="120s")
    monkeypatch.undo()
    assert client.runs(limit=1)[0].wait(timeout_s=60).state == "cancelled"


def test_an_experiment_and_a_search_have_tables(client: pubmark.Client, tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(EXPERIMENT)
    experiment = client.experiment("tiny.yaml", wait="0s", timeout_s=120)
    assert experiment.kind == "experiment"
    assert len(experiment.record["cells"]) == 2
    assert set(experiment.table()["qos"]) == {0, 1}
    search = client.capacity("hello", within="3s", duration="1s", warmup="0s", slo="loss=0", timeout_s=120)
    assert len(search.table()) == len(search.record["trials"]) > 0
    for other in (experiment, search):
        with pytest.raises(pubmark.UsageError, match="for each of its runs only"):
            _ = other.p99
        with pytest.raises(pubmark.NotFound, match="there is no table"):
            other.table("series")
    window = {"duration": "1s", "warmup": "0s"}
    choice = client.choose(
        "hello", objectives="loss=0", candidates=["builtin"], headroom=False, window=window, timeout_s=120
    )
    assert choice.kind == "choice"
    assert set(choice.table()["candidate"]) == {"builtin"}
    by_text = client.submit_document(EXPERIMENT)
    assert by_text.kind == "experiment"
    assert by_text.cancel().wait(timeout_s=60).is_over


def test_a_workload_of_a_file_and_a_specification_are_submitted(client: pubmark.Client, tmp_path: Path) -> None:
    assert client.runs_folder is not None
    first = client.run("hello", duration="1s", warmup="0s", seed=7, timeout_s=60)
    specification = (client.runs_folder / first.entry["folders"][0] / "run.yaml").read_text()
    again = client.submit_document(specification).wait(timeout_s=60)
    assert again.record["workload"]["schedule_hash"] == first.record["workload"]["schedule_hash"]
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\ndevices: 7\n")
    with pytest.raises(pubmark.RequestRefused) as refused:
        client.submit(file)
    assert refused.value.status == 422
    assert refused.value.place is not None
    assert (refused.value.place.file, refused.value.place.line) == ("mine.yaml", 2)
    assert "mine.yaml:2:" in str(refused.value)


def test_repetitions_have_records_of_their_own(client: pubmark.Client) -> None:
    run = client.run("hello", duration="1s", warmup="0s", repetitions=2, timeout_s=60)
    first, second = run.repetitions()
    assert [one.record["run"]["repetition"] for one in (first, second)] == [1, 2]
    assert run.record == second.record
    assert first.id != second.id
    headlines = [one.refresh().entry["headline"] for one in (first, second)]
    assert [one and one["folder"] for one in headlines] == [first.id, second.id]
    assert [one.entry["headline"] for one in run.repetitions()] == headlines
    assert list(client.frame([first, second])["id"]) == [first.id, second.id]


def test_runs_are_listed_filtered_and_in_pages(
    client: pubmark.Client, run: pubmark.Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = client.runs(
        f"workload=smart-home verdict={run.verdict}", state="complete", kind="run", sort="oldest", limit=None
    )
    assert run.id in [one.id for one in found]
    everything = client.runs(limit=None)
    monkeypatch.setattr("pubmark.client._PAGE", 2)
    assert [one.id for one in client.runs(limit=None)] == [one.id for one in everything]
    assert [one.id for one in client.runs(limit=3)] == [one.id for one in everything[:3]]
    assert client.runs(since="2h", limit=1)


def test_what_is_built_in_is_listed(client: pubmark.Client) -> None:
    assert "builtin" in [system["name"] for system in client.systems()]
    assert "smart-home" in [workload["name"] for workload in client.workloads()]
    for rows in (client.experiments(), client.protocols(), client.links(), client.doctor()):
        assert all(row["name"] for row in rows)
        assert rows
    assert client.nodes() == {"run": None, "total": 0, "offset": 0, "nodes": []}
    assert client.validate(json.dumps({"workload": "hello"}))["kind"] == "run"
