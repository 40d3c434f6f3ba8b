"""Packed weights of which no configuration tells: by names, dtypes and shapes together, or by their class."""

from __future__ import annotations

from collections.abc import Mapping

from tensornp.models.entries.entry import Packed, WeightEntry, noted
from tensornp.models.quantization.layouts import LAYOUTS, is_float, packed_by

_GPTQ, _INT8 = ".qweight", ".SCB"
_4_BITS = tuple(f".weight.quant_state.bitsandbytes__{kind}" for kind in ("nf4", "fp4"))
_TELLING = (_GPTQ, _INT8, *_4_BITS)
"""Names that only packed weights have, or something beside them."""
_MAY_BE_BITS = (2, 3, 4, 8)
_OF_WORD = 32
_CLASSES = {"Params4bit": ("uint8", 4), "Int8Params": ("int8", 8)}
"""The classes of bitsandbytes: the dtype of their codes, and how many bits each has."""


def with_packed(entries: list[WeightEntry]) -> list[WeightEntry]:
    """Return the entries, of which some are said to be packed; each of these has its elements, and no statistics."""
    telling = [one.name for one in entries if one._packed is None and one.name.endswith(_TELLING)]
    made = {one.name: found for one in entries if (found := _of_class(one)) is not None}
    by_name = {one.name: one for one in entries} if telling else {}
    for name in telling:
        suffix = next(one for one in _TELLING if name.endswith(one))
        module = name.removesuffix(suffix)
        method, bits = _told(module, suffix, by_name)
        if method:
            names = [module + part for one in LAYOUTS[method] for part in (one.codes, one.scales, *one.others)]
            made |= packed_by({one: by_name[one] for one in names if one in by_name}, method, {"bits": bits})
    return [made.get(one.name, one) for one in entries] if made else entries


def _of_class(entry: WeightEntry) -> WeightEntry | None:
    """Return a weight in memory whose class says that it is packed."""
    cls = type(entry._source.held)
    if entry._packed is not None or cls.__module__.partition(".")[0] != "bitsandbytes":
        return None
    dtype, bits = _CLASSES.get(cls.__name__, ("", 0))
    if entry.dtype != dtype:
        return None
    said = f"{'packed ' if bits < 8 else ''}{bits}-bit codes (bitsandbytes)"
    return noted(entry._with_(_packed=Packed(entry.numel * 8 // bits)), said)


def _told(module: str, suffix: str, by_name: Mapping[str, WeightEntry]) -> tuple[str, int]:
    """Return the method by which a module is packed, and the bits of a code; an empty text where not all fits."""
    codes = by_name.get(module + (_GPTQ if suffix == _GPTQ else ".weight"))
    if codes is None or codes._packed is not None or codes.shape is None or len(codes.shape) != 2:
        return "", 0
    if suffix == _GPTQ:
        return _of_words(codes, by_name.get(f"{module}.qzeros"), by_name.get(f"{module}.scales"))
    if suffix == _INT8:
        scales = by_name[module + _INT8]
        fits = codes.dtype == "int8" and is_float(scales.dtype) and scales.numel == codes.shape[0]
        return "bitsandbytes" if fits else "", 8
    return "bitsandbytes" if codes.dtype == "uint8" else "", 4


def _of_words(codes: WeightEntry, zeros: WeightEntry | None, scales: WeightEntry | None) -> tuple[str, int]:
    """Return whose words of 32 bits these are: GPTQ packs along the rows, AWQ along the columns."""
    if zeros is None or scales is None or {codes.dtype, zeros.dtype} != {"int32"} or not is_float(scales.dtype):
        return "", 0
    (_, width), of_zeros, of_scales = codes.shape or (0, 0), zeros.shape or (), scales.shape or ()
    if len(of_zeros) != 2 or len(of_scales) != 2 or of_zeros[0] != of_scales[0] or 0 in of_scales:
        return "", 0
    bits, rest = divmod(_OF_WORD * of_zeros[1], of_scales[1])
    method = {of_zeros[1]: "awq", of_scales[1]: "gptq"}.get(width, "")
    return method if bits in _MAY_BE_BITS and not rest else "", bits
