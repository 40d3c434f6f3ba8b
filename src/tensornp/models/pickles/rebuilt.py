"""Which tensor a call in a pickle would make: a plain one, a parameter around it, or one of a class that wraps others.

Of a class, such as DTensor and those of torchao, nothing is imported: its shape, its dtype and its attributes are told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from tensornp.core.lowlevel.text import legible
from tensornp.models.pickles.called import MAKES_TENSOR
from tensornp.models.pickles.records import Call, Global
from tensornp.models.pickles.tensors import (
    BY_TYPE,
    DTENSOR,
    MAX_NUMEL,
    MAX_SAID,
    PARAMETERS,
    QUANTIZED,
    REBUILT,
    WRAPPER,
    PickledTensor,
    name_of,
    quantized,
    sizes_of,
    strided,
    told_dtype,
    unread,
)

_MAX_WRAPPED = 8
_MAX_ATTRIBUTES = 64
"""Attributes that are looked at, of a tensor and of those in it together: one could stand in many."""
_OF_LIBRARIES = frozenset(
    "_ddp_mp_hook_state _fp_param _in_backward_optimizers _local_tensor _mp_param _optimizer_classes _optimizer_kwargs "
    "_spec _st_info grad_sample main_grad summed_grad".split()
)
"""Attributes in which torch and other libraries keep gradients, hooks, and copies in another dtype."""
_KEPT_WHOLE = ("Shard", "_StridedShard", "Replicate")
"""Placements under which the elements of a rank are elements of the whole."""

Path = tuple[Any, ...]


def tensor_of(path: Path, call: Call, num_around: int = 0, left: Iterator[int] | None = None) -> PickledTensor | None:
    """Return the tensor that a call would make, or None for another one; `left` counts attributes to be looked at."""
    (module, name), args = name_of(call.func), call.args
    if type(args) is not tuple:
        return None
    if call.state is not None and Global(module, name) in MAKES_TENSOR:
        return unread(path, "it is set to something else after it is made")
    if num_around > _MAX_WRAPPED:
        return unread(path, f"it is wrapped more than {_MAX_WRAPPED} times")
    if module == "torch._utils" and name in PARAMETERS and args:
        inner = tensor_of(path, args[0], num_around + 1, left) if isinstance(args[0], Call) else None
        is_trained = len(args) > 1 and args[1] is True
        return inner._replace(is_parameter=True, requires_grad=is_trained) if inner is not None else None
    if (module, name) == BY_TYPE and len(args) == 4 and type(args[2]) is tuple:
        if name_of(args[0]) == WRAPPER:
            left = left if left is not None else iter(range(_MAX_ATTRIBUTES))
            inner = _wrapper(path, args[2], args[3], num_around + 1, left)
            inner = inner._replace(number=id(call)) if inner is not None else None
        else:
            inner = tensor_of(path, Call(args[0], args[2]), num_around + 1, left)
        return inner if inner is not None else unread(path, "it is of a subclass, which the file does not lay out")
    if module == "torch._utils" and name in REBUILT:
        return strided(path, name, args)
    if module == "torch._utils" and name == QUANTIZED:
        return quantized(path, args)
    if module in ("torch._utils", "torch._tensor") and name.startswith("_rebuild"):
        return unread(path, f"it is made by {legible(name[:MAX_SAID])}, which is not read yet")
    return None


def _wrapper(path: Path, args: Path, state: Any, num_around: int, left: Iterator[int]) -> PickledTensor | None:
    """Return what is told by `class, dtype, shape, strides, offset, layout, device, requires_grad`, and attributes."""
    cls, dtype, shape = (args[0], told_dtype(args[1]), sizes_of(args[2])) if len(args) > 2 else (None, "", None)
    if not isinstance(cls, Global) or not dtype or shape is None or math.prod(shape) >= MAX_NUMEL:
        return None
    attributes = {name: value for (name, value), _ in zip(_attributes(state), left, strict=False)}
    found = ((key, tensor_of((), one, num_around, left)) for key, one in attributes.items() if isinstance(one, Call))
    inner = tuple((legible(key[:MAX_SAID]), one) for key, one in found if one is not None)
    made = PickledTensor(
        path, "", legible(dtype[:MAX_SAID]), 0, 0, shape, (),
        requires_grad=len(args) > 7 and args[7] is True, is_parameter=False, class_name=legible(cls.name[:MAX_SAID]),
        inner=inner,
    )  # fmt: skip
    if made.class_name != DTENSOR or not cls.module.startswith("torch.distributed."):
        why = f"{made.class_name} computes its values, and no class that a file names is imported"
        return made._replace(problem=f"{why}; give weights what torch.load returns, if you trust the file")
    return _of_rank(made, dict(inner).get("_local_tensor"), attributes.get("_spec"))


def _of_rank(made: PickledTensor, local: PickledTensor | None, spec: Any) -> PickledTensor:
    """Return a DTensor: of one whose part of a rank is the whole, that part."""
    placements = spec.state.get("placements") if isinstance(spec, Call) and type(spec.state) is dict else None
    if local is None or not isinstance(placements, (tuple, list)):
        return made._replace(problem="its part of it is not told")
    if not all(isinstance(one, Call) and name_of(one.func)[1] in _KEPT_WHOLE for one in placements):
        return made._replace(problem="its values are those of one rank, to be added to those of others")
    if local.dtype == made.dtype and local.shape == made.shape and not local.is_wrapper:
        return local._replace(path=made.path, requires_grad=made.requires_grad, class_name=DTENSOR)
    why = f"the file holds the part of one rank, of shape {local.shape}"
    return made._replace(problem=f"{why}; save full_tensor() of it, or all ranks by torch.distributed.checkpoint")


def held_by_tensor(call: Call) -> Iterator[tuple[str, Any]]:
    """Yield what the tensor that a call would make holds as attributes, but those of which its class makes values."""
    one: Any = call
    for _ in range(_MAX_WRAPPED):
        called, args = (name_of(one.func), one.args) if isinstance(one, Call) else (("", ""), ())
        if type(args) is not tuple or len(args) != 4:
            return
        if called == BY_TYPE and name_of(args[0]) != WRAPPER:
            one = Call(args[0], args[2])
        elif called == ("torch._utils", PARAMETERS[1]):
            one = args[0]
        else:
            return
        yield from ((name, value) for name, value in _attributes(args[3]) if name not in _OF_LIBRARIES)


def _attributes(state: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that a state sets: a dictionary, and perhaps another one of what lies in slots."""
    for table in state if type(state) is tuple else (state,):
        pairs = table.items() if type(table) is dict else [("__dict__", table)] if isinstance(table, Call) else ()
        yield from ((name, value) for name, value in pairs if type(name) is str)
