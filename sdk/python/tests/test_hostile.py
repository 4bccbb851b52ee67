"""Servers that lie: a clear error, within limits of time and memory, and the token shows nowhere."""

from __future__ import annotations

import gzip
import json
import logging
import re
import socket
import threading
import time
import traceback
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from lying import TOKEN, Script, endless, lying, raw, response, silent

import pubmark
from pubmark.connection import ANSWER_BYTES
from pubmark.events import EVENT_BYTES

ENTRY: dict[str, Any] = {
    "id": "a1",
    "kind": "run",
    "state": "complete",
    "position": None,
    "name": "hello",
    "systems": ["builtin"],
    "submitted_at": None,
    "started_at": None,
    "ended_at": None,
    "exit_code": 0,
    "folders": ["20260301-090507-hello"],
    "error": None,
    "headline": None,
    "progress": None,
}
CHUNKED = "HTTP/1.1 200 OK\r\ncontent-type: {}\r\ntransfer-encoding: chunked\r\n\r\n"
STREAM = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


def entry(**changes: Any) -> Script:
    return response(json.dumps({**ENTRY, **changes}))


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (response('{"name": '), "is not JSON"),
        (response(b'"\xff"'), "is not JSON"),
        (response("[" * 100_000 + "]" * 100_000), "nested too deeply"),
        (response('[{"devices": NaN}]'), "NaN is no JSON"),
        (response("1" * 10_000), "is not JSON"),
        (response("{}"), "is not a list of objects"),
        (response("[1]"), "is not a list of objects"),
        (response("[]", kind="text/html"), "is `text/html` and not `application/json`"),
        (response("[]", kind="application/json-seq"), "and not `application/json`"),
        (raw(b"HTTP/1.1 200 OK\r\n\r\n[]"), "is of no type"),
        (response("", status="204 No Content"), "is not JSON"),
        (response("[]", status="302 Found", head="location: http://127.0.0.1:9/\r\n"), "has the status 302"),
        (response("<h1>Bad gateway</h1>", kind="text/html", status="502 Bad Gateway"), "has the status 502"),
        (response("[]", status="500 x"), "has the status 500"),
        (response('{"error": 7}', status="500 x"), "has the status 500"),
        (response('{"error": "x", "hint": 7}', status="422 x"), "`hint` of a refusal is not a text"),
        (response('{"error": "x", "place": {"line": -1}}', status="422 x"), "`place` of a refusal is not a count"),
        (response(gzip.compress(b"[]"), head="content-encoding: gzip\r\n"), "is compressed"),
        (response("[]", head="x: " + "y" * 200_000 + "\r\n"), "failed during GET /workloads"),
        (raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n[]"), "failed during"),
        (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "failed during GET /workloads"),
        (raw(b""), "failed during GET /workloads"),
        (
            raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n"),
            "larger than",
        ),
        (endless(CHUNKED.format("application/json"), b"10000\r\n" + b" " * 65536 + b"\r\n"), "larger than 16 MiB"),
    ],
)
def test_a_response_of_another_form_is_a_clear_error(script: Script, words: str) -> None:
    with lying(script) as (client, _), pytest.raises(pubmark.PubmarkError) as failed:
        client.workloads()
    assert isinstance(failed.value, pubmark.UnexpectedResponse | pubmark.ConnectionFailed)
    assert words in str(failed.value)


def test_an_endless_body_takes_no_more_memory_than_its_limit() -> None:
    script = endless(CHUNKED.format("application/json"), b"10000\r\n" + b" " * 65536 + b"\r\n")
    with lying(script) as (client, _):
        tracemalloc.start()
        with pytest.raises(pubmark.UnexpectedResponse):
            client.workloads()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 3 * ANSWER_BYTES


