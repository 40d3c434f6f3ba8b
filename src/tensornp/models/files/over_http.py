"""Parts of a file on a server of the web, by Python's own client: each answer is checked, and connections are kept."""

from __future__ import annotations

import base64
import io
import os
import re
import ssl
from collections import defaultdict, deque
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from time import monotonic
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

from tensornp.errors import CheckpointError, TensornpError
from tensornp.models.files.address import HTTP, AbsentError, Address, Version

TIMEOUT_S = 30.0
"""For how long a server may be silent, and what leads to the bytes may take in all."""
_LEAST_BYTES_S = 10_000
"""What a server sends of them in a second, at least."""
_MAX_MOVES = 10
_MOVED = frozenset({301, 302, 303, 307, 308})
_KEPT_AS_TYPED = "/%:@!$&'()*+,;=~-._?"
_PART = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
_LOGIN = "write user:password@ before its host, or open it by a protocol of fsspec that knows your login, as hf:// does"
_REFUSED_LOGIN = frozenset({401, 403, 407})
_ABSENT = frozenset({403, 404, 410})
_idle: defaultdict[tuple[object, ...], deque[HTTPConnection]] = defaultdict(lambda: deque(maxlen=16))
"""Connections that wait for the next request, by the process, since two that are forked would share one."""


def fill(address: Address, view: memoryview, offset: int) -> tuple[Version, int]:
    """Fill `view` with the bytes from `offset` on; returns what the server tells of the file, and how many came.

    Fewer come where the file ends, or where the server gives no more at once. CheckpointError, a sentence, for whatever
    else happens: nothing but these bytes is ever downloaded.
    """
    exchange = _Exchange(address)
    try:
        return exchange.fill(view, offset)
    except TensornpError:
        raise
    except (OSError, HTTPException, ValueError) as error:
        raise CheckpointError(f"{str(address)!r} {_why(error)}") from None


class _Exchange:
    """One part that is asked for, and its result."""

    def __init__(self, address: Address) -> None:
        self._address, self._said = address, repr(str(address))
        self._until, self._late = monotonic() + TIMEOUT_S, _no_answer()

    def check_time(self) -> None:
        """Raise CheckpointError where what is waited for should have come."""
        if monotonic() > self._until:
            raise CheckpointError(f"{self._said} {self._late}")

    def fill(self, view: memoryview, offset: int) -> tuple[Version, int]:
        """Fill the view, as far as bytes come."""
        key, connection, answer = self._asked(offset, len(view))
        try:
            version, count = self._told(answer, offset, len(view))
            self._until, done = monotonic() + TIMEOUT_S + count / _LEAST_BYTES_S, 0
            self._late = f"comes at less than {_LEAST_BYTES_S:,} bytes a second; try again, or download it"
            while done < count:
                num = answer.readinto(view[done:count])
                if not num:
                    why = f"its server has sent {done:,} of {count:,} bytes"
                    raise CheckpointError(f"{self._said} breaks off: {why}; try again")
                done += num
        except BaseException:
            connection.close()
            raise
        if answer.isclosed() and connection.sock is not None:
            _idle[key].append(connection)
        else:
            connection.close()
        return version, count

    def _asked(self, offset: int, nbytes: int) -> tuple[tuple[object, ...], HTTPConnection, HTTPResponse]:
        """Return the answer of the server that has the file, wherever others lead to it."""
        first, lent = self._address.url, self._address.place
        url = lent or first
        for _ in range(_MAX_MOVES):
            key, connection, answer = self._answer(url, offset, nbytes)
            place = answer.headers.get("Location")
            is_over = url == lent and answer.status not in (206, 416)
            if not is_over and not (answer.status in _MOVED and place):
                if url != first and answer.status == 206:
                    self._address.place = url
                return key, connection, answer
            connection.close()
            url, lent = first if is_over else urljoin(url, place), ""
            if urlsplit(url).scheme not in HTTP:
                raise CheckpointError(f"{self._said} redirects to an invalid URL; check the address")
        raise CheckpointError(f"{self._said} leads from one address to another, {_MAX_MOVES} times; check it")

    def _answer(self, url: str, offset: int, nbytes: int) -> tuple[tuple[object, ...], HTTPConnection, HTTPResponse]:
        parts, own = urlsplit(url), urlsplit(self._address.url)
        asked = quote(parts.path or "/", safe=_KEPT_AS_TYPED)
        asked += f"?{quote(parts.query, safe=_KEPT_AS_TYPED)}" if parts.query else ""
        headers = {
            "Range": f"bytes={offset}-{offset + nbytes - 1}", "Accept-Encoding": "identity", "User-Agent": "tensornp",
        }  # fmt: skip
        if own.username is not None and _host_of(own) == _host_of(parts):
            headers["Authorization"] = _login(own)
        proxy = "" if proxy_bypass(parts.netloc.rpartition("@")[2]) else getproxies().get(parts.scheme, "")
        through = urlsplit(proxy if "://" in proxy else f"http://{proxy}") if proxy else None
        if through is not None and parts.scheme == "http":
            asked = f"http://{parts.netloc.rpartition('@')[2]}{asked}"
            headers |= {"Proxy-Authorization": _login(through)} if through.username is not None else {}
        key = (os.getpid(), proxy, *_host_of(parts))
        while True:
            try:
                connection, is_kept = _idle[key].pop(), True
            except IndexError:
                connection, is_kept = _connection(parts, through), False
            connection.response_class = partial(_Answer, self)  # type: ignore[assignment]
            try:
                connection.request("GET", asked, headers=headers)
                return key, connection, connection.getresponse()
            except BaseException as error:
                connection.close()
                # The server lets go of those that have waited long.
                if not (is_kept and isinstance(error, (ConnectionError, HTTPException))):
                    raise

    def _told(self, answer: HTTPResponse, offset: int, wanted: int) -> tuple[Version, int]:
        """Return what an answer tells, and how many bytes follow."""
        status, headers = answer.status, answer.headers
        etag, modified = headers.get("ETag", ""), headers.get("Last-Modified", "")
        said = headers.get("Content-Range", "").strip()
        part = _PART.fullmatch(said)
        if status == 206:
            is_packed = headers.get("Content-Encoding", "identity").lower() != "identity"
            count = int(part[2]) + 1 - offset if part and int(part[1]) == offset and not is_packed else 0
            if (
                part is None
                or not 0 < count <= min(wanted, int(part[3]) - offset)
                or answer.length not in (None, count)
            ):
                tells = "tells no size of it" if said.endswith("/*") else "sends other bytes than it is asked for"
                why = f"has a server that {tells}"
                raise CheckpointError(f"{self._said} {why}; download it, and open its path")
            return Version(int(part[3]), etag, modified), count
        if status == 416 or (status == 200 and headers.get("Content-Length") == "0"):
            nbytes = headers.get("Content-Range", "").rpartition("/")[2][:18]
            return Version(int(nbytes) if nbytes.isdecimal() else 0, etag, modified), 0
        if status == 200 and headers.get_content_type() == "text/html":
            cure = "take that of the file (in the Hugging Face Hub, with /resolve/ in place of /blob/)"
            raise CheckpointError(f"{self._said} is the address of a page; {cure}")
        if status == 200:
            why = "has a server that gives only whole files, and nothing of it was downloaded"
            raise CheckpointError(f"{self._said} {why}; download it, and open its path")
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "no status that is known"
        kind = AbsentError if status in _ABSENT else CheckpointError
        cure = "check the address" if 400 <= status < 425 else "try again later"
        cure = _LOGIN if status in _REFUSED_LOGIN else cure
        raise kind(f"{self._said} is not given out: {status} {phrase}; {cure}")


