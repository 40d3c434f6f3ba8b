"""`frozen`: a dataclass that takes no assignment, and is made as fast as one that does."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, fields
from typing import Any, NoReturn, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, eq_default=False)
def frozen(cls: type[_T]) -> type[_T]:
    """Return a dataclass of `cls` with slots, compared by identity, whose instances take no assignment.

    `dataclass(frozen=True)` sets each field by a call, which took a fifth of the listing of a file of 200,000 weights.
    Here one that takes assignments is made, and then becomes one that does not.
    """
    open_one: Any = dataclass(slots=True, eq=False, repr=False)(cls)
    names = tuple(field.name for field in fields(open_one))

    def make(cls: Any, *args: Any, **kwargs: Any) -> Any:
        made = open_one(*args, **kwargs)
        made.__class__ = cls
        return made

    def refuse(self: Any, name: str, *_: Any) -> NoReturn:
        raise FrozenInstanceError(f"{name!r} of a {type(self).__name__} is not set; make another one of it")

    own = {
        "__new__": make, "__init__": object.__init__, "__setattr__": refuse, "__delattr__": refuse,
        "__reduce__": lambda self: (type(self), tuple(getattr(self, name) for name in names)),
        "__doc__": cls.__doc__, "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__slots__": (),
    }  # fmt: skip
    closed: Any = type(open_one)(cls.__name__, (open_one,), own)
    return closed  # type: ignore[no-any-return]  # `type` makes any class
