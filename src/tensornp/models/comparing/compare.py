"""`compare`: what differs between two tensors, or between two models, state dicts or checkpoints in any mix."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from itertools import starmap
from typing import Any, Literal, overload

import torch

from tensornp.core.lowlevel.attributes import an_instance, error_text, is_array
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.namespace.caller import names_of_caller
from tensornp.core.tensor.containers import is_container
from tensornp.core.tensor.form import is_storage
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.core.values.compare.compare import Comparison
from tensornp.core.values.compare.compare import compare as compare_tensors
from tensornp.core.values.stored import StoredValues
from tensornp.errors import BadRequestError, NotATensorError, TensornpError
from tensornp.models.comparing.comparable import Comparable, Found, is_comparable
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.comparing.one_sided import without_exempt
from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.files.address import shown_path
from tensornp.models.in_memory import why_nothing
from tensornp.models.live.state_dict import has_weights
from tensornp.models.names.matching import Matched, matched
from tensornp.models.optimizers import is_saved_optimizer
from tensornp.models.scan.progress import Progress, progress_of
from tensornp.models.scan.run import no_memory_for
from tensornp.models.weights import is_path, weights


@overload
def compare(a: Comparable[Found], b: Any, *, progress: Progress | Literal[False] | None = None) -> Found: ...
@overload
def compare(a: Any, b: Any, *, progress: Progress | Literal[False] | None = None) -> Comparison | WeightsComparison: ...


@never_compiled
def compare(a: Any, b: Any, *, progress: Progress | Literal[False] | None = None) -> Any:
    """Compare two tensors, models, checkpoints or followed passes.

    Parameters
    ----------
    a, b : tensor, array, WeightEntry
        Return a `Comparison`. Its `repr` names the first difference, so a failing
        ``assert tnp.compare(a, b).equal`` explains itself.
    a, b : module, optimizer, dictionary, path, WeightsExplorer
        Return a `WeightsComparison`: a mapping from name to `Comparison`, largest changes first. For dictionaries,
        numbers and strings are compared too.
    a, b : FollowedPass
        Return a `PassComparison` with the first call that differs.
    progress : callable or False, optional
        Called with the bytes compared and the total, for models. By default, a bar appears after one second.

    Raises
    ------
    NoDataError, NotATensorError, UnsupportedTensorError, UnsupportedArrayError
        As `stats` does.
    CheckpointError, BadRequestError
        As `weights` does, and if a tensor is compared with a model.

    Notes
    -----
    - Cost: both are read once, block by block. Blocks on other devices are copied to the host.
    - Memory: less than 32 MiB. Sparse tensors are made dense as a whole.
    - Nothing is changed.
    """
    for one, other in ((a, b), (b, a)):
        if is_comparable(one):
            return one._compared_with(other)
    a, b = (one._values_here() if issubclass(type(one), WeightEntry) else one for one in (a, b))
    if is_model(a) and is_model(b):
        with progress_of(progress, "compare") as told:
            return compare_weights(*opened(a, b, namespace=names_of_caller(sys._getframe())), progress=told)
    for one in filter(_is_packed, (a, b)):
        raise BadRequestError(
            f"{an_instance(one)} keeps its weights packed in objects of torch that only their modules unpack; "
            "compare the modules themselves"
        )
    for one, other in ((a, b), (b, a)):
        if is_model(one):
            if is_path(one):
                # Where there is nothing, or nothing of weights, that is told first.
                weights(one)
            whole = repr(shown_path(os.fsdecode(one))) if is_path(one) else an_instance(one)
            cure = "take one of them, such as tnp.weights(...)[name]" if _is_tensor(other) else "it has none"
            raise BadRequestError(f"{an_instance(other)} cannot be compared with all weights of {whole}; {cure}")
    for one in (a, b):
        if is_container(one) and not _is_tensor(one):
            raise NotATensorError(why_nothing(one))
    return compare_tensors(a, b)


def _is_tensor(obj: Any) -> bool:
    return is_tensor_like(obj) or is_array(obj) or is_storage(obj) or issubclass(type(obj), StoredValues)


def _is_packed(obj: Any) -> bool:
    """Return whether `obj` is a state dict of quantized modules alone, in which there is no tensor."""
    is_state = issubclass(type(obj), dict) and not is_model(obj)
    return is_state and any(issubclass(type(value), torch.ScriptObject) for value in dict.values(obj))


def is_model(obj: Any) -> bool:
    """Return whether `obj` has weights: a module, an optimizer, a dictionary of tensors, an explorer, or a path."""
    if any(issubclass(type(obj), base) for base in (WeightsExplorer, torch.nn.Module, torch.optim.Optimizer)):
        return True
    if is_path(obj) or is_saved_optimizer(obj):
        return True
    return not _is_tensor(obj) and has_weights(obj)


def opened(
    a: Any, b: Any, expressions: tuple[str, str] = ("", ""), *, namespace: Mapping[str, Any]
) -> tuple[WeightsExplorer, WeightsExplorer]:
    """Return the explorers of two that have weights; the namespace tells how parameters of optimizers are called."""
    first, second = (
        weights(one, expression=expression, namespace=namespace)
        for one, expression in zip((a, b), expressions, strict=True)
    )
    return first, second


def compare_weights(
    first: WeightsExplorer, second: WeightsExplorer, *, progress: Progress | None = None
) -> WeightsComparison:
    """Return what differs between the weights of two explorers; Ctrl-C raises as everywhere."""
    own, others = (_compared(one, other) for one, other in ((first, second), (second, first)))
    table = WeightsComparison(first, second, *without_exempt(_matched(own, others), (first, second)))
    total, done = sum(own[a].nbytes for a in table._pairs), 0
    for a, b in table._pairs.items():
        try:
            table._note(a, compare_tensors(own[a]._values_here(), others[b]._values_here()))
        except TensornpError as error:
            table._note(a, str(error))
        except MemoryError:
            table._note(a, no_memory_for(own[a]))
        except Exception as error:
            # Of torch, of a tensor that is not sound: the others are compared none the less.
            table._note(a, error_text(error).partition("\n")[0])
        done += own[a].nbytes
        if progress is not None:
            progress(done, total)
    return table


def _matched(own: dict[str, WeightEntry], others: dict[str, WeightEntry]) -> Matched:
    """Return which weights belong together by their names, or by what else states of optimizers are called.

    A state dict has the number of a parameter, and its name only if the optimizer was given it.
    """
    names, other_names = list(own), list(others)
    first = matched(names, other_names)
    if not any(one._saved_as for side in (own, others) for one in side.values()) or len(first.pairs) == len(own):
        return first
    tried = (
        (names, _called(others, 0)), (_called(own, 0), other_names), (_called(own, 0), _called(others, 0)),
        (_called(own, -1), _called(others, -1)),
    )  # fmt: skip
    return max(first, *starmap(matched, tried), key=lambda found: len(found.pairs))


def _called(entries: dict[str, WeightEntry], place: int) -> dict[str, str]:
    return {name: one._saved_as[place] if one._saved_as else name for name, one in entries.items()}


def _compared(explorer: WeightsExplorer, other: WeightsExplorer) -> dict[str, WeightEntry]:
    """Return the weights of an explorer; what is computed only where the other has a weight of that name."""
    return {
        name: one
        for name, one in explorer.items()
        if not (one._is_nothing or one._is_pending)
        and (one.kind != COMPUTED or (name in other and other[name].kind != COMPUTED))
    }
