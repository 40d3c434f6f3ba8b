"""The file that debugpy, and with it VS Code and JupyterLab, imports to show tensors as tensornp does.

debugpy imports every module of `pydevd_plugins.extensions` whose name begins so. This one imports tensornp when the
first tensor is shown. ``TENSORNP_DEBUGGER=0`` in the environment turns it off.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from _pydevd_bundle.pydevd_extension_api import StrPresentationProvider, TypeResolveProvider

__all__ = ["TensorChildren", "TensorLine"]
if os.environ.get("TENSORNP_DEBUGGER") == "0":
    __all__ = []


def _is_tensor_class(cls: Any) -> bool:
    tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    return tensor is not None and isinstance(cls, type) and tensor in cls.__mro__


def _is_words(cls: Any) -> bool:
    """Return whether instances are texts among the children of an expanded tensor."""
    return getattr(cls, "__module__", "") == "tensornp.fronts.debugger" and cls.__name__ == "Words"


class TensorLine(StrPresentationProvider):
    """A tensor in a line, and its children."""

    def can_provide(self, type_object: Any, type_name: str) -> bool:
        """Return whether this is a class of tensors, or of the texts below them."""
        return _is_tensor_class(type_object) or _is_words(type_object)

    def get_str(self, val: Any, *_: Any) -> str:
        """Return the line of a tensor, or the text of a child."""
        if not _is_tensor_class(type(val)):
            return repr(val)
        from tensornp.fronts.debugger import line_of

        return line_of(val)


class TensorChildren(TypeResolveProvider):
    """The children of an expanded tensor, instead of all its attributes."""

    def can_provide(self, type_object: Any, type_name: str) -> bool:
        """Return whether this is a class of tensors."""
        return _is_tensor_class(type_object)

    def get_contents_debug_adapter_protocol(self, obj: Any, fmt: Any = None) -> list[tuple[str, Any, Any]]:
        """Return each child with its name and the end of its expression."""
        from tensornp.fronts.debugger import children_of

        return children_of(obj) if _is_tensor_class(type(obj)) else []

    def get_dictionary(self, var: Any) -> dict[str, Any]:
        """Return the children by name."""
        return {name: child for name, child, _ in self.get_contents_debug_adapter_protocol(var)}

    def resolve(self, var: Any, attribute: str) -> Any:
        """Return one child."""
        return self.get_dictionary(var).get(attribute)
