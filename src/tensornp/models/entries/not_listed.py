"""`NotListed`: a problem of an explorer that hides weights."""

from __future__ import annotations


class NotListed(str):
    """A problem that hides weights, of which nothing is listed: what is compared is not all."""

    __slots__ = ()
