"""The formats of files: a row for each, with its names and its reader.

From the rows derive which file is read by what, which names are completed and suggested, and what a folder may hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tensornp.errors import CheckpointError
from tensornp.models.files.address import Address, Place, RemoteFile
from tensornp.models.files.source_file import ListedFile, SourceFile
from tensornp.models.names.quoted import shown_name

if TYPE_CHECKING:
    from tensornp.models.entries.entry import WeightEntry


SAFETENSORS = ".safetensors"
METADATA, ITEMS_SUFFIX = ".metadata", ".distcp"
"""The files of torch.distributed.checkpoint: what a folder holds, and the values."""
NUM_LOOKED_AT = 512


class Format(NamedTuple):
    """One format, with the suffixes of its files.

    Each file begins with one of `begins`; a format without any stands last. `read` names its reader, which takes a
    `ListedFile` and returns `Contents`, or None of a file that only begins so. A file of its suffix is of no other
    format if it `is_told_by_name`. No two weights of a file share bytes if it `is_apart`.
    """

    suffixes: tuple[str, ...]
    begins: tuple[bytes, ...]
    read: str
    is_told_by_name: bool = True
    is_model: bool = True
    is_apart: bool = False


_HERE = "tensornp.models.formats"
_TORCH = (".bin", ".pt", ".pth", ".ckpt")
FORMATS = (
    Format((".npy",), (b"\x93NUMPY",), f"{_HERE}.npy:read_npy", is_model=False),
    Format((".npz",), (b"PK\x03\x04", b"PK\x05\x06"), f"{_HERE}.npy:read_zip"),
    Format((".gguf",), (b"GGUF",), f"{_HERE}.gguf:read_gguf"),
    Format(_TORCH, (b"PK\x03\x04", b"PK\x05\x06"), f"{_HERE}.npy:read_zip", is_told_by_name=False),
    # Before the zip: the number that the first pickle is, of any protocol.
    Format(_TORCH, (b"\x80", b"L"), f"{_HERE}.torch_save:read_legacy", is_told_by_name=False),
    Format((SAFETENSORS,), (), f"{_HERE}.safetensors:read_safetensors", is_told_by_name=False, is_apart=True),
)
"""In this order a file is tried."""
MODEL_SUFFIXES = tuple(suffix for one in FORMATS if one.is_model for suffix in one.suffixes)


def listed(path: Place, nbytes: int = 2**16) -> ListedFile:
    """Return the file at a path, or at an address, where it is asked for so many bytes."""
    return RemoteFile.at(path, nbytes) if isinstance(path, Address) else SourceFile.at(path)


def read_contents(file: ListedFile) -> tuple[Format, Contents]:
    """Return the format and the contents of a file; CheckpointError if malformed."""
    if not file.nbytes:
        raise CheckpointError(f"{file.path!r} is empty")
    begins, suffix = file.read(0, min(file.nbytes, NUM_LOOKED_AT)), Path(file.path).suffix
    is_named = any(one.is_told_by_name and suffix in one.suffixes for one in FORMATS)
    for one in FORMATS:
        if begins.startswith(one.begins) if one.begins else not is_named:
            module, _, function = one.read.partition(":")
            found: Contents | None = getattr(import_module(module), function)(file)
            if found is not None:
                return one, found
    why = f"does not begin as a {suffix} file does" if is_named else "is of no format that is read"
    raise CheckpointError(f"{file.path!r} {why}")


class Beside(dict[str, Any]):
    """Values next to the weights of a container, by name; a comparison compares them."""


class Contents(NamedTuple):
    """Weights, metadata and problems."""

    entries: list[WeightEntry]
    metadata: Mapping[str, Any]
    problems: list[str]


def problem_of_part(name: str, problem: str) -> str:
    """Return a problem of the same class with the name of its file."""
    retold: Callable[[str], str] = getattr(problem, "retold", type(problem))
    return retold(f"{shown_name(name)}: {problem}")


def problems_of(entries: Iterable[WeightEntry]) -> list[str]:
    """Return a sentence for each reason why weights have no values, with the first of its weights."""
    names: dict[str, list[str]] = {}
    for entry in entries:
        if entry.problem:
            names.setdefault(entry.problem, []).append(entry.name)
    return [
        f"{shown_name(some[0])}{f' and {len(some) - 1:,} more' if len(some) > 1 else ''}: {problem}"
        for problem, some in names.items()
    ]