@pytest.mark.parametrize(
    "script",
    [
        silent,
        endless("HTTP/1.1 200 OK\r\n", b"x: y\r\n", pause=threading.Event()),
        endless("HTTP/1.1 200 OK\r\nx: ", b"y", pause=threading.Event()),
        endless("", b"HTTP/1.1 100 Continue\r\n\r\n", pause=threading.Event()),
        endless(CHUNKED.format("application/json"), b"1\r\n \r\n", pause=threading.Event()),
        endless("HTTP/1.1 500 x\r\ncontent-type: application/json\r\n\r\n", b" ", pause=threading.Event()),
    ],
    ids=["nothing", "headers", "a header", "interim responses", "a body", "a refusal"],
)
def test_a_response_that_drips_ends_by_the_time_limit(script: Script) -> None:
    with lying(script, request_timeout_s=1) as (client, _):
        began = time.monotonic()
        with pytest.raises(pubmark.ConnectionFailed, match=r"did not finish its response .* within 1 s"):
            client.workloads()
        assert 0.9 < time.monotonic() - began < 5


def test_a_redirect_is_not_followed_so_that_nobody_else_gets_the_token() -> None:
    with lying(response("[]")) as (_, other):
        redirect = response("", status="307 Temporary Redirect", head=f"location: {other.url}/workloads\r\n")
        with lying(redirect) as (client, _), pytest.raises(pubmark.UnexpectedResponse):
            client.workloads()
        assert other.requests == []


def test_a_proxy_and_a_log_in_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password other\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with lying(response("[]")) as (_, proxy), lying(response("[]")) as (client, server):
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        assert client.workloads() == []
        assert proxy.requests == []
        assert f"authorization: bearer {TOKEN}" in server.requests[0].lower()


@pytest.mark.parametrize(
    "change",
    [
        {"id": "../../etc/passwd"},
        {"id": ""},
        {"id": ".serve"},
        {"id": 7},
        {"state": "perfect"},
        {"state": None},
        {"kind": []},
        {"folders": "x"},
        {"folders": ["../x"]},
        {"systems": [7]},
        {"error": "x"},
        {"error": {"chain": "x"}},
        {"headline": []},
        {"name": None},
    ],
)
def test_an_entry_of_another_form_is_a_clear_error(change: dict[str, Any]) -> None:
    with lying(entry(**change)) as (client, _), pytest.raises(pubmark.UnexpectedResponse):
        client.submit("hello")


RECORD: dict[str, Any] = {
    "schema_version": 2,
    "verdict": {"status": "valid", "reasons": []},
    "delivery": {"expected": 2, "delivered": 1, "lost": 1, "duplicated": 0},
    "throughput": {"delivered_per_s": None},
    "latency": {"total": {"upper": {"p50_us": 7.5, "p99_us": None}, "lower": {"p50_us": 7.0}}, "service": None},
}


def test_figures_are_read_and_what_is_missing_is_none() -> None:
    with lying(entry(), response(json.dumps(RECORD))) as (client, _):
        run = client.submit("hello")
        assert (run.verdict, run.expected, run.delivered, run.lost) == ("valid", 2, 1, 1)
        assert run.delivered_per_s is None
        assert run.p50 == pubmark.Interval(7.0, 7.5)
        assert run.p99 is None
        assert run.latency("p50", of="service") is None


@pytest.mark.parametrize(
    ("group", "value", "read"),
    [
        ("delivery", {"delivered": -1}, lambda run: run.delivered),
        ("delivery", {"delivered": True}, lambda run: run.delivered),
        ("delivery", {"delivered": 1.5}, lambda run: run.delivered),
        ("delivery", {}, lambda run: run.delivered),
        ("delivery", None, lambda run: run.delivered),
        ("verdict", {"status": "great"}, lambda run: run.verdict),
        ("verdict", {"status": "valid"}, lambda run: run.reasons),
        ("throughput", {"delivered_per_s": "many"}, lambda run: run.delivered_per_s),
        ("latency", {"total": {"upper": {"p99_us": "fast"}}}, lambda run: run.p99),
        ("latency", {"total": {}}, lambda run: run.p99),
        ("latency", {"total": {"upper": {"p99_us": 1}, "lower": 7}}, lambda run: run.p99),
        ("schema_version", 3, lambda run: run.delivered),
    ],
)
def test_a_record_of_another_form_is_a_clear_error(group: str, value: Any, read: Callable[[pubmark.Run], Any]) -> None:
    with lying(entry(), response(json.dumps({**RECORD, group: value}))) as (client, _):
        run = client.submit("hello")
        with pytest.raises(pubmark.UnexpectedResponse, match="record"):
            read(run)


