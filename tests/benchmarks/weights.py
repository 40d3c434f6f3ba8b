"""What listing, slicing and scanning a checkpoint cost, beside the libraries that read the same files."""

from __future__ import annotations

import json
import os
import struct
import tempfile
import tracemalloc
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed.checkpoint
from safetensors import safe_open
from safetensors.torch import save_file
from side_by_side import Figure, Spread, interleave, peak_mib, timed

import tensornp as tnp

LISTING_S, SLICE_S, MANY_S, ENTRY_NBYTES = 0.05, 0.005, 1, 1024
SLOW_LISTING_S = 0.15
"""Of formats that are read from the beginning, or item by item."""
SCAN_CLAIM, COMPARE_CLAIM, COMPARE_MIB = 1 / 8, 1.5, 150
NUM_TENSORS, ROWS, COLUMNS = 147, 6_700, 1_024
LIBRARY = "safe_open: shapes and dtypes of all"
NAIVE = """
with safe_open(path, "pt") as file:
    for name in file.keys():
        t = file.get_tensor(name)
        (t.isnan().sum(), t.isinf().sum(), (t == 0).sum(), t.min(), t.max(), t.mean(), t.std(correction=0))
"""
"""Seven figures of each weight, as people write them."""
LISTED_BY_LIBRARY = """
with safe_open(path, "np") as file:
    [(s.get_shape(), s.get_dtype()) for s in map(file.get_slice, file.keys())]
"""
SAME_FIGURES = """
with safe_open(path, "pt") as file:
    for name in file.keys():
        t = file.get_tensor(name)
        finite = t[t.isfinite()]
        wide = finite.double()
        (t.isnan().sum(), t.isposinf().sum(), t.isneginf().sum(), (t == 0).sum(), finite.min(), finite.max())
        (wide.mean(), wide.std(correction=0), wide.norm(), torch.histc(finite, 64))
        ordered = finite.sort().values
        [ordered[int(q * (len(ordered) - 1))] for q in (0.01, 0.25, 0.5, 0.75, 0.99)]
        ((t == 0).all(1), t.norm(dim=1), t.norm(dim=0))
"""
"""What a scan tells: NaN and infinities apart, moments in float64, any quantile, and the norms of rows and columns."""


def report(*, quick: bool) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        yield from _listing(Path(folder), quick)
        yield from _many(Path(folder), 20_000 if quick else 200_000)
        yield from _scan(Path(folder), quick)
        yield from _compare(Path(folder), quick)


def _sparse(path: Path) -> None:
    """Write a checkpoint of 4 GB that takes no disk."""
    nbytes = ROWS * COLUMNS * 4
    header = {
        f"layers.{i}.w": {"dtype": "F32", "shape": [ROWS, COLUMNS], "data_offsets": [i * nbytes, (i + 1) * nbytes]}
        for i in range(NUM_TENSORS)
    }
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + NUM_TENSORS * nbytes)


def _listing(folder: Path, quick: bool) -> Iterator[Figure]:
    sparse, zipped, legacy = (folder / name for name in ("sparse.safetensors", "x.pt", "legacy.pt"))
    _sparse(sparse)
    small = {f"layers.{i}.w": torch.zeros(4, 4) for i in range(NUM_TENSORS)}
    torch.save(small, zipped)
    torch.save(small, legacy, _use_new_zipfile_serialization=False)
    dcp, gguf = folder / "dcp", folder / "x.gguf"
    with warnings.catch_warnings():
        # It says that one process saves alone.
        warnings.simplefilter("ignore")
        torch.distributed.checkpoint.save(small, checkpoint_id=dcp)
    _write_gguf(gguf, small)
    statements = {
        "safetensors of 4 GB, listed": "weights(sparse)",
        LIBRARY: "[(s.get_shape(), s.get_dtype()) for s in map(opened.get_slice, keys)]",
        "zip of torch.save, listed": "weights(zipped)",
        "legacy torch.save, listed": "weights(legacy)",
        "DCP folder, listed": "weights(dcp)",
        "GGUF, listed": "weights(gguf)",
        "torch.load(mmap=True)": "torch.load(zipped, mmap=True, weights_only=True)",
        "4 rows of 4 MB": "listed['layers.77.w'].to_numpy(slice(9, 13))",
    }
    opened = safe_open(sparse, "np")
    names = {
        "weights": tnp.weights, "sparse": sparse, "zipped": zipped, "legacy": legacy, "torch": torch,
        "dcp": dcp, "gguf": gguf,
        "opened": opened, "keys": list(opened.keys()), "listed": tnp.weights(sparse),
    }  # fmt: skip
    seconds = interleave(statements, names, rounds=7 if quick else 25)
    limits = {"4 rows of 4 MB": SLICE_S} | dict.fromkeys(
        ("legacy torch.save, listed", "DCP folder, listed", "GGUF, listed"), SLOW_LISTING_S
    )
    others = {"safetensors of 4 GB, listed": LIBRARY, "zip of torch.save, listed": "torch.load(mmap=True)"}
    for name, taken in seconds.items():
        if name not in others.values():
            yield Figure(f"{NUM_TENSORS} tensors: {name}", Spread.of(taken), at_most=limits.get(name, LISTING_S))
        if other := others.get(name):
            yield timed(f"{NUM_TENSORS} tensors: {name}", taken, other, seconds[other])


