"""Join ES modules to the single file that a front end loads for a widget.

anywidget hands a module to the page as a blob, and no relative address leads from there to another file. So the text of
each imported file stands before its importer, once, without `import` and `export`. eslint checks the names.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]*\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |class |const )", re.MULTILINE)
_DECLARED = re.compile(r"^(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import\b|export (?!default )).*$", re.MULTILINE)


def joined(entry: Path) -> str:
    """Return the text of the module `entry` after the text of its imports.

    ValueError if two modules declare one name, or for another form than ``import { a, b } from "./file.js";``.
    """
    texts: dict[Path, str] = {}
    _collect(entry.resolve(), texts)
    text = "".join(texts.values())
    names = Counter(_DECLARED.findall(text))
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ValueError(f"the modules of {entry.name} must declare each name once, got two of {twice[0]}")
    return text


def _collect(path: Path, texts: dict[Path, str]) -> None:
    """Add the text of a module after those of its imports."""
    if path in texts:
        return
    source = path.read_text(encoding="utf-8")
    for relative in _IMPORT.findall(source):
        _collect((path.parent / relative).resolve(), texts)
    text = _EXPORT.sub("", _IMPORT.sub("", source))
    odd = _OTHER.search(text)
    if odd is not None:
        raise ValueError(f"{path.name} must import and export by name, got {odd[0]}")
    texts[path] = text
