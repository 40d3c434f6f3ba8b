"""A tensor that can be had again for as long as its memory lives, which is kept where nobody else has it."""

from __future__ import annotations

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from tensornp.core.lowlevel import modes, torch_private
from tensornp.core.tensor.form import form_of
from tensornp.core.tensor.kinds import STRIDED


class WeakView:
    """The elements of an ordinary tensor; another one is not had again."""

    __slots__ = ("_dtype", "_kept", "_offset", "_shape", "_storage", "_strides")

    def __init__(self, tensor: torch.Tensor) -> None:
        self._storage: StorageWeakRef | None = None
        self._kept: torch.UntypedStorage | None = None
        with modes.outside_modes():
            form = form_of(tensor)
            if form.kind is STRIDED and form.state == "available" and not tensor.is_conj() and not tensor.is_neg():
                self._storage = StorageWeakRef(torch.Tensor.untyped_storage(tensor))
                self._dtype, self._shape = tensor.dtype, tuple(tensor.shape)
                self._offset, self._strides = tensor.storage_offset(), tensor.stride()

    @property
    def is_kept(self) -> bool:
        """Whether its memory lives for this view alone."""
        return self._kept is not None

    def keep(self) -> None:
        """Keep the memory, until `share` is called: as long as whoever made the tensor is about to let go of it."""
        storage = torch_private.storage_of_weak(self._storage) if self._storage is not None else None
        # Memory that is not torch's own, as of an array, has an owner that torch does not count.
        self._kept = storage if storage is not None and storage.resizable() else None

    def share(self) -> None:
        """Keep the memory no longer if tensors have it: it is theirs, and goes with them."""
        if self._kept is not None and torch_private.is_held_by_tensors(self._kept):
            self._kept = None

    def tensor(self) -> torch.Tensor | None:
        """Return a tensor over the same elements; None where their memory was given back, or is not known."""
        storage = torch_private.storage_of_weak(self._storage) if self._storage is not None else None
        if storage is None:
            return None
        with modes.outside_modes():
            made = torch.empty(0, dtype=self._dtype, device=storage.device)
            return made.set_(storage, self._offset, self._shape, self._strides)
