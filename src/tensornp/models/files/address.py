"""Addresses such as ``https://`` or ``s3://``, shown without their secrets."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import quote

from tensornp.errors import CheckpointError
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
    def suffix(self) -> str:
        return posixpath.splitext(self.name)[1]

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
"""Places of a file: this machine, or an address."""


def why_outside(place: Any) -> str:
    """Return why a name lies outside of its folder; links are not followed."""
    if not isinstance(place, str):
        return "its file is no text"
    windows = PureWindowsPath(place)
    is_outside = ".." in PurePosixPath(place).parts or ".." in windows.parts
    if is_outside or place.startswith("/") or windows.drive or windows.root or "\0" in place:
        return f"its file {shown_name(place)} would lie outside of the folder"
    return ""
