"""Frames hold what the record holds; what was not measured is NaN."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pandas
import pytest
from lying import lying, raw, response
from test_hostile import entry

import pubmark
from pubmark import frames


def test_frames_agree_with_the_record(run: pubmark.Run) -> None:
    record = run.record
    by_type = run.table()
    assert list(by_type["type"]) == [row["name"] for row in record["tables"]["by_type"]]
    for count in ("offered", "sent", "expected", "delivered", "lost"):
        assert list(by_type[count]) == [row["delivery"][count] for row in record["tables"]["by_type"]]
        assert by_type[count].sum() == record["delivery"][count]
    series = run.table("series")
    assert list(series["t_s"]) == [row["t_s"] for row in record["tables"]["series"]]
    assert list(series["delivered"]) == [row["delivered"] for row in record["tables"]["series"]]
    summary = run.table("summary").set_index(["figure", "statistic"])["value"]
    assert summary["delivery", "delivered"] == run.delivered
    assert math.isnan(summary["latency", "p99.9"]), "it was not measured"


def test_the_message_log_agrees_with_the_record(run: pubmark.Run) -> None:
    log = run.messages()
    assert (log["outcome"] == "delivered").sum() == run.delivered
    assert (log["outcome"] == "lost").sum() == run.lost
    assert run.max_latency is not None
    # The histogram of the record has three digits.
    assert log["latency_upper_ns"].max() / 1e3 == pytest.approx(run.max_latency.upper_us, rel=1e-3)


@pytest.mark.parametrize("form", ["parquet", "ndjson"])
def test_a_message_log_has_the_same_columns_in_each_form(client: pubmark.Client, run: pubmark.Run, form: str) -> None:
    other = client.submit("hello", duration="1s", warmup="0s", message_log="parquet" if form == "parquet" else "ndjson")
    log = other.wait(timeout_s=60).messages()
    assert set(log.columns) == set(run.messages().columns)
    assert (log["outcome"] == "delivered").sum() == other.delivered


@pytest.mark.parametrize("form", ["parquet", "csv", "ndjson"])
def test_a_message_log_is_sent_by_a_server_elsewhere(client: pubmark.Client, form: str) -> None:
    assert client.runs_folder is not None
    token = (client.runs_folder / ".serve/token").read_text().strip()
    away = pubmark.Client(client.url, token=token)
    run = client.submit_document(f"workload: hello\nduration: 1s\nwarmup: 0s\nmessage_log: {form}\n").wait(timeout_s=60)
    sent, read = away.get(run.id).messages(), run.messages()
    assert sent.equals(read)
    assert (sent["outcome"] == "delivered").sum() == run.delivered > 0


def test_a_message_log_that_is_cut_or_of_another_type_is_an_error() -> None:
    record = json.dumps({"run": {"name": "a"}, "message_log": {"file": "messages.csv"}})
    cut = raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/csv\r\ncontent-length: 100\r\n\r\na,b\n1,2\n")
    for script, error in ((cut, pubmark.ConnectionFailed), (response("a,b\n"), pubmark.UnexpectedResponse)):
        with lying(entry(), response(record), script) as (client, _), pytest.raises(error):
            client.submit("hello").messages()


def test_a_frame_of_runs_has_a_row_each(client: pubmark.Client, run: pubmark.Run) -> None:
    frame = client.frame([client.get(run.id)]).iloc[0]
    assert (frame["id"], frame["verdict"], frame["delivered"]) == (run.id, run.verdict, run.delivered)
    assert run.p50 is not None
    assert (frame["lower_p50_us"], frame["upper_p50_us"]) == (run.p50.lower_us, run.p50.upper_us)
    assert list(client.frame([]).columns) == list(client.frame([run]).columns)


def test_a_run_without_a_message_log_says_how_to_have_one(client: pubmark.Client) -> None:
    plain = client.run("hello", duration="1s", warmup="0s", timeout_s=60)
    with pytest.raises(pubmark.UsageError, match="message_log"):
        plain.messages()


def test_an_empty_field_is_nan_and_a_name_stays_a_name() -> None:
    frame = frames.of_csv("type,p99_us,delivered\nNA,,1\nnull,7.5,2\n", "x")
    assert list(frame["type"]) == ["NA", "null"]
    assert math.isnan(frame["p99_us"][0])
    assert frame["delivered"].dtype == "int64"


def test_a_name_that_looks_like_a_number_stays_a_name() -> None:
    frame = frames.of_csv("type,devices\n007,1\n1.0,2\n", "x")
    assert list(frame["type"]) == ["007", "1.0"]
    assert frame["devices"].dtype == "int64"
    cells = frames.of_csv("cell,scale,version,mean\na,10,1.10,0.5\nb,20,1.9,\n", "x")
    assert list(cells["version"]) == ["1.10", "1.9"]
    assert cells["scale"].dtype == "int64", "an axis of numbers is one"


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_names_in_a_message_log_stay_names(tmp_path: Path, form: str) -> None:
    columns = ("type", "topic", "node", "received_ns", "subscriber_group", "outcome")
    rows = [("NA", "007", 1, 7, "1.0", "delivered"), ("null", "1e3", 2, None, None, "no_subscriber")]
    written = {
        "csv": "".join(",".join("" if v is None else str(v) for v in row) + "\n" for row in [columns, *rows]),
        "ndjson": "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows),
    }
    path = tmp_path / f"messages.{form}"
    path.write_text(written[form])
    log = frames.of_log(path)
    assert [list(log[name]) for name in ("type", "topic", "outcome")] == [
        ["NA", "null"],
        ["007", "1e3"],
        ["delivered", "no_subscriber"],
    ]
    assert log["subscriber_group"][0] == "1.0"
    assert list(log["subscriber_group"].isna()) == list(log["received_ns"].isna()) == [False, True]
    assert log["node"].dtype == "int64"


@pytest.mark.parametrize("text", ["", "\n", 'a,b\n1,2,3\n"x'])
def test_a_table_of_another_form_is_a_clear_error(text: str) -> None:
    with pytest.raises(pubmark.UnexpectedResponse, match="is not CSV"):
        frames.of_csv(text, "x")


@pytest.mark.parametrize(
    "changes", [{"message_log": {"file": "../x.csv"}}, {"run": {"name": "../.."}}, {"message_log": 7}]
)
def test_a_record_cannot_lead_to_other_files(tmp_path: Path, changes: dict[str, object]) -> None:
    record = {"run": {"name": "a"}, "message_log": {"file": "messages.csv"}, **changes}
    with lying(entry(), response(json.dumps(record))) as (client, _):
        client.runs_folder = tmp_path
        with pytest.raises(pubmark.UnexpectedResponse):
            client.submit("hello").messages()


def test_without_pandas_everything_but_frames_works(run: pubmark.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert run.refresh().delivered > 0
    with pytest.raises(pubmark.UsageError, match=r"pip install 'pubmark\[frames\]'"):
        run.table()
    monkeypatch.undo()
    assert isinstance(run.table(), pandas.DataFrame)