def _write_gguf(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    from gguf import GGUFWriter

    writer = GGUFWriter(path, "llama")
    for name, tensor in tensors.items():
        writer.add_tensor(name, tensor.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _many(folder: Path, num: int) -> Iterator[Figure]:
    path = folder / "many.safetensors"
    state_dict = {f"layers.{i}.w": torch.zeros(1) for i in range(num)}
    save_file(state_dict, path)
    for name, source, claim in (("in a file", path, MANY_S * num / 200_000), ("in memory", state_dict, None)):
        seconds = interleave({name: "weights(source)"}, {"weights": tnp.weights, "source": source}, rounds=3)[name]
        yield Figure(f"{num:,} tensors {name}: listed", Spread.of(seconds), at_most=claim)
        tracemalloc.start()
        listed = tnp.weights(source)
        nbytes = Spread.of([tracemalloc.get_traced_memory()[0] / num])
        tracemalloc.stop()
        yield Figure(f"{num:,} tensors {name}: memory of each", nbytes, "bytes", at_most=ENTRY_NBYTES)
        del listed
    yield from _many_beside(path, num)


def _many_beside(path: Path, num: int) -> Iterator[Figure]:
    """How many times as long as the library it takes to list many tensors, and to tell their totals."""
    statements = {"listed": "weights(path)", "listed, and totals": "weights(path).totals", LIBRARY: LISTED_BY_LIBRARY}
    names = {"weights": tnp.weights, "path": path, "safe_open": safe_open}
    seconds = interleave(statements, names, rounds=3)
    library = seconds.pop(LIBRARY)
    for name, taken in seconds.items():
        yield timed(f"{num:,} tensors of a file: {name}", taken, LIBRARY, library)


def _scan(folder: Path, quick: bool) -> Iterator[Figure]:
    path = folder / "scanned.safetensors"
    generator = torch.Generator().manual_seed(0)
    numel = 2**20 if quick else 2**22
    save_file({f"layers.{i}.w": torch.randn(numel // 4096, 4096, generator=generator) for i in range(16)}, path)
    statements = {
        "scan": "weights(path).scan(progress=False)", "seven torch calls for each": NAIVE,
        "the same figures by torch": SAME_FIGURES,
    }  # fmt: skip
    names = {"weights": tnp.weights, "path": path, "safe_open": safe_open, "torch": torch}
    seconds = interleave(statements, names, rounds=3 if quick else 5)
    own, size = seconds.pop("scan"), os.path.getsize(path) / 1e9
    for name, taken in seconds.items():
        # Seven figures are a part of what a scan tells.
        claim = SCAN_CLAIM if name == "the same figures by torch" else None
        yield timed(f"a scan of {size:.2g} GB", own, name, taken, at_most=claim, gigabytes=size)
    peak = peak_mib(lambda: tnp.weights(path).scan(progress=False))
    yield Figure(f"a scan of {size:.2g} GB: peak of new memory", peak, "MiB")


def _compare(folder: Path, quick: bool) -> Iterator[Figure]:
    paths = [folder / f"{name}.safetensors" for name in ("base", "tuned")]
    generator = torch.Generator().manual_seed(0)
    columns = (2**20 if quick else 2**22) // 16
    weights = {f"layers.{i}.w": torch.randn(16, columns, generator=generator) for i in range(16)}
    save_file(weights, paths[0])
    save_file({name: value + 1e-3 if i % 2 else value for i, (name, value) in enumerate(weights.items())}, paths[1])
    statements = {
        "scanned": "a.scan(progress=False), b.scan(progress=False)",
        "compared": "compare(a, b, progress=False)",
    }
    a, b = map(tnp.weights, paths)
    seconds = interleave(statements, {"a": a, "b": b, "compare": tnp.compare}, rounds=3 if quick else 5)
    size = 2 * os.path.getsize(paths[0]) / 1e9
    what = f"two files of {size:.2g} GB compared, half of them changed"
    yield timed(what, seconds["compared"], "both scanned", seconds["scanned"], at_most=COMPARE_CLAIM, gigabytes=size)
    peak = peak_mib(lambda: tnp.compare(a, b, progress=False))
    yield Figure(f"{what}: peak of new memory", peak, "MiB", at_most=COMPARE_MIB)
