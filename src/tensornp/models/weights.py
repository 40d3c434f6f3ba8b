"""`weights`: opens the weights of a model, in memory or on disk."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import an_instance, class_members, class_name, is_subclass, mro_of
from tensornp.core.lowlevel.collector import uncollected
from tensornp.core.lowlevel.modes import never_compiled
from tensornp.core.namespace.caller import name_of, names_of_caller
from tensornp.core.tensor.containers import is_container, is_seen
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.errors import BadRequestError
from tensornp.models.explorer import WeightsExplorer


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
        unpacked or computed when it is asked for. A path leads to a safetensors file or a file of `torch.save`, in
        either format, an index of several (``.index.json``), a folder of them, a folder of
        `torch.distributed.checkpoint`, one to which accelerate has offloaded weights (``index.json`` and ``.dat``), a
        ``.npy`` or ``.npz`` file, or a GGUF file, whose quantized values take the library gguf
        (``pip install tensornp[gguf]``). Of a folder that has both kinds, the safetensors files are taken.
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
        If there is nothing at the path, or nothing that is understood or sound.
    BadRequestError
        If `obj` holds no weights, or a file no state of an optimizer of `model`.

    Notes
    -----
    Some microseconds for each weight of a live model, which is held as any variable would. Of a file the header alone
    is read; the file is not held open, not mapped, and never run. Quantized weights of GGUF and float8 with block
    scales (``X_scale_inv`` beside ``X``) give what they mean, in float32, of which statistics are made too; the float8
    codes are those of ``entry.codes``. Packed integers of other formats, which ``config.json`` names, give their codes,
    and no statistics.
    """
    if is_subclass(type(obj), WeightsExplorer):
        return obj  # type: ignore[no-any-return]
    if is_subclass(type(obj), str) and not obj.strip():
        raise BadRequestError("an empty text is no path; '.' is the current folder")
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
    with uncollected():
        explorer = _of_object(obj, expression, model, namespace)
    return explorer if expression or name_of(obj, namespace) else explorer.without_code()


def _of_object(
    obj: Any, expression: str, model: torch.nn.Module | None, namespace: Mapping[str, Any]
) -> WeightsExplorer:
    """Return an explorer of what lies in memory, by the name that reaches it where no expression is given."""
    from tensornp.models.formats.contents import Beside
    from tensornp.models.live.module import entries_of_module, parameters_of
    from tensornp.models.live.optimizer import Reached, entries_of_optimizer
    from tensornp.models.live.state_dict import contents_of_tree
    from tensornp.models.opening.lora import with_pairs
    from tensornp.models.optimizers.saved import with_names
    from tensornp.models.storage.relations import relate

    root = expression or name_of(obj, namespace)
    if is_subclass(type(obj), torch.nn.Module):
        entries, problems, classes = entries_of_module(obj, root or "model")
        entries = with_pairs(relate(entries))
        source = expression or class_name(type(obj))
        return WeightsExplorer(entries, source, problems=problems, is_of_module=True, classes=classes)
    if is_subclass(type(obj), torch.optim.Optimizer):
        reached = Reached([obj], namespace)
        entries, metadata, problems = entries_of_optimizer(obj, root or "optimizer", model, reached.names_of)
        source = expression or class_name(type(obj))
        return WeightsExplorer(entries, source, metadata=Beside(metadata), problems=problems)
    if is_container(obj) and not is_tensor_like(obj):
        found = contents_of_tree(obj, root or "state_dict", model, namespace)
        if not found.entries and not found.optimizers:
            raise BadRequestError("; ".join((_why_nothing(obj), *found.problems)))
        entries, why = with_names(found.entries, found.optimizers, parameters_of(model))
        problems = [*found.problems, *(f"the states are not named by this model, {one}" for one in why if one)]
        entries = with_pairs(relate(entries))
        source = expression or class_name(type(obj))
        return WeightsExplorer(
            entries, source, metadata=found.metadata, problems=problems, is_of_module=found.is_of_module,
            classes=found.classes,
        )  # fmt: skip
    raise BadRequestError(
        "weights takes a module, an optimizer, a dictionary or list of tensors, or a path, "
        f"not {an_instance(obj)}{'; tnp.view and tnp.stats look at one tensor' if is_tensor_like(obj) else ''}"
    )


def _why_nothing(obj: Any) -> str:
    """Return why no weight is found in a container; of its own class, a mapping may load or compute what it gives."""
    name = class_name(type(obj))
    if not is_seen(obj):
        return f"a {name} may load or compute what it gives, and is not asked; pass a dict of its values"
    return f"this {name} holds no tensor and no array"


def is_path(obj: Any) -> bool:
    """Return whether `obj` is the path of a file: by its class, of which `isinstance` would ask a dead weak proxy."""
    return is_subclass(type(obj), str) or any("__fspath__" in class_members(base) for base in mro_of(type(obj)))