def test_a_number_beyond_all_numbers_is_none_of_ours() -> None:
    text = json.dumps(RECORD).replace('"p50_us": 7.5', '"p50_us": 1e999')
    with lying(entry(), response(text)) as (client, _):
        run = client.submit("hello")
        with pytest.raises(pubmark.UnexpectedResponse, match="is not a number"):
            _ = run.p50


def test_a_list_that_never_comes_to_its_total_ends() -> None:
    page = {"total": 10**9, "offset": 0, "runs": [], "unreadable": []}
    with lying(response(json.dumps(page))) as (client, server):
        assert client.runs(limit=None) == []
        assert len(server.requests) == 1


def test_folders_that_cannot_be_read_are_named() -> None:
    page = {"total": 0, "offset": 0, "runs": [], "unreadable": [{"folder": "x\x1b[31m", "reason": "?"}]}
    with (
        lying(response(json.dumps(page))) as (client, _),
        pytest.warns(pubmark.PubmarkWarning, match="x.u001b") as warned,
    ):
        client.runs()
    assert warned[0].filename == __file__


def test_a_folder_with_a_name_that_no_run_has_hides_no_other_one() -> None:
    def page(offset: int, *ids: str) -> Script:
        rows = [{**ENTRY, "id": id, "folders": [id]} for id in ids]
        return response(json.dumps({"total": 4, "offset": offset, "runs": rows, "unreadable": []}))

    with (
        lying(page(0, "a1", "my run"), page(2, "é", "a2")) as (client, server),
        pytest.warns(pubmark.PubmarkWarning, match="2 folders.*: my run, é$") as warned,
    ):
        assert [run.id for run in client.runs()] == ["a1", "a2"]
    assert [one.filename for one in warned] == [__file__]
    assert [re.findall("offset=([0-9]+)", request) for request in server.requests] == [["0"], ["2"]]


def test_names_of_runs_without_end_are_given_up() -> None:
    rows = [{**ENTRY, "id": "my run", "folders": ["my run"]}] * 50
    page = response(json.dumps({"total": 10**9, "offset": 0, "runs": rows, "unreadable": []}))
    with (
        lying(*[page] * 500) as (client, _),
        pytest.raises(pubmark.UnexpectedResponse, match="names runs as none can be called"),
    ):
        client.runs(limit=50)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (endless(STREAM, b"x" * 65536), "an event of more than 1 MiB"),
        (endless(STREAM, b"data: " + b"x" * 65536 + b"\n"), "an event of more than 1 MiB"),
        (raw(STREAM.encode() + b"data: {\n\n"), "is not JSON"),
        (raw(STREAM.encode() + b"data: 7\n\n"), "is not an object"),
        (raw(STREAM.encode() + b"data: {}\n\n"), "is not a text"),
        (raw(STREAM.encode() + b"data: \xff\n\n"), "not UTF-8"),
        (response("data: {}"), "and not `text/event-stream`"),
    ],
)
def test_events_of_another_form_are_a_clear_error(script: Script, words: str) -> None:
    with lying(entry(), script) as (client, _):
        run = client.submit("hello")
        tracemalloc.start()
        with pytest.raises(pubmark.UnexpectedResponse, match=words):
            list(run.events(timeout_s=10))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 8 * EVENT_BYTES


def events(*names: str, after: int = 0) -> bytes:
    """Events with the ids 10, 20, … behind the one of the id `after`."""

    def one(index: int, name: str) -> str:
        number = "" if name == "end" else f"id: {after + 10 * (index + 1)}\r\n"
        return f'event: {name}\r\n{number}data: {{"event": "{name}"}}\r\n\r\n'

    return "".join(one(index, name) for index, name in enumerate(names)).encode()


