"""`weights`: opens the weights of a model, in memory or on disk."""

from __future__ import annotations

import os
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import class_name, is_subclass
from tensornp.core.lowlevel.modes import never_compiled
from tensornp.core.tensor.containers import is_container
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.errors import BadRequestError
from tensornp.trees.adapters import note_pairs
from tensornp.trees.checkpoint import open_checkpoint
from tensornp.trees.explorer import WeightsExplorer
from tensornp.trees.module import entries_of_module
from tensornp.trees.optimizer import entries_of_optimizer, is_state_dict, note_names
from tensornp.trees.relations import relate
from tensornp.trees.state_dict import entries_of_tree


@never_compiled
def weights(obj: Any, *, expression: str = "", model: torch.nn.Module | None = None) -> WeightsExplorer:
    """Return an explorer of all weights of a model: a mapping from name to `WeightEntry`; no value is read.

    Parameters
    ----------
    obj : torch.nn.Module, torch.optim.Optimizer, a dictionary or list of tensors, nested, or a path
        Of a module there are parameters, buffers and tensor attributes, under every name. A path leads to a
        safetensors file, an index of several, a folder of them, a folder of `torch.distributed.checkpoint`, a file of
        `torch.save`, in either format, a ``.npy`` or ``.npz`` file, or a GGUF file, whose quantized values take the
        library gguf (``pip install tensornp[gguf]``).
        Of an optimizer there is the state of each parameter: ``state.fc.weight.exp_avg``.
    expression : str
        How the notebook reaches `obj`, with which the `code` of each entry begins.
    model : torch.nn.Module, optional
        Of an optimizer, or of its state dict, the module that has the parameters, which it names where the optimizer
        does not.

    Raises
    ------
    CheckpointError
        If there is nothing at the path, or nothing that is understood or sound.
    BadRequestError
        If `obj` holds no weights.

    Notes
    -----
    Some microseconds for each weight of a live model, which is held as any variable would. Of a file the header alone
    is read; the file is not held open, not mapped, and never run. Quantized weights of GGUF and float8 with block
    scales (``X_scale_inv`` beside ``X``) give what they mean, in float32, of which statistics are made too; the float8
    codes are those of ``entry.codes``. Packed integers of other formats, which ``config.json`` names, give their codes,
    and no statistics.
    """
    if isinstance(obj, str) and not obj.strip():
        raise BadRequestError("an empty text is no path; '.' is the current folder")
    if isinstance(obj, (str, os.PathLike)):
        return open_checkpoint(obj)
    if is_subclass(type(obj), torch.nn.Module):
        entries, problems = entries_of_module(obj, expression or "model")
        relate(entries)
        note_pairs(entries)
        return WeightsExplorer(entries, expression or class_name(type(obj)), problems=problems, counted=("parameter",))
    if is_subclass(type(obj), torch.optim.Optimizer):
        entries, metadata = entries_of_optimizer(obj, expression or "optimizer", model)
        return WeightsExplorer(entries, expression or class_name(type(obj)), metadata=metadata)
    if is_container(obj) and not is_tensor_like(obj):
        entries, besides = entries_of_tree(obj, expression or "state_dict")
        if not entries:
            raise BadRequestError(f"this {class_name(type(obj))} holds no tensor and no array")
        if is_state_dict(obj):
            note_names(obj, entries, model)
        relate(entries)
        note_pairs(entries)
        return WeightsExplorer(entries, expression or class_name(type(obj)), metadata=besides)
    raise BadRequestError(f"weights takes a module, a dictionary of tensors or a path, not a {class_name(type(obj))}")
