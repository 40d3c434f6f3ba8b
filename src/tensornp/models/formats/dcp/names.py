"""Name the files of a folder of `torch.distributed.checkpoint`."""

from __future__ import annotations

import re

METADATA = ".metadata"
ITEMS_SUFFIX = ".distcp"
_ITEMS_OF_RANK = re.compile(r"__(?P<rank>\d{1,9})_\d{1,9}(\.distcp)?")
_FILE_OF_RANK = re.compile(r"shard-(?P<rank>\d{1,9})-model-\d+-of-\d+\.safetensors")


def writer_of(name: str) -> int | None:
    """Return the rank that wrote a file of items, by its name; None if the name does not tell."""
    found = _ITEMS_OF_RANK.fullmatch(name) or _FILE_OF_RANK.fullmatch(name)
    return int(found["rank"]) if found is not None else None