class _Answer(HTTPResponse):
    """An answer of which each byte has to come in time: a server may send them one by one, or what means nothing."""

    def __init__(self, exchange: _Exchange, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp = io.BufferedReader(_Timely(self.fp.detach(), exchange))


class _Timely(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, exchange: _Exchange) -> None:
        self._raw, self._exchange = raw, exchange

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int | None:
        self._exchange.check_time()
        return self._raw.readinto(view)

    def close(self) -> None:
        self._raw.close()
        super().close()


def _host_of(parts: SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _login(parts: SplitResult) -> str:
    told = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {base64.b64encode(told.encode()).decode()}"


def _connection(parts: SplitResult, through: SplitResult | None) -> HTTPConnection:
    """Return a new connection to a server, by way of a proxy where the environment names one."""
    scheme, host, port = _host_of(parts)
    kind = HTTPSConnection if scheme == "https" else HTTPConnection
    if not host:
        raise ValueError("no host")
    if through is None:
        return kind(host, port, timeout=TIMEOUT_S)
    connection = kind(through.hostname or "", through.port or 80, timeout=TIMEOUT_S)
    if scheme == "https":
        login = {"Proxy-Authorization": _login(through)} if through.username is not None else {}
        connection.set_tunnel(host, port, login)
    return connection


def _no_answer() -> str:
    return f"gives no answer within {TIMEOUT_S:g} seconds; try again, or download it"


def _why(error: Exception) -> str:
    """Return why nothing came, and the cure; never in the words of an error that may tell the address."""
    if isinstance(error, TimeoutError):
        return _no_answer()
    if isinstance(error, ssl.SSLCertVerificationError):
        cure = "the variable SSL_CERT_FILE names a file of those that are"
        return f"has a certificate that is not trusted ({error.verify_message}); {cure}"
    if isinstance(error, ssl.SSLError):
        return f"cannot be reached by TLS ({error.reason}); check its scheme and its port"
    if isinstance(error, OSError):
        return f"cannot be reached: {error.strerror or 'the connection was refused'}; check the address and the network"
    if isinstance(error, HTTPException) and not isinstance(error, ValueError):
        return f"has a server whose answer is not understood ({type(error).__name__}); try again, or download it"
    return "is no address that can be asked; check its host and its port"
