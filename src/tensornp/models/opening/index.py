"""Read the index of a model in several files, which maps weights to files."""

from __future__ import annotations

import math
import posixpath
import re
from typing import Any

from tensornp.errors import CheckpointError
from tensornp.models.entries.entry import WeightEntry, noted, nothing
from tensornp.models.entries.repeated import NotListed
from tensornp.models.files.address import Place, why_outside
from tensornp.models.formats.contents import Contents, problem_of_part, problems_of
from tensornp.models.formats.table import sharded_suffixes
from tensornp.models.names.quoted import shown_name
from tensornp.models.opening.files import UNREADABLE, config_beside, json_in, read_part
from tensornp.models.quantization.layouts import with_meaning
from tensornp.models.storage.relations import stored_in_files

_MAX_NBYTES = 2**63
"""More than any disk has."""
_INDEX = re.compile(r".*\.index(\.\w+)?\.json")
"""The names of indices; of variants, `transformers` and `diffusers` write the name in different places."""


def is_index(name: str) -> bool:
    """Return whether a file of this name is the index of a model in several files."""
    return _INDEX.fullmatch(name) is not None


def open_index(path: Place) -> Contents:
    """Return the weights of an index; a wrong item is a problem and hides no other.

    Raises
    ------
    CheckpointError
        If it is not an index, or all of its files have an unknown format.
    """
    told = json_in(path)
    places = told.get("weight_map")
    if not isinstance(places, dict):
        raise CheckpointError(f"{str(path)!r} has no weight_map, so it is not an index")
    refused = {name: why for name, place in places.items() if (why := _refused(place))}
    if places and all(not why_outside(place) and _is_foreign(place) for place in places.values()):
        first = next(iter(places.values()))
        raise CheckpointError(f"{str(path)!r} is an index of files that are not read, such as {shown_name(first)}")
    sound = {name: posixpath.normpath(place) for name, place in places.items() if name not in refused}
    shards = _Shards(path.parent, sound)
    config, unread = config_beside(path.parent)
    metadata = {**shards.said, **_metadata_of(told), **config}
    entries, untold = with_meaning(shards.entries, metadata)
    problems: list[str] = [NotListed(f"{shown_name(name)} is refused: {why}") for name, why in refused.items()]
    problems += [*shards.problems, *unread, *untold, *problems_of(entries), *_wrong_total(told, entries)]
    return Contents(entries, metadata, problems)


class _Shards:
    """The weights and problems of sharded files; `places` maps names to files."""

    def __init__(self, folder: Place, places: dict[str, str]) -> None:
        self._places = places
        self._found: dict[str, WeightEntry] = {}
        self.problems: list[str] = []
        self.said: dict[str, Any] = {}
        # The reason why a weight of a shard has no values, if it is not found.
        why = {shard: self._read(folder, shard) for shard in dict.fromkeys(places.values())}
        self.entries: list[WeightEntry] = [
            self._found.pop(name) if name in self._found else nothing(name, "tensor", "", why[shard], shard)
            for name, shard in places.items()
            # A number or a text, which old indices list as well.
            if name in self._found or name not in self.said
        ]
        self.entries.extend(self._found.values())

    def _read(self, folder: Place, shard: str) -> str:
        """Add the weights of a file, and return the problem of weights missing there."""
        try:
            contents = read_part(folder / shard)
        except UNREADABLE as error:
            self.problems.append(NotListed(error))
            return f"its file {shown_name(shard)} cannot be read"
        self.problems += [problem_of_part(shard, problem) for problem in contents.problems]
        self.said |= contents.metadata
        for entry in contents.entries:
            lies = f"{shown_name(entry.name)} lies in {shown_name(shard)}"
            if self._places.get(entry.name, shard) != shard:
                self.problems.append(NotListed(f"{lies}, where the index has it not"))
                continue
            if entry.name not in self._places:
                self.problems.append(f"{lies}, and is not in the index")
            is_in = entry.name in self._places
            self._found[entry.name] = entry if is_in else noted(entry, "not in the index")
        return f"it is not in {shown_name(shard)}"


def _refused(place: Any) -> str:
    """Return why the name of a shard is not opened."""
    return why_outside(place) or (f"its file {shown_name(place)} has an unknown format" if _is_foreign(place) else "")


def _is_foreign(place: str) -> bool:
    return not place.endswith(sharded_suffixes())


def _metadata_of(index: dict[str, Any]) -> dict[str, Any]:
    metadata = index.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _wrong_total(index: dict[str, Any], entries: list[WeightEntry]) -> list[str]:
    total: Any = _metadata_of(index).get("total_size")
    stored = sum(entry.nbytes for entry in entries)
    # Some count what has two names once.
    is_told = type(total) is int or (type(total) is float and math.isfinite(total))
    if not is_told or total == stored or total == stored_in_files(entries)[1]:
        return []
    said = f"{total:,}" if abs(total) < _MAX_NBYTES else "more"
    return [f"the index tells of {said} bytes, and its tensors have {stored:,}"]
