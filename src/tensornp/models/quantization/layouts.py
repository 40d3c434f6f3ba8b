"""The meaning of codes, by names, by the configuration, or by their class."""

from __future__ import annotations

import json
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
GPTQ_CONFIG = "quantize_config"


class Layout(NamedTuple):
    """Name endings of the codes, their scales and optional further tensors."""

    codes: str
    scales: str
    others: tuple[str, ...] = ()


_GPTQ = (Layout(".qweight", ".scales", (".qzeros", ".g_idx")),)
_BESIDE = (
    "quant_map",
    "nested_absmax",
    "nested_quant_map",
    "quant_state.bitsandbytes__nf4",
    "quant_state.bitsandbytes__fp4",
)
LAYOUTS = {
    "gptq": _GPTQ,
    "awq": _GPTQ,
    "auto-round": _GPTQ,
    "bitsandbytes": (
        Layout(".weight", ".weight.absmax", tuple(f".weight.{name}" for name in _BESIDE)),
        Layout(".weight", ".SCB", (".weight_format",)),
    ),
    "mlx": (Layout(".weight", ".scales", (".biases",)),),
    "compressed-tensors": (
        Layout(".weight_packed", ".weight_scale", (".weight_shape", ".weight_zero_point", ".weight_g_idx")),
        Layout(".weight", ".weight_scale", (".weight_zero_point",)),
    ),
    "mxfp4": (Layout("_blocks", "_scales"),),
}  # fmt: skip
"""The layouts of each packed format, by the `quant_method` of its configuration."""

_QWEIGHT, _SCB = ".qweight", ".SCB"
_4_BITS = tuple(f".weight.quant_state.bitsandbytes__{kind}" for kind in ("nf4", "fp4"))
_WORDS, _BLOCKS, _BIASES = ".weight_packed", "_blocks", ".biases"
_TELLING = (_QWEIGHT, _SCB, _WORDS, _BLOCKS, _BIASES, *_4_BITS)
"""Names that only packed weights have, or something beside them."""
_MAY_BE_BITS = (2, 3, 4, 8)
_OF_WORD = 32
_CLASSES = {"Params4bit": ("uint8", 4), "Int8Params": ("int8", 8)}
"""The classes of bitsandbytes: the dtype of their codes, and how many bits each has."""


def with_meaning(entries: Iterable[WeightEntry], config: Mapping[str, Any]) -> tuple[list[WeightEntry], list[str]]:
    """Return the entries with codes decoded or marked as packed, and problems.

    `config` is what the configurations beside them say, by their names, or anything.
    """
    every = list(entries)
    by_name = {one.name: one for one in every if isinstance(one._source, FileSource)}
    said = _told_by(config.get("config")) or _told_by(_header_of(config)) or _of_gptq(config.get(GPTQ_CONFIG))
    made: dict[str, WeightEntry] = {}
    for codes, scales in _with_scales(by_name):
        if codes.dtype in _FLOAT8:
            made[scales.name] = scales._with_(kind="state")
            made[codes.name] = _scaled(codes, scales, said.get("weight_block_size"))
    method = said.get("quant_method")
    if isinstance(method, str) and method not in _FLOAT_METHODS:
        made |= packed_by(by_name, method, said)
    num_untold = sum(one._num_parameters is None for one in made.values())
    problems = []
    if num_untold:
        problems = [f"how many parameters {num_untold:,} packed weights have is not told, and they are not counted"]
    return [made.get(one.name, one) for one in every] if made else every, problems


def may_have_meaning(entries: Iterable[WeightEntry]) -> bool:
    """Return whether a configuration may describe some of the weights."""
    ends = tuple(_SCALES)
    return any(one.name.endswith(ends) or (one.dtype in _INTEGERS and len(one.shape or ()) > 1) for one in entries)


def _with_scales(by_name: Mapping[str, WeightEntry]) -> Iterator[tuple[WeightEntry, WeightEntry]]:
    """Yield the weights that have a scale beside them by its name, and the scale."""
    ends = tuple(_SCALES)
    for name, scales in by_name.items():
        if name.endswith(ends):
            for end, end_of_codes in _SCALES.items():
                codes = by_name.get(name.removesuffix(end) + end_of_codes) if name.endswith(end) else None
                if codes is not None and codes is not scales:
                    yield codes, scales


