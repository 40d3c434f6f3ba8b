"""The meaning of codes, by names, configuration or class; and pairs of low-rank adapters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tensornp.core.tensor.dtypes import stored_dtype
from tensornp.models.entries.entry import Packed, WeightEntry, noted
from tensornp.models.entries.in_file import FileSource
from tensornp.models.names.quoted import shown_name

_SCALES = {
    "_scale_inv": "",
    "_scale": "",
    "_scale_2": "_scale",
    "scale_weight": "weight",
    "._weight_scale": "._weight_qdata",
    ":scale": ":qdata",
}
"""How the name of a scale ends, and that of its codes: DeepSeek, compressed-tensors, ModelOpt, ComfyUI, torchao."""
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32")
_FLOAT_METHODS = {"fp8", "fbgemm_fp8", "modelopt"}
"""Methods that pack nothing."""
_MAX_BITS = 16


class Layout(NamedTuple):
    """Name endings of the codes, their scales and optional further tensors."""

    codes: str
    scales: str
    others: tuple[str, ...] = ()


_GPTQ = (Layout(".qweight", ".scales", (".qzeros", ".g_idx")),)
_4_BITS = tuple(f".weight.quant_state.bitsandbytes__{kind}" for kind in ("nf4", "fp4"))
_BESIDE = (".weight.quant_map", ".weight.nested_absmax", ".weight.nested_quant_map", *_4_BITS)
LAYOUTS = {
    "gptq": _GPTQ,
    "awq": _GPTQ,
    "auto-round": _GPTQ,
    "bitsandbytes": (Layout(".weight", ".weight.absmax", _BESIDE), Layout(".weight", ".SCB", (".weight_format",))),
    "mlx": (Layout(".weight", ".scales", (".biases",)),),
    "compressed-tensors": (
        Layout(".weight_packed", ".weight_scale", (".weight_shape", ".weight_zero_point", ".weight_g_idx")),
        Layout(".weight", ".weight_scale", (".weight_zero_point",)),
    ),
    "mxfp4": (Layout("_blocks", "_scales"),),
}
"""The layouts of each packed format, by the `quant_method` of its configuration."""
_TELLING = (".qweight", ".SCB", ".weight_packed", "_blocks", ".biases", *_4_BITS)
"""Name endings of packed weights, and of tensors next to them."""
_CLASSES = {"Params4bit": ("uint8", 4), "Int8Params": ("int8", 8)}
"""The classes of bitsandbytes: the dtype of their codes, and how many bits each has."""


def with_meaning(entries: Iterable[WeightEntry], config: Mapping[str, Any]) -> tuple[list[WeightEntry], list[str]]:
    """Return the entries with codes decoded or marked as packed, and problems.

    `config` is what the configurations beside them say, by their names, or anything.
    """
    every = list(entries)
    by_name = {one.name: one for one in every if isinstance(one._source, FileSource)}
    said = _told_by(config.get("config"))
    made: dict[str, WeightEntry] = {}
    for codes, scales in _with_scales(by_name):
        if codes.dtype in _FLOAT8:
            made[scales.name] = scales._with_(kind="state")
            made[codes.name] = _scaled(codes, scales, said.get("weight_block_size"))
    method = said.get("quant_method")
    if isinstance(method, str) and method not in _FLOAT_METHODS:
        made |= packed_by(by_name, method, said)
    num_untold = sum(one._num_parameters is None for one in made.values())
    said_untold = f"how many parameters {num_untold:,} packed weights have is not told, and they are not counted"
    return [made.get(one.name, one) for one in every], [said_untold] if num_untold else []


def may_have_meaning(entries: Iterable[WeightEntry]) -> bool:
    """Return whether a configuration may describe some of the weights, or an adapter."""
    ends = tuple(_SCALES)
    every = ((one.name, one.dtype in _INTEGERS and len(one.shape or ()) > 1) for one in entries)
    return any(is_coded or name.endswith(ends) or ".lora_" in name for name, is_coded in every)


def _with_scales(by_name: Mapping[str, WeightEntry]) -> Iterator[tuple[WeightEntry, WeightEntry]]:
    """Yield the weights that have a scale beside them by its name, and the scale."""
    ends = tuple(_SCALES)
    for name, scales in by_name.items():
        if name.endswith(ends):
            for end, end_of_codes in _SCALES.items():
                codes = by_name.get(name.removesuffix(end) + end_of_codes) if name.endswith(end) else None
                if codes is not None and codes is not scales:
                    yield codes, scales


def _told_by(config: Any) -> dict[str, Any]:
    """Return the quantization settings of a configuration, with a `quant_method`."""
    for place in (config, config.get("text_config")) if isinstance(config, dict) else ():
        for key in ("quantization_config", "quantization"):
            said = place.get(key) if isinstance(place, dict) else None
            if isinstance(said, dict) and said:
                # Only MLX, and old bitsandbytes, name no method.
                is_bitsandbytes = "load_in_4bit" in said or "load_in_8bit" in said
                return {"quant_method": "bitsandbytes" if is_bitsandbytes else "mlx", **said}
    return {}


def _scaled(codes: WeightEntry, scales: WeightEntry, told: Any) -> WeightEntry:
    """Return the scaled weight, or the codes if scales do not fit their blocks."""
    assert isinstance(codes._source, FileSource) and isinstance(scales._source, FileSource)
    from tensornp.models.quantization.codecs import BlockScale, block_of

    block = block_of(codes._source.shape, scales._source.shape, told)
    said = shown_name(scales.name)
    if block is None or codes.problem or scales.problem or not is_float(scales.dtype):
        return codes._with_(note=f"float8 codes, to which the scales {said} are not applied")
    source = replace(codes._source, codec=BlockScale(codes.dtype, scales._source, block))
    return codes._with_(_source=source, note=f"block-scaled float8, scales {said}")


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat")) and dtype != "float4_e2m1fn_x2"


def packed_by(by_name: dict[str, WeightEntry], method: str, said: dict[str, Any]) -> dict[str, WeightEntry]:
    """Return the packed weights and their scales by name."""
    found: dict[str, WeightEntry] = {}
    if method not in LAYOUTS:
        codes = [one for one in by_name.values() if one.dtype in _INTEGERS and len(one.shape or ()) > 1]
        packed = Packed(None)
        return {one.name: one._with_(note=f"codes ({shown_name(method)})", _packed=packed) for one in codes}
    for layout in LAYOUTS[method]:
        for name, one in by_name.items():
            module = name.removesuffix(layout.codes)
            scales = by_name.get(module + layout.scales)
            if module == name or one.dtype not in _INTEGERS or scales is None or name in found:
                continue
            found[name] = _packed(method, said, module, one, scales)
            for suffix in (layout.scales, *layout.others):
                beside = by_name.get(module + suffix)
                if beside is not None:
                    # Buffers of a module are no parameters as they are.
                    beside = beside if beside.kind == "buffer" else beside._with_(kind="state")
                    if beside.dtype in _INTEGERS:
                        beside = beside._with_(note=f"codes that belong to {shown_name(name)}", _packed=Packed(0))
                    found[beside.name] = beside
    return found


def _packed(method: str, said: dict[str, Any], module: str, codes: WeightEntry, scales: WeightEntry) -> WeightEntry:
    """Return codes with their bits, and with their number if all facts agree."""
    of_element = 8 * stored_dtype(codes.dtype).itemsize
    own = said.get(module) if method == "mlx" else None
    own = {**said, **own} if isinstance(own, dict) else said
    bits: Any = own.get("bits", own.get("w_bit"))
    if method == "mxfp4":
        bits = 4
    elif method == "bitsandbytes":
        bits = 4 if codes.dtype == "uint8" else 8
    elif method == "compressed-tensors":
        groups = said.get("config_groups")
        every = groups.values() if isinstance(groups, dict) else ()
        weights = [group.get("weights") for group in every if isinstance(group, dict)]
        told = {one.get("num_bits") for one in weights if isinstance(one, dict) and type(one.get("num_bits")) is int}
        bits = told.pop() if len(told) == 1 else None
    if type(bits) is not int or not 0 < bits <= min(_MAX_BITS, of_element):
        return noted(codes._with_(_packed=Packed(None)), f"packed codes ({method})")
    count, rest = divmod(codes.numel * of_element, bits)
    group = own.get("group_size")
    is_told = not rest and (method != "mlx" or (type(group) is int and scales.numel * group == count))
    note = f"{bits}-bit codes ({method})" if bits == of_element else f"packed {bits}-bit codes ({method})"
    return noted(codes._with_(_packed=Packed(count if is_told else None)), note)


def with_packed(entries: list[WeightEntry]) -> list[WeightEntry]:
    """Return the entries; those of packed codes are marked, and have no statistics."""
    made = {one.name: found for one in entries if (found := _of_class(one)) is not None}
    ends = (*_TELLING, *_SCALES)
    by_name = {one.name: one for one in entries} if any(one.name.endswith(ends) for one in entries) else {}
    for name in [name for name, one in by_name.items() if one._packed is None and name.endswith(_TELLING)]:
        suffix = next(one for one in _TELLING if name.endswith(one))
        module = name.removesuffix(suffix)
        method, bits = _scheme_of(module, suffix, by_name)
        if method:
            names = [module + part for one in LAYOUTS[method] for part in (one.codes, one.scales, *one.others)]
            made |= packed_by({one: by_name[one] for one in names if one in by_name}, method, {"bits": bits})
    for codes, scales in _with_scales(by_name):
        is_told = codes.name in made or codes._packed is not None or shown_name(scales.name) in codes.note
        if not is_told and len(codes.shape or ()) > 1:
            said = f"codes, to which the scales {shown_name(scales.name)} are not applied"
            if codes.dtype in _FLOAT8:
                made[codes.name] = noted(codes, f"float8 {said}")
            elif codes.dtype in _INTEGERS and is_float(scales.dtype):
                packed = Packed(codes.numel if codes.dtype == "int8" else None)
                made[codes.name] = noted(codes._with_(_packed=packed), said)
    return [made.get(one.name, one) for one in entries] if made else entries


def _of_class(entry: WeightEntry) -> WeightEntry | None:
    """Return the packed weight of a bitsandbytes class in memory, if it is one."""
    cls = type(entry._source.held)
    if entry._packed is not None or cls.__module__.partition(".")[0] != "bitsandbytes":
        return None
    dtype, bits = _CLASSES.get(cls.__name__, ("", 0))
    if entry.dtype != dtype:
        return None
    said = f"{'packed ' if bits < 8 else ''}{bits}-bit codes (bitsandbytes)"
    return noted(entry._with_(_packed=Packed(entry.numel * 8 // bits)), said)


def _scheme_of(module: str, suffix: str, by_name: Mapping[str, WeightEntry]) -> tuple[str, int]:
    """Return the packing method and bits of a module; empty and 0 if unknown."""
    is_own = suffix in (".qweight", ".weight_packed", "_blocks")
    codes = by_name.get(module + (suffix if is_own else ".weight"))
    if codes is None or codes._packed is not None or codes.shape is None or len(codes.shape) < 2:
        return "", 0
    marker, scales = by_name[module + suffix], by_name.get(module + ("_scales" if suffix == "_blocks" else ".scales"))
    method, bits, fits = "", 0, False
    match suffix:
        case "_blocks" if scales is not None:
            method, bits = "mxfp4", 4
            fits = scales.dtype == codes.dtype == "uint8" and scales.shape == codes.shape[:-1]
        case ".biases" if scales is not None:
            method = "mlx"
            fits = codes.dtype in ("int32", "uint32") and is_float(scales.dtype) and scales.shape == marker.shape
        case ".weight_packed":
            method, fits = "compressed-tensors", codes.dtype == "int32" and len(codes.shape) == 2
        case ".qweight":
            method, bits = _of_words(codes, by_name.get(f"{module}.qzeros"), scales)
            fits = bool(method)
        case ".SCB":
            method, bits = "bitsandbytes", 8
            is_row_scale = is_float(marker.dtype) and marker.numel == codes.shape[0]
            fits = codes.dtype == "int8" and is_row_scale and len(codes.shape) == 2
        case _ if suffix in _4_BITS:
            method, bits, fits = "bitsandbytes", 4, codes.dtype == "uint8" and len(codes.shape) == 2
    return (method, bits) if fits else ("", 0)


def _of_words(codes: WeightEntry, zeros: WeightEntry | None, scales: WeightEntry | None) -> tuple[str, int]:
    """Return the method and bits of 32-bit words: GPTQ packs rows, AWQ columns."""
    if zeros is None or scales is None or {codes.dtype, zeros.dtype} != {"int32"} or not is_float(scales.dtype):
        return "", 0
    of_zeros, of_scales = zeros.shape or (), scales.shape or ()
    if not len(codes.shape or ()) == len(of_zeros) == len(of_scales) == 2 or of_zeros[0] != of_scales[0]:
        return "", 0
    bits, rest = divmod(32 * of_zeros[1], of_scales[1]) if 0 not in of_scales else (0, 1)
    method = {of_zeros[1]: "awq", of_scales[1]: "gptq"}.get((codes.shape or (0, 0))[1], "")
    return method if bits in (2, 3, 4, 8) and not rest else "", bits


_HALF = re.compile(r"(?P<stem>.*)\.lora_(?P<embedding>embedding_)?(?P<side>[AB])(?P<rest>\..*)?", re.DOTALL)


def with_pairs(entries: list[WeightEntry], config: Any = None) -> list[WeightEntry]:
    """Return the weights with notes on rank and scale of adapter halves, by the `config` of PEFT."""
    halves: dict[tuple[str | None, ...], dict[str, WeightEntry]] = {}
    for entry in entries:
        # This excludes most names in a tenth of the time.
        found = _HALF.fullmatch(entry.name) if ".lora_" in entry.name else None
        if found and len(entry.shape or ()) == 2:
            halves.setdefault((found["stem"], found["embedding"], found["rest"]), {})[found["side"]] = entry
    notes: dict[str, str] = {}
    for pair in halves.values():
        first, second = (pair[side].shape if side in pair else None for side in "AB")
        if first and second and first[0] == second[1]:
            rank = first[0]
            is_told = isinstance(config, dict) and rank and not config.get("alpha_pattern")
            facts: dict[str, Any] = config if is_told else {}
            alpha: Any = facts.get("lora_alpha")
            said = f"adapter of rank {rank}"
            if type(alpha) in (int, float):
                said += f", scale {alpha / (math.sqrt(rank) if facts.get('use_rslora') is True else rank):.4g}"
            for side, other in ("AB", "BA"):
                notes[pair[side].name] = f"{said}, with lora_{pair[other].name.rpartition('.lora_')[2]}"
    return [noted(one, notes[one.name], first=False) if one.name in notes else one for one in entries]
