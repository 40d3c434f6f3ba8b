"""Open one file of weights, several that belong together, or an index of them."""

from __future__ import annotations

import json
import math
import os
import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from tensornp.core.tensor.dtypes import KNOWN, stored_dtype
from tensornp.errors import ChangedFileError, CheckpointError
from tensornp.models.entries.entry import NotListed, WeightEntry, nothing
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.entries.relations import relate
from tensornp.models.files.address import Address, Place, why_outside
from tensornp.models.files.source_file import AbsentError, SourceFile
from tensornp.models.formats import table
from tensornp.models.formats.table import Contents
from tensornp.models.names.quoted import natural, shown_name, shown_names
from tensornp.models.quantization import may_have_meaning, with_meaning

UNREADABLE = (CheckpointError, ChangedFileError)
"""Errors of one file, which hide no other."""
OFFLOAD_INDEX, OFFLOAD_SUFFIX = "index.json", ".dat"
_MAX_JSON_NBYTES = 100_000_000
_MAX_PARTS = 100_000
_PART = re.compile(
    r"(?P<stem>.*)-(?P<number>\d{1,9})-of-(?P<count>\d{1,9})(?P<suffix>(\.\w+)?\.(safetensors|bin|gguf))"
)

_LAYER = re.compile(r"(?<![^.])\d+(?![^.])")
_EMBEDDING = re.compile(r"(.*\.)?(\w*emb\w*|wte|wpe|shared)\..*")
_INDEX = re.compile(r".*\.index(\.\w+)?\.json")
"""The names of indices; of variants, `transformers` and `diffusers` write the name in different places."""


def open_file(path: Place) -> Contents:
    """Return the contents of a file, of an index, or of the folder that metadata in it describe."""
    if path.name == table.METADATA:
        from tensornp.models.formats.dcp import open_dcp

        return with_config(open_dcp(path.parent), path.parent)
    if path.name.endswith(table.ITEMS_SUFFIX):
        raise CheckpointError(f"{str(path)!r} holds items of torch.distributed.checkpoint; open its folder")
    if is_index(path.name):
        return open_index(path)
    if isinstance(path, Path) and path.name == OFFLOAD_INDEX:
        return open_offload_folder(path.parent)
    form, found = table.read_contents(table.listed(path))
    if not form.is_apart:
        if not (found.entries or found.metadata or found.problems or path.name.endswith(".npz")):
            raise CheckpointError(f"{str(path)!r} holds nothing")
        found = found._replace(entries=relate(found.entries))
    found = with_config(found, path.parent, is_read=form.is_apart and not isinstance(path, Address))
    part = _PART.fullmatch(path.name)
    if part and int(part["count"]) > 1:
        found.problems.append(f"this is one of {int(part['count']):,} parts; open its folder for all")
    return found


def with_config(found: Contents, folder: Place, *, is_read: bool = False) -> Contents:
    """Return contents with the meaning that the configurations in their folder give to codes.

    Unless it `is_read` in any case, a configuration is read only if it may say more about the weights.
    """
    config: dict[str, Any] = {}
    unread: list[str] = []
    for name in ("config.json", "adapter_config.json") if is_read or may_have_meaning(found.entries) else ():
        try:
            config[name.removesuffix(".json")] = json_in(folder / name)
        except AbsentError:
            continue
        except UNREADABLE as error:
            unread.append(str(error))
    metadata = with_more(found.metadata, config)
    entries, untold = with_meaning(found.entries, metadata)
    problems = [*found.problems, *unread, *untold, *table.problems_of(entries)]
    return found._replace(entries=_ordered(entries), metadata=metadata, problems=problems)


def _ordered(entries: list[WeightEntry]) -> list[WeightEntry]:
    """Sort the weights of safetensors files in model order if they are alphabetical."""
    listed: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for one in entries:
        listed[one.location, one.dtype].append(one.name)
    is_sorted = all(file.endswith(table.SAFETENSORS) and names == sorted(names) for (file, _), names in listed.items())
    return sorted(entries, key=lambda one: _place_of(one.name)) if is_sorted else entries


def _place_of(name: str) -> str:
    rank = 1 if _LAYER.search(name) else 0 if _EMBEDDING.fullmatch(name) else 2
    # A weight stands before its bias.
    return f"{rank}{natural(name.removesuffix('weight'))}"


def parts_among(names: Iterable[str]) -> list[re.Match[str]]:
    """Return the names of parts (``model-00001-of-00004.safetensors``) if all are of one whole."""
    found = [part for part in map(_PART.fullmatch, names) if part]
    return found if len({(part["stem"], part["count"], part["suffix"]) for part in found}) == 1 else []


def open_parts(folder: Path, parts: list[re.Match[str]]) -> Contents:
    """Return the joined contents of several files; a broken file is a problem, unless it is the only one."""
    found = _read_files(folder, [part[0] for part in parts])
    stem, width, count, suffix = parts[0]["stem"], len(parts[0]["number"]), parts[0]["count"], parts[0]["suffix"]
    there = {int(part["number"]) for part in parts}
    absent = [number for number in range(1, min(int(count), _MAX_PARTS) + 1) if number not in there]
    if absent:
        said = shown_names([f"{stem}-{number:0{width}}-of-{count}{suffix}" for number in absent])
        found.problems.insert(0, NotListed(f"{said} {'is' if len(absent) == 1 else 'are'} missing"))
    return with_config(found, folder, is_read=True)


