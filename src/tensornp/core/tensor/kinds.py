"""Recognize the kind of a tensor, and read the kinds that wrap other tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]  # public, but not listed

from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import an_instance, error_text, is_tensor, own_attributes
from tensornp.core.lowlevel.modes import PLAIN_KEYS
from tensornp.core.lowlevel.quiet import plain
from tensornp.core.lowlevel.text import counted, legible, with_article
from tensornp.core.tensor.form import Bare, DataState, Form, Kind, Obstacle, Step, is_held, is_of_class
from tensornp.core.tensor.layouts import Mkldnn, Quantized, Sparse, Strided, Zero
from tensornp.errors import UnsupportedTensorError


class Nested(Kind):
    name = label = "nested"
    step = Step.UNBIND
    sentence = "Several tensors in one; each becomes an array of its own."
    access = "part"
    code = "[{inner} for part in t.unbind()]"
    gives_several = True

    def holds(self, t: Any, bare: Any) -> bool:
        return _is_jagged(t) or (bare.is_nested and bare.device.type != "meta")

    def inner(self, t: Any) -> Any:
        return t.values()

    def parts(self, t: Any) -> list[torch.Tensor]:
        if t.layout == torch.jagged:
            return [part for part in (t.offsets(), t.lengths()) if part is not None]
        return torch_private.nested_sizes(t)

    def detail(self, t: Any) -> str:
        return counted(t.size(0), "part")

    def stored(self, t: Any) -> list[torch.Tensor]:
        return [plain(part) for part in t.unbind()]


class Masked(Kind):
    name = label = "masked"
    step = Step.MASK
    sentence = "Some elements are hidden; the array is a numpy.ma.MaskedArray."
    obstacle = Obstacle("with a mask", "data and mask become a masked array, so both are new memory")
    access = "t.get_data()"
    code = "np.ma.array({inner}, mask=~t.get_mask(){host}{dense}.numpy())"
    is_masked = True
    class_of_torch = "MaskedTensor", "torch.masked"
    indexed_by = ".get_data()"
    refusal = "a masked tensor hides elements; pass t.get_data() for all, or t.get_data()[t.get_mask()]"

    def inner(self, t: Any) -> Any:
        return t.get_data()

    def parts(self, t: Any) -> list[torch.Tensor]:
        return [t.get_mask()]


class Local(Kind):
    """A DTensor, whose part on this rank is the inner tensor."""

    name = "local"
    label = "DTensor"
    step = Step.TO_LOCAL
    sentence = "Spread over ranks, or replicated on each."
    access = "t.to_local()"
    class_of_torch = "DTensor", "torch.distributed"

    def form(self, t: Any) -> Form:
        ranks = tuple(t.device_mesh.shape)
        is_here = all([place.is_replicate() or n == 1 for place, n in zip(t.placements, ranks, strict=True)])
        is_whole = is_here and tuple(t.to_local().shape) == tuple(t.shape)
        return Form("available" if is_whole else "remote", self, legible(str(tuple(t.placements))))

    def inner(self, t: Any) -> Any:
        return t.to_local()

    def detail(self, t: Any) -> str:
        return legible(", ".join(map(str, t.placements)))


class Pending(Kind):
    name = "pending"
    label = "collective"
    step = Step.WAIT
    sentence = "The result of an asynchronous collective."
    access = "t.wait()"
    class_of_torch = "AsyncCollectiveTensor", "torch.distributed"

    def inner(self, t: Any) -> Any:
        return t.elem

    def awaited(self, t: Any) -> Any:
        return t.trigger_wait()

    def detail(self, t: Any) -> str:
        return "arrived" if t.completed else WRITING


class Dequantized(Kind):
    """A class with a `dequantize` of its own, as torchao and bitsandbytes have."""

    name = "dequantized"
    label = "quantized"
    step = Step.DEQUANTIZE
    sentence = "The class stores codes with a scale; the array has the values that they mean."
    obstacle = Obstacle("of class {type_name}", "{type_name} dequantized, so that each element is the value it means")
    has_other_meaning = True
    indexed_by = ".dequantize()"

    def holds(self, t: Any, bare: Any) -> bool:
        return has_own_dispatch(type(t)) and type(t).dequantize is not torch.Tensor.dequantize

    def parts(self, t: Any) -> list[torch.Tensor]:
        return [value for _, value in own_attributes(t) if is_tensor(value)]

    def dense(self, t: Any) -> torch.Tensor:
        try:
            values = t.dequantize()
            if not is_tensor(values):
                raise TypeError(f"it returned {an_instance(values)}")
            form = form_of(values)
            state = "freed" if form == _STRIDED and not is_held(values) else form.state
            if state != "available" or form.kind is not STRIDED or tuple(values.shape) != tuple(t.shape):
                raise TypeError(f"it returned {with_article(state)} {form.kind} tensor of shape {tuple(values.shape)}")
            if not t.dtype.is_floating_point and values.dtype != t.dtype:
                raise TypeError(f"it returned {values.dtype} instead of {t.dtype}")
            # Some classes dequantize to another dtype than their own; the receipt has their own.
            return plain(values).resolve_conj().resolve_neg().to(t.dtype)
        except Exception as error:
            raise UnsupportedTensorError(
                f"{type(t).__name__}.dequantize() failed ({error_text(error)}); convert the tensors inside it"
            ) from error


class Refusal(NamedTuple):
    """A test for tensors without values, and the reason; an empty `wrapper` is the name of the class."""

    state: DataState
    wrapper: str
    holds: Callable[[Any, Any], bool]

    def form(self, t: Any) -> Form:
        return Form(self.state, STRIDED, self.wrapper or type(t).__name__)


def has_own_dispatch(cls: type) -> bool:
    return cls.__torch_dispatch__ not in torch_private.PLAIN_DISPATCH  # type: ignore[attr-defined]


def _is_jagged(t: Any) -> bool:
    return is_of_class(t, "NestedTensor", "torch.nested")


STRIDED, SPARSE, MKLDNN, QUANTIZED, ZERO = Strided(), Sparse(), Mkldnn(), Quantized(), Zero()
NESTED, MASKED, LOCAL, PENDING, DEQUANTIZED = Nested(), Masked(), Local(), Pending(), Dequantized()
_MAX_DEPTH = 8
WRITING = "pending"
"""The detail of a tensor that a collective is still writing."""
_STRIDED = Form("available", STRIDED)
_FUNCTIONAL, _FUNC = "functionalization", "a torch.func transform"
_BY_CLASS: tuple[Kind | Refusal, ...] = (
    Refusal("uninitialized", "an uninitialized module", lambda t, _: issubclass(type(t), UninitializedTensorMixin)),
    Refusal("fake", "FakeTensorMode", lambda t, _: is_of_class(t, "FakeTensor", "torch._subclasses")),
    Refusal("wrapped", _FUNCTIONAL, lambda t, _: is_of_class(t, "FunctionalTensor", "torch._subclasses")),
    Refusal("wrapped", _FUNC, lambda t, _: torch_private.is_functorch_wrapper(t)),
    LOCAL,
    PENDING,
    MASKED,
    DEQUANTIZED,
    Refusal("wrapped", "", lambda t, _: has_own_dispatch(type(t)) and not _is_jagged(t)),
    # A plain tensor of memory that was never written, which stands for a mask that torch makes when it is used.
    Refusal(
        "wrapped",
        "CausalBias, which is no tensor of values,",
        lambda t, _: is_of_class(t, "CausalBias", "torch.nn.attention"),
    ),
)
_BY_LAYOUT: tuple[Kind | Refusal, ...] = (
    Refusal("wrapped", _FUNC, lambda t, _: torch_private.is_functorch_wrapper(t)),
    Refusal("wrapped", _FUNCTIONAL, lambda t, _: torch_private.is_functional_wrapper(t)),
    NESTED,
    Refusal("meta", "", lambda _, bare: bare.device.type == "meta"),
    QUANTIZED,
    ZERO,
    STRIDED,
    MKLDNN,
    SPARSE,
)
KINDS = _BY_CLASS + _BY_LAYOUT
"""All kinds, in the order that keeps asking safe."""


def form_of(t: torch.Tensor) -> Form:
    """Return the form of a tensor; no value is read, and no code of its class runs."""
    if type(t) not in torch_private.OF_TORCH:
        bare: Any = Bare(t)
        return next(kind.form(t) for kind in KINDS if kind.holds(t, bare))
    if torch_private.dispatch_keys(t).raw_repr() == PLAIN_KEYS:
        return _STRIDED
    return next(kind.form(t) for kind in _BY_LAYOUT if kind.holds(t, t))


def parts_of(
    tensor: Any, holders: tuple[str, ...] = (), *, has_all: bool = False
) -> list[tuple[torch.Tensor, tuple[str, ...]]]:
    """Return the strided parts of a tensor, with the classes that give their bytes another meaning."""
    state, kind, _ = form_of(tensor)
    if len(holders) > _MAX_DEPTH or state not in ("available", "wrapped", "remote"):
        return []
    has_strides = state == "available" and kind.has_strides
    own = [((tensor if type(tensor) in torch_private.OF_TORCH else plain(tensor)), holders)] if has_strides else []
    if state == "wrapped" or kind.has_other_meaning:
        holders, inner = (type(tensor).__name__, *holders), DEQUANTIZED.parts(tensor)
    elif has_strides and (kind is STRIDED or not has_all):
        return own
    else:
        held = kind.inner(tensor)
        inner = [held] if held is not None else []
        if has_all or held is None or not kind.gives_several:
            inner += kind.parts(tensor)
    return own + [found for part in inner for found in parts_of(part, holders, has_all=has_all)]
