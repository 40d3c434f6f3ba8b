"""One file of weights at a path, of whichever format."""

from __future__ import annotations

from pathlib import Path

from tensornp.errors import CheckpointError
from tensornp.trees.beside import config_beside, entries_in, listed
from tensornp.trees.contents import Contents, problems_of
from tensornp.trees.formats import contents_of
from tensornp.trees.quantized import with_meaning
from tensornp.trees.source_file import SourceFile
from tensornp.trees.totals import tie


def open_file(path: Path) -> Contents:
    """Return what a file holds, with the configuration beside it; CheckpointError if it is not sound, or empty."""
    file = SourceFile.at(path)
    found = contents_of(file)
    if found is not None:
        if not (found.entries or found.metadata or found.problems or path.suffix == ".npz"):
            raise CheckpointError(f"{str(path)!r} holds nothing")
        tie(found.entries)
        return found._replace(problems=[*found.problems, *problems_of(found.entries)])
    file, header = listed(path)
    config, problems = config_beside(path.parent)
    entries, untold = with_meaning(entries_in(file, header), config.get("config"))
    return Contents(entries, {**header.metadata, **config}, [*problems, *untold, *problems_of(entries)])
