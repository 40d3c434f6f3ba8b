"""Choose the objects that tensornp displays, and summarize them in programs without IPython."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import islice
from types import SimpleNamespace
from typing import Any

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.render.renderers import renderer_of

MAX_SEARCHED = 10_000
"""Items of a container that are searched for a tensor."""
_DISPLAY_METHODS = ("_ipython_display_", "_repr_mimebundle_", "_repr_html_", "_repr_pretty_", "_repr_markdown_")


def is_ours(obj: Any, has_other_display: Callable[[type], bool]) -> bool:
    """Return whether `obj` is a tensor, a record, a module, or a container of tensors.

    `has_other_display` says whether another library displays a class.
    """
    if stands_for_tensor(obj):
        return True
    if renderer_of(obj) is not None:
        return not (isinstance(obj, list) and has_other_display(type(obj)))
    if "torch" not in sys.modules or has_other_display(type(obj)):
        return False
    from tensornp.core.tensor.containers import is_container, leaves

    try:
        return holds_tensors(obj) or (
            is_container(obj) and any(stands_for_tensor(leaf) for _, leaf in islice(leaves(obj), MAX_SEARCHED))
        )
    except Exception:
        # A container whose iteration raises, or a module without a call of Module.__init__.
        return False


def has_own_display(cls: type) -> bool:
    """Return whether a class other than plain containers displays itself, such as a TensorDict."""
    if any(issubclass(cls, base) for base in (list, tuple, dict)):
        return False
    bases = cls.__mro__[:-1]
    own = [base for base in bases if base.__module__.partition(".")[0] not in ("tensordict", "typing", "abc")]
    return any(name in vars(base) for base in own for name in _DISPLAY_METHODS)


def stands_for_tensor(obj: Any) -> bool:
    """Return whether `obj` is a tensor or stands for one, without an import of torch."""
    if not hasattr(sys.modules.get("torch"), "Tensor"):
        return False
    from tensornp.core.tensor.stand_ins import is_tensor_like

    return is_tensor_like(obj)


def unshown_text(obj: Any, reason: str) -> str | None:
    """Return a text for a tensor, whose `__repr__` could crash the process; None for other objects."""
    return f"{type(obj).__name__} (not shown: {reason})" if is_tensor(obj) else None


def holds_tensors(obj: Any) -> bool:
    """Return whether `obj` is a module with weights, packed ones too, or an optimizer with states."""
    from torch import Tensor
    from torch.nn import Module

    from tensornp.core.lowlevel.torch_private import holds_states

    def has_any(module: Any) -> bool:
        held = (*module._parameters.values(), *module._buffers.values())
        return any(isinstance(one, Tensor) for one in held)

    return holds_states(obj) or (isinstance(obj, Module) and any(map(has_any, Module.modules(obj))))


def summary_in(names: Mapping[str, Any], obj: Any, expression: str = "") -> Any:
    """Return the summary of `obj` in a program with these variables; `expression` reaches a module."""
    from tensornp.core.summary.container import Unshown
    from tensornp.core.summary.options import DisplayOptions
    from tensornp.render.show import shown_of
    from tensornp.session.ledger import Ledger

    options = DisplayOptions()
    session: Any = SimpleNamespace(names=names, cell="", source="")
    look = Ledger(session, lambda: options).surroundings_of
    return first_that_works(
        "a display",
        lambda: shown_of(obj, options, look, expression, names),
        lambda reason: Unshown(type(obj).__name__, reason),
    )
