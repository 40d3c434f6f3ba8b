"""Display PyTorch tensors as NumPy arrays, with device, gradient and aliases.

Use ``%load_ext tensornp`` in IPython or Jupyter, and ``import tensornp as tnp`` in Python. torch, IPython, matplotlib
and the widget libraries are imported when they are needed. ``__init__.pyi`` lists the public names.
"""

import sys
from importlib import import_module
from typing import Any

import lazy_loader

__version__ = "0.1.0"
_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    # IPython then shows the user's line alone.
    __tracebackhide__ = True
    if name in __all__:
        return _attribute(name)
    # With both arguments, Python suggests the closest name.
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])


def _mime_of(record: Any) -> tuple[str, str]:
    """Return the MIME type and text that marimo shows for a record; `_mime_` of the records calls this."""
    mime: tuple[str, str] = import_module("tensornp.fronts.marimo").mime_of(record)
    return mime


def load_ipython_extension(shell: Any) -> None:
    """Load tensornp into `shell`, for ``%load_ext tensornp``."""
    import_module("tensornp.fronts.ipython.extension").load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Undo what loading did in `shell`, for ``%unload_ext tensornp``."""
    import_module("tensornp.fronts.ipython.extension").unload(shell)
