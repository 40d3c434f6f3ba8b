"""The meaning of stored codes, by names, dtypes and configuration; and pairs of low-rank adapters."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tensornp.core.tensor.dtypes import stored_dtype
from tensornp.models.entries.entry import Packed, WeightEntry, noted
from tensornp.models.entries.in_file import FileSource
from tensornp.models.entries.take import VALUES, Array, Ranges, Shape
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
_USUAL = 128
"""The size of a block where shapes fit to several."""


class Layout(NamedTuple):
    """A packed format: how the names of codes, scales and further tensors end, and the dtypes of codes."""

    method: str
    codes: str
    scales: str
    others: tuple[str, ...]
    dtypes: tuple[str, ...]
    bits: int = 0


_WORDS = ("int32", "uint32")
_OF_4_BITS = tuple(f".weight.quant_state.bitsandbytes__{kind}" for kind in ("nf4", "fp4"))
_OF_COMPRESSED = (".weight_shape", ".weight_zero_point", ".weight_g_idx")
LAYOUTS = (
    Layout("gptq", ".qweight", ".scales", (".qzeros", ".g_idx"), _WORDS),
    Layout(
        "bitsandbytes", ".weight", ".weight.absmax",
        (".weight.quant_map", ".weight.nested_absmax", ".weight.nested_quant_map", *_OF_4_BITS), ("uint8",), 4,
    ),
    Layout("bitsandbytes", ".weight", ".SCB", (".weight_format",), ("int8",), 8),
    Layout("mlx", ".weight", ".scales", (".biases",), _WORDS),
    Layout("compressed-tensors", ".weight_packed", ".weight_scale", _OF_COMPRESSED, _WORDS),
    Layout("mxfp4", "_blocks", "_scales", (), ("uint8",), 4),
)  # fmt: skip
_METHODS = {one.method for one in LAYOUTS}
_LIKE_GPTQ = ("awq", "auto-round")
"""Methods with the names of GPTQ."""
_CLASSES = {"Params4bit": ("uint8", 4), "Int8Params": ("int8", 8)}
"""The classes of bitsandbytes: the dtype of their codes, and how many bits each has."""


def with_meaning(
    entries: list[WeightEntry], config: Mapping[str, Any] | None = None
) -> tuple[list[WeightEntry], list[str]]:
    """Return the entries with codes decoded or marked as packed and notes on adapters, and problems.

    `config` is what the configurations beside them say, by their names, or anything. Codes that are marked stay so.
    """
    said = _told_by((config or {}).get("config"))
    method = said.get("quant_method")
    made = {one.name: found for one in entries if one._source.held is not None and (found := _of_class(one))}
    if isinstance(method, str) and method not in (*_METHODS, *_FLOAT_METHODS, *_LIKE_GPTQ):
        every = [one for one in entries if one.dtype in _INTEGERS and len(one.shape or ()) > 1]
        made |= {one.name: one._with_(note=f"codes ({shown_name(method)})", _packed=Packed(None)) for one in every}
    ends = (*_SCALES, *(one.scales for one in LAYOUTS))
    by_name = {one.name: one for one in entries} if any(one.name.endswith(ends) for one in entries) else {}
    for layout in LAYOUTS:
        for name in [name for name in by_name if name.endswith(layout.scales)]:
            made |= _packed_module(layout, name.removesuffix(layout.scales), by_name, said)
    for name in [name for name in by_name if name.endswith(tuple(_SCALES))]:
        for end, end_of_codes in _SCALES.items():
            codes = by_name.get(name.removesuffix(end) + end_of_codes) if name.endswith(end) else None
            if codes is None or codes.name == name or codes.name in made or codes._packed is not None:
                continue
            if shown_name(name) not in codes.note:
                made |= _scaled(codes, by_name[name], said.get("weight_block_size"))
    num_untold = sum(one._num_parameters is None for one in made.values())
    said_untold = f"how many parameters {num_untold:,} packed weights have is not told, and they are not counted"
    entries = [made.get(one.name, one) for one in entries] if made else entries
    return _with_pairs(entries, (config or {}).get("adapter_config")), [said_untold] if num_untold else []


def may_have_meaning(entries: Iterable[WeightEntry]) -> bool:
    """Return whether a configuration may describe some of the weights, or an adapter."""
    ends = tuple(_SCALES)
    return any(
        (one.dtype in _INTEGERS and len(one.shape or ()) > 1) or one.name.endswith(ends) or ".lora_" in one.name
        for one in entries
    )


def _told_by(config: Any) -> dict[str, Any]:
    for place in (config, config.get("text_config")) if isinstance(config, dict) else ():
        for key in ("quantization_config", "quantization"):
            said = place.get(key) if isinstance(place, dict) else None
            if isinstance(said, dict) and said:
                # Only MLX, and old bitsandbytes, name no method.
                is_bitsandbytes = "load_in_4bit" in said or "load_in_8bit" in said
                return {"quant_method": "bitsandbytes" if is_bitsandbytes else "mlx", **said}
    return {}


def _scaled(codes: WeightEntry, scales: WeightEntry, told: Any) -> dict[str, WeightEntry]:
    """Return codes with a scale beside them: decoded if both lie in files and fit, else marked."""
    said = f"codes, to which the scales {shown_name(scales.name)} are not applied"
    if codes.dtype in _INTEGERS and is_float(scales.dtype) and len(codes.shape or ()) > 1:
        packed = Packed(codes.numel if codes.dtype == "int8" else None)
        return {codes.name: noted(codes._with_(_packed=packed), said)}
    if codes.dtype not in _FLOAT8:
        return {}
    if not isinstance(codes._source, FileSource) or not isinstance(scales._source, FileSource):
        return {codes.name: noted(codes, f"float8 {said}")}
    block = block_of(codes._source.shape, scales._source.shape, told)
    of_codes = {scales.name: scales._with_(kind="state")}
    if block is None or codes.problem or scales.problem or not is_float(scales.dtype):
        return of_codes | {codes.name: codes._with_(note=f"float8 {said}")}
    source = replace(codes._source, codec=BlockScale(codes.dtype, scales._source, block))
    note = f"block-scaled float8, scales {shown_name(scales.name)}"
    return of_codes | {codes.name: codes._with_(_source=source, note=note)}


def is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat")) and dtype != "float4_e2m1fn_x2"


def _packed_module(
    layout: Layout, module: str, by_name: Mapping[str, WeightEntry], said: Mapping[str, Any]
) -> dict[str, WeightEntry]:
    """Return the packed weight of a module and the tensors next to it, if it has codes of this layout."""
    codes = by_name.get(module + layout.codes)
    if codes is None or codes.dtype not in layout.dtypes or codes._packed is not None or len(codes.shape or ()) < 2:
        return {}
    beside = [by_name[module + end] for end in (layout.scales, *layout.others) if module + end in by_name]
    # Buffers of a module are no parameters as they are.
    beside = [one if one.kind == "buffer" else one._with_(kind="state") for one in beside]
    whose = f"codes that belong to {shown_name(codes.name)}"
    found = {one.name: one._with_(note=whose, _packed=Packed(0)) if one.dtype in _INTEGERS else one for one in beside}
    method, bits = layout.method, layout.bits or _bits_told(layout, module, said)
    if method == "gptq":
        shapes = (by_name.get(f"{module}.qzeros"), by_name[module + layout.scales])
        of_zeros, of_scales = (one.shape or () if one is not None else () for one in shapes)
        is_awq = of_zeros[1:] == (codes.shape or ())[1:]
        method = said.get("quant_method", "awq" if is_awq else "gptq")
        if not said and len(of_zeros) == len(of_scales) == 2 and of_scales[1]:
            bits, rest = divmod(32 * of_zeros[1], of_scales[1])
            bits = 0 if rest else bits
    return found | {codes.name: _as_packed(codes, method, bits)}


def _bits_told(layout: Layout, module: str, said: Mapping[str, Any]) -> Any:
    """Return the bits of a code by the configuration, or anything."""
    if layout.method == "compressed-tensors":
        groups = said.get("config_groups")
        every = groups.values() if isinstance(groups, dict) else ()
        weights = [group.get("weights") for group in every if isinstance(group, dict)]
        told = {one["num_bits"] for one in weights if isinstance(one, dict) and type(one.get("num_bits")) is int}
        return told.pop() if len(told) == 1 else 0
    own = said.get(module)
    return (own if isinstance(own, dict) else said).get("bits", said.get("w_bit"))


def _as_packed(codes: WeightEntry, method: str, bits: Any) -> WeightEntry:
    """Return codes with their bits and the number of weights, as far as that is told."""
    of_element = 8 * stored_dtype(codes.dtype).itemsize
    if type(bits) is not int or not 0 < bits <= min(_MAX_BITS, of_element):
        return noted(codes._with_(_packed=Packed(None)), f"packed codes ({method})")
    count, rest = divmod(codes.numel * of_element, bits)
    note = f"{bits}-bit codes ({method})" if bits == of_element else f"packed {bits}-bit codes ({method})"
    return noted(codes._with_(_packed=Packed(None if rest else count)), note)


def _of_class(entry: WeightEntry) -> WeightEntry | None:
    """Return the packed weight of a bitsandbytes class in memory, if it is one."""
    cls = type(entry._source.held)
    if entry._packed is not None or cls.__module__.partition(".")[0] != "bitsandbytes":
        return None
    dtype, bits = _CLASSES.get(cls.__name__, ("", 0))
    return _as_packed(entry, "bitsandbytes", bits) if entry.dtype == dtype else None


@dataclass(frozen=True, slots=True)
class BlockScale:
    """Multiplies codes by the scale of their block in float32, as models do.

    `block` has the number of elements with a common scale along each dimension.
    """

    codes: str
    scales: FileSource
    block: Shape

    @np.errstate(all="ignore")
    def __call__(self, stored: Array, ranges: Ranges) -> Array:
        from tensornp.core.values.blocks import numbers_of

        if math.prod(self.scales.shape) == 1:
            scale = self.scales.numbers(...).astype(VALUES).reshape(())
            return np.asarray(numbers_of(stored, self.codes) * scale)
        pairs = list(zip(ranges, self.block, strict=True))
        if not stored.size:
            return np.empty(stored.shape, VALUES)
        scales = self.scales.numbers(tuple(slice(min(one) // n, max(one) // n + 1) for one, n in pairs)).astype(VALUES)
        factors: Array = scales[np.ix_(*(np.asarray(one) // n - min(one) // n for one, n in pairs))]
        factors *= numbers_of(stored, self.codes)
        return factors


def block_of(shape: tuple[int, ...], scales: tuple[int, ...], told: Any) -> tuple[int, ...] | None:
    """Return the block size along each dimension, None if it is unknown.

    `told` is the `weight_block_size` of a configuration. If it does not fit, the size comes from the shapes.
    """
    if not shape or 0 in (*shape, *scales):
        return None
    if math.prod(scales) == 1:
        return shape
    if len(shape) != len(scales):
        return None
    sizes = told if isinstance(told, list) and all(type(size) is int and size > 0 for size in told) else []
    configured = (*(1,) * (len(shape) - len(sizes)), *sizes)
    usual = tuple(
        _USUAL if num > 1 and -(-n // _USUAL) == num else n // num if n % num == 0 else 1
        for n, num in zip(shape, scales, strict=True)
    )
    tried = [configured, usual] if sizes and len(configured) == len(shape) else [usual]
    fitting = (one for one in tried if all(-(-n // b) == s for n, b, s in zip(shape, one, scales, strict=True)))
    return next(fitting, None)


_HALF = re.compile(r"(?P<stem>.*)\.lora_(?P<embedding>embedding_)?(?P<side>[AB])(?P<rest>\..*)?", re.DOTALL)


def _with_pairs(entries: list[WeightEntry], config: Any) -> list[WeightEntry]:
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
    return [noted(one, notes[one.name]) if one.name in notes else one for one in entries]
