"""The classes of modules, said of a line of the tree where its name does not say it: ``6 × BertLayer``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_HOLDERS = ("ModuleList", "ModuleDict", "ParameterList", "ParameterDict")
"""What holds others, and does nothing."""


def class_said(prefixes: Iterable[str], classes: Mapping[str, str]) -> str:
    """Return of what class the modules are whose names are these; empty where names say it, or they differ."""
    some = set(prefixes)
    found = {classes.get(prefix, "") for prefix in some}
    if len(found) != 1 or found & {"", *_HOLDERS}:
        return ""
    (said,) = found
    key = next(iter(some)).rpartition(".")[2]
    if len(some) > 1 and key.isdecimal():
        return f"{len(some):,} × {said}"
    return "" if key.replace("_", "").lower() == said.lower() else said
