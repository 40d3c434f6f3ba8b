"""The page of a kernel: its requests, whether there is one, and whether it keeps outputs apart."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tensornp.errors import BadRequestError

T = TypeVar("T")
Request = Mapping[str, Any]
Answer = dict[str, Any]
Handler = Callable[[Request], Answer | tuple[Answer, list[bytes]]]
"""Answers a request of a page, perhaps with numbers that travel as bytes."""
NONSENSE = "the page has asked for something that is not here; reload the page"


def integer_of(value: Any) -> int:
    if type(value) is not int:
        raise BadRequestError(NONSENSE)
    return value


def item_of(items: Sequence[T], number: Any) -> T:
    """Return the item that a page asks for by its number."""
    index = integer_of(number)
    if not 0 <= index < len(items):
        raise BadRequestError(NONSENSE)
    return items[index]


def runs_without_page(shell: Any) -> bool:
    """Return whether cells are run for a file, as by nbconvert or papermill.

    These run cells with nbclient, which does not answer `input`; voila does so too, and has a page.
    """
    if getattr(getattr(shell, "kernel", None), "_allow_stdin", True) or keeps_outputs_apart(shell):
        return False
    return not os.environ.get("SERVER_SOFTWARE", "").startswith("voila")


def keeps_outputs_apart(shell: Any) -> bool:
    """Return whether the front end is Colab or VS Code."""
    return "google.colab" in sys.modules or "__vsc_ipynb_file__" in shell.user_ns
