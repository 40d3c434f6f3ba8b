"""Names in the notebook: what they refer to, and whether they may be bound."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tensornp.core.lowlevel.text import quoted
from tensornp.errors import BadRequestError, NameTakenError

if TYPE_CHECKING:
    from tensornp.core.memory.identity import TensorReference

BUILTIN = "a builtin of Python"
# Texts, which are compiled when they are asked for: not to load the extension.
_OF_IPYTHON = r"_{1,3}|_\d+|_i{1,3}|_i\d+|_[iod]h|In|Out|exit|quit|get_ipython"
_OF_PYTHON = r"__\w+__"


def bind(shell: Any, name: str, make: Callable[[], Any], overwrite: bool) -> None:
    """Bind what `make` returns to `name`; `NameTakenError` if that cannot be, or is taken."""
    taken = occupant(shell, name)
    if taken and not overwrite:
        raise NameTakenError(f"{name} already names {taken}; press Overwrite to replace it", can_overwrite=True)
    shell.push({name: make()})


def likely(shell: Any, reached: str) -> Iterator[Any]:
    """Yield what a card is most often about: what its expression reaches, variables, results of cells."""
    from tensornp.core.namespace.lookup import look_up
    from tensornp.core.namespace.search import history_name

    namespace = shell.user_ns
    if reached:
        # Each move in the values asks, and a search among all objects takes longer than all else of a move.
        with suppress(Exception):
            yield look_up(reached, namespace)
    yield from list(namespace.values())
    yield from list(namespace["_oh"].values()) if history_name(namespace) else []


def reaches(shell: Any, name: str, tensor: Any) -> bool:
    """Return whether an expression of the notebook reaches `tensor` now; True of an empty one."""
    from tensornp.core.namespace.lookup import look_up

    try:
        return not name or look_up(name, shell.user_ns) is tensor
    except BadRequestError:
        return False


def suggested(shell: Any, reference: TensorReference, reached: str = "") -> str:
    """Return ``layer_weight_np`` for layer.weight, ``array_np`` for a tensor without a name."""
    names = (name for name, value in list(shell.user_ns.items()) if reference.is_of(value))
    own = reached or next((name for name in names if not name.startswith("_")), "")
    name = re.sub(r"\W+", "_", own).strip("_") + "_np"
    return name if own and name.isidentifier() else "array_np"


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
