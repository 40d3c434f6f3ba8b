"""A file at an address, read in parts over http or by fsspec."""

from __future__ import annotations

import base64
import re
import ssl
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from threading import Lock
from typing import Any
from urllib import request as web
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlsplit, urlunsplit

import numpy as np

from tensornp.errors import ChangedFileError, CheckpointError, MissingLibraryError, TensornpError
from tensornp.models.files.address import HTTP, AbsentError, Address, Version
from tensornp.models.files.source_file import Array, ListedFile, Reader

TIMEOUT_S = 30.0
"""Seconds that a server may be silent."""
BLOCK_NBYTES = 2**16
_LARGE_NBYTES = 2**22
_MAX_BLOCKS = 16
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
_KEPT_AS_TYPED = "/%:@!$&'()*+,;=~-._?"
_ABSENT = frozenset({403, 404, 410})
_LOGIN = "write user:password@ before its host, or open it by a protocol of fsspec that knows your login, as hf:// does"
_TAGS = (
    "ETag", "etag", "LastModified", "last_modified", "last_commit", "mtime", "updated", "generation", "created",
    "blob_id", "md5Hash", "md5", "checksum",
)  # fmt: skip
"""Keys of fsspec's protocols for what changes with a file."""


class Blocks:
    """The last blocks of remote files; several threads that need the same one make one request."""

    def __init__(self, block_nbytes: int = BLOCK_NBYTES) -> None:
        self.block_nbytes = block_nbytes
        self._lock, self._kept = Lock(), OrderedDict[tuple[str, int], "Future[bytes]"]()

    def put(self, file: RemoteFile, data: bytes) -> None:
        """Keep the first block of a file."""
        first: Future[bytes] = Future()
        first.set_result(data)
        self._kept[file.address.url, 0] = first

    def block(self, file: RemoteFile, number: int) -> bytes:
        """Return a block, fetched once."""
        key = file.address.url, number
        with self._lock:
            found = self._kept.get(key)
            is_mine = found is None
            if found is None:
                found = self._kept[key] = Future()
                if len(self._kept) > _MAX_BLOCKS:
                    self._kept.popitem(last=False)
        if is_mine:
            start = number * self.block_nbytes
            try:
                found.set_result(file.fetch(start, min(self.block_nbytes, file.nbytes - start)))
            except BaseException as error:
                found.set_exception(error)
                with self._lock:
                    self._kept.pop(key, None)
        return found.result()


