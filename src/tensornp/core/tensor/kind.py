"""Describe a kind of tensors: the base class of all kinds."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import torch

from tensornp.core.lowlevel.quiet import plain
from tensornp.core.tensor.form import MAX_NUMEL, Bare, Places, indexed
from tensornp.core.tensor.steps import Obstacle, Step
from tensornp.errors import NotReadError

DataState = Literal["available", "meta", "fake", "uninitialized", "freed", "wrapped", "remote"]


class Form(NamedTuple):
    """The state of a tensor and its kind; `wrapper` names the class or tracer around it."""

    state: DataState
    kind: Kind
    wrapper: str = ""


class TooManyError(NotReadError):
    """All elements would be laid out to print a few, and they are too many."""


class Kind:
    """A way to hold values. Each kind is one object of a subclass; its methods are called `outside_modes`.

    No value is read before `few`, `stored` or `dense` is called. `step` leads to the values; the steps of the inner
    tensor follow, except for MASK. `label` (or else the layout) is the badge, and `sentence` its meaning. `obstacle` is
    why no tensor of this kind can share memory, with ``{layout}``, ``{dtype}`` and ``{type_name}``. `access` is the
    expression of the inner tensor, and `code` that of the whole conversion, around ``{inner}``; ``{host}`` and
    ``{dense}`` take a mask to the CPU and out of a sparse layout. `values_dtype` is the dtype of the values if the
    tensor has codes. The bytes of the tensors inside are not the values if it `has_other_meaning`. It becomes a list of
    arrays if it `gives_several`. `indexed_by` is the call that makes elements by index: ``.to_dense()``. `axis_cure` is
    the advice if its statistics have no axis.
    """

    name = ""
    step: Step | None = None
    label = ""
    sentence = ""
    obstacle: Obstacle | None = None
    access = ""
    code = "{inner}"
    values_dtype = ""
    has_strides = False
    is_computed = False
    has_other_meaning = False
    gives_several = False
    is_masked = False
    indexed_by = ""
    axis_cure = ""

    def __str__(self) -> str:
        return self.name

    def holds(self, t: Any, bare: Any) -> bool:
        """Return whether `t` is of this kind; `bare` has its attributes as `torch.Tensor` defines them."""
        return False

    def form(self, t: Any) -> Form:
        """Return the state of a tensor of this kind."""
        return Form("available", self)

    def damage(self, t: Any) -> str:
        """Return why the values cannot be read although all memory is there, or ""."""
        return ""

    def inner(self, t: Any) -> torch.Tensor | None:
        """Return the tensor inside that holds the values, or None; does not wait."""
        return None

    def awaited(self, t: Any) -> Any:
        """Return the inner tensor once its values are there."""
        return self.inner(t)

    def parts(self, t: Any) -> list[torch.Tensor]:
        """Return the other tensors inside: indices and values, scales, a mask."""
        return []

    def detail(self, t: Any) -> str:
        """Return a few words for the badge."""
        return ""

    def mask(self, t: Any) -> torch.Tensor | None:
        """Return the dense mask on the CPU, True at shown elements; None if all are shown."""
        return None

    def few(self, t: Any, places: Places) -> torch.Tensor:
        """Return the elements at `places`, dense and in new memory, lazy bits resolved.

        The dtype is the tensor's own, or one that holds its values exactly if torch cannot compute in its own. Raises
        NotReadError if the values are not computed yet, or if all of more than `MAX_NUMEL` would be laid out.
        """
        numel = math.prod(Bare(t).shape)
        if numel > MAX_NUMEL:
            raise TooManyError(
                f"the values are not shown: t{self.indexed_by} would make all {numel:,} elements; use to_numpy"
            )
        return indexed(self.dense(t), places)

    def stored(self, t: Any) -> list[torch.Tensor]:
        """Return strided tensors with all values; elements that they lack are zeros."""
        return [self.dense(t)]

    def is_read_by_rows(self, t: Any) -> bool:
        """Return whether statistics read `dense` of some rows at a time."""
        return False

    def dense(self, t: Any) -> torch.Tensor:
        """Return all values as a strided tensor, without a copy if it is one."""
        return plain(t)
