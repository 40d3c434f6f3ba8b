"""Several files of a folder that belong together: the parts of one whole, by their names, or components."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.not_listed import NotListed
from tensornp.models.formats.contents import Beside, Contents, problem_of_part, problems_of
from tensornp.models.names.quoted import shown_name, shown_names
from tensornp.models.opening.config import UNREADABLE, config_beside
from tensornp.models.opening.one_file import read_part
from tensornp.models.quantization.layouts import with_meaning

_MAX_SHARDS = 100_000
_SHARD = re.compile(r"(?P<stem>.*)-(?P<number>\d{1,9})-of-(?P<count>\d{1,9})(?P<suffix>\.safetensors|\.bin)")


def are_shards(names: list[str]) -> bool:
    """Return whether the names are those of the parts of one whole: ``model-00001-of-00004.safetensors``."""
    found = [_SHARD.fullmatch(name) for name in names]
    wholes = {(match["stem"], match["count"], match["suffix"]) for match in found if match is not None}
    return all(found) and len(wholes) == 1


def shards_among(names: list[str], suffix: str) -> list[str]:
    """Return the names that are those of parts, and end so."""
    return [name for name in names if name.endswith(suffix) and _SHARD.fullmatch(name)]


def open_together(folder: Path, files: dict[str, str], top: Contents | None = None) -> Contents:
    """Return what several files hold, each with what its names begin with; a broken one hides no other.

    They stand behind what was found at the top of the folder.
    """
    entries: list[WeightEntry] = []
    metadata, problems = config_beside(folder) if top is None else (top.metadata, list(top.problems))
    problems.extend(_missing(list(files)))
    for name, prefix in files.items():
        try:
            found = read_part(folder / name)
        except UNREADABLE as error:
            if len(files) == 1 and top is None:
                raise
            problems.append(NotListed(error))
            continue
        entries.extend(_below(prefix, one) if prefix else one for one in found.entries)
        problems.extend(problem_of_part(name, problem) for problem in found.problems)
        metadata = _said_by_both(metadata, found.metadata, prefix)
    entries, untold = with_meaning(entries, metadata)
    problems.extend([*untold, *problems_of(entries)])
    if top is not None:
        entries = [*top.entries, *entries]
    problems.extend(one for one in _twice(entries) if one not in problems)
    return Contents(entries, metadata, problems, top.optimizers if top is not None else ())


def _said_by_both(first: Mapping[str, Any], second: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return what is said besides, in the second below a name: where a container holds some of it, it is compared."""
    both = dict(first) | {prefix + name: value for name, value in second.items()}
    if not any(isinstance(one, Beside) and (one or one.others) for one in (first, second)):
        return both
    made, own, more = Beside(both), *(one if isinstance(one, Beside) else Beside() for one in (first, second))
    made.of_sets = {*own.of_sets, *(prefix + name for name in more.of_sets)}
    made.others = {**own.others, **{prefix + name: cls for name, cls in more.others.items()}}
    return made


def _below(prefix: str, entry: WeightEntry) -> WeightEntry:
    """Return a weight of a component by its name in the whole."""
    tied_to = tuple(prefix + other for other in entry.tied_to)
    related = tuple(one._replace(name=prefix + one.name) for one in entry.related)
    return entry._with_(name=prefix + entry.name, tied_to=tied_to, related=related)


def _missing(names: list[str]) -> list[str]:
    """Return which parts of each whole are not there, by the names of those that are."""
    wholes: defaultdict[tuple[str, str, str], dict[int, int]] = defaultdict(dict)
    for match in filter(None, map(_SHARD.fullmatch, names)):
        wholes[match["stem"], match["count"], match["suffix"]][int(match["number"])] = len(match["number"])
    problems: list[str] = []
    for (stem, count, suffix), numbers in wholes.items():
        absent = [i for i in range(1, int(count) + 1) if i not in numbers] if int(count) <= _MAX_SHARDS else []
        width = next(iter(numbers.values()))
        if parts := [f"{stem}-{i:0{width}}-of-{count}{suffix}" for i in absent]:
            verb = "is" if len(parts) == 1 else "are"
            problems.append(NotListed(f"{shown_names(parts)} {verb} missing; what may be there is not known"))
    return problems


def _twice(entries: list[WeightEntry]) -> list[str]:
    times = Counter(entry.name for entry in entries)
    several = [(name, count) for name, count in times.items() if count > 1]
    return [NotListed(f"{shown_name(name)} is in {count} files, and listed of the last") for name, count in several]
