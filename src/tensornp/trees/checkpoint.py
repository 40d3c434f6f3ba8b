"""What lies at a path: a file of weights, or a folder of such files with or without an index."""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

from tensornp.errors import CheckpointError
from tensornp.trees.adapters import note_pairs
from tensornp.trees.beside import UNREADABLE, config_beside, entries_in, json_in, listed
from tensornp.trees.dcp import ITEMS_SUFFIX, Checkpoint, is_dcp_metadata, metadata_among
from tensornp.trees.entry import WeightEntry
from tensornp.trees.explorer import WeightsExplorer
from tensornp.trees.formats import contents_of
from tensornp.trees.hf_shards import are_of_ranks, read_shards
from tensornp.trees.names import MAX_TOLD, cut, shown_name
from tensornp.trees.nothing_entry import NothingEntry
from tensornp.trees.places import why_outside
from tensornp.trees.quantized import with_meaning
from tensornp.trees.relations import relate
from tensornp.trees.source_file import SourceFile, reason_of

SUFFIX = ".safetensors"
_OTHER_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt", ".npz", ".gguf")
INDEX_SUFFIX = ".safetensors.index.json"
_MAX_SHARDS = 100_000
_MAX_NBYTES = 2**63
"""More than any disk has."""
_MAX_NAMED = 6
_SHARD = re.compile(r"(?P<stem>.*)-(?P<number>\d{1,9})-of-(?P<count>\d{1,9})\.safetensors")


def open_checkpoint(path: str | os.PathLike[str]) -> WeightsExplorer:
    """Return an explorer of the weights at `path`: a file of them, an index of several, or a folder.

    Raises
    ------
    CheckpointError
        If nothing is there, if it is of another format, or if its structure is not sound.
    """
    typed = str(Path(os.path.expanduser(os.fsdecode(path))))
    explorer = _open(Path(_found(typed)))
    explorer.source = typed
    note_pairs(explorer.values(), explorer.metadata.get("adapter_config"))
    return explorer


def _found(typed: str) -> str:
    """Return the absolute path, since the current folder may be another one when values are read."""
    try:
        os.lstat(typed)
        # Not normalized: what is above a symbolic link is not what its name says.
        return typed if os.path.isabs(typed) else os.path.join(os.getcwd(), typed)
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(f"there is no '{cut(typed, MAX_TOLD)}'{_closest(Path(typed))}") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"'{cut(typed, MAX_TOLD)}' cannot be opened: {reason_of(error)}") from None


def _open(there: Path) -> WeightsExplorer:
    if os.path.isdir(there):
        return _open_folder(there)
    if is_dcp_metadata(there.name):
        return _open_dcp(there.parent, [there.name])
    if there.name.endswith(ITEMS_SUFFIX):
        raise CheckpointError(f"{str(there)!r} holds items of torch.distributed.checkpoint; open its folder")
    if there.name.endswith(INDEX_SUFFIX):
        return _open_index(there)
    return _open_file(there)


def _closest(path: Path) -> str:
    """Return the path most like what is not there of it, in words that follow a sentence; empty where none is."""
    while path != path.parent and not os.path.isdir(path.parent):
        path = path.parent
    try:
        found = difflib.get_close_matches(path.name, os.listdir(path.parent), 1)
    except OSError:
        return ""
    return f"; the closest is '{cut(str(path.parent / found[0]), MAX_TOLD)}'" if found else ""


def _open_file(path: Path) -> WeightsExplorer:
    file = SourceFile.at(path)
    found = contents_of(file)
    if found is not None:
        if not (found.entries or found.metadata or found.problems or path.suffix == ".npz"):
            raise CheckpointError(f"{str(path)!r} holds nothing")
        relate(found.entries)
        problems = [*found.problems, *_broken(found.entries)]
        return WeightsExplorer(found.entries, str(path), metadata=found.metadata, problems=problems)
    file, header = listed(path)
    config, problems = config_beside(path.parent)
    entries, untold = with_meaning(entries_in(file, header), config.get("config"))
    return WeightsExplorer(
        entries, str(path), metadata={**header.metadata, **config}, problems=[*problems, *untold, *_broken(entries)]
    )


def _open_folder(folder: Path) -> WeightsExplorer:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise CheckpointError(f"{str(folder)!r} cannot be listed: {error.strerror}") from None
    if told := metadata_among(names):
        return _open_dcp(folder, told)
    if any(name.endswith(ITEMS_SUFFIX) for name in names):
        raise CheckpointError(f"{str(folder)!r} has {ITEMS_SUFFIX} files, and no .metadata that tells what they hold")
    indices = [name for name in names if name.endswith(INDEX_SUFFIX)]
    if len(indices) == 1:
        return _open_index(folder / indices[0])
    files = [name for name in names if name.endswith(SUFFIX)]
    if are_of_ranks(files):
        found = read_shards(folder, files)
        config, problems = config_beside(folder)
        problems = [*found.problems, *problems, *_broken(found.entries)]
        return WeightsExplorer(found.entries, str(folder), metadata={**found.said, **config}, problems=problems)
    if len(indices) > 1 or (len(files) > 1 and not _are_shards(files)):
        raise CheckpointError(f"{str(folder)!r} has several: {_listing(indices or files)}; name one of them")
    if files:
        return _open_together(folder, {name: "" for name in files})
    parts = {f"{name}/{file}": f"{name}." for name in names for file in _files_in(folder / name)}
    if not parts:
        others = [name for name in names if name.endswith(_OTHER_SUFFIXES)]
        if len(others) == 1:
            return _open_file(folder / others[0])
        if others:
            raise CheckpointError(f"{str(folder)!r} has several: {_listing(others)}; name one of them")
        raise CheckpointError(f"{str(folder)!r} has no file of weights, nor a folder with a {SUFFIX} file")
    return _open_together(folder, parts)


