"""Join ES modules to the single file that a front end loads for a widget.

anywidget hands a module to the page as a blob, of which no relative address leads to another file. So what a module
imports stands before it in one text, each file once; none of the sources is changed but for its `import` and `export`.
"""

from __future__ import annotations

import re
from pathlib import Path

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]*\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |class |const )", re.MULTILINE)
_DECLARED = re.compile(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
_OTHER = re.compile(r"^(?:import\b|export (?!default )).*$", re.MULTILINE)


def joined(entry: Path) -> str:
    """Return the text of the module `entry` after the text of its imports.

    Raises
    ------
    ValueError
        If modules import each other in a circle, import what another does not export, declare the same name, or import
        and export in another form than ``import { a, b } from "./file.js";`` and ``export`` before a declaration.
    """
    texts: dict[Path, str] = {}
    _collect(entry.resolve(), texts, ())
    owners: dict[str, Path] = {}
    for path, text in texts.items():
        for name in _DECLARED.findall(text):
            if owners.setdefault(name, path) != path:
                raise ValueError(f"{path.name} and {owners[name].name} both declare {name}")
    *imported, (_, last) = texts.items()
    return "".join([*(_EXPORT.sub("", text) for _, text in imported), _EXPORT.sub("", last)])


def _collect(path: Path, texts: dict[Path, str], above: tuple[Path, ...]) -> None:
    """Add the text of a module after those of its imports."""
    if path in texts:
        return
    if path in above:
        raise ValueError(f"{' imports '.join(one.name for one in (*above[above.index(path) :], path))}")
    source = path.read_text(encoding="utf-8")
    for names, relative in _IMPORT.findall(source):
        other = (path.parent / relative).resolve()
        _collect(other, texts, (*above, path))
        exported = {_DECLARED.match(line)[1] for line in _exported(other)}  # type: ignore[index]
        missing = {name.strip() for name in names.split(",") if name.strip()} - exported
        if missing:
            raise ValueError(f"{path.name} imports {', '.join(sorted(missing))}, which {other.name} does not export")
    text = _IMPORT.sub("", source)
    odd = _OTHER.search(_EXPORT.sub("", text))
    if odd is not None:
        raise ValueError(f"{path.name} has a form that is not taken: {odd[0]}")
    texts[path] = text


def _exported(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if _EXPORT.match(line)]
