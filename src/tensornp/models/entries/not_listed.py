"""`NotListed`: a problem of an explorer that hides weights; `NotSaved`: one of which no state dict has any."""

from __future__ import annotations


class NotListed(str):
    """A problem that hides weights, of which nothing is listed: what is compared is not all."""

    __slots__ = ()


class NotSaved(NotListed):
    """One that hides what a module has not registered: what is saved of the module has none of it."""

    __slots__ = ()
