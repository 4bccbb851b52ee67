"""One connection for one request, whose every read ends by a deadline.

The timeouts of httpx begin again with each byte, so a server that sends one now and then would never be given up: neither its headers nor
its body would end.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpcore
import httpx

#: Seconds that a read may take now; 0 if the time is over.
Limit = Callable[[], float]


class Transport(httpx.BaseTransport):
    """Carries one request of an `httpx.Client` over a connection of its own."""

    def __init__(self, url: httpx.URL, trust: ssl.SSLContext | None, limit_s: Limit) -> None:
        origin = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=b"/").origin
        self._connection = httpcore.HTTPConnection(origin, ssl_context=trust, network_backend=_Backend(limit_s))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends it, and gives the response, whose body is not read yet."""
        url = request.url
        target = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        assert isinstance(request.stream, httpx.SyncByteStream), "the client is not asynchronous"
        sent = httpcore.Request(request.method, target, headers=request.headers.raw, content=request.stream)
        response = self._connection.handle_request(sent)
        assert isinstance(response.stream, Iterable), "the connection is not asynchronous"
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response.stream))

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._chunks)


class _Backend(httpcore.NetworkBackend):
    """Opens sockets that end by the deadline."""

    def __init__(self, limit_s: Limit) -> None:
        self._limit_s = limit_s
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        inner = self._inner.connect_tcp(
            host, port, _left(self._limit_s, httpcore.ConnectTimeout), local_address, socket_options
        )
        return _Stream(inner, self._limit_s)


class _Stream(httpcore.NetworkStream):
    """A socket; the timeouts that it is called with begin with each call and do not count."""

    def __init__(self, inner: httpcore.NetworkStream, limit_s: Limit) -> None:
        self._inner = inner
        self._limit_s = limit_s

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(self._limit_s, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(self._limit_s, httpcore.WriteTimeout))

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left_s = _left(self._limit_s, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left_s), self._limit_s)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def close(self) -> None:
        self._inner.close()


def _left(limit_s: Limit, late: type[httpcore.TimeoutException]) -> float:
    left_s = limit_s()
    if left_s <= 0:
        raise late("the time is over")
    return left_s
