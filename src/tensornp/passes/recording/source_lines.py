"""Which line of a program a call came from."""

from __future__ import annotations

import linecache
import os
from collections.abc import Sequence
from types import CodeType, FrameType

import torch

import tensornp
from tensornp.passes.records import SourceLine

_LIBRARIES = tuple(os.path.join(os.path.dirname(one.__file__ or ""), "") for one in (torch, tensornp))


class SourceLines:
    """The places from which calls came: an integer each while the pass lasts, a line of text in the end."""

    def __init__(self) -> None:
        self._is_library: dict[CodeType, bool] = {}

    def place_of(self, frame: FrameType | None) -> tuple[CodeType, int] | None:
        """Return the innermost line that is in neither torch nor tensornp, from `frame` outwards."""
        known = self._is_library
        while frame is not None:
            code = frame.f_code
            is_library = known.get(code)
            if is_library is None:
                is_library = known[code] = code.co_filename.startswith(_LIBRARIES)
            if not is_library:
                return code, frame.f_lineno
            frame = frame.f_back
        return None


def line_at(place: tuple[CodeType, int] | None, inputs: Sequence[str] = ()) -> SourceLine | None:
    """Return the line at a place, as its file, or IPython, has it now; `inputs` are the cells of a notebook."""
    if place is None:
        return None
    code, line = place
    file = code.co_filename
    text = linecache.getline(file, line).strip()
    return SourceLine(file, line, code.co_name, text, _cell_of(file, inputs))


def _cell_of(file: str, inputs: Sequence[str]) -> str:
    """Return the cell that IPython has compiled under the name of a file that is not there; of a magic, "the cell"."""
    if not inputs or os.path.exists(file):
        return ""
    source = "".join(linecache.getlines(file)).strip()
    found = [number for number, text in enumerate(inputs) if source and text.strip() == source]
    return f"In[{found[-1]}]" if found else "the cell"
