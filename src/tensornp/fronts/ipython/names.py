"""Names in the notebook: what they refer to, and whether they may be bound."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from typing import Any

from tensornp.core.lowlevel.text import quoted
from tensornp.errors import NameTakenError

BUILTIN = "a builtin of Python"
# Texts, which are compiled when they are asked for: not to load the extension.
_OF_IPYTHON = r"_{1,3}|_\d+|_i{1,3}|_i\d+|_[iod]h|In|Out|exit|quit|get_ipython"
_OF_PYTHON = r"__\w+__"


def occupant(shell: Any, name: str) -> str:
    """Return what `name` stands for: "something of type Tensor", `BUILTIN`, or nothing, which is empty.

    Raises
    ------
    NameTakenError
        If no variable of the user's can have that name, whatever it stands for.
    """
    check_reachable(name)
    for owner, pattern in (("Python", _OF_PYTHON), ("IPython", _OF_IPYTHON)):
        if re.fullmatch(pattern, name):
            raise NameTakenError(f"{name} belongs to {owner} itself; choose another name")
    namespace, hidden, is_builtin = shell.user_ns, shell.user_ns_hidden, hasattr(builtins, name)
    # IPython itself puts a function of its own in the place of `open`.
    if name not in namespace or (is_builtin and hidden.get(name, hidden) is namespace[name]):
        return BUILTIN if is_builtin else ""

    return f"something of type {type(namespace[name]).__name__}"


def check_overwritable(shell: Any, name: str) -> None:
    """Raise `NameTakenError` unless ``-o`` may bind `name`, whatever variable of the user's it stands for."""
    if occupant(shell, name) == BUILTIN:
        raise NameTakenError(f"{name} already names {BUILTIN}; choose another name")


def check_reachable(name: str) -> None:
    """Raise `NameTakenError` where no line of Python can say `name`."""
    if not name.isidentifier() or keyword.iskeyword(name):
        raise NameTakenError(f"{quoted(name)} is not a valid Python name; choose letters, digits and _")
    said = unicodedata.normalize("NFKC", name)
    if said != name:
        raise NameTakenError(f"{name!r} cannot be reached, because Python reads it as {said!r}; choose that")
