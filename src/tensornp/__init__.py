"""tensornp: each torch tensor as the NumPy array it would become, with the truth about device, grad and memory.

``%load_ext tensornp`` in IPython or Jupyter; in plain Python, ``import tensornp as tnp``. Nothing heavy is imported
before it is needed: not torch, IPython, matplotlib, nor a widget library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tensornp.errors import (
    BadRequestError,
    CopyRequiredError,
    MissingLibraryError,
    NameTakenError,
    NoDataError,
    NotATensorError,
    TensornpError,
    TooLargeError,
    UnsupportedArrayError,
    UnsupportedTensorError,
)

if TYPE_CHECKING:
    from tensornp.core.convert.plan import ConversionPlan
    from tensornp.core.convert.to_numpy import plan, to_numpy
    from tensornp.core.exchange.cupy import from_cupy, plan_cupy, to_cupy
    from tensornp.core.exchange.jax import from_jax, plan_jax, to_jax
    from tensornp.core.exchange.to_tensor import to_tensor
    from tensornp.core.memory.aliases import Alias, aliases
    from tensornp.core.tensor.facts import TensorInfo
    from tensornp.core.tensor.info import inspect
    from tensornp.core.tensor.stand_ins import register_kind, unregister_kind
    from tensornp.core.tensor.steps import Step
    from tensornp.widget.toggle import TensorWidget, view

__version__ = "0.1.0"

_HOMES = {
    "aliases": "core.memory.aliases",
    "Alias": "core.memory.aliases",
    "to_numpy": "core.convert.to_numpy",
    "to_tensor": "core.exchange.to_tensor",
    "plan": "core.convert.to_numpy",
    "to_jax": "core.exchange.jax",
    "from_jax": "core.exchange.jax",
    "plan_jax": "core.exchange.jax",
    "to_cupy": "core.exchange.cupy",
    "from_cupy": "core.exchange.cupy",
    "plan_cupy": "core.exchange.cupy",
    "inspect": "core.tensor.info",
    "TensorInfo": "core.tensor.facts",
    "register_kind": "core.tensor.stand_ins",
    "unregister_kind": "core.tensor.stand_ins",
    "ConversionPlan": "core.convert.plan",
    "Step": "core.tensor.steps",
    "view": "widget.toggle",
    "TensorWidget": "widget.toggle",
}

__all__ = [
    "Alias",
    "BadRequestError",
    "ConversionPlan",
    "CopyRequiredError",
    "MissingLibraryError",
    "NameTakenError",
    "NoDataError",
    "NotATensorError",
    "Step",
    "TensorInfo",
    "TensorWidget",
    "TensornpError",
    "TooLargeError",
    "UnsupportedArrayError",
    "UnsupportedTensorError",
    "aliases",
    "from_cupy",
    "from_jax",
    "inspect",
    "plan",
    "plan_cupy",
    "plan_jax",
    "register_kind",
    "to_cupy",
    "to_jax",
    "to_numpy",
    "to_tensor",
    "unregister_kind",
    "view",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tensornp' has no attribute {name!r}")
    value = getattr(import_module(f"tensornp.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def load_ipython_extension(shell: Any) -> None:
    """Load into `shell`: what ``%load_ext tensornp`` calls."""
    import_module("tensornp.fronts.ipython.extension").load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take back from `shell` what loading did, and nothing else: what ``%unload_ext tensornp`` calls."""
    import_module("tensornp.fronts.ipython.extension").unload(shell)
