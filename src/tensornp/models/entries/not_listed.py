"""Problems of an explorer that hide weights."""

from __future__ import annotations


class NotListed(str):
    """A problem that hides weights, so that a comparison is not complete."""

    __slots__ = ()


class NotSaved(NotListed):
    """One that hides what a module has not registered: what is saved of the module has none of it."""

    __slots__ = ()


class NotOfModule(NotListed):
    """One that hides what is saved beside a model: no module has any of it."""

    __slots__ = ()
