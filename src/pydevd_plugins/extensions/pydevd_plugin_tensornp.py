"""The file by which debugpy, and with it VS Code and JupyterLab, shows a tensor as tensornp does.

debugpy imports every module of `pydevd_plugins.extensions`, a package in many places, whose name begins so. It brings
nothing of torch, and of tensornp only what a tensor needs that is shown. ``TENSORNP_DEBUGGER=0`` in the environment
turns it off.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
import types
from collections.abc import Iterator
from typing import Any

from _pydevd_bundle.pydevd_extension_api import StrPresentationProvider, TypeResolveProvider
from _pydevd_bundle.pydevd_extension_utils import extensions_of_type
from _pydevd_bundle.pydevd_resolver import defaultResolver
from _pydevd_bundle.pydevd_safe_repr import SafeRepr

__all__ = ["TensorChildren", "TensorLine", "TensorsInside"]
if os.environ.get("TENSORNP_DEBUGGER") == "0":
    __all__ = []

_NEEDED = ("torch", "numpy", "ml_dtypes", "tensornp")
_PATIENCE_S = 2
_PLAIN = (
    type(None), bool, int, float, complex, str, bytes, bytearray, range, type, types.ModuleType, types.FunctionType,
    types.BuiltinFunctionType, types.MethodType, types.FrameType, types.CodeType,
)  # fmt: skip
"""Classes whose instances hold no tensor that they would show."""
_mro_of = type.__dict__["__mro__"].__get__
_is_importable: list[bool] = []


def _tensor_class() -> Any:
    return vars(sys.modules["torch"]).get("Tensor") if "torch" in sys.modules else None


def _is_tensor_class(cls: Any) -> bool:
    tensor = _tensor_class()
    return tensor is not None and isinstance(cls, type) and tensor in _mro_of(cls)


def _can_import() -> bool:
    """Return whether what is needed can be imported: not while another thread does so, which may be stopped for ever.

    Where nothing is stopped, in the pane of a kernel at rest, it soon has.
    """
    end = time.monotonic() + _PATIENCE_S
    while not _is_importable:
        if not _is_under_way():
            _is_importable.append(True)
        elif _is_stopped() or time.monotonic() > end:
            return False
        else:
            time.sleep(0.01)
    return True


def _is_under_way() -> bool:
    """Return whether a module of what is needed is being imported."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in _NEEDED]
    return any(map(_is_initializing, modules))


def _is_initializing(module: Any) -> bool:
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _is_stopped() -> bool:
    """Return whether this is done in a thread that debugpy has stopped, and with it all others."""
    return any(frame.f_code.co_name == "_do_wait_suspend" for frame in _callers())


def _callers() -> Iterator[types.FrameType]:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _pane() -> Any:
    """Return what tells of tensors, None where it cannot be had."""
    try:
        return importlib.import_module("tensornp.fronts.debugger.pane") if _can_import() else None
    except Exception:
        return None


def _line_of(tensor: Any) -> str:
    pane = _pane()
    if pane is None:
        return ", of which nothing can be told: tensornp cannot be imported now"
    line: str = pane.line_of(tensor)
    return line


def _is_a_childs_class(cls: Any) -> bool:
    """Return whether instances are what a tensor shows when it is expanded."""
    pane = sys.modules.get("tensornp.fronts.debugger.pane")
    return pane is not None and cls in (getattr(pane, "Words", None), getattr(pane, "Figures", None))


class TensorLine(StrPresentationProvider):
    """A tensor in a line, and what it shows when it is expanded."""

    def can_provide(self, type_object: Any, type_name: str) -> bool:
        """Return whether this is a class of tensors, or of what a tensor shows."""
        return _is_tensor_class(type_object) or _is_a_childs_class(type_object)

    def get_str_in_context(self, val: Any, context: str) -> str | None:
        """Return the line of a tensor; its card in a console, and to be copied."""
        return self._text(val, is_long=context in ("repl", "clipboard"))

    def get_str(self, val: Any, *_: Any) -> str | None:
        """Return the line of a tensor."""
        return self._text(val, is_long=False)

    def _text(self, val: Any, *, is_long: bool) -> str | None:
        if _is_a_childs_class(type(val)):
            return repr(val)
        if not _is_tensor_class(type(val)):
            # A mock, for one, may say that it is a tensor.
            return None
        pane = _pane() if is_long else None
        text: str = _line_of(val) if pane is None else pane.text_of(val)
        return text


class TensorChildren(TypeResolveProvider):
    """What a tensor shows when it is expanded, in the place of all its attributes."""

    def can_provide(self, type_object: Any, type_name: str) -> bool:
        """Return whether this is a class of tensors, or of what computes when it is expanded."""
        return _is_tensor_class(type_object) or (_is_a_childs_class(type_object) and not issubclass(type_object, str))

    def get_contents_debug_adapter_protocol(self, obj: Any, fmt: Any = None) -> list[tuple[str, Any, Any]]:
        """Return the children, each with its name and with what evaluates it."""
        found: list[tuple[str, Any, Any]] = []
        if _is_a_childs_class(type(obj)):
            found = obj.children()
        elif not _is_tensor_class(type(obj)):
            found = defaultResolver.get_contents_debug_adapter_protocol(obj, fmt)
        elif (pane := _pane()) is not None:
            found = pane.children_of(obj)
        return found

    def get_dictionary(self, var: Any) -> dict[str, Any]:
        """Return the children by their names."""
        return {name: child for name, child, _ in self.get_contents_debug_adapter_protocol(var)}

    def resolve(self, var: Any, attribute: str) -> Any:
        """Return one child."""
        return self.get_dictionary(var).get(attribute)


class TensorsInside(StrPresentationProvider):
    """Anything else: what debugpy says of it, in which a tensor is told by its line."""

    def can_provide(self, type_object: Any, type_name: str) -> bool:
        """Return whether instances may show tensors, and no other extension tells of them."""
        if not isinstance(type_object, type) or type_object in _PLAIN:
            return False
        if str(type_object.__module__).partition(".")[0] in ("_pydevd_bundle", "_pydev_bundle"):
            return False
        others = [one for one in extensions_of_type(StrPresentationProvider) if type(one) is not TensorsInside]
        return not any(one.can_provide(type_object, type_name) for one in others)

    def get_str(self, val: Any, *_: Any) -> str | None:
        """Return what debugpy says; None where it is to say it itself."""
        if _tensor_class() is None or _is_initializing(sys.modules["torch"]):
            return None
        # What debugpy would ask itself may end the process.
        try:
            inside = importlib.import_module("tensornp.fronts.debugger.inside")
            text: str = inside.told_safely(_to_string(), val, _line_of)
            return text
        except Exception as error:
            return f"{object.__repr__(val)}, of which no more is told: {type(error).__name__}: {error}"


def _to_string() -> SafeRepr:
    """Return what debugpy would make the text with, which knows how the user wants it, and is handed to nobody."""
    caller = next((frame for frame in _callers() if frame.f_code.co_name == "get_variable_details"), None)
    found = caller.f_locals.get("to_string") if caller is not None else None
    return found if isinstance(found, SafeRepr) else SafeRepr()
