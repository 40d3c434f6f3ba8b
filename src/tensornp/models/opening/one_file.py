"""One file of weights, of whichever format: what it begins as decides, and not its name."""

from __future__ import annotations

from tensornp.errors import CheckpointError
from tensornp.models.files.address import Address, Place
from tensornp.models.files.listed import listed
from tensornp.models.formats.contents import Contents, problems_of
from tensornp.models.formats.table import Format, read_contents
from tensornp.models.opening.config import config_beside
from tensornp.models.opening.lora import has_halves
from tensornp.models.quantization.layouts import may_have_meaning, with_meaning
from tensornp.models.storage.relations import relate


def open_file(path: Place) -> Contents:
    """Return what a file holds, with the configuration beside it; CheckpointError if it is not sound, or empty.

    At an address, there are requests for that only where it may say more of what the file holds.
    """
    form, found = _contents_at(path)
    if form.is_apart:
        is_asked = not isinstance(path, Address) or may_have_meaning(found.entries) or has_halves(found.entries)
        config, problems = config_beside(path.parent) if is_asked else ({}, [])
        entries, untold = with_meaning(found.entries, config)
        return Contents(entries, {**found.metadata, **config}, [*problems, *untold, *problems_of(entries)])
    if not (found.entries or found.metadata or found.problems or path.suffix == ".npz"):
        raise CheckpointError(f"{str(path)!r} holds nothing")
    return found._replace(entries=relate(found.entries), problems=[*found.problems, *problems_of(found.entries)])


def read_part(path: Place) -> Contents:
    """Return what one of several files holds, as they lie in it; CheckpointError if it is not sound."""
    form, found = _contents_at(path)
    return found if form.is_apart else found._replace(entries=relate(found.entries))


def _contents_at(path: Place) -> tuple[Format, Contents]:
    with listed(path) as file:
        return read_contents(file)
