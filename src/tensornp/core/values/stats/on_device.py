"""The figures of blocks of another device, computed there: only they come to the host, all at once in the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from tensornp.core.convert import float4
from tensornp.core.memory.blocks import Block
from tensornp.core.values.reading.blocks import DevicePart
from tensornp.core.values.stats.figures import MAX_MODULUS, Figures, combined

_COLUMNS = 10


def figures_on_device(part: DevicePart, blocks: Sequence[Block]) -> tuple[Figures, ...] | None:
    """Return the figures of these blocks, of complex elements those of the modulus, the real and the imaginary part.

    None where the device does not have what that takes, such as float64, or where a sum is larger than any of these.
    """
    try:
        rows = [row for block in blocks for row in _rows(part, block)]
        # One transfer, at which the device is waited for.
        table = torch.stack(rows).cpu().tolist()
    except (RuntimeError, TypeError, NotImplementedError):
        return None
    if any(_overflows(row) for row in table):
        return None
    width = len(table) // len(blocks)
    is_integer = part.dtype.startswith(("int", "uint", "bool"))
    return tuple([combined(_figures(row, is_integer) for row in table[i::width]) for i in range(width)])


def _rows(part: DevicePart, block: Block) -> list[torch.Tensor]:
    """Return the figures of a block as one tensor, or as three for complex elements."""
    few: Any = part.raw[tuple(slice(i, i + n) for i, n in zip(*block, strict=True))]
    if few.is_complex():
        pairs = torch.view_as_real(few).to(torch.float64)
        real, imag = pairs[..., 0], -pairs[..., 1] if part.is_conj else pairs[..., 1]
        real, imag = (-real, -imag) if part.is_neg else (real, imag)
        has_nan = real.isnan() | imag.isnan()
        modulus = torch.where(has_nan, torch.nan, torch.hypot(real, imag))
        is_finite = real.isfinite() & imag.isfinite()
        modulus = torch.where(is_finite, modulus.clamp(max=MAX_MODULUS), modulus)
        return [_row(values) for values in (modulus, real, imag)]
    if part.dtype == "float4_e2m1fn_x2":
        few = float4.unpack(few)
    if not few.dtype.is_floating_point and few.dtype.itemsize == 8:
        # Sums of such integers need more bits than a float64 has.
        raise NotImplementedError
    values = few.to(torch.float64)
    return [_row(-values if part.is_neg else values)]


def _row(values: torch.Tensor) -> torch.Tensor:
    """Return ten figures of float64 numbers, which are integers or of 32 bits, or are summed up as they are."""
    finite = values.isfinite()
    count = finite.sum()
    some = torch.where(finite, values, 0.0)
    total = some.sum()
    mean = total / count
    squares = torch.where(finite, values - mean, 0.0).square().sum()
    counted = (values.isnan().sum(), (values == torch.inf).sum(), (values == -torch.inf).sum(), (values == 0).sum())
    low, high = torch.where(finite, values, torch.inf).amin(), torch.where(finite, values, -torch.inf).amax()
    figures = (finite.numel() + 0 * count, *counted, low, high, total, mean, (squares / count).sqrt())
    return torch.stack([figure.to(torch.float64) for figure in figures])


def _overflows(row: list[float]) -> bool:
    count, nan, posinf, neginf = row[:4]
    return count > nan + posinf + neginf and not all(map(math.isfinite, row[5:]))


def _figures(row: list[float], is_integer: bool) -> Figures:
    count, nan, posinf, neginf, zeros = map(int, row[:5])
    if count == nan + posinf + neginf:
        return Figures(count, nan, posinf, neginf)
    low, high, total, mean, std = row[5:]
    if is_integer:
        # A float64 holds the sum of a block exactly.
        return Figures(count, nan, posinf, neginf, zeros, int(low), int(high), int(total), mean, std)
    return Figures(count, nan, posinf, neginf, zeros, low, high, total, mean, std)
