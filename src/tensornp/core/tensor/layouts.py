"""Read the kinds of tensors that differ by layout: strided, sparse, mkldnn, quantized and zero."""

from __future__ import annotations

from typing import Any

import torch

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.quiet import plain, quietly
from tensornp.core.tensor.dtypes import FLOAT4_VALUES, KNOWN, name_of
from tensornp.core.tensor.form import FLOAT4, Kind, Obstacle, Places, Step, indexed, over_storage
from tensornp.errors import UnsupportedTensorError


class Strided(Kind):
    name = "strided"
    has_strides = True

    def holds(self, t: Any, bare: Any) -> bool:
        return bool(bare.layout == torch.strided)

    def few(self, t: Any, places: Places) -> torch.Tensor:
        raw = plain(t)
        if raw.dtype is FLOAT4:
            # Both values of a byte are read, and one is kept.
            codes, last = torch.atleast_1d(raw.view(torch.uint8)), places[-1]
            codes = indexed(codes, [*places[:-1], [place // 2 for place in last]])
            return self.dense(codes.view(FLOAT4))[..., [2 * i + place % 2 for i, place in enumerate(last)]]
        if not (raw.is_conj() or raw.is_neg()):
            return indexed(raw, places)
        # torch would resolve all elements before it indexes, so the lazy bits come off first.
        few = indexed(over_storage(raw, raw.dtype), places)
        few = quietly(few.conj().resolve_conj) if raw.is_conj() else few
        return quietly(few.neg) if raw.is_neg() else few

    def stored(self, t: Any) -> list[torch.Tensor]:
        return [plain(t)]

    def dense(self, t: Any) -> torch.Tensor:
        """Return a strided tensor itself, and the float32 values of float4: ``(*, 2 * n)`` for ``(*, n)``."""
        raw = plain(t)
        if raw.dtype is not FLOAT4:
            return raw
        codes = raw.view(torch.uint8)
        pairs = torch.stack((codes & 15, codes >> 4), -1).flatten(max(codes.dim() - 1, 0))
        return torch.tensor(FLOAT4_VALUES, dtype=torch.float32, device=codes.device)[pairs.to(torch.int64)]


class Sparse(Kind):
    name = "sparse"
    step = Step.TO_DENSE
    sentence = "Only some elements are stored; the array has them all."
    obstacle = Obstacle("of layout {layout}", "the layout is {layout}, so the values are laid out densely")
    indexed_by = ".to_dense()"

    def holds(self, t: Any, bare: Any) -> bool:
        return True

    def parts(self, t: Any) -> list[torch.Tensor]:
        if t.layout == torch.sparse_coo:
            return [*torch_private.stored_elements(t)]
        if t.layout in (torch.sparse_csr, torch.sparse_bsr):
            return [t.crow_indices(), t.col_indices(), t.values()]
        return [t.ccol_indices(), t.row_indices(), t.values()]

    def detail(self, t: Any) -> str:
        return f"{torch_private.num_stored(t):,} stored"

    def stored(self, t: Any) -> list[torch.Tensor]:
        raw = plain(t)
        self._check_indices(raw)
        if raw.layout != torch.sparse_coo or raw.is_coalesced():
            return [self.parts(raw)[-1]]
        indices, values = torch_private.stored_elements(raw)
        # A new tensor, because torch would keep the sums in the user's own; short floats cannot be added.
        wide = KNOWN[name_of(values.dtype)].widened
        values = values.to(getattr(torch, wide)) if wide else values
        made = torch.sparse_coo_tensor(indices, values, raw.shape, check_invariants=True, is_coalesced=False)
        return [made.coalesce().values()]

    def dense(self, t: Any) -> torch.Tensor:
        """Return the dense form; in a wider dtype if torch has none in the tensor's own."""
        raw = plain(t)
        self._check_indices(raw)
        facts = KNOWN.get(name_of(raw.dtype))
        if facts is None or facts.dense_through is None:
            return quietly(raw.to_dense)
        laid_out = quietly(quietly(raw.to, getattr(torch, facts.dense_through)).to_dense)
        return laid_out.to(raw.dtype) if facts.numpy else laid_out

    def _check_indices(self, raw: Any) -> None:
        try:
            # A tensor over the same memory, made for its checks.
            make: Any = torch.sparse_compressed_tensor
            options: Any = {"size": raw.shape, "check_invariants": True, "layout": raw.layout}
            if raw.layout == torch.sparse_coo:
                make, options = torch.sparse_coo_tensor, {"size": raw.shape, "check_invariants": True}
            quietly(make, *self.parts(raw), **options)
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
            raise UnsupportedTensorError(
                f"this {name_of(raw.layout)} tensor is broken ({reason}); build it with check_invariants=True"
            ) from error


class Mkldnn(Kind):
    name = label = "mkldnn"
    step = Step.TO_DENSE
    sentence = "An opaque layout that only oneDNN reads; the array has the values in row order."
    obstacle = Obstacle("of the opaque layout mkldnn", "the layout is opaque, so the values are laid out densely")
    indexed_by = ".to_dense()"

    def holds(self, t: Any, bare: Any) -> bool:
        # This layout has no public name.
        return str(bare.layout) == "torch._mkldnn"

    def dense(self, t: Any) -> torch.Tensor:
        return quietly(plain(t).to_dense)


class Quantized(Kind):
    name = label = "quantized"
    step = Step.DEQUANTIZE
    sentence = "The elements are integer codes with a scale; the array has the values that they mean."
    obstacle = Obstacle("of codes with a scale", "{dtype} codes dequantized, so that each is the value it means")
    values_dtype = "float32"
    has_strides = True
    indexed_by = ".dequantize()"

    def holds(self, t: Any, bare: Any) -> bool:
        return bool(bare.is_quantized)

    def parts(self, t: Any) -> list[torch.Tensor]:
        if "per_channel" not in self.detail(t):
            return []
        return [t.q_per_channel_scales(), t.q_per_channel_zero_points()]

    def detail(self, t: Any) -> str:
        try:
            return str(t.qscheme()).removeprefix("torch.")
        except RuntimeError:
            # `torch.empty` makes quantized tensors without a scale.
            return ""

    def dense(self, t: Any) -> torch.Tensor:
        return quietly(plain(t).dequantize)


class Zero(Kind):
    name = "zero"
    label = "symbolic zero"
    step = Step.COPY
    sentence = "Autograd's zero, which has no memory."
    obstacle = Obstacle("with no memory, a symbolic zero of autograd,", "a symbolic zero of autograd has no memory")

    def holds(self, t: Any, bare: Any) -> bool:
        return bool(bare.layout == torch.strided) and torch_private.is_zero_tensor(t)

    def few(self, t: Any, places: Places) -> torch.Tensor:
        return torch.zeros([len(place) for place in places], dtype=t.dtype, device=t.device)

    def stored(self, t: Any) -> list[torch.Tensor]:
        return [torch.zeros((), dtype=t.dtype, device=t.device).expand(t.shape)]
