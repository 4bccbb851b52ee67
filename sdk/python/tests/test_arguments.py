"""Wrong arguments are refused before anything is sent, each with what to write instead."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import pubmark
from pubmark import submission
from pubmark.deadline import Deadline

#: Nothing listens there: what is sent fails otherwise than by `UsageError`.
NOBODY = "http://127.0.0.1:9"


def client() -> Any:
    """Typed as anything: that types find most of this, too, is not what is tested."""
    return pubmark.Client(NOBODY, token="x", reconnect_s=1)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("127.0.0.1:7780", "http:// or https://"),
        ("ftp://127.0.0.1", "http:// or https://"),
        ("http://", "http:// or https://"),
        ("", "http:// or https://"),
        ("http://127.0.0.1:99999", "cannot be read"),
        ("http://[::1", "cannot be read"),
        ("http://127.0.0.1:7780/runs", "more than a host and a port"),
        ("http://127.0.0.1:7780?x=1", "more than a host and a port"),
        ("http://me:secret@127.0.0.1:7780", "a user or a password"),
        ("http://lab.example:7780", "without encryption"),
        ("http://127.0.0.1.evil.example", "without encryption"),
        ("https://exa mple", "a space or a control character"),
        ("https://" + "ä" * 100, "cannot be used"),
    ],
)
def test_a_wrong_url_is_refused(url: str, words: str) -> None:
    with pytest.raises(pubmark.UsageError, match=words) as refused:
        pubmark.Client(url, token="x")
    assert "secret" not in str(refused.value)


def test_addresses_of_this_machine_need_no_encryption() -> None:
    for url in ("http://localhost:7780/", "http://127.0.0.1", "http://127.1.2.3:1", "http://[::1]:7780"):
        assert pubmark.Client(url, token="x").url == url.rstrip("/")
    assert pubmark.Client("https://lab.example:7780", token="x").url == "https://lab.example:7780"


@pytest.mark.parametrize("token", ["", " ", "a b", "secret\nx: y", "sécret", "secret" * 1000])
def test_a_wrong_token_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(pubmark.UsageError, match="token") as refused:
        pubmark.Client(NOBODY, token=token)
    assert "secret" not in str(refused.value)


def test_a_token_is_not_written_or_copied() -> None:
    for write in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            write(client())


def test_the_token_of_this_folder_is_not_sent_to_another_machine() -> None:
    Path("runs/.serve").mkdir(parents=True)
    Path("runs/.serve/token").write_text("of-this-machine\n")
    assert pubmark.Client(NOBODY).url == NOBODY
    with pytest.raises(pubmark.UsageError, match="there is no token"):
        pubmark.Client("https://lab.example:7780")


def test_without_a_token_the_error_says_where_it_is() -> None:
    with pytest.raises(pubmark.UsageError, match=r"there is no token for `http://127\.0\.0\.1:7780`") as refused:
        pubmark.Client()
    assert "PUBMARK_TOKEN" in str(refused.value)
    Path("runs/.serve/token").mkdir(parents=True)
    with pytest.raises(pubmark.UsageError, match="failed to read the token"):
        pubmark.Client()


def test_wrong_certificates_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.pem").write_text("nothing")
    wrong: list[Any] = ["no-such.pem", tmp_path / "x.pem", tmp_path, True, False]
    for verify in wrong:
        with pytest.raises(pubmark.UsageError, match="certificates"):
            pubmark.Client("https://lab.example", token="x", verify=verify)
    with pytest.raises(pubmark.UsageError, match="not encrypted"):
        pubmark.Client(NOBODY, token="x", verify="runs/.serve/certificate.pem")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: client().submit("hello", duration=4), 'duration="4s"'),
        (lambda: client().submit("hello", duratoin="4s"), "did you mean `duration`"),
        (lambda: client().run("hello", timeout=4), "did you mean `timeout_s`"),
        (lambda: client().run("hello", timeout_s=None), "timeout_s=600"),
        (lambda: client().run("hello", timeout_s="4s"), "timeout_s=600"),
        (lambda: client().run("hello", timeout_s=0), "timeout_s=600"),
        (lambda: client().run("hello", timeout_s=float("inf")), "timeout_s=600"),
        (lambda: client().submit("no-such.yaml"), "No such file"),
        (lambda: client().submit(Path(".")), "Is a directory"),
        (lambda: client().submit(["hello"]), "is a name or a file"),
        (lambda: client().submit("hello", load={"set": {1, 2}}), "cannot be written as JSON"),
        (lambda: client().submit("hello", rate=float("nan")), "cannot be written as JSON"),
        (lambda: client().submit_document(Path("run.yaml")), "read the file first"),
        (lambda: client().submit_document("\ud800"), "UTF-8"),
        (lambda: client().capacity("hello", slo="loss=0", withn="1m"), "did you mean `within`"),
        (lambda: client().choose("hello", objectives="loss=0", grwth=2), "did you mean `growth`"),
        (lambda: client().experiment("brokers", quik=True), "did you mean `quick`"),
        (lambda: client().runs(limit=0), "at least 1"),
        (lambda: client().get("../x"), "no run can be called"),
        (lambda: client().get(""), "no run can be called"),
        (lambda: Deadline(True), "no time to wait"),
    ],
)
def test_a_wrong_argument_is_refused(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(pubmark.UsageError) as refused:
        call()
    assert words in str(refused.value)


def test_a_file_that_is_too_large_or_no_text_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "large.yaml").write_bytes(b"#" * (2 << 20) + b"\n")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe")
    for name, words in (("large.yaml", "larger than"), ("binary.yaml", "is not UTF-8")):
        with pytest.raises(pubmark.UsageError, match=words):
            client().submit(tmp_path / name)


def test_a_submission_has_a_line_for_each_field() -> None:
    text = submission.run("hello", {"system": "builtin", "duration": timedelta(seconds=1.5)})
    assert text.splitlines() == ["{", ' "workload": "hello",', ' "system": "builtin",', ' "duration": "1500ms"', "}"]


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (pubmark.Interval(92.4, 173.3), "0.092–0.173 ms"),
        (pubmark.Interval(None, 1234.5), "at most 1.23 ms"),
        (pubmark.Interval(12_345.6, 987_654.3), "12.3–988 ms"),
        (pubmark.Interval(0, 1e7), "0.000–10000 ms"),
    ],
)
def test_an_interval_is_shown_in_milliseconds(interval: pubmark.Interval, text: str) -> None:
    assert str(interval) == text


def test_a_limit_between_both_bounds_is_undecided() -> None:
    interval = pubmark.Interval(40.0, 60.0)
    assert interval.is_below(60.1) is True
    assert interval.is_below(60.0) is None
    assert interval.is_below(50.0) is None
    assert interval.is_below(40.0) is False
    assert pubmark.Interval(None, 60.0).is_below(50.0) is None
