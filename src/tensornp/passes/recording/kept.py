"""Copies of what calls got and gave, where somebody has asked for them."""

from __future__ import annotations

import torch

from tensornp.core.lowlevel.text import format_nbytes
from tensornp.core.tensor.form import plain
from tensornp.core.tensor.kinds import form_of

MAX_BYTES = 256 * 2**20


class Kept:
    """Copies on the host, the first that came, up to a bound; it is asked `outside_modes`."""

    def __init__(self) -> None:
        self._nbytes = self._num_left_out = self._nbytes_left_out = 0
        self._copies: dict[int, torch.Tensor] = {}

    def copied(self, tensor: torch.Tensor, state: object) -> torch.Tensor | None:
        """Return a copy; of one `state` of a tensor the same one. None of what has no values, or is too much.

        A copy from a device waits for it.
        """
        copy = self._copies.get(id(state))
        if copy is None and (copy := self._copy(tensor)) is not None:
            self._copies[id(state)] = copy
        return copy

    def _copy(self, tensor: torch.Tensor) -> torch.Tensor | None:
        try:
            if form_of(tensor).state != "available":
                return None
            nbytes = tensor.numel() * tensor.itemsize
            if self._nbytes + nbytes > MAX_BYTES:
                self._num_left_out += 1
                self._nbytes_left_out += nbytes
                return None
            self._nbytes += nbytes
            return plain(tensor).detach().to("cpu", copy=True)
        except Exception:
            # A class may refuse; what is not kept has its figures all the same.
            return None

    def left_out(self) -> list[str]:
        """Return in a sentence what was not kept, since it was too much."""
        if not self._num_left_out:
            return []
        more, most = format_nbytes(self._nbytes_left_out), format_nbytes(MAX_BYTES)
        return [f"{self._num_left_out:,} values of {more} were not kept: beyond {most} keep takes no more"]
