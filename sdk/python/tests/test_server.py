"""Servers that are away, change, encrypt, refuse; and those that `pubmark.serve` starts."""

from __future__ import annotations

import os
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from test_life import waited_for_load

import pubmark
from pubmark import local
from pubmark.deadline import Deadline


@contextmanager
def started(program: str, runs: Path, *options: str, port: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """A server with options that `pubmark.serve` does not have; killed at the end."""
    command = [program, "serve", "--listen", f"127.0.0.1:{port or local._free_port()}", "--runs", str(runs), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        process.url = local._url(process, Deadline(30))  # type: ignore[attr-defined]
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def token_of(runs: Path) -> str:
    return (runs / ".serve/token").read_text().strip()


def test_a_wrong_token_is_refused_and_not_shown(client: pubmark.Client) -> None:
    with pytest.raises(pubmark.NotAuthorized) as refused:
        pubmark.Client(client.url, token="wrong-secret").systems()
    assert refused.value.status == 401
    assert "the token is missing or wrong" in str(refused.value)
    assert "wrong-secret" not in str(refused.value) + repr(refused.value)


def test_what_a_server_may_not_do_is_refused_with_its_option(client: pubmark.Client) -> None:
    with pytest.raises(pubmark.NotAllowed, match="--allow systems"):
        client.submit("hello", system="mosquitto")
    with pytest.raises(pubmark.NotAllowed, match="--allow endpoints"):
        client.submit("hello", endpoint="mqtt://127.0.0.1:1883")


def test_rights_are_given_at_the_start_and_a_run_that_fails_says_why(program: str) -> None:
    with pubmark.serve(program=program, allow=["endpoints"]) as client:
        with pytest.raises(pubmark.RunFailed, match=r"127\.0\.0\.1:9") as failed:
            client.run("hello", endpoint="mqtt://127.0.0.1:9", duration="1s", timeout_s=60)
        assert failed.value.run is not None
        assert failed.value.run.state == "failed"
        with pytest.raises(pubmark.RunFailed, match=r"127\.0\.0\.1:9"):
            _ = failed.value.run.record


def test_what_cannot_be_meant_is_refused_in_the_words_of_the_server(client: pubmark.Client) -> None:
    with pytest.raises(pubmark.RequestRefused) as refused:
        client.submit_document("workload: smart-home\nduratoin: 4s\n")
    assert (refused.value.status, refused.value.place) == (422, pubmark.Place(None, 2, 1))
    assert str(refused.value).count("line 2, column 1") == 1
    assert "duratoin" in refused.value.message
    with pytest.raises(pubmark.NotFound, match="the tables are by_type, summary"):
        client.run("hello", duration="1s", warmup="0s", timeout_s=60).table("serie")
    with pytest.raises(pubmark.RequestRefused, match="has no unit"):
        client.check("x", require="p99<50")
    with pytest.raises(pubmark.RequestRefused, match="queued"):
        client.runs(state="done")  # type: ignore[arg-type]
    with pytest.raises(pubmark.NotFound, match="there is no run `nothing`"):
        client.get("nothing")


def test_without_a_server_the_error_says_what_to_type() -> None:
    with pytest.raises(pubmark.ConnectionFailed, match=r"failed to connect .*(?s:.*)`pubmark serve`"):
        pubmark.Client(f"http://127.0.0.1:{local._free_port()}", token="x").runs()


def test_a_server_that_is_gone_while_a_run_is_waited_for_is_given_up(program: str, tmp_path: Path) -> None:
    with started(program, tmp_path / "runs") as process:
        client = pubmark.Client(process.url, token=token_of(tmp_path / "runs"), reconnect_s=1)  # type: ignore[attr-defined]
        run = client.submit("smart-home", duration="120s", warmup="0s")
        waited_for_load(run)
        killer = threading.Timer(0.5, process.kill)
        killer.start()
        began = time.monotonic()
        with pytest.raises(pubmark.ConnectionFailed, match="was waited for") as failed:
            run.wait(timeout_s=60)
        assert time.monotonic() - began < 15
        assert "survives a restart" in str(failed.value)
        with pytest.raises(pubmark.ConnectionFailed):
            list(run.events(timeout_s=60))
        killer.join()


def test_a_server_that_comes_back_is_waited_for(program: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    with started(program, runs) as process:
        client = pubmark.Client(process.url, token=token_of(runs))  # type: ignore[attr-defined]
        cut, waiting = client.submit("smart-home", duration="120s", warmup="0s"), client.submit("hello", duration="1s")
        waited_for_load(cut)
        events: list[str] = []
        is_followed = threading.Event()

        def wait() -> None:
            waiting.wait(timeout_s=60)

        def follow() -> None:
            for event in client.get(cut.id).events(timeout_s=60):
                events.append(event["event"])
                is_followed.set()

        threads = [threading.Thread(target=work) for work in (wait, follow)]
        for thread in threads:
            thread.start()
        assert is_followed.wait(30)
        process.kill()
    # It is away for longer than the time between two looks.
    time.sleep(2.5)
    port = int(client.url.rpartition(":")[2])
    with started(program, runs, port=port):
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    assert waiting.state == "complete"
    assert events.count("begins") == 1
    assert events[-1] == "end"


def test_an_encrypted_server_is_reached_with_its_certificate_alone(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs"
    with started(program, runs, "--tls-self") as process:
        url, token = process.url, token_of(runs)  # type: ignore[attr-defined]
        certificate = runs / ".serve/certificate.pem"
        client = pubmark.Client(url, token=token, verify=certificate)
        assert client.systems()
        run = client.submit("hello", duration="1s", warmup="0s")
        assert list(run.events(timeout_s=60))[-1]["event"] == "end"
        with pytest.raises(pubmark.ConnectionFailed, match="is not trusted") as failed:
            pubmark.Client(url, token=token).systems()
        assert "verify=" in str(failed.value)
        # As newer Pythons do.
        context = ssl.create_default_context
        strict = ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN

        def newer(cafile: str | None = None) -> ssl.SSLContext:
            made = context(cafile=cafile)
            made.verify_flags |= strict
            return made

        monkeypatch.setattr("pubmark.address.ssl.create_default_context", newer)
        assert pubmark.Client(url, token=token, verify=certificate).systems()
        plain = url.replace("https", "http")
        with pytest.raises(pubmark.ConnectionFailed):
            pubmark.Client(plain, token=token).systems()


def test_the_token_of_this_folder_is_found(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pubmark.serve("runs", program=program) as client:
        assert pubmark.Client(client.url).systems()
        monkeypatch.setenv("PUBMARK_URL", client.url)
        assert pubmark.Client().systems()
        monkeypatch.setenv("PUBMARK_TOKEN", "wrong")
        with pytest.raises(pubmark.NotAuthorized):
            pubmark.Client().systems()
        assert pubmark.Client(token=token_of(tmp_path / "runs")).systems()


def test_a_server_of_ones_own_ends_with_its_block(program: str, tmp_path: Path) -> None:
    with pubmark.serve(tmp_path / "runs", program=program) as client:
        assert int(client.url.rpartition(":")[2]) < 32768
        run = client.submit("smart-home", duration="120s", warmup="0s")
        waited_for_load(run)
    with pytest.raises(pubmark.ConnectionFailed):
        client.runs()
    with pubmark.serve(tmp_path / "runs", program=program) as client:
        assert client.get(run.id).state == "interrupted"
        assert client.get(run.id).delivered > 0


def test_a_killed_python_leaves_no_server(program: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import pubmark, time\n"
        f"with pubmark.serve({str(tmp_path / 'runs')!r}, program={program!r}) as client:\n"
        "    run = client.submit('smart-home', duration='120s', warmup='0s')\n"
        "    for event in run.events():\n"
        "        if event['event'] == 'progress' and event['delivered'] > 0:\n"
        "            print(client.url, flush=True)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(pubmark.__file__).parents[1])}
    with subprocess.Popen([sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        process.kill()
        process.wait()
    client = pubmark.Client(url, token=token_of(tmp_path / "runs"))
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            client.runs()
        except pubmark.ConnectionFailed:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the server goes on")
    with ExitStack() as stack:
        run = served_again(stack, program, tmp_path / "runs").runs(limit=1)[0]
        assert run.state == "interrupted"
        assert run.delivered > 0


def served_again(stack: ExitStack, program: str, runs: Path) -> pubmark.Client:
    """A server of a folder whose server still ends its run: the folder has one server."""
    end = time.monotonic() + 60
    while True:
        try:
            return stack.enter_context(pubmark.serve(runs, program=program))
        except pubmark.PubmarkError as error:
            if "another `pubmark serve`" not in error.message or time.monotonic() > end:
                raise
        time.sleep(0.1)


def test_a_temporary_folder_is_gone_with_its_block(program: str) -> None:
    with pubmark.serve(program=program) as client:
        folder = client.runs_folder
        assert folder is not None
        assert folder.is_dir()
    assert not folder.parent.exists()


def test_a_server_that_does_not_start_says_why(program: str, tmp_path: Path) -> None:
    with (
        pubmark.serve(tmp_path, program=program),
        pytest.raises(pubmark.PubmarkError, match="another `pubmark serve`"),
        pubmark.serve(tmp_path, program=program),
    ):
        pytest.fail("a folder has one server")
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\nprintf 'hello\\nworld\\n'\n")
    other.chmod(0o755)
    for wrong, words in [
        ("no-such-program", "is not there"),
        ("/bin/true", "with code 0"),
        (str(other), "something else"),
    ]:
        with pytest.raises(pubmark.PubmarkError, match=words), pubmark.serve(tmp_path, program=wrong):
            pytest.fail("it is no pubmark")
    with pytest.raises(pubmark.UsageError, match="list of rights"), pubmark.serve(program=program, allow="systems"):  # type: ignore[arg-type]
        pytest.fail("each letter is no right")


def test_a_port_that_is_taken_is_not_the_end(
    program: str, monkeypatch: pytest.MonkeyPatch, client: pubmark.Client
) -> None:
    taken = int(client.url.rpartition(":")[2])
    ports = iter([taken, local._free_port()])
    monkeypatch.setattr("pubmark.local._free_port", lambda: next(ports))
    with pubmark.serve(program=program) as other:
        assert other.systems()


def test_a_silent_program_is_given_up(tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    began = time.monotonic()
    with (
        pytest.raises(pubmark.PubmarkError, match=r"did not listen within 0\.5 s"),
        pubmark.serve(program=silent, start_timeout_s=0.5),
    ):
        pytest.fail("it never listens")
    assert time.monotonic() - began < 10


def test_ctrl_c_ends_the_block_and_that_the_server_and_its_run(program: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import pubmark\n"
        f"with pubmark.serve({str(tmp_path / 'runs')!r}, program={program!r}) as client:\n"
        "    run = client.submit('smart-home', duration='120s', warmup='0s')\n"
        "    try:\n"
        "        for event in run.events():\n"
        "            if event['event'] == 'progress':\n"
        "                print(client.url, flush=True)\n"
        "    except KeyboardInterrupt:\n"
        "        try:\n"
        "            run.wait(timeout_s=1)\n"
        "        except pubmark.DeadlineExceeded:\n"
        "            print('then', run.refresh().state)\n"
        "        raise\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(pubmark.__file__).parents[1])}
    command = [sys.executable, str(script)]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        # As a terminal does: to the program and all that it started in its session.
        os.killpg(process.pid, signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert "then running" in printed, "only the end of the block stops the server"
    with pytest.raises(pubmark.ConnectionFailed):
        pubmark.Client(url, token=token_of(tmp_path / "runs")).runs()
    with pubmark.serve(tmp_path / "runs", program=program) as client:
        assert client.runs(limit=1)[0].state == "interrupted"
