"""Warnings that only looking causes, and so are for nobody: they stay silent in the frames of our own modules alone."""

from __future__ import annotations

from typing import Any


def silence_warnings(namespace: dict[str, Any]) -> None:
    """Have nobody hear what torch and NumPy warn of when the functions of a module call them; put it last there.

    A user who only looks must not be told that the support for an odd kind is new, or goes away. Filters are those of
    the whole process, and torch warns in the name of the innermost frame of Python: where the globals of that name no
    module, Python drops the warning (`warn_explicit` in ``Python/_warnings.c``, where it means that the interpreter is
    shutting down).
    """
    namespace["__name__"] = None
