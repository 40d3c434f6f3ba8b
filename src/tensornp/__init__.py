"""tensornp: each torch tensor as the NumPy array it would become, with the truth about device, grad and memory.

``%load_ext tensornp`` in IPython or Jupyter; in plain Python, ``import tensornp as tnp``. Nothing heavy is imported
before it is needed: not torch, IPython, matplotlib, nor a widget library. The public names stand in ``__init__.pyi``.
"""

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
    raise AttributeError(import_module("tensornp.core.lowlevel.unknown_names").no_such_name(name, __all__))


def _mime_of(record: Any) -> tuple[str, str]:
    """Return what marimo shows of a record, of which `_mime_` is a method: the renderers are above all records."""
    mime: tuple[str, str] = import_module("tensornp.fronts.marimo.shown").mime_of(record)
    return mime


def load_ipython_extension(shell: Any) -> None:
    """Load into `shell`: what ``%load_ext tensornp`` calls."""
    import_module("tensornp.fronts.ipython.extension").load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take back from `shell` what loading did, and nothing else: what ``%unload_ext tensornp`` calls."""
    import_module("tensornp.fronts.ipython.extension").unload(shell)
