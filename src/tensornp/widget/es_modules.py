"""Join ES modules to the single file that a front end loads for a widget.

anywidget hands a module to the page as a blob, and no relative address leads from there to another file. So the text of
each imported file stands before its importer, once, without `import` and `export`. eslint checks the names.
"""

from __future__ import annotations

import re
from pathlib import Path

_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]*\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |class |const )", re.MULTILINE)


def joined(entry: Path) -> str:
    """Return the text of the module `entry` after the text of its imports."""
    texts: dict[Path, str] = {}
    _collect(entry.resolve(), texts)
    return "".join(texts.values())


def _collect(path: Path, texts: dict[Path, str]) -> None:
    """Add the text of a module after those of its imports."""
    if path in texts:
        return
    source = path.read_text(encoding="utf-8")
    for relative in _IMPORT.findall(source):
        _collect((path.parent / relative).resolve(), texts)
    texts[path] = _EXPORT.sub("", _IMPORT.sub("", source))
