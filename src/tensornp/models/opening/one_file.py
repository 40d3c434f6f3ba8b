"""One file of weights, of whichever format: what it begins as decides, and not its name."""

from __future__ import annotations

from pathlib import Path

from tensornp.errors import CheckpointError
from tensornp.models.files.source_file import SourceFile
from tensornp.models.formats.contents import Contents, problems_of
from tensornp.models.formats.table import read_contents
from tensornp.models.opening.config import config_beside
from tensornp.models.quantization.layouts import with_meaning
from tensornp.models.storage.relations import relate


def open_file(path: Path) -> Contents:
    """Return what a file holds, with the configuration beside it; CheckpointError if it is not sound, or empty."""
    form, found = read_contents(SourceFile.at(path))
    if form.is_apart:
        config, problems = config_beside(path.parent)
        entries, untold = with_meaning(found.entries, config.get("config"))
        return Contents(entries, {**found.metadata, **config}, [*problems, *untold, *problems_of(entries)])
    if not (found.entries or found.metadata or found.problems or path.suffix == ".npz"):
        raise CheckpointError(f"{str(path)!r} holds nothing")
    return found._replace(entries=relate(found.entries), problems=[*found.problems, *problems_of(found.entries)])


def read_part(path: Path) -> Contents:
    """Return what one of several files holds, as they lie in it; CheckpointError if it is not sound."""
    form, found = read_contents(SourceFile.at(path))
    return found if form.is_apart else found._replace(entries=relate(found.entries))