def _header_of(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the quantization settings in the header of a file."""
    found: dict[str, Any] = {}
    for key in ("config", "quantization_config", "quantization"):
        try:
            found[key] = json.loads(metadata[key]) if isinstance(metadata.get(key), str) else {}
        except (ValueError, RecursionError):
            continue
    config = found.pop("config", {})
    return {**(config if isinstance(config, dict) else {}), **found}


def _told_by(config: Any) -> dict[str, Any]:
    """Return the quantization settings of a configuration, with a `quant_method`."""
    if not isinstance(config, dict):
        return {}
    places = (config, config.get("text_config"))
    for place in places:
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


def _of_gptq(config: Any) -> dict[str, Any]:
    """Return the settings in AutoGPTQ's own file."""
    return {"quant_method": "gptq", **config} if isinstance(config, dict) else {}


def is_float(dtype: str) -> bool:
    """Return whether elements of a dtype can be scales."""
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
            bits = _bits(method, said, module, one)
            packed = Packed(_count(method, said, module, one, scales, bits))
            found[name] = noted(one._with_(_packed=packed), _note(method, bits, one))
            for suffix in (layout.scales, *layout.others):
                beside = by_name.get(module + suffix)
                if beside is not None:
                    # Buffers of a module are no parameters as they are.
                    beside = beside if beside.kind == "buffer" else beside._with_(kind="state")
                    if beside.dtype in _INTEGERS:
                        beside = beside._with_(note=f"codes that belong to {shown_name(name)}", _packed=Packed(0))
                    found[beside.name] = beside
    return found


def _note(method: str, bits: int | None, codes: WeightEntry) -> str:
    if bits is None:
        return f"packed codes ({method})"
    return f"{bits}-bit codes ({method})" if bits == _bits_of_element(codes) else f"packed {bits}-bit codes ({method})"


def _bits_of_element(codes: WeightEntry) -> int:
    return 8 * stored_dtype(codes.dtype).itemsize


def _bits(method: str, said: dict[str, Any], module: str, codes: WeightEntry) -> int | None:
    """Return the bits of one code, None without a plausible number."""
    told: Any = said.get("bits", said.get("w_bit"))
    if method == "mxfp4":
        told = 4
    elif method == "bitsandbytes":
        told = 4 if codes.dtype == "uint8" else 8
    elif method == "mlx":
        told = _of_module(said, module, "bits")
    elif method == "compressed-tensors":
        groups = said.get("config_groups")
        weights = (
            [group.get("weights") for group in groups.values() if isinstance(group, dict)]
            if isinstance(groups, dict)
            else []
        )
        every = {one.get("num_bits") for one in weights if isinstance(one, dict) and type(one.get("num_bits")) is int}
        told = every.pop() if len(every) == 1 else None
    return told if type(told) is int and 0 < told <= min(_MAX_BITS, _bits_of_element(codes)) else None


def _of_module(said: dict[str, Any], module: str, key: str) -> Any:
    """Return the setting of one module, or else of all."""
    own = said.get(module)
    return own.get(key, said.get(key)) if isinstance(own, dict) else said.get(key)


def _count(
    method: str, said: dict[str, Any], module: str, codes: WeightEntry, scales: WeightEntry, bits: int | None
) -> int | None:
    """Return the number of codes if all facts agree, else None."""
    if bits is None or codes.numel * _bits_of_element(codes) % bits:
        return None
    count = codes.numel * _bits_of_element(codes) // bits
    group = _of_module(said, module, "group_size")
    if method == "mlx" and (type(group) is not int or scales.numel * group != count):
        return None
    return count


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
        if codes.name not in made and _is_unscaled(codes, scales):
            made[codes.name] = _unscaled(codes, scales)
    return [made.get(one.name, one) for one in entries] if made else entries


def _is_unscaled(codes: WeightEntry, scales: WeightEntry) -> bool:
    """Return whether a weight is a matrix of codes without a note on its scales."""
    if codes._packed is not None or len(codes.shape or ()) < 2 or shown_name(scales.name) in codes.note:
        return False
    return codes.dtype in _FLOAT8 or (codes.dtype in _INTEGERS and is_float(scales.dtype))


def _unscaled(codes: WeightEntry, scales: WeightEntry) -> WeightEntry:
    """Return codes with a note that their scales are not applied."""
    said = f"codes, to which the scales {shown_name(scales.name)} are not applied"
    if codes.dtype in _FLOAT8:
        return noted(codes, f"float8 {said}")
    return noted(codes._with_(_packed=Packed(codes.numel if codes.dtype == "int8" else None)), said)


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
    codes = by_name.get(module + (suffix if suffix in (_QWEIGHT, _WORDS, _BLOCKS) else ".weight"))
    if codes is None or codes._packed is not None or codes.shape is None or len(codes.shape) < 2:
        return "", 0
    if suffix == _BLOCKS:
        scales = by_name.get(f"{module}_scales")
        fits = scales is not None and scales.dtype == codes.dtype == "uint8" and scales.shape == codes.shape[:-1]
        return "mxfp4" if fits else "", 4
    if suffix == _BIASES:
        scales, biases = by_name.get(f"{module}.scales"), by_name[module + _BIASES]
        fits = codes.dtype in ("int32", "uint32") and scales is not None and is_float(scales.dtype)
        return "mlx" if fits and scales is not None and scales.shape == biases.shape else "", 0
    if len(codes.shape) != 2:
        return "", 0
    if suffix == _WORDS:
        return "compressed-tensors" if codes.dtype == "int32" else "", 0
    if suffix == _QWEIGHT:
        return _of_words(codes, by_name.get(f"{module}.qzeros"), by_name.get(f"{module}.scales"))
    if suffix == _SCB:
        scales = by_name[module + _SCB]
        fits = codes.dtype == "int8" and is_float(scales.dtype) and scales.numel == codes.shape[0]
        return "bitsandbytes" if fits else "", 8
    return "bitsandbytes" if codes.dtype == "uint8" else "", 4


def _of_words(codes: WeightEntry, zeros: WeightEntry | None, scales: WeightEntry | None) -> tuple[str, int]:
    """Return the method and bits of 32-bit words: GPTQ packs rows, AWQ columns."""
    if zeros is None or scales is None or {codes.dtype, zeros.dtype} != {"int32"} or not is_float(scales.dtype):
        return "", 0
    (_, width), of_zeros, of_scales = codes.shape or (0, 0), zeros.shape or (), scales.shape or ()
    if len(of_zeros) != 2 or len(of_scales) != 2 or of_zeros[0] != of_scales[0] or 0 in of_scales:
        return "", 0
    bits, rest = divmod(_OF_WORD * of_zeros[1], of_scales[1])
    method = {of_zeros[1]: "awq", of_scales[1]: "gptq"}.get(width, "")
    return method if bits in _MAY_BE_BITS and not rest else "", bits
