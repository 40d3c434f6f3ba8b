"""Describe weights that a module unpacks or computes on request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.lowlevel.attributes import an_instance, error_text, is_tensor
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.values.stats.compute import stats
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import CopyRequiredError, NoDataError, TensornpError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.source import Again, Called, Source
from tensornp.models.entries.tensor import TensorSource, weight_of

_MAX_SAID = 200
"""Characters of what ended the making."""


class Recipe(NamedTuple):
    """How to find a weight again: its module's expression, a lister, its name."""

    holder: str
    source: Callable[[Any, str], Iterable[WeightEntry]]
    name: str

    def of(self, module: Any) -> WeightEntry | None:
        """Return this weight of a module, None if the module no longer has it."""
        if not isinstance(module, torch.nn.Module):
            return None
        return next((entry for entry in self.source(module, self.holder) if entry.name == self.name), None)


class MadeSource(Source):
    """A tensor that a module makes; each request makes it again.

    Attributes
    ----------
    module : torch.nn.Module
        The module that makes it.
    make : callable
        Gives the tensor, of the module; None where there is none after all.
    recipe : Recipe
        How the same weight is found again, by which the module need not be held.
    may_be_none : bool
        Whether it is told by the making alone that there is one.
    """

    __slots__ = ("_identity", "_location", "_requires_grad", "make", "may_be_none", "module", "recipe")

    def __init__(
        self, module: Any, make: Callable[[Any], Any], recipe: Recipe, *, location: str, identity: object = None,
        requires_grad: bool | None = None, may_be_none: bool = False,
    ) -> None:  # fmt: skip
        self.module, self.make, self.recipe, self.may_be_none = module, make, recipe, may_be_none
        self._location, self._identity, self._requires_grad = location, identity, requires_grad

    @property
    def location(self) -> str:
        """The device."""
        return self._location

    def again(self, called: Called, kind: str) -> Again:
        """Return a function that finds the weight in the module."""
        return Again(self.recipe.holder, self.recipe.of)

    @property
    def identity(self) -> object:
        """The packed object, which two names may have; or itself."""
        return self._identity or id(self)

    @property
    def requires_grad(self) -> bool | None:
        """Whether it is trained, where that is known."""
        return self._requires_grad

    def plan(self, called: Called, index: Any) -> ConversionPlan:
        """Return the conversion plan for the values at `index`; makes the tensor."""
        made = self._made(called)
        made._check_readable()
        assert isinstance(made._source, TensorSource)
        return made._source.plan(called, index, copy=True)

    def to_numpy(self, called: Called, index: Any, *, copy: bool | None, writeable: bool | None, dtype: object) -> Any:
        """Return a copy of the values at `index`; makes the whole tensor."""
        if copy is False:
            raise CopyRequiredError(f"the values of {called.shown} are made anew; leave copy=False out")
        return self._made(called).to_numpy(index, copy=True, writeable=writeable, dtype=dtype)

    def values(self, called: Called) -> Any:
        """Return the tensor, made for this call."""
        return self._made(called)._values()

    def stats(self, called: Called) -> TensorStats:
        """Return the statistics of all values, those of no value without a tensor."""
        if self.may_be_none and self._tensor(called) is None:
            return stats(torch.empty(0))
        return self._made(called).stats()

    @outside_modes
    def _tensor(self, called: Called) -> Any:
        try:
            return self.make(self.module)
        except TensornpError:
            raise
        except (Exception, SystemExit) as error:
            # What was made of the user's code, or of torch's in a state that it does not expect.
            why = error_text(error).partition("\n")[0][:_MAX_SAID]
            cure = f"see what {called.code or called.shown} gives"
            raise NoDataError(f"{called.shown} cannot be made ({why}); {cure}") from None

    @outside_modes
    def _made(self, called: Called) -> WeightEntry:
        tensor = self._tensor(called)
        if tensor is None:
            raise called.without_values("the module has none of that name")
        if not is_tensor(tensor):
            raise called.without_values(f"it is {an_instance(tensor)}, and no tensor")
        return weight_of(called.name, "", tensor, called.code)


def is_maybe_none(source: Source) -> bool:
    """Return whether only making the tensor shows if there is one."""
    return isinstance(source, MadeSource) and source.may_be_none
