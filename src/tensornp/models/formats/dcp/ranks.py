"""What all ranks say of a checkpoint that was saved without coordination: each of them tells of its own chunks."""

from __future__ import annotations

from typing import Any

from tensornp.models.formats.contents import retold
from tensornp.models.formats.dcp.metadata import Item, Shape, Told, ToldChunk, ToldTensor


def put_together(told: dict[str, Told]) -> Told:
    """Return what several metadata files say, by their names, the first rank's before the others'.

    Of a chunk that several ranks have written, the first one's is taken: whether they are alike would have to be read.
    """
    if len(told) == 1:
        return next(iter(told.values()))
    tensors: dict[str, dict[str, ToldTensor]] = {}
    values: dict[str, Item | None] = {}
    wanted: dict[str, None] = {}
    problems: list[str] = []
    paths: dict[str, tuple[Any, ...]] = {}
    for file, one in told.items():
        problems += [retold(problem, f"{file}: {problem}") for problem in one.problems]
        wanted |= dict.fromkeys(one.wanted)
        paths |= one.paths
        for name, tensor in one.tensors.items():
            tensors.setdefault(name, {})[file] = tensor
        for name, item in one.values.items():
            values[name if name not in values else f"{file.removesuffix('.metadata')}.{name}"] = item
    first = next(iter(told.values()))
    joined = {name: _joined(of_ranks) for name, of_ranks in tensors.items()}
    return Told(joined, values, first.said, problems, tuple(wanted), paths)


def _joined(of_ranks: dict[str, ToldTensor]) -> ToldTensor:
    """Return one tensor of the chunks of all ranks."""
    first = next(iter(of_ranks.values()))
    chunks: dict[Shape, ToldChunk] = {}
    empty: list[ToldChunk] = []
    unlike: list[str] = []
    again: list[str] = []
    for file, tensor in of_ranks.items():
        if (tensor.dtype, tensor.shape, tensor.problem) != (first.dtype, first.shape, first.problem):
            unlike.append(file)
            continue
        for chunk in tensor.chunks:
            if 0 in chunk.sizes:
                empty.append(chunk)
            elif chunks.setdefault(chunk.offsets, chunk) is not chunk:
                again.append(file)
    note = f"{_several(again)} one too, which is not compared" if again else ""
    note = f"{_several(unlike)} one of another shape or dtype" if unlike else note
    return first._replace(chunks=[*chunks.values(), *empty], note=note)


def _several(files: list[str]) -> str:
    others = len(set(files)) - 1
    return f"{files[0]} and {others:,} more have" if others else f"{files[0]} has"