def _read_files(folder: Place, files: Collection[str], places: Mapping[str, str] | None = None) -> Contents:
    """Return the weights of several files; the `places` of an index map names to files."""
    found: dict[str, WeightEntry] = {}
    problems: list[str] = []
    said: dict[str, Any] = {}
    for file in files:
        try:
            form, contents = table.read_contents(table.listed(folder / file))
        except UNREADABLE as error:
            if places is None and len(files) == 1:
                raise
            problems.append(NotListed(error))
            continue
        problems += [table.problem_of_part(file, problem) for problem in contents.problems]
        said = with_more(said, contents.metadata)
        for entry in contents.entries if form.is_apart else relate(contents.entries):
            lies = f"{shown_name(entry.name)} lies in {shown_name(file)}"
            if places is not None and places.get(entry.name, file) != file:
                problems.append(NotListed(f"{lies}, where the index has it not"))
                continue
            if entry.name in found:
                problems.append(NotListed(f"{lies} and in another file, and is listed of the last"))
            elif places is not None and entry.name not in places:
                problems.append(f"{lies}, and is not in the index")
            found[entry.name] = entry
    lost = [
        found.pop(name)
        if name in found
        else nothing(name, "tensor", "", f"it is not read from {shown_name(file)}", file)
        for name, file in (places or {}).items()
        # A number or a text, which old indices list as well.
        if name in found or name not in said
    ]
    return Contents([*lost, *found.values()], said, problems)


def with_more(first: Mapping[str, Any], second: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Join two sets of metadata, the second with a prefix; keeps compared values."""
    both = dict(first) | {prefix + name: value for name, value in second.items()}
    return table.Beside(both) if any(isinstance(one, table.Beside) and one for one in (first, second)) else both


def json_in(path: Place) -> dict[str, Any]:
    """Return the mapping in a file of JSON; CheckpointError if it has none."""
    file = table.listed(path)
    if file.nbytes > _MAX_JSON_NBYTES:
        raise CheckpointError(f"{str(path)!r} has {file.nbytes:,} bytes, and {_MAX_JSON_NBYTES:,} are read")
    try:
        told = json.loads(file.read(0, file.nbytes))
    except (ValueError, RecursionError):
        raise CheckpointError(f"{str(path)!r} is not valid JSON") from None
    if not isinstance(told, dict):
        raise CheckpointError(f"{str(path)!r} holds no mapping")
    return told


def is_index(name: str) -> bool:
    return _INDEX.fullmatch(name) is not None


def open_index(path: Place) -> Contents:
    """Return the weights of an index; a wrong item is a problem and hides no other."""
    told = json_in(path)
    places = told.get("weight_map")
    if not isinstance(places, dict):
        raise CheckpointError(f"{str(path)!r} has no weight_map, so it is not an index")
    refused: dict[str, str] = {}
    for name, place in places.items():
        why = why_outside(place)
        if not why and not place.endswith(table.MODEL_SUFFIXES):
            why = f"its file {shown_name(place)} has an unknown format"
        if why:
            refused[name] = why
    sound = {name: posixpath.normpath(place) for name, place in places.items() if name not in refused}
    found = _read_files(path.parent, dict.fromkeys(sound.values()), sound)
    own = told.get("metadata")
    said = [NotListed(f"{shown_name(name)} is refused: {why}") for name, why in refused.items()]
    metadata = with_more(found.metadata, own) if isinstance(own, dict) else found.metadata
    found = found._replace(metadata=metadata, problems=[*said, *found.problems])
    return with_config(found, path.parent, is_read=True)


def open_offload_folder(folder: Path) -> Contents:
    """Return the weights that accelerate has offloaded to a folder."""
    path = folder / OFFLOAD_INDEX
    told = json_in(path)
    if not told or not all(isinstance(one, dict) and "dtype" in one for one in told.values()):
        raise CheckpointError(f"{str(path)!r} is not an index of weights offloaded by accelerate")
    entries = [_offloaded(folder, name, one) for name, one in told.items()]
    others = sorted(name for name in os.listdir(folder) if name.removesuffix(OFFLOAD_SUFFIX) not in told)
    left = [name for name in others if name.endswith(OFFLOAD_SUFFIX)]
    problems: list[str] = [NotListed(f"{shown_names(left)} not in its index, and not listed")] if left else []
    return with_config(Contents(entries, {}, problems), folder)


def _offloaded(folder: Path, name: str, told: dict[str, Any]) -> WeightEntry:
    """Return a weight with its elements, if enough are there and inside of the folder."""
    path = os.path.join(folder, f"{name}{OFFLOAD_SUFFIX}")
    code = f"accelerate.utils.offload.load_offloaded_weight({path!r}, {told!r})"
    shape, dtype = told.get("shape"), told.get("dtype")
    try:
        if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 2**62 for n in shape):
            raise CheckpointError("accelerate's index has no shape of it")
        if dtype not in KNOWN:
            raise CheckpointError(f"accelerate's index has a dtype of it that is not known, {shown_name(str(dtype))}")
        if why := why_outside(f"{name}{OFFLOAD_SUFFIX}"):
            raise CheckpointError(why)
        file = SourceFile.at(path)
        needed = math.prod(shape) * stored_dtype(dtype).itemsize
        if needed > file.nbytes:
            raise CheckpointError(f"{file.path!r} has {file.nbytes:,} bytes, and {needed:,} are needed")
    except UNREADABLE as error:
        return nothing(name, "tensor", code, str(error), str(folder))
    return weight_in(FileSource(tuple(shape), dtype, file, 0), name, code)
