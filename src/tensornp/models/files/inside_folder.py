"""The names of files that a file gives: opened only if they lie below its folder."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from tensornp.models.names.quoted import shown_name


def why_outside(place: Any) -> str:
    """Return why the name of a file is not opened; by the text alone, since caches consist of symbolic links."""
    if not isinstance(place, str):
        return "its file is no text"
    windows = PureWindowsPath(place)
    is_outside = ".." in PurePosixPath(place).parts or ".." in windows.parts
    if is_outside or place.startswith("/") or windows.drive or windows.root or "\0" in place:
        return f"its file {shown_name(place)} would lie outside of the folder"
    return ""
