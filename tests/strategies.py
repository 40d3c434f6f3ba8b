"""Random tensors for property tests: shapes, strides, dtypes, values that are hard to print, and print options."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from tensornp.core.tensor.dtypes import KNOWN

DTYPES = [
    getattr(torch, name) for name, facts in KNOWN.items() if facts.values_per_element == 1 and hasattr(torch, name)
]
NATIVE_DTYPES = [getattr(torch, name) for name, facts in KNOWN.items() if facts.numpy]


def converted(t: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the whole array through plain torch, knowing nothing of plans: an oracle."""
    t = t.detach().resolve_conj().resolve_neg()
    wide = torch.complex64 if t.is_complex() else torch.float32
    return (t.to(wide) if t.dtype not in NATIVE_DTYPES else t).clone().numpy()


def modulus(t: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return the numbers of which there are figures: those of the array, or their absolute values in float64."""
    with np.errstate(all="ignore"):
        values = converted(t)
        if values.dtype.kind != "c":
            return values
        wide = values.astype(np.complex128)
        size = np.where(np.isnan(wide.real) | np.isnan(wide.imag), np.nan, np.hypot(wide.real, wide.imag))
        return np.where(np.isfinite(wide), np.minimum(size, np.finfo(np.float64).max), size)


_SPECIAL = [float("nan"), float("inf"), -float("inf"), -0.0, 1e-40, 5e-324, 1e30, -1e-7, 123456789.123]


@st.composite
def tensors(draw: st.DrawFn, dtypes: list[torch.dtype] = DTYPES) -> torch.Tensor:
    """Draw a CPU tensor: any bits, then perhaps transposed, sliced, expanded, conjugated or tracked by autograd."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 7, 8, 13, 40]), max_size=4))
    while torch.Size(shape).numel() > 20_000:
        shape.pop()
    kind = draw(st.sampled_from(["bits", "nice", "special"]))
    t = _values(dtype, tuple(shape), draw(st.integers(0, 2**32 - 1)), kind)
    for change in draw(st.lists(st.sampled_from(["transpose", "slice", "expand", "conj", "imag", "grad"]), max_size=3)):
        t = _changed(t, change)
    return t


def _values(dtype: torch.dtype, shape: tuple[int, ...], seed: int, kind: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    count = torch.Size(shape).numel()
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if kind == "bits":
        raw = torch.randint(0, 256, (count * dtype.itemsize,), generator=generator, dtype=torch.uint8)
        return raw.view(dtype).view(shape)
    values = torch.randn(count, generator=generator, dtype=torch.float64) * 100
    if kind == "special":
        places = torch.randint(0, len(_SPECIAL), (count,), generator=generator)
        values = torch.where(places < 5, torch.tensor(_SPECIAL, dtype=torch.float64)[places], values)
        if not dtype.is_floating_point and not dtype.is_complex:
            values = values.nan_to_num(0, 0, 0)
    if dtype in (torch.uint16, torch.uint32, torch.uint64, torch.uint8):
        values = values.abs().nan_to_num(0, 0, 0).clamp(0, 250)
    return values.to(dtype).view(shape)


def _changed(t: torch.Tensor, change: str) -> torch.Tensor:
    if change == "transpose" and t.dim() > 1:
        return t.transpose(0, -1)
    if change == "slice" and t.dim() and t.shape[-1] > 3:
        return t[..., 1::2]
    if change == "expand":
        return t.unsqueeze(0).expand(9, *t.shape)
    if change == "conj" and t.is_complex():
        return t.conj()
    if change == "imag" and t.is_complex():
        return t.conj().imag
    if change == "grad" and (t.is_floating_point() or t.is_complex()) and t.dtype.itemsize > 1:
        return t.detach().clone().requires_grad_()
    return t


def _printable(options: dict[str, Any]) -> dict[str, Any]:
    if options.get("legacy") == "1.13":
        options.pop("floatmode", None)
    return options


PRINT_OPTIONS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "threshold": st.sampled_from([0, 5, 50, 1000, 10**6]),
        "edgeitems": st.integers(0, 4),
        "linewidth": st.sampled_from([10, 40, 75, 76, 77, 120]),
        "precision": st.sampled_from([None, 0, 2, 4, 12]),
        "suppress": st.booleans(),
        "floatmode": st.sampled_from(["fixed", "unique", "maxprec", "maxprec_equal"]),
        "sign": st.sampled_from([" ", "+", "-"]),
        "nanstr": st.just("N/A"),
        "infstr": st.just("INFINITY"),
        "legacy": st.sampled_from([False, "1.13", "1.21", "1.25"]),
    },
).map(_printable)
"""Print options that NumPy itself can print with: its 1.13 mode raises for most values of `floatmode`."""
