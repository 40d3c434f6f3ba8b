"""Open one file of weights, of whichever format, or several that belong together."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tensornp.errors import ChangedFileError, CheckpointError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.repeated import NotListed
from tensornp.models.files.address import AbsentError, Address, Place
from tensornp.models.files.listed import listed
from tensornp.models.formats.contents import Beside, Contents, problem_of_part, problems_of
from tensornp.models.formats.table import Format, read_contents
from tensornp.models.names.quoted import shown_name, shown_names
from tensornp.models.opening import lora as adapters
from tensornp.models.opening.lora import has_halves
from tensornp.models.quantization.layouts import GPTQ_CONFIG, may_have_meaning, with_meaning
from tensornp.models.storage.relations import relate

_MAX_PARTS = 100_000
_PART = re.compile(
    r"(?P<stem>.*)-(?P<number>\d{1,9})-of-(?P<count>\d{1,9})(?P<suffix>(\.\w+)?\.(safetensors|bin|gguf))"
)


def open_file(path: Place) -> Contents:
    """Return the contents of a file, with the configuration beside it.

    At an address, the configuration is asked for only if it may say more about the weights.

    Raises
    ------
    CheckpointError
        If the file is not sound, or empty.
    """
    form, found = _contents_at(path)
    if form.is_apart:
        is_asked = not isinstance(path, Address) or may_have_meaning(found.entries) or has_halves(found.entries)
        config, problems = config_beside(path.parent) if is_asked else ({}, [])
        metadata = {**found.metadata, **config}
        entries, untold = with_meaning(found.entries, metadata)
        found = Contents(entries, metadata, [*problems, *untold])
    elif not (found.entries or found.metadata or found.problems or path.suffix == ".npz"):
        raise CheckpointError(f"{str(path)!r} holds nothing")
    else:
        found = found._replace(entries=relate(found.entries))
    part = _PART.fullmatch(path.name)
    is_part = part is not None and int(part["count"]) > 1
    said = [f"this is one of {int(part['count']):,} parts; open its folder for all"] if part and is_part else []
    return found._replace(problems=[*found.problems, *problems_of(found.entries), *said])


def read_part(path: Place) -> Contents:
    """Return the contents of one of several files; CheckpointError if it is not sound."""
    form, found = _contents_at(path)
    return found if form.is_apart else found._replace(entries=relate(found.entries))


def _contents_at(path: Place) -> tuple[Format, Contents]:
    with listed(path) as file:
        return read_contents(file)


def parts_among(names: Iterable[str]) -> list[str]:
    """Return the names of parts, such as ``model-00001-of-00004.safetensors``."""
    return [name for name in names if _PART.fullmatch(name)]


def are_of_one_whole(names: list[str]) -> bool:
    """Return whether all names are those of parts of the same whole."""
    found = [_PART.fullmatch(name) for name in names]
    return all(found) and len({(part["stem"], part["count"], part["suffix"]) for part in found if part}) == 1


def open_parts(folder: Path, names: list[str]) -> Contents:
    """Return the joined contents of several files; a broken file is a problem.

    A broken file raises an error if it is the only one.
    """
    entries: list[WeightEntry] = []
    metadata, problems = config_beside(folder)
    problems += _missing(names)
    for name in names:
        try:
            found = read_part(folder / name)
        except UNREADABLE as error:
            if len(names) == 1:
                raise
            problems.append(NotListed(error))
            continue
        entries += found.entries
        problems += [problem_of_part(name, problem) for problem in found.problems]
        metadata = with_more(metadata, found.metadata)
    entries, untold = with_meaning(entries, metadata)
    return Contents(entries, metadata, [*problems, *untold, *problems_of(entries), *_in_several(entries)])


def below(prefix: str, found: Contents) -> Contents:
    """Return the contents of a component by their names in the whole."""
    entries = [
        one._with_(
            name=prefix + one.name,
            tied_to=tuple(prefix + other for other in one.tied_to),
            related=tuple(other._replace(name=prefix + other.name) for other in one.related),
        )
        for one in found.entries
    ]
    problems = [problem_of_part(prefix.rstrip("."), problem) for problem in found.problems]
    return Contents(entries, with_more({}, found.metadata, prefix), problems)


def with_more(first: Mapping[str, Any], second: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Join two sets of metadata, the second with a prefix; keeps compared values."""
    both = dict(first) | {prefix + name: value for name, value in second.items()}
    if not any(isinstance(one, Beside) and (one or one.others) for one in (first, second)):
        return both
    made, own, more = Beside(both), *(one if isinstance(one, Beside) else Beside() for one in (first, second))
    made.others = {**own.others, **{prefix + name: cls for name, cls in more.others.items()}}
    return made


def _missing(names: list[str]) -> list[str]:
    """Return a problem if the whole has parts that are not among these names."""
    parts = [part for part in map(_PART.fullmatch, names) if part]
    stem, width, count, suffix = parts[0]["stem"], len(parts[0]["number"]), parts[0]["count"], parts[0]["suffix"]
    there = {int(part["number"]) for part in parts}
    absent = [number for number in range(1, min(int(count), _MAX_PARTS) + 1) if number not in there]
    if not absent:
        return []
    said = shown_names([f"{stem}-{number:0{width}}-of-{count}{suffix}" for number in absent])
    return [NotListed(f"{said} {'is' if len(absent) == 1 else 'are'} missing; what may be there is not known")]


def _in_several(entries: list[WeightEntry]) -> list[str]:
    times = Counter(entry.name for entry in entries)
    several = [(name, count) for name, count in times.items() if count > 1]
    return [NotListed(f"{shown_name(name)} is in {count} files, and listed of the last") for name, count in several]


UNREADABLE = (CheckpointError, ChangedFileError)
"""What one file raises, and hides no other."""
CONFIG = "config.json"
_OF_GPTQ = f"{GPTQ_CONFIG}.json"
_MAX_JSON_NBYTES = 100_000_000


def config_beside(folder: Place) -> tuple[dict[str, Any], list[str]]:
    """Return the configurations in a folder by name, and the problems.

    The file of AutoGPTQ is only read if the model's configuration does not describe the quantization.
    """
    found: dict[str, Any] = {}
    problems: list[str] = []
    for name in (CONFIG, _OF_GPTQ, adapters.CONFIG):
        if name == _OF_GPTQ and "quantization_config" in found.get("config", {}):
            continue
        path = folder / name
        try:
            found[name.removesuffix(".json")] = json_in(path)
        except UNREADABLE as error:
            is_there = not isinstance(error, AbsentError) if isinstance(path, Address) else os.path.lexists(path)
            problems += [str(error)] if is_there else []
    return found, problems


def json_in(path: Place) -> dict[str, Any]:
    """Return the mapping in a file of JSON; CheckpointError if it has none."""
    with listed(path) as file:
        if file.nbytes > _MAX_JSON_NBYTES:
            raise CheckpointError(f"{str(path)!r} has {file.nbytes:,} bytes, and {_MAX_JSON_NBYTES:,} are read")
        text = file.read(0, file.nbytes)
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise CheckpointError(f"{str(path)!r} is not valid JSON") from None
    if not isinstance(told, dict):
        raise CheckpointError(f"{str(path)!r} holds no mapping")
    return told