@dataclass(frozen=True, slots=True)
class RemoteFile(ListedFile):
    """A file at an address, as its server described it; `path` has no secrets.

    It can be sent to another process. Small reads come in blocks while it is listed or scanned, else by themselves.
    """

    path: str
    address: Address
    version: Version
    in_use: list[Blocks] = field(default_factory=list, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return RemoteFile, (self.path, self.address, self.version)

    @classmethod
    @contextmanager
    def listed(cls, address: Address, nbytes: int = BLOCK_NBYTES) -> Iterator[RemoteFile]:
        """Ask for the first `nbytes` of a file; small reads come in blocks until the context ends.

        Raises
        ------
        CheckpointError
            If the server gives no parts of it.
        MissingLibraryError
            If fsspec or the library of its protocol is not installed.
        """
        version, head = _fetch(address, 0, nbytes)
        file, blocks = cls(str(address), address, version), Blocks()
        if len(head) == min(version.nbytes, BLOCK_NBYTES):
            blocks.put(file, head)
        with file.scanned(blocks):
            yield file

    @contextmanager
    def scanned(self, blocks: Blocks | None = None) -> Iterator[None]:
        """Read in blocks until the context ends; of several contexts, the blocks of the first one are used."""
        self.in_use.append(blocks or Blocks())
        try:
            yield
        finally:
            self.in_use.pop()

    @property
    def nbytes(self) -> int:
        """The size of the file."""
        return self.version.nbytes

    @contextmanager
    def opened(self, *, is_whole: bool = False) -> Iterator[Reader]:
        """Read it for a while, by large requests if all is read.

        ChangedFileError if it is another file, is gone, or nobody answers.
        """
        with self.scanned(Blocks(_LARGE_NBYTES)) if is_whole else nullcontext():
            yield _RemoteReader(self)

    def fetch(self, offset: int, nbytes: int) -> bytes:
        """Return bytes by one request, or by several if the server gives less at once."""
        parts: list[bytes] = []
        while nbytes > 0:
            try:
                version, data = _fetch(self.address, offset, nbytes)
            except CheckpointError as error:
                raise ChangedFileError(str(error)) from None
            if version != self.version:
                was, now = self.version.nbytes, version.nbytes
                how = f"had {was:,} bytes and has {now:,}" if was != now else "is another one"
                raise ChangedFileError(f"{self.path!r} {how} since it was listed; open it again")
            if not data:
                raise CheckpointError(f"{self.path!r} ends before byte {offset + nbytes:,}")
            parts.append(data)
            offset, nbytes = offset + len(data), nbytes - len(data)
        return b"".join(parts)


class _RemoteReader(Reader):
    """Several threads may read it."""

    def __init__(self, file: RemoteFile) -> None:
        self._file = file

    def read_into(self, target: Array, offset: int) -> None:
        """Fill a contiguous array of bytes from `offset` on."""
        target[:] = np.frombuffer(self._bytes(offset, target.nbytes), np.uint8)

    def _bytes(self, offset: int, nbytes: int) -> bytes:
        file = self._file
        if offset + nbytes > file.nbytes:
            raise CheckpointError(f"{file.path!r} ends before byte {offset + nbytes:,}")
        # Another thread may end its context meanwhile.
        blocks = next(iter(file.in_use), None)
        if not nbytes or blocks is None or nbytes >= blocks.block_nbytes:
            return file.fetch(offset, nbytes)
        first, last = offset // blocks.block_nbytes, (offset + nbytes - 1) // blocks.block_nbytes
        found = b"".join(blocks.block(file, number) for number in range(first, last + 1))
        return found[offset - first * blocks.block_nbytes :][:nbytes]


def _fetch(address: Address, offset: int, nbytes: int) -> tuple[Version, bytes]:
    """Return the version of a file and some bytes from `offset` on."""
    return (_over_http if address.scheme in HTTP else _over_fsspec)(address, offset, nbytes)


def _over_http(address: Address, offset: int, nbytes: int) -> tuple[Version, bytes]:
    said = repr(str(address))
    try:
        with _opener().open(_request(address, offset, nbytes), timeout=TIMEOUT_S) as answer:
            version, count = _checked(answer, said, offset, nbytes)
            data = answer.read(count)
            if len(data) < count:
                sent = f"its server has sent {len(data):,} of {count:,} bytes"
                raise CheckpointError(f"{said} breaks off: {sent}; try again")
            return version, data
    except HTTPError as error:
        headers = error.headers
        nbytes_told = headers.get("Content-Range", "").rpartition("/")[2][:18]
        if error.code == 416 and nbytes_told.isdecimal():
            return _version(int(nbytes_told), headers), b""
        raise _refused(said, error.code) from None
    except (OSError, HTTPException, ValueError) as error:
        if isinstance(error, TensornpError):
            raise
        raise CheckpointError(f"{said} {_why(error)}") from None


def _request(address: Address, offset: int, nbytes: int) -> web.Request:
    parts = urlsplit(address.url)
    host = parts.netloc.rpartition("@")[2]
    if not parts.hostname or parts.port == 0:
        raise ValueError("no host")
    path, query = (quote(text, safe=_KEPT_AS_TYPED) for text in (parts.path, parts.query))
    asked = web.Request(urlunsplit((parts.scheme, host, path, query, "")))
    asked.add_header("Range", f"bytes={offset}-{offset + nbytes - 1}")
    asked.add_header("Accept-Encoding", "identity")
    asked.add_header("User-Agent", "tensornp")
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        # Not sent on to another host.
        asked.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    return asked


def _opener() -> web.OpenerDirector:
    """Return an opener for http and https that follows redirects and proxies."""
    opener = web.OpenerDirector()
    for handler in (
        web.ProxyHandler, web.UnknownHandler, web.HTTPHandler, web.HTTPSHandler, web.HTTPDefaultErrorHandler,
        web.HTTPRedirectHandler, web.HTTPErrorProcessor,
    ):  # fmt: skip
        opener.add_handler(handler())
    return opener


def _version(nbytes: int, headers: Any) -> Version:
    return Version(nbytes, headers.get("ETag", ""), headers.get("Last-Modified", ""))


def _checked(answer: Any, said: str, offset: int, wanted: int) -> tuple[Version, int]:
    """Return the version and the size of the part in a response."""
    headers = answer.headers
    if answer.status == 206:
        told = headers.get("Content-Range", "").strip()
        part = _CONTENT_RANGE.fullmatch(told)
        is_packed = headers.get("Content-Encoding", "identity").lower() != "identity"
        count = int(part[2]) + 1 - offset if part and int(part[1]) == offset and not is_packed else 0
        if part and 0 < count <= min(wanted, int(part[3]) - offset) and answer.length in (None, count):
            return _version(int(part[3]), headers), count
        tells = "tells no size of it" if told.endswith("/*") else "sends other bytes than it is asked for"
        raise CheckpointError(f"{said} has a server that {tells}; download it, and open its path")
    if answer.status != 200:
        raise _refused(said, answer.status)
    if headers.get("Content-Length") == "0":
        return _version(0, headers), 0
    if headers.get_content_type() == "text/html":
        cure = "take that of the file (in the Hugging Face Hub, with /resolve/ in place of /blob/)"
        raise CheckpointError(f"{said} is the address of a page; {cure}")
    why = "has a server that gives only whole files, and nothing of it was downloaded"
    raise CheckpointError(f"{said} {why}; download it, and open its path")


def _refused(said: str, status: int) -> CheckpointError:
    if 300 <= status < 400:
        return CheckpointError(f"{said} is sent on to another address without an end, or to none; check it")
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "no status that is known"
    cure = _LOGIN if status in (401, 403, 407) else "check the address" if 400 <= status < 425 else "try again later"
    kind = AbsentError if status in _ABSENT else CheckpointError
    return kind(f"{said} is not given out: {status} {phrase}; {cure}")


def _why(error: Exception) -> str:
    """Return the reason for a failed request and the cure, without the address."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return f"gives no answer within {TIMEOUT_S:g} seconds; try again, or download it"
    if isinstance(reason, ssl.SSLCertVerificationError):
        cure = "the variable SSL_CERT_FILE names a file of those that are"
        return f"has a certificate that is not trusted ({reason.verify_message}); {cure}"
    if isinstance(reason, ssl.SSLError):
        return f"cannot be reached by TLS ({reason.reason}); check its scheme and its port"
    if isinstance(reason, OSError):
        why = reason.strerror or "the connection was refused"
        return f"cannot be reached: {why}; check the address and the network"
    if isinstance(reason, HTTPException) and not isinstance(reason, ValueError):
        return f"has a server whose answer is not understood ({type(reason).__name__}); try again, or download it"
    return "is no address that can be asked; check its host and its port"


def _over_fsspec(address: Address, offset: int, nbytes: int) -> tuple[Version, bytes]:
    said = repr(str(address))
    try:
        import fsspec  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        cure = f"pip install fsspec, and what it needs for {address.scheme}://"
        raise MissingLibraryError(f"{said} is read by fsspec, which is not installed; {cure}") from None
    try:
        files, path = fsspec.core.url_to_fs(address.url)
    except ImportError as error:
        raise MissingLibraryError(f"{said} is read by a library that is not installed; {error}") from None
    except ValueError:
        raise CheckpointError(f"{said} has a scheme that fsspec does not know; check it") from None
    except Exception as error:
        raise _unread(said, error) from None
    try:
        told = files.info(path)
        size = int(told["size"])
        data = bytes(files.cat_file(path, offset, min(offset + nbytes, size))) if offset < size else b""
        tags = [(key, told[key]) for key in _TAGS if told.get(key) is not None]
        return Version(size, str(tags or "")), data[:nbytes]
    except FileNotFoundError:
        raise AbsentError(f"{said} is not there; check the address") from None
    except PermissionError:
        raise AbsentError(f"{said}: access denied; log in first") from None
    except Exception as error:
        raise _unread(said, error) from None


def _unread(said: str, error: Exception) -> CheckpointError:
    """Return a sentence on any other error; its own words may show the address."""
    return CheckpointError(f"{said} cannot be read: {type(error).__name__}; fsspec.open(...).open() tells more")
