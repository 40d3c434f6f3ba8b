"""`weights`: opens the weights of a model, in memory or on disk."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.namespace.caller import names_of_caller
from tensornp.errors import BadRequestError
from tensornp.models.explorer import WeightsExplorer


@never_compiled
def weights(obj: Any, *, expression: str = "", namespace: Mapping[str, Any] | None = None) -> WeightsExplorer:
    """Open the weights of a model or checkpoint as a mapping from name to `WeightEntry`.

    Parameters
    ----------
    obj : module, optimizer, container, path, address or explorer
        - A `torch.nn.Module`: parameters, buffers and tensor attributes.
        - A `torch.optim.Optimizer`: its state for each parameter.
        - A dictionary, list or dataclass of tensors, modules and optimizers.
        - A file: safetensors, `torch.save`, ``.npy``, ``.npz`` or GGUF.
        - A folder of these, an index (``.index.json``), a folder of `torch.distributed.checkpoint` or of accelerate.
        - An address: ``https://`` or a protocol of an installed fsspec.
    expression : str
        The expression for `obj` in the `code` of each entry. By default, the name of the caller's variable.
    namespace : mapping of str to object, optional
        Names of the objects. By default, the caller's variables.

    Raises
    ------
    CheckpointError
        If the path is missing or its file is broken, or if a server does not serve byte ranges.
    MissingLibraryError
        If the library for the protocol of an address is not installed.
    BadRequestError
        If `obj` has no weights.

    Notes
    -----
    - Opening reads headers, not values. It costs some microseconds per weight of a model.
    - A file is not mapped, not kept open and never executed. Its broken tensors are listed in ``.problems``.
    - A model's weights are kept alive, as by a variable.
    - Only parts of a remote file are read. User, password and query are sent to its server and never shown.
    - Quantized GGUF weights and block-scaled float8 weights give dequantized values; ``entry.codes`` has the codes.
    - Packed integer formats give their codes, without statistics.
    """
    if issubclass(type(obj), WeightsExplorer):
        return obj  # type: ignore[no-any-return]
    if issubclass(type(obj), str) and not obj.strip():
        raise BadRequestError("the path is empty; use '.' for the current folder")
    if is_path(obj):
        # Imported when needed: a .npy file needs no pickle reader, and a module no format.
        from tensornp.models.opening.path import open_checkpoint

        return open_checkpoint(obj)
    if not isinstance(expression, str):
        raise BadRequestError(f"expression must be a str, got {an_instance(expression)}")
    if namespace is None:
        namespace = names_of_caller(sys._getframe())
    if not isinstance(namespace, Mapping):
        raise BadRequestError(f"namespace must be a mapping of names to objects, got {an_instance(namespace)}")
    from tensornp.models.live.container import explorer_of

    return explorer_of(obj, expression, namespace)


def is_path(obj: Any) -> bool:
    """Return whether the class of `obj` is a path class."""
    # `isinstance` would call a dead weak proxy.
    return issubclass(type(obj), str) or any("__fspath__" in vars(base) for base in type(obj).__mro__)