def test_a_connection_that_fails_gives_each_event_once() -> None:
    first = raw(STREAM.encode() + events("begins", "phase") + b'id: 30\r\ndata: {"event": "half')
    second = raw(STREAM.encode() + b": comment\n\n" + events("progress", after=20))
    third = raw(STREAM.encode() + events("end", after=30))
    with lying(entry(), first, second, third) as (client, server):
        found = [event["event"] for event in client.submit("hello").events(timeout_s=20)]
        assert found == ["begins", "phase", "progress", "end"]
        asked = [re.findall(r"(?im)^last-event-id: (.*?)\r?$", head) for head in server.requests[1:]]
        assert asked == [[], ["20"], ["30"]]


@pytest.mark.parametrize(
    ("again", "words"),
    [
        (events("phase"), "was read before"),
        (b'data: {"event": "phase"}\n\n', "without an id"),
        (b'id: x\ndata: {"event": "phase"}\n\n', "an id that is no number"),
        (b"id: " + b"9" * 5000 + b'\ndata: {"event": "phase"}\n\n', "an id that is no number"),
    ],
)
def test_events_that_do_not_go_on_where_they_ended_are_noticed(again: bytes, words: str) -> None:
    first, second = raw(STREAM.encode() + events("begins")), raw(STREAM.encode() + again)
    with lying(entry(), first, second) as (client, _), pytest.raises(pubmark.UnexpectedResponse, match=words):
        list(client.submit("hello").events(timeout_s=20))


def test_a_client_that_was_away_too_long_is_given_the_current_state() -> None:
    first = raw(STREAM.encode() + events("begins", "phase"))
    current = b'event: current\nid: 5\ndata: {"event": "current", "missed": true, "state": "running"}\n\n'
    second = raw(STREAM.encode() + current + events("end"))
    with lying(entry(), first, second) as (client, _):
        found = list(client.submit("hello").events(timeout_s=20))
    assert [event["event"] for event in found] == ["begins", "phase", "current", "end"]
    assert found[2]["missed"] is True


def test_events_that_never_end_end_by_the_deadline() -> None:
    dripping = endless(STREAM, b": still here\n\n", pause=threading.Event())
    with lying(entry(state="running"), dripping) as (client, _):
        run = client.submit("hello")
        with pytest.raises(pubmark.DeadlineExceeded, match="within 1 s"):
            list(run.events(timeout_s=1))


def test_a_server_that_closes_the_events_again_and_again_is_given_up() -> None:
    with lying(entry(), raw(STREAM.encode() + events("begins")), raw(STREAM.encode())) as (client, _):
        found: list[object] = []
        with pytest.raises(pubmark.ConnectionFailed, match="before the end of the run"):
            found.extend(client.submit("hello").events(timeout_s=60))


def test_comments_show_that_the_server_is_there() -> None:
    def quiet(connection: socket.socket) -> None:
        """Comments only, for longer than the patience after the failure before, then the end."""
        connection.sendall(STREAM.encode())
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            connection.sendall(b": still here\n\n")
            time.sleep(0.1)

    resumed = raw(STREAM.encode() + events("end", after=10))
    with lying(entry(), raw(STREAM.encode() + events("begins")), quiet, resumed, reconnect_s=1) as (client, _):
        assert [event["event"] for event in client.submit("hello").events(timeout_s=20)] == ["begins", "end"]


def test_a_silent_connection_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pubmark.events.SILENCE_S", 1.5)

    def falls_silent(connection: socket.socket) -> None:
        connection.sendall(STREAM.encode() + events("begins"))
        silent(connection)

    resumed = raw(STREAM.encode() + events("end", after=10))
    with lying(entry(), falls_silent, resumed, reconnect_s=1) as (client, server):
        assert [event["event"] for event in client.submit("hello").events(timeout_s=20)] == ["begins", "end"]
        assert len(server.requests) == 3


