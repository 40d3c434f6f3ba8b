"""Problems of an explorer that hide weights."""

from __future__ import annotations


class NotListed(str):
    """A problem that hides weights, so that a comparison is not complete."""

    __slots__ = ()


class NotOfModule(NotListed):
    """A problem that hides values saved next to a model, which no module has."""

    __slots__ = ()
