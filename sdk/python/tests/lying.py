"""A server that lies by a script: each connection is given to the next function of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pubmark
from pubmark.local import _free_port

TOKEN = "0123456789abcdef-secret"
Script = Callable[[socket.socket], None]
#: Longest wait of a script for its client, seconds.
LIMIT_S = 30.0


class Lying:
    """A server, with what it was sent."""

    def __init__(self, scripts: list[Script]) -> None:
        self.requests: list[str] = []
        self.sent_bytes = 0
        self._scripts = scripts
        self._listener = socket.create_server(("127.0.0.1", _free_port()))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        for index in range(10_000):
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            script = self._scripts[min(index, len(self._scripts) - 1)]
            with connection:
                connection.settimeout(LIMIT_S)
                try:
                    self.requests.append(_head(connection))
                    script(connection)
                except OSError:
                    # The client has had enough, which is what most scripts are for.
                    continue

    def close(self) -> None:
        # `shutdown` wakes the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()


def _head(connection: socket.socket) -> str:
    head = b""
    while b"\r\n\r\n" not in head:
        chunk = connection.recv(4096)
        if not chunk:
            break
        head += chunk
    return head.decode("latin-1")


@contextmanager
def lying(
    *scripts: Script, request_timeout_s: float = 10.0, reconnect_s: float = 1.0
) -> Iterator[tuple[pubmark.Client, Lying]]:
    """A client of such a server; the last script is for all further connections."""
    server = Lying(list(scripts))
    try:
        yield (
            pubmark.Client(server.url, token=TOKEN, request_timeout_s=request_timeout_s, reconnect_s=reconnect_s),
            server,
        )
    finally:
        server.close()


def response(body: str | bytes, kind: str = "application/json", status: str = "200 OK", head: str = "") -> Script:
    """A whole response."""
    bytes_ = body.encode() if isinstance(body, str) else body

    def script(connection: socket.socket) -> None:
        words = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(bytes_)}\r\n{head}\r\n"
        connection.sendall(words.encode() + bytes_)

    return script


def endless(head: str, piece: bytes, *, pause: threading.Event | None = None) -> Script:
    """A head, then the same bytes for ever; with an event, once each 100 ms until it is set."""

    def script(connection: socket.socket) -> None:
        connection.sendall(head.encode())
        while True:
            if pause is not None and pause.wait(0.1):
                return
            connection.sendall(piece)

    return script


def silent(connection: socket.socket) -> None:
    """Says nothing until the client goes."""
    connection.recv(1)


def raw(words: bytes) -> Script:
    """These bytes, then the end."""
    return lambda connection: connection.sendall(words)
