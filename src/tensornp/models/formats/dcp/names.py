"""By what names a folder of `torch.distributed.checkpoint` is known."""

from __future__ import annotations

import re

METADATA = ".metadata"
ITEMS_SUFFIX = ".distcp"
_METADATA_OF_RANK = re.compile(r"__(?P<rank>\d{1,9})\.metadata")
_ITEMS_OF_RANK = re.compile(r"__(?P<rank>\d{1,9})_\d{1,9}(\.distcp)?")
_FILE_OF_RANK = re.compile(r"shard-(?P<rank>\d{1,9})-model-\d+-of-\d+\.safetensors")


def is_dcp_metadata(name: str) -> bool:
    """Return whether a file of this name tells what lies in its folder."""
    return name == METADATA or _METADATA_OF_RANK.fullmatch(name) is not None


def metadata_among(names: list[str]) -> list[str]:
    """Return the files of a folder that tell what it holds: that of all ranks, else those of each, in their order."""
    if METADATA in names:
        return [METADATA]
    of_ranks = [match for match in map(_METADATA_OF_RANK.fullmatch, names) if match is not None]
    return [match[0] for match in sorted(of_ranks, key=lambda match: int(match["rank"]))]


def is_of_rank(name: str) -> bool:
    """Return whether a file of this name tells what one rank has written."""
    return _METADATA_OF_RANK.fullmatch(name) is not None


def writer_of(name: str) -> int | None:
    """Return which rank has written a file of items, by its name; None where that does not tell."""
    found = _ITEMS_OF_RANK.fullmatch(name) or _FILE_OF_RANK.fullmatch(name)
    return int(found["rank"]) if found is not None else None


def are_of_ranks(names: list[str]) -> bool:
    """Return whether these are the files of a folder that each rank has written, by their names."""
    return bool(names) and all(map(_FILE_OF_RANK.fullmatch, names))


def rank_of(name: str) -> int:
    """Return which rank has written a file of safetensors; `are_of_ranks` has told that one has."""
    found = _FILE_OF_RANK.fullmatch(name)
    assert found is not None
    return int(found["rank"])