def _open_dcp(folder: Path, names: list[str]) -> WeightsExplorer:
    found = Checkpoint(folder, names)
    problems = [*found.problems, *_broken(found.entries)]
    return WeightsExplorer(found.entries, str(folder), metadata=found.values, problems=problems)


def _files_in(folder: Path) -> list[str]:
    """Return the files of a component, which lies in a folder of its own."""
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(SUFFIX)) if folder.is_dir() else []
    except OSError:
        return []


def _are_shards(names: list[str]) -> bool:
    """Return whether the names are those of the parts of one whole: ``model-00001-of-00004.safetensors``."""
    found = [_SHARD.fullmatch(name) for name in names]
    wholes = {(match["stem"], match["count"]) for match in found if match is not None}
    return all(found) and len(wholes) == 1


def _missing(names: list[str]) -> list[str]:
    """Return which parts of one whole are not there, by the names of those that are."""
    found = [match for match in map(_SHARD.fullmatch, names) if match is not None]
    if not found or len(found) < len(names) or int(found[0]["count"]) > _MAX_SHARDS:
        return []
    count, numbers = found[0]["count"], {int(match["number"]) for match in found}
    absent = [i for i in range(1, int(count) + 1) if i not in numbers]
    parts = [f"{found[0]['stem']}-{i:0{len(found[0]['number'])}}-of-{count}{SUFFIX}" for i in absent]
    verb = "is" if len(parts) == 1 else "are"
    return [f"{_listing(parts)} {verb} missing; what may be there is not known"] if parts else []


def _listing(names: list[str]) -> str:
    return ", ".join(map(shown_name, names[:_MAX_NAMED])) + (", …" if len(names) > _MAX_NAMED else "")


def _open_together(folder: Path, files: dict[str, str]) -> WeightsExplorer:
    """Return an explorer of several files, each with what its names begin with."""
    entries: list[WeightEntry] = []
    metadata, problems = config_beside(folder)
    problems.extend(_missing(list(files)))
    for name, prefix in files.items():
        try:
            file, header = listed(folder / name)
        except UNREADABLE as error:
            if len(files) == 1:
                raise
            problems.append(str(error))
            continue
        entries.extend(entries_in(file, header, prefix))
        metadata |= {prefix + key: value for key, value in header.metadata.items()}
    entries, untold = with_meaning(entries, metadata.get("config"))
    problems.extend([*_twice(entries), *untold, *_broken(entries)])
    return WeightsExplorer(entries, str(folder), metadata=metadata, problems=problems)


def _broken(entries: list[WeightEntry]) -> list[str]:
    return [f"{shown_name(entry.name)}: {entry.problem}" for entry in entries if entry.problem]


def _twice(entries: list[WeightEntry]) -> list[str]:
    times = Counter(entry.name for entry in entries)
    return [f"{shown_name(name)} is in {count} files" for name, count in times.items() if count > 1]


def _open_index(path: Path) -> WeightsExplorer:
    """Return an explorer of what an index lists; what it lists wrongly is a problem, and hides nothing else."""
    told = json_in(path)
    places = told.get("weight_map")
    if not isinstance(places, dict):
        raise CheckpointError(f"{str(path)!r} has no weight_map, and is no index")
    refused = {name: why for name, place in places.items() if (why := _refused(place))}
    problems = [f"{shown_name(name)} is refused: {why}" for name, why in refused.items()]
    sound: dict[str, str] = {name: place for name, place in places.items() if name not in refused}
    found: dict[str, WeightEntry] = {}
    broken: dict[str, str] = {}
    for shard in dict.fromkeys(sound.values()):
        try:
            file, header = listed(path.parent / shard)
        except UNREADABLE as error:
            problems.append(str(error))
            broken[shard] = f"its file {shown_name(shard)} cannot be read"
            continue
        for entry in entries_in(file, header):
            if sound.get(entry.name, shard) != shard:
                problems.append(f"{shown_name(entry.name)} lies in {shown_name(shard)} too, where the index has it not")
                continue
            if entry.name not in sound:
                entry.note = "not in the index"
                problems.append(f"{shown_name(entry.name)} lies in {shown_name(shard)}, and is not in the index")
            found[entry.name] = entry
    entries: list[WeightEntry] = []
    for name, shard in sound.items():
        why = broken.get(shard, f"it is not in {shown_name(shard)}")
        entries.append(found.pop(name) if name in found else NothingEntry(name, "tensor", "", why, shard))
    entries.extend(found.values())
    config, unread = config_beside(path.parent)
    metadata = {**_metadata_of(told), **config}
    entries, untold = with_meaning(entries, metadata.get("config"))
    problems.extend([*unread, *untold, *_broken(entries), *_wrong_total(told, entries)])
    return WeightsExplorer(entries, str(path), metadata=metadata, problems=problems)


def _refused(place: Any) -> str:
    """Return why the name of a shard is not opened."""
    return why_outside(place) or ("" if place.endswith(SUFFIX) else f"its file {shown_name(place)} is no {SUFFIX} file")


def _metadata_of(index: dict[str, Any]) -> dict[str, Any]:
    metadata = index.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _wrong_total(index: dict[str, Any], entries: list[WeightEntry]) -> list[str]:
    total: Any = _metadata_of(index).get("total_size")
    stored = sum(entry.nbytes for entry in entries)
    if type(total) not in (int, float) or total == stored:
        return []
    said = f"{total:,}" if abs(total) < _MAX_NBYTES else "more"
    return [f"the index tells of {said} bytes, and its tensors have {stored:,}"]
