"""GGUF files: plain types are read as any tensor, quantized ones are listed without a library, and read by `gguf`."""

from __future__ import annotations

import math
import sys

from tensornp.core.tensor.dtypes import stored_dtype
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.in_file import FileSource, weight_in
from tensornp.models.files.overlap import overlapping
from tensornp.models.files.source_file import ListedFile
from tensornp.models.formats.contents import Contents
from tensornp.models.formats.gguf.header import GgufTensor, read_gguf_header
from tensornp.models.formats.gguf.values import GgmlType
from tensornp.models.quantization.blocks import Blocks

PLAIN = {
    0: "float32", 1: "float16", 24: "int8", 25: "int16", 26: "int32", 27: "int64", 28: "float64", 30: "bfloat16",
}  # fmt: skip
"""The types that torch has, by the number that GGML gives them."""
QUANTIZED = {
    number: GgmlType(name, block_numel, block_nbytes)
    for number, name, block_numel, block_nbytes in (
        (2, "Q4_0", 32, 18), (3, "Q4_1", 32, 20), (6, "Q5_0", 32, 22), (7, "Q5_1", 32, 24), (8, "Q8_0", 32, 34),
        (9, "Q8_1", 32, 40), (10, "Q2_K", 256, 84), (11, "Q3_K", 256, 110), (12, "Q4_K", 256, 144),
        (13, "Q5_K", 256, 176), (14, "Q6_K", 256, 210), (15, "Q8_K", 256, 292), (16, "IQ2_XXS", 256, 66),
        (17, "IQ2_XS", 256, 74), (18, "IQ3_XXS", 256, 98), (19, "IQ1_S", 256, 50), (20, "IQ4_NL", 32, 18),
        (21, "IQ3_S", 256, 110), (22, "IQ2_S", 256, 82), (23, "IQ4_XS", 256, 136), (29, "IQ1_M", 256, 56),
        (34, "TQ1_0", 256, 54), (35, "TQ2_0", 256, 66), (39, "MXFP4", 32, 17), (40, "NVFP4", 64, 36),
        (41, "Q1_0", 128, 18),
    )
}  # fmt: skip
"""The types that GGML packs: how many values in how many bytes."""
WITHOUT_VALUES = {"Q8_1", "Q8_K"}
"""Those that stand in no file of weights: GGML makes them while it computes."""
_MAX_SIZE = 2**63 - 1


def read_gguf(file: ListedFile) -> Contents:
    """Return what a GGUF file holds, and read no value; CheckpointError if its header is not sound."""
    header = read_gguf_header(file)
    is_swapped = header.is_big_endian == (sys.byteorder == "little")
    entries = [_entry(file, tensor, is_swapped=is_swapped) for tensor in header.tensors]
    sound = {entry.name: entry.extents[0][1:] for entry in entries if not entry.problem}
    overlap = set(overlapping(sound))
    said = "its bytes overlap those of another one"
    entries = [one._with_(problem=said) if one.name in overlap else one for one in entries]
    return Contents(entries, header.metadata, [])


def _entry(file: ListedFile, tensor: GgufTensor, *, is_swapped: bool) -> WeightEntry:
    """Return the weight; its `problem` says why it is not read, and hides no other."""
    number, shape = tensor.type_number, tensor.shape
    read = "t.data" if number in PLAIN and PLAIN[number] != "bfloat16" else "gguf.dequantize(t.data, t.tensor_type)"
    code = f"next({read} for t in gguf.GGUFReader({file.path!r}).tensors if t.name == {tensor.name!r})"
    note = "other byte order" if is_swapped else ""
    if number in QUANTIZED:
        kind = QUANTIZED[number]
        source = FileSource(shape, kind.name, file, tensor.offset, codecs=(Blocks(kind),))
        nbytes = math.prod(shape) // kind.block_numel * kind.block_nbytes
    else:
        dtype = PLAIN.get(number, f"ggml type {number}")
        source = FileSource(shape, dtype, file, tensor.offset, is_swapped=is_swapped)
        nbytes = math.prod(shape) * stored_dtype(dtype).itemsize if number in PLAIN else 0
    problem = _problem(file, tensor, nbytes, is_swapped=is_swapped)
    return weight_in(source, tensor.name, code, nbytes=nbytes, note=note, problem=problem)


def _problem(file: ListedFile, tensor: GgufTensor, nbytes: int, *, is_swapped: bool) -> str:
    number, shape = tensor.type_number, tensor.shape
    if number not in PLAIN and number not in QUANTIZED:
        return f"its type {number:,} is not known"
    if math.prod(size for size in shape if size) > _MAX_SIZE:
        return "its shape is too large for any memory"
    if tensor.offset + nbytes > file.nbytes:
        return f"its bytes would end at {tensor.offset + nbytes:,}, and the file has {file.nbytes:,}"
    if number in PLAIN:
        # The library writes the others as bytes, which it does not turn around.
        return "it is bfloat16 in another byte order, which is not read" if is_swapped and number == 30 else ""
    codec = QUANTIZED[number]
    if not shape or shape[-1] % codec.block_numel:
        return f"its rows are no blocks of {codec.block_numel}, which {codec.name} takes"
    if codec.name in WITHOUT_VALUES:
        return f"it is of {codec.name}, of which the library gguf has no values"
    return f"it is of {codec.name} in another byte order, which is not read" if is_swapped else ""
