"""Numbers of at most 16 bits by their codes: how often each of these occurs says all that there is to say of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from tensornp.core.tensor.dtypes import KNOWN
from tensornp.core.values.reading.blocks import DevicePart, Part, ReadPart, StridedPart
from tensornp.core.values.reading.decode import decoder, stored_dtype
from tensornp.core.values.reading.supply import Supply
from tensornp.core.values.stats.distribution import Distribution
from tensornp.core.values.stats.fast import Kernels
from tensornp.core.values.stats.figures import Figures
from tensornp.core.values.stats.keys import scheme_of

Array = np.ndarray[Any, Any]
_MIN_NUMEL = 2**18
"""Fewer numbers are looked at in less time than all codes are."""


def has_codes(supply: Supply, *, on_device: bool) -> bool:
    """Return whether the statistics of all that `supply` brings come from the codes of its numbers.

    `on_device` says whether those on a device are brought here.
    """
    if supply.dtype not in KNOWN or stored_dtype(supply.dtype).itemsize > 2:
        return False
    if sum([part.numel for part in supply.parts]) < _MIN_NUMEL:
        return False
    kinds = StridedPart | ReadPart | DevicePart if on_device else StridedPart | ReadPart
    return all(isinstance(part, kinds) and part.dtype == supply.dtype and _is_native(part) for part in supply.parts)


def _is_native(part: Part) -> bool:
    return not isinstance(part, StridedPart) or part.strided.dtype.isnative


def as_codes(part: Part) -> Part:
    """Return how the codes of a part are read, as unsigned integers."""
    return part.as_codes() if isinstance(part, StridedPart | DevicePart | ReadPart) else part


class CodeCounter:
    """Counts the codes of the blocks of a part, of which the numbers are known beforehand."""

    def __init__(self, part: Part, kernels: Kernels | None) -> None:
        self._stored = stored = stored_dtype(part.dtype)
        self._scheme, self._kernels = scheme_of(part.dtype), kernels
        self._decode = decoder(part.dtype, is_neg=getattr(part, "is_neg", False))
        # All of them, in their order.
        self._codes = np.arange(2 ** (8 * stored.itemsize)).astype(f"u{stored.itemsize}").view(stored)
        self._counts = np.zeros(len(self._codes), np.int64)

    def add(self, codes: Array) -> None:
        """Count the codes of a block, one-dimensional unsigned integers."""
        if self._kernels is not None:
            self._kernels.count_codes(codes, self._counts)
        else:
            self._counts += np.bincount(codes, minlength=len(self._counts))

    def numbers(self, codes: Array) -> Array:
        """Return the numbers of codes."""
        return self._decode(codes.view(self._stored))

    def finish(self, factor: int) -> tuple[Figures, Distribution]:
        """Return how many there are, and the distribution of the finite ones, each meant `factor` times."""
        met = np.flatnonzero(self._counts)
        # A code may be that of several numbers.
        numbers: Array = self._decode(self._codes[met][:, None]).reshape(-1)
        counts = np.repeat(self._counts[met] * factor, len(numbers) // max(len(met), 1))
        told = (np.isnan(numbers), numbers == np.inf, numbers == -np.inf)
        figures = Figures(int(counts.sum()), *(int(counts[which].sum()) for which in told))
        return figures, Distribution(self._scheme, *self._scheme.tally_of(numbers, counts))


def figures_from(distribution: Distribution, found: Figures) -> Figures:
    """Return the figures of the numbers that were `found`, of which the finite ones are distributed by exact keys."""
    numbers, _, counts = distribution.in_order()
    if not len(numbers):
        return found
    count, zeros = int(counts.sum()), int(counts[numbers == 0].sum())
    # Each product is exact.
    total = math.fsum((numbers * counts).tolist())
    mean = total / count
    away = numbers - mean
    std = math.sqrt(math.fsum((away * away * counts).tolist()) / count)
    kind = float if distribution.scheme.float_name else int
    # No zero has a sign here.
    low, high = (kind(end + 0.0) for end in (numbers[0], numbers[-1]))
    return replace(found, zeros=zeros, min=low, max=high, total=kind(total), mean=mean, std=std)
