"""The index of a model in several files: which weight lies in which of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensornp.errors import CheckpointError
from tensornp.trees.beside import UNREADABLE, config_beside, entries_in, json_in, listed
from tensornp.trees.contents import Contents, problems_of
from tensornp.trees.entry import WeightEntry
from tensornp.trees.names import shown_name
from tensornp.trees.nothing_entry import NothingEntry
from tensornp.trees.places import why_outside
from tensornp.trees.quantized import with_meaning
from tensornp.trees.together import SUFFIX

INDEX_SUFFIX = ".safetensors.index.json"
_MAX_NBYTES = 2**63
"""More than any disk has."""


def open_index(path: Path) -> Contents:
    """Return what an index lists; what it lists wrongly is a problem, and hides nothing else."""
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
    problems.extend([*unread, *untold, *problems_of(entries), *_wrong_total(told, entries)])
    return Contents(entries, metadata, problems)


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
