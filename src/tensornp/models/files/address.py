"""Files at addresses such as ``https://`` or ``s3://``, read in parts; their secrets are not shown."""

from __future__ import annotations

import posixpath
import re
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from tensornp.errors import ChangedFileError, CheckpointError, MissingLibraryError, TensornpError
from tensornp.models.files.source_file import AbsentError, ListedFile, Reader
from tensornp.models.names.quoted import shown_name

_IS_ADDRESS = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]+://")
_LOGIN = re.compile(r"(?<=://)[^/]*@")
_PARTS = re.compile(r"([^?#]*)(\?[^#]*)?")
HTTP = ("http", "https")


def is_address(path: str) -> bool:
    """Return whether a path has a scheme; a drive of Windows is none."""
    return _IS_ADDRESS.match(path) is not None


def shown_path(path: str) -> str:
    """Return a path as it is shown: an address without user, password, query and fragment."""
    return _LOGIN.sub("", re.split("[?#]", path, maxsplit=1)[0]) if is_address(path) else path


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """An address as it was typed, with the attributes of a path; its text shows no secrets."""

    url: str

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"

    def __str__(self) -> str:
        return shown_path(self.url)

    @property
    def scheme(self) -> str:
        return self.url.partition(":")[0].lower()

    @property
    def name(self) -> str:
        """The text after the last slash; empty for a folder."""
        return posixpath.basename(str(self))

    @property
    def parent(self) -> Address:
        return self / ""

    def __truediv__(self, name: str) -> Address:
        """Return the address of a file in the folder, with the same user and query."""
        if "::" in name and self.scheme not in HTTP:
            # fsspec would read something else, through the folder.
            raise CheckpointError(f"its file {shown_name(name)} would lie outside of the folder")
        whole, query = _PARTS.match(self.url).groups("")  # type: ignore[union-attr]
        folder = whole[: whole.rfind("/") + 1] if whole.count("/") > 2 else f"{whole}/"
        # A name that no address can have is of a file that is not there.
        inside = quote(name, errors="replace") if self.scheme in HTTP else name
        return Address(f"{folder}{inside}{query}")


Place = Path | Address


def why_outside(place: Any) -> str:
    """Return why a name lies outside of its folder; links are not followed."""
    if not isinstance(place, str):
        return "its file is no text"
    windows = PureWindowsPath(place)
    is_outside = ".." in PurePosixPath(place).parts or ".." in windows.parts
    if is_outside or place.startswith("/") or windows.drive or windows.root or "\0" in place:
        return f"its file {shown_name(place)} would lie outside of the folder"
    return ""


TIMEOUT_S = 30.0
BLOCK_NBYTES = 2**16
_MAX_BLOCKS = 16
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
_KEPT_AS_TYPED = "/%:@!$&'()*+,;=~-._?"
_CURE = "write user:password@ before its host, or open it by a protocol of fsspec that knows your login, as hf:// does"
_TAGS = "ETag etag LastModified last_modified last_commit mtime updated generation created blob_id checksum".split()
"""Keys of fsspec's protocols for what changes with a file."""


Version = tuple[int, str]
"""The size of a remote file and its tag, which is empty if its server does not tell."""


@dataclass(frozen=True, slots=True)
class RemoteFile(ListedFile):
    """A file at an address, as its server described it; `path` has no secrets.

    It can be sent to another process.
    """

    path: str
    address: Address
    version: Version
    _blocks: dict[int, bytes] = field(default_factory=dict, compare=False, repr=False)
    """The last blocks of headers and directories; values are never kept."""

    @classmethod
    def at(cls, address: Address, nbytes: int = BLOCK_NBYTES) -> RemoteFile:
        """Ask for the first `nbytes` of a file."""
        version, head = _fetch(address, 0, nbytes)
        file = cls(str(address), address, version)
        if len(head) == min(file.nbytes, BLOCK_NBYTES):
            file._blocks[0] = head
        return file

    @property
    def nbytes(self) -> int:
        return self.version[0]

    def opened(self) -> AbstractContextManager[Reader]:
        """Read it for a while; ChangedFileError if it is another file, is gone, or nobody answers."""
        return nullcontext(Reader(self.fetch))

    def scanned(self) -> AbstractContextManager[Reader]:
        return nullcontext(Reader(self._fetch_blocks))

    def fetch(self, offset: int, nbytes: int) -> bytes:
        if offset + nbytes > self.nbytes:
            raise CheckpointError(f"{self.path!r} ends before byte {offset + nbytes:,}")
        try:
            version, data = _fetch(self.address, offset, nbytes) if nbytes else (self.version, b"")
        except CheckpointError as error:
            raise ChangedFileError(str(error)) from None
        if version != self.version or len(data) < nbytes:
            raise ChangedFileError(f"{self.path!r} changed since it was listed; open it again")
        return data

    def _fetch_blocks(self, offset: int, nbytes: int) -> bytes:
        """Return small neighbouring parts from blocks, which are kept."""
        if not 0 < nbytes < BLOCK_NBYTES or offset + nbytes > self.nbytes:
            return self.fetch(offset, nbytes)
        first, last = offset // BLOCK_NBYTES, (offset + nbytes - 1) // BLOCK_NBYTES
        found = b"".join(map(self._block, range(first, last + 1)))
        return found[offset - first * BLOCK_NBYTES :][:nbytes]

    def _block(self, number: int) -> bytes:
        data = self._blocks.get(number)
        if data is None:
            start = number * BLOCK_NBYTES
            data = self.fetch(start, min(BLOCK_NBYTES, self.nbytes - start))
            self._blocks[number] = data
            for old in list(self._blocks)[:-_MAX_BLOCKS]:
                self._blocks.pop(old, None)
        return data


