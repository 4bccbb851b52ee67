"""Where a server is, and the token that it wants: from arguments, the environment, or the server's file."""

from __future__ import annotations

import ipaddress
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from pubmark.errors import UsageError

#: Where `pubmark serve` listens unless it is started with `--listen`.
DEFAULT_URL = "http://127.0.0.1:7780"
#: The file in which a server that was started in this folder has its token.
TOKEN_FILE = Path("runs/.serve/token")
#: Longest token, characters.
_LONGEST = 4096


class Token:
    """A token. Its representation does not contain it."""

    def __init__(self, text: str) -> None:
        if not text:
            raise UsageError("the token is empty", "the server's folder of results has it in `.serve/token`")
        if len(text) > _LONGEST or not text.isascii() or not text.isprintable() or " " in text:
            raise UsageError(
                "the token has characters or a length that no token has", "pass the line of `.serve/token`"
            )
        self._text = text

    def expose(self) -> str:
        """The text, for the header of a request alone."""
        return self._text

    def masked(self, text: str) -> str:
        """A text without the token, in case that a server sends it back."""
        return text.replace(self._text, "(token)")

    def __repr__(self) -> str:
        return "Token(…)"

    def __reduce__(self) -> str:
        raise TypeError("a token is not written anywhere")


@dataclass(frozen=True)
class Address:
    """A server's URL, checked."""

    #: Scheme, host and port, without a slash at the end.
    url: str
    is_loopback: bool
    is_encrypted: bool


def address(url: str | None) -> Address:
    """The URL that was given, or that of `PUBMARK_URL`, or the default one."""
    source = "`PUBMARK_URL`" if url is None and "PUBMARK_URL" in os.environ else "the URL"
    given = url if url is not None else os.environ.get("PUBMARK_URL", DEFAULT_URL)
    hint = f"write it as the server prints it: `{DEFAULT_URL}`"
    try:
        parts = urlsplit(given.strip())
        port = parts.port
    except (ValueError, AttributeError):
        raise UsageError(f"{source} cannot be read", hint) from None
    if any(letter.isspace() or not letter.isprintable() for letter in given.strip()):
        raise UsageError(f"{source} has a space or a control character in it", hint)
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"{source} holds a user or a password", "pass the token as `token=` or in `PUBMARK_TOKEN`")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{source} `{given}` does not begin with http:// or https:// and a host", hint)
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UsageError(f"{source} `{given}` has more than a host and a port", hint)
    found = Address(_written(parts, port), _is_loopback(parts.hostname), parts.scheme == "https")
    if not found.is_loopback and not found.is_encrypted:
        raise UsageError(
            f"{source} `{given}` leads to another machine without encryption, and the token could be read on the way",
            "write https://; a server that others can reach has TLS (`pubmark serve --tls-self`)",
        )
    return found


def _written(parts: SplitResult, port: int | None) -> str:
    host = parts.hostname or ""
    bracketed = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{bracketed}" + ("" if port is None else f":{port}")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token(given: str | None, server: Address) -> Token:
    """The token that was given, or that of `PUBMARK_TOKEN`, or, for a server of this machine, that of its file."""
    if given is None:
        given = os.environ.get("PUBMARK_TOKEN")
    if given is not None:
        return Token(given.strip())
    # A file of this machine holds the token of this machine's server: nobody else is sent it.
    if server.is_loopback:
        try:
            return Token(TOKEN_FILE.read_text(encoding="ascii").strip())
        except FileNotFoundError:
            pass
        except (OSError, UnicodeError) as error:
            raise UsageError(f"failed to read the token in `{TOKEN_FILE}`: {_reason(error)}") from None
    raise UsageError(
        f"there is no token for `{server.url}`",
        f"pass `token=`, set `PUBMARK_TOKEN`, or work in the folder of `{TOKEN_FILE}`: `pubmark serve` makes it at its first start",
    )


def trust(authorities: str | os.PathLike[str] | None) -> ssl.SSLContext:
    """What certificates are trusted: those of a file (PEM), or those of this machine."""
    if authorities is None:
        return ssl.create_default_context()
    if isinstance(authorities, bool):
        raise UsageError(
            "`verify` is a file of certificates",
            "without it, those of this machine are trusted; `pubmark serve --tls-self` prints the file of its certificate",
        )
    try:
        return ssl.create_default_context(cafile=os.fspath(authorities))
    except OSError as error:
        raise UsageError(
            f"failed to read certificates from `{os.fspath(authorities)}`: {_reason(error)}",
            "`verify` is a file in PEM form, such as `runs/.serve/certificate.pem`",
        ) from None


def _reason(error: Exception) -> str:
    """In words, without the path, which the message names."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
