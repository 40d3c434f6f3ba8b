"""`weights`: opens the weights of a model, in memory or on disk."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tensornp.core.lowlevel.attributes import an_instance, class_members, is_subclass, mro_of
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.namespace.caller import name_of, names_of_caller
from tensornp.errors import BadRequestError
from tensornp.models.explorer import WeightsExplorer

if TYPE_CHECKING:
    import torch


@never_compiled
def weights(
    obj: Any,
    *,
    expression: str = "",
    model: torch.nn.Module | None = None,
    namespace: Mapping[str, Any] | None = None,
) -> WeightsExplorer:
    """Return an explorer of all weights of a model: a mapping from name to `WeightEntry`; no value is read.

    Parameters
    ----------
    obj : torch.nn.Module, torch.optim.Optimizer, a dictionary or list of tensors, nested, a path, or an explorer
        Dictionaries, lists and dataclasses may hold modules, optimizers and storages too, as
        ``{"model": model, "optimizer": optimizer}``; what else in them holds tensors is named in ``.problems``.
        Of a module there are parameters, buffers and tensor attributes, under every name; those that accelerate has
        offloaded are read from where they are, and what a quantized module packs or a parametrized one computes is
        unpacked or computed when it is asked for; objects that hold others are named in ``.problems``, as are tensors
        that other tensors have as attributes, live or in a file of torch.save. A path leads to
        a safetensors file or a file of `torch.save`, in either format, an index of several (``.index.json``), a folder
        of them, a folder of `torch.distributed.checkpoint`, one to which accelerate has offloaded weights
        (``index.json`` and ``.dat``), a ``.npy`` or ``.npz`` file, or a GGUF file, whose quantized values take the
        library gguf (``pip install tensornp[gguf]``). Of a folder that has both kinds, the safetensors files are taken;
        those of the folders in it (``vae/``, ``2_Dense/``) are listed below their names, and what other weights lie
        there, or deeper, is named in ``.problems``, as are checkpoints of a training (``checkpoint-500/``).
        It may be an address too, ``https://…`` or one of any protocol of fsspec that is installed (``s3://…``,
        ``hf://…``), of a file, an index, or a folder that has an index of the usual name: of these, only parts are
        asked for.
        Of an optimizer there is the state of each parameter, ``state.fc.weight.exp_avg``, what else its state has, and
        the tensors among the options of its groups.
    expression : str
        How the notebook reaches `obj`, with which the `code` of each entry begins; by default a name that the caller
        has for it. Where there is none, no entry has a code.
    model : torch.nn.Module, optional
        Of an optimizer, or of its state dict, in memory, in a file or a folder, alone or in a checkpoint, the module
        that has the parameters, which it names where the optimizer does not.
    namespace : mapping of str to object, optional
        Where `obj` and the module of an optimizer are looked for; by default, among the names that the caller sees.

    Raises
    ------
    CheckpointError
        If there is nothing at the path, or nothing that is understood or sound, or a server gives out no parts of it.
    MissingLibraryError
        If the protocol of an address is not installed.
    BadRequestError
        If `obj` holds no weights, or a file no state of an optimizer of `model`.

    Notes
    -----
    Some microseconds for each weight of a live model, which is held as any variable would. Of a file the header alone
    is read; the file is not held open, not mapped, and never run. At an address, the first 64 KiB are asked for, and
    what else the header has; user, password and query of an address are sent to its server, and never shown.

    Quantized weights of GGUF and float8 with block scales (``X_scale_inv`` beside ``X``) give what they mean, in
    float32, of which statistics are made too; the float8 codes are those of ``entry.codes``. Packed integers of other
    formats, which ``config.json`` names, or their own names and shapes, give their codes, and no statistics.
    """
    if is_subclass(type(obj), WeightsExplorer):
        return obj  # type: ignore[no-any-return]
    if is_subclass(type(obj), str) and not obj.strip():
        raise BadRequestError("the path is empty; use '.' for the current folder")
    if is_path(obj):
        # What is not met is not imported: the pickle machine for a .npy file, and any format for a module.
        from tensornp.models.opening.path import open_checkpoint

        return open_checkpoint(obj, model)
    if namespace is None:
        namespace = names_of_caller(sys._getframe())
    if not isinstance(namespace, Mapping):
        raise BadRequestError(f"namespace is a mapping of names to objects, not {an_instance(namespace)}")
    if not isinstance(expression, str):
        raise BadRequestError(f"expression is a text that reaches the object, not {an_instance(expression)}")
    from tensornp.models.in_memory import explorer_of

    explorer = explorer_of(obj, expression, model, namespace)
    return explorer if expression or name_of(obj, namespace) else explorer.without_code()


def is_path(obj: Any) -> bool:
    """Return whether `obj` is the path of a file: by its class, of which `isinstance` would ask a dead weak proxy."""
    return is_subclass(type(obj), str) or any("__fspath__" in class_members(base) for base in mro_of(type(obj)))