def _fetch(address: Address, offset: int, nbytes: int) -> tuple[Version, bytes]:
    return (_over_http if address.scheme in HTTP else _over_fsspec)(address, offset, nbytes)


def _over_http(address: Address, offset: int, nbytes: int) -> tuple[Version, bytes]:
    # A file of this machine needs no network.
    from http.client import HTTPException
    from urllib import request as web
    from urllib.error import HTTPError

    said = repr(str(address))
    try:
        with web.urlopen(_request(address, offset, nbytes), timeout=TIMEOUT_S) as answer:
            version, count = _checked(answer, said, offset, nbytes)
            data = answer.read(count)
            if len(data) < count:
                raise CheckpointError(f"{said} breaks off after {len(data):,} of {count:,} bytes; try again")
            return version, data
    except HTTPError as error:
        cure = _CURE if error.code in (401, 403, 407) else "check the address, or try again later"
        kind = AbsentError if error.code in (403, 404, 410) else CheckpointError
        raise kind(f"{said} is not given out: status {error.code}; {cure}") from None
    except TensornpError:
        raise
    except (OSError, HTTPException, ValueError) as error:
        # The text of an error may show the address.
        reason = getattr(error, "reason", error)
        why = f"no answer within {TIMEOUT_S:g} seconds" if isinstance(reason, TimeoutError) else type(reason).__name__
        why = getattr(reason, "strerror", None) or why
        raise CheckpointError(f"{said} cannot be reached: {why}; check the address and the network") from None


def _request(address: Address, offset: int, nbytes: int) -> Any:
    import base64
    from urllib.request import Request

    parts = urlsplit(address.url)
    if not parts.hostname or parts.port == 0:
        raise ValueError("no host")
    path, query = (quote(text, safe=_KEPT_AS_TYPED) for text in (parts.path, parts.query))
    asked = Request(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, query, "")))
    asked.add_header("Range", f"bytes={offset}-{offset + nbytes - 1}")
    asked.add_header("Accept-Encoding", "identity")
    asked.add_header("User-Agent", "tensornp")
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        # Not sent on to another host.
        asked.add_unredirected_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    return asked


def _checked(answer: Any, said: str, offset: int, wanted: int) -> tuple[Version, int]:
    """Return the version and the size of the part in a response."""
    headers = answer.headers
    if answer.status == 206:
        part = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", "").strip())
        is_packed = headers.get("Content-Encoding", "identity").lower() != "identity"
        count = int(part[2]) + 1 - offset if part and int(part[1]) == offset and not is_packed else 0
        if part and 0 < count <= min(wanted, int(part[3]) - offset) and answer.length in (None, count):
            return (int(part[3]), f"{headers.get('ETag', '')} {headers.get('Last-Modified', '')}"), count
        raise CheckpointError(f"{said} has a server that sends other bytes than it is asked for; download it")
    if headers.get_content_type() == "text/html":
        cure = "take that of the file (in the Hugging Face Hub, with /resolve/ in place of /blob/)"
        raise CheckpointError(f"{said} is the address of a page; {cure}")
    why = "has a server that gives only whole files, and nothing of it was downloaded"
    raise CheckpointError(f"{said} {why}; download it, and open its path")


def _over_fsspec(address: Address, offset: int, nbytes: int) -> tuple[Version, bytes]:
    said = repr(str(address))
    try:
        import fsspec  # type: ignore[import-untyped,unused-ignore]

        files, path = fsspec.core.url_to_fs(address.url)
        told = files.info(path)
        size = int(told["size"])
        data = bytes(files.cat_file(path, offset, min(offset + nbytes, size))) if offset < size else b""
    except ImportError as error:
        cure = f"pip install fsspec, and what it needs for {address.scheme}://"
        raise MissingLibraryError(f"{said} is read by a library that is not installed ({error}); {cure}") from None
    except (FileNotFoundError, PermissionError) as error:
        raise AbsentError(f"{said} is not there, or access is denied ({type(error).__name__}); check it") from None
    except Exception as error:
        # Its own words may show the address.
        why = f"{type(error).__name__}; fsspec.open(...).open() tells more"
        raise CheckpointError(f"{said} cannot be read: {why}") from None
    tags = [(key, told[key]) for key in _TAGS if told.get(key) is not None]
    return (size, str(tags or "")), data[:nbytes]