def test_a_server_that_stays_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pubmark.events.SILENCE_S", 0.5)

    def dumb(connection: socket.socket) -> None:
        connection.sendall(STREAM.encode())
        silent(connection)

    with lying(entry(), dumb, reconnect_s=1) as (client, _):
        began = time.monotonic()
        with pytest.raises(pubmark.ConnectionFailed, match="did not finish its response"):
            list(client.submit("hello").events(timeout_s=60))
        assert time.monotonic() - began < 30


def test_the_token_is_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with lying(response("[]"), raw(b""), response(json.dumps({"error": TOKEN}), status="401 x")) as (client, server):
        assert client.workloads() == []
        for _ in range(2):
            with pytest.raises(pubmark.PubmarkError):
                client.workloads()
        assert all(TOKEN in request for request in server.requests)
    assert "HTTP Request" in caplog.text, "nothing was logged"
    assert TOKEN not in caplog.text


def test_the_token_is_in_no_error_even_if_a_server_sends_it_back() -> None:
    echo = {
        "error": f"no, {TOKEN}\x1b[2J",
        "chain": [TOKEN],
        "hint": f"try {TOKEN}",
        "place": {"file": TOKEN, "line": 1, "column": 1},
    }
    scripts = [
        response(json.dumps(echo), status="422 x"),
        response("[]", kind=TOKEN),
        raw(f"HTTP/1.1 200 {TOKEN}\r\n{TOKEN}\r\n\r\n".encode()),
        raw(b""),
        response(json.dumps([TOKEN])),
    ]
    shown = []
    with lying(*scripts) as (client, _):
        shown.append(repr(client) + repr(vars(client)) + repr(vars(client.connection)))
        for _ in scripts:
            with pytest.raises(pubmark.PubmarkError) as failed:
                client.workloads()
            error = failed.value
            shown.append("".join(traceback.format_exception(error)) + repr(error) + repr(vars(error)))
    assert TOKEN not in "".join(shown)
    assert "\x1b" not in "".join(shown)
    assert "no, (token)\\u001b[2J" in shown[1]


def test_a_failed_run_says_why_without_what_acts() -> None:
    failed = {"chain": ["cannot connect\x1b[0m", TOKEN], "hint": "look there"}
    with lying(entry(state="failed", error=failed)) as (client, _):
        with pytest.raises(pubmark.RunFailed) as error:
            client.run("hello", timeout_s=10)
        assert str(error.value) == "`a1` failed: cannot connect\\u001b[0m: (token)\n\nhint: look there"
        assert error.value.run is not None


def test_a_request_that_may_have_arrived_says_so() -> None:
    with lying(raw(b"")) as (client, server):
        with pytest.raises(pubmark.ConnectionFailed, match="may have taken it"):
            client.submit("hello")
        assert len(server.requests) == 1, "it is not sent again"


def test_a_server_that_answers_others_is_not_waited_for_without_end() -> None:
    def dropped(connection: socket.socket) -> None:
        connection.close()

    with lying(entry(state="running"), dropped, reconnect_s=1) as (client, _):
        run = client.submit("hello")
        began = time.monotonic()
        with pytest.raises(pubmark.ConnectionFailed, match="while `a1` was waited for"):
            run.wait(timeout_s=60)
        assert time.monotonic() - began < 10


def test_a_request_that_fails_after_longer_than_the_patience_is_made_again() -> None:
    scripts = entry(state="running"), silent, entry()
    with lying(*scripts, request_timeout_s=3, reconnect_s=0.1) as (client, server):
        assert client.submit("hello").wait(timeout_s=60).state == "complete"
        assert len(server.requests) == 3


def test_a_wait_ends_by_its_deadline_and_the_run_can_be_waited_for_again() -> None:
    with lying(entry(state="queued"), entry(state="queued"), silent) as (client, _):
        run = client.submit("hello")
        began = time.monotonic()
        with pytest.raises(pubmark.DeadlineExceeded, match="it is queued") as late:
            run.wait(timeout_s=1)
        assert time.monotonic() - began < 5
        assert late.value.run is run
        assert isinstance(late.value, TimeoutError)
