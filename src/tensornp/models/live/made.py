"""A weight of a module whose tensor is made when somebody asks for it: unpacked, or computed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.lowlevel.attributes import an_instance, error_text, is_tensor
from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.values.stats.record import TensorStats
from tensornp.errors import CopyRequiredError, NoDataError, TensornpError
from tensornp.models.entries.entry import Extent, WeightEntry
from tensornp.models.entries.live import LiveEntry
from tensornp.models.names.quoted import shown_name

_MAX_SAID = 200
"""Characters of what ended the making."""


class MadeEntry(WeightEntry):
    """A weight that a module can make; each request makes it once, in new memory.

    Attributes
    ----------
    module : torch.nn.Module
        The module that makes it.
    recipe : Recipe
        How the same weight is found again, by which the module need not be held.
    """

    __slots__ = ("_location", "module", "recipe")
    extents: tuple[Extent, ...] = ()

    def __init__(
        self, name: str, kind: str, shape: tuple[int, ...] | None, dtype: str, nbytes: int, code: str, *,
        module: Any, recipe: Recipe, location: str,
    ) -> None:  # fmt: skip
        super().__init__(name, kind, shape, dtype, nbytes, code)
        self.module, self.recipe, self._location = module, recipe, location

    @abstractmethod
    def make(self) -> Any:
        """Return the tensor; None where there is none after all."""

    @property
    def location(self) -> str:
        """The device."""
        return self._location

    def plan(self, index: Any = ...) -> ConversionPlan:
        """Return how the values at `index` would become an array; the tensor is made for it."""
        return self._made().plan(index, copy=True)

    def to_numpy(
        self, index: Any = ..., *, copy: bool | None = None, writeable: bool | None = None, dtype: object = None
    ) -> Any:
        """Return the values at `index`, in new memory; the whole tensor is made for it."""
        if copy is False:
            raise CopyRequiredError(f"the values of {shown_name(self.name)} are made anew; leave copy=False out")
        return self._made().to_numpy(index, copy=True, writeable=writeable, dtype=dtype)

    def values(self) -> Any:
        """Return the tensor, made for this call."""
        return self._made().values()

    def stats(self) -> TensorStats:
        """Return the statistics of all values."""
        return self._made().stats()

    @unnoticed
    def _made(self) -> LiveEntry:
        self.check_readable()
        name = shown_name(self.name)
        try:
            tensor = self.make()
        except TensornpError:
            raise
        except (Exception, SystemExit) as error:
            # What was made of the user's code, or of torch's in a state that it does not expect.
            why = error_text(error).partition("\n")[0][:_MAX_SAID]
            raise NoDataError(f"{name} cannot be made ({why}); see what {self.code or name} gives") from None
        if tensor is None:
            raise NoDataError(f"{name} has no values to read: the module has none of that name")
        if not is_tensor(tensor):
            raise NoDataError(f"{name} has no values to read: it is {an_instance(tensor)}, and no tensor")
        return LiveEntry(self.name, self.kind, tensor, self.code)


class Recipe(NamedTuple):
    """By what a weight is found again: the expression of its module, what lists those of one, and its name there."""

    holder: str
    source: Callable[[Any, str], Iterable[MadeEntry]]
    name: str

    def of(self, module: Any) -> MadeEntry | None:
        """Return the weight of `module`, which `holder` has reached; None where it has none such by now."""
        if not isinstance(module, torch.nn.Module):
            return None
        return next((entry for entry in self.source(module, self.holder) if entry.name == self.name), None)
