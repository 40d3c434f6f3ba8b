"""How many bytes are read of files of this machine."""

from __future__ import annotations

import pytest

from tensornp.models.files.source_file import OpenFile


def counted_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list to which the bytes of each read of a file are added from now on."""
    read: list[int] = []
    read_into = OpenFile.read_into
    monkeypatch.setattr(OpenFile, "read_into", lambda *a: read.append(a[1].nbytes) or read_into(*a))
    return read
