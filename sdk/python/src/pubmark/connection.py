"""Requests, within limits of size and time. The token goes into a header and nowhere else."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import httpcore
import httpx

from pubmark import reading
from pubmark.address import Address, Token
from pubmark.deadline import Deadline
from pubmark.errors import ConnectionFailed, Place, RequestRefused, UnexpectedResponse, UsageError, refusal
from pubmark.transport import Limit, Transport

#: Largest response with results: a record, a table, a report. Bytes.
RESULT_BYTES = 256 << 20
#: Largest response of another kind, bytes.
ANSWER_BYTES = 16 << 20
#: Largest refusal, bytes.
_REFUSAL_BYTES = 1 << 20

JSON = "application/json"
_IS_IT = "is this the URL of `pubmark serve`, and is its version that of this package?"


class Connection:
    """A server, as requests reach it. Each request has a connection of its own."""

    def __init__(self, address: Address, token: Token, trust: ssl.SSLContext | None, request_timeout_s: float) -> None:
        self.address = address
        self._token = token
        self._trust = trust
        self._request_timeout_s = Deadline(request_timeout_s).timeout_s
        try:
            self._url = httpx.URL(address.url)
        except httpx.InvalidURL as error:
            raise UsageError(f"the URL `{address.url}` cannot be used: {error}") from None

    def json(
        self,
        method: str,
        path: str,
        *,
        body: str | None = None,
        query: Mapping[str, str] | None = None,
        most: int = ANSWER_BYTES,
        deadline: Deadline | None = None,
    ) -> Any:
        """A request whose response is JSON, read."""
        found = self._read(method, path, JSON, body=body, query=query, most=most, deadline=deadline)
        return reading.document(found, f"the response to {method} {path}")

    def text(self, path: str, kind: str, *, query: Mapping[str, str] | None = None) -> str:
        """A response of this content type, as text."""
        found = self._read("GET", path, kind, query=query, most=RESULT_BYTES)
        try:
            return found.decode("utf-8")
        except UnicodeDecodeError:
            raise UnexpectedResponse(f"the response to GET {path} is not UTF-8") from None

    def _read(
        self,
        method: str,
        path: str,
        kind: str,
        *,
        most: int,
        body: str | None = None,
        query: Mapping[str, str] | None = None,
        deadline: Deadline | None = None,
    ) -> bytes:
        limit_s = self._request_timeout_s
        if deadline is not None:
            # A wait that is nearly over leaves a request time to fail with a reason.
            limit_s = min(limit_s, max(deadline.remaining_s(), 0.1))
        limit = Deadline(limit_s)
        with self._response(method, path, limit.remaining_s, body=body, query=query) as response:
            self._check_kind(response, method, path, kind)
            return self._body(response, f"the response to {method} {path}", most)

    @contextmanager
    def stream(
        self, path: str, kind: str, *, silence_s: float, deadline: Deadline, headers: Mapping[str, str] | None = None
    ) -> Iterator[Iterator[bytes]]:
        """A response of this content type, as its bytes come, until the deadline. `silence_s` is the longest time without one."""
        with self._response("GET", path, lambda: min(silence_s, deadline.remaining_s()), headers=headers) as response:
            self._check_kind(response, "GET", path, kind)
            yield response.iter_raw()

    def save(self, path: str, kind: str, to: IO[bytes], *, silence_s: float, deadline: Deadline, most: int) -> None:
        """Writes a response of this content type to a file, a piece at a time."""
        with self._response("GET", path, lambda: min(silence_s, deadline.remaining_s())) as response:
            self._check_kind(response, "GET", path, kind)
            for chunk in self._chunks(response, f"the response to GET {path}", most):
                to.write(chunk)

    @contextmanager
    def _response(
        self,
        method: str,
        path: str,
        limit_s: Limit,
        *,
        body: str | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[httpx.Response]:
        """A response that is no refusal, its body not read yet. What fails in the block is translated, too."""
        # Compressed, a small response could become a huge one.
        sent = {
            **(headers or {}),
            "accept-encoding": "identity",
            "authorization": f"Bearer {self._token.expose()}",
            "connection": "close",
        }
        if body is not None:
            sent["content-type"] = JSON
        content = None if body is None else body.encode("utf-8")
        allowed_s = limit_s()
        # A proxy or a log-in of the environment would be given the token, or take its place.
        client = httpx.Client(
            base_url=self._url,
            transport=Transport(self._url, self._trust, limit_s),
            trust_env=False,
            follow_redirects=False,
        )
        try:
            with client, client.stream(method, path, content=content, params=query, headers=sent) as response:
                if not response.is_success:
                    raise self._refused(response, method, path)
                yield response
        except httpcore.TimeoutException as error:
            raise self._silent(method, path, error, allowed_s) from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpx.HTTPError) as error:
            raise self._failed(method, path, error) from None

    def _body(self, response: httpx.Response, what: str, most: int) -> bytes:
        return b"".join(self._chunks(response, what, most))

    def _chunks(self, response: httpx.Response, what: str, most: int) -> Iterator[bytes]:
        if response.headers.get("content-encoding", "identity") != "identity":
            raise UnexpectedResponse(f"{what} is compressed, which was not offered", _IS_IT)
        too_large = UnexpectedResponse(f"{what} is larger than {most >> 20} MiB", _IS_IT)
        length = response.headers.get("content-length", "0")
        if length.isdecimal() and int(length) > most:
            raise too_large
        read = 0
        for chunk in response.iter_raw():
            read += len(chunk)
            if read > most:
                raise too_large
            yield chunk

    def _check_kind(self, response: httpx.Response, method: str, path: str, kind: str) -> None:
        sent = response.headers.get("content-type", "")
        if sent.partition(";")[0].strip().lower() != kind:
            shown = f"`{reading.plain(self._token.masked(sent))}`" if sent else "of no type"
            raise UnexpectedResponse(f"the response to {method} {path} is {shown} and not `{kind}`", _IS_IT)

    def _refused(self, response: httpx.Response, method: str, path: str) -> Exception:
        """The error for a response that is no success."""
        status = response.status_code
        what = f"the response to {method} {path}"
        unexpected = UnexpectedResponse(f"{what} has the status {status}, without pubmark's reasons", _IS_IT)
        kind = response.headers.get("content-type", "").partition(";")[0]
        if status < 400 or kind not in (JSON, "text/plain"):
            return unexpected
        body = self._body(response, what, _REFUSAL_BYTES)
        if kind == "text/plain":
            # What the server's library refuses, such as an unknown word in a query.
            words = reading.plain(self._token.masked(body.decode("utf-8", errors="replace").strip()))
            return refusal(status)(f"{words or 'no reason is given'} (status {status})", None, status)
        found = reading.document(body, what)
        if not isinstance(found, dict) or not isinstance(found.get("error"), str):
            return unexpected
        return self._problem(found, status)

    def _problem(self, found: dict[str, Any], status: int) -> RequestRefused:
        def shown(value: str) -> str:
            return reading.plain(self._token.masked(value))

        hint = reading.maybe_text(found.get("hint"), "`hint` of a refusal")
        chain = tuple(shown(part) for part in reading.texts(found.get("chain", []), "`chain` of a refusal"))
        place = None
        if found.get("place") is not None:
            place_fields = reading.mapping(found["place"], "`place` of a refusal")
            file = reading.maybe_text(place_fields.get("file"), "`place` of a refusal")
            line, column = (reading.count(place_fields.get(key), "`place` of a refusal") for key in ("line", "column"))
            place = Place(None if file is None else shown(file), line, column)
        message = shown(found["error"])
        return refusal(status)(message, None if hint is None else shown(hint), status, chain, place)

    def _silent(self, method: str, path: str, error: httpcore.TimeoutException, allowed_s: float) -> ConnectionFailed:
        if isinstance(error, httpcore.ConnectTimeout):
            words = f"`{self.address.url}` accepted no connection within {allowed_s:.3g} s"
            return ConnectionFailed(words, self._how_to_start())
        return ConnectionFailed(
            f"`{self.address.url}` did not finish its response to {method} {path} within {allowed_s:.3g} s{_maybe_done(method)}",
            "`request_timeout_s=` of the client is this limit",
        )

    def _failed(self, method: str, path: str, error: Exception) -> ConnectionFailed:
        reason = reading.plain(self._token.masked(str(error))) or type(error).__name__
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            return ConnectionFailed(
                f"the certificate of `{self.address.url}` is not trusted: {reason}",
                "pass the file of a certificate that you trust as `verify=`; `pubmark serve --tls-self` prints that of its own",
            )
        if isinstance(error, httpcore.ConnectError):
            return ConnectionFailed(f"failed to connect to `{self.address.url}`: {reason}", self._how_to_start())
        return ConnectionFailed(
            f"the connection to `{self.address.url}` failed during {method} {path}: {reason}{_maybe_done(method)}"
        )

    def _how_to_start(self) -> str:
        if self.address.is_loopback:
            return "start a server with `pubmark serve`, or use `with pubmark.serve() as client:`"
        return "is the server running, with `--listen` and `--tls-self` or `--tls-cert`?"


def _maybe_done(method: str) -> str:
    """A request that changes something may have reached the server all the same."""
    return "" if method == "GET" else "; the server may have taken it all the same: `client.runs()` shows it"
