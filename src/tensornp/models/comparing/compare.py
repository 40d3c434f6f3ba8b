"""`compare`: differences of two tensors, or of two models, state dicts or checkpoints."""

from __future__ import annotations

import sys
from itertools import starmap
from typing import Any, Literal

import torch

from tensornp.core.lowlevel.attributes import an_instance, is_array
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.namespace.caller import names_of_caller
from tensornp.core.tensor.containers import is_container
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.core.values.compare.compare import compare as compare_tensors
from tensornp.core.values.stored import StoredValues
from tensornp.errors import BadRequestError, NotATensorError
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.comparing.rows import without_exempt
from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.live.container import has_weights, why_nothing
from tensornp.models.names.matching import Matched, matched
from tensornp.models.optimizers import is_saved_optimizer
from tensornp.models.scan.run import Progress, progress_of, why_failed
from tensornp.models.weights import is_path, weights


def is_comparable(obj: Any) -> bool:
    """Return whether an object compares itself with others of its class, as a followed pass does."""
    return any("_compared_with" in vars(base) for base in type(obj).__mro__)


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
            names = names_of_caller(sys._getframe())
            return compare_weights(weights(a, namespace=names), weights(b, namespace=names), told)
    for one, other in ((a, b), (b, a)):
        if is_model(one):
            if is_path(one):
                # One without weights has an error of its own.
                weights(one)
            raise BadRequestError(
                f"{an_instance(other)} cannot be compared with all weights of {an_instance(one)}; "
                "take one of them, such as tnp.weights(...)[name]"
            )
    for one in (a, b):
        if is_container(one) and not _is_tensor(one):
            raise NotATensorError(why_nothing(one))
    return compare_tensors(a, b)


def _is_tensor(obj: Any) -> bool:
    return is_tensor_like(obj) or is_array(obj) or issubclass(type(obj), StoredValues)


def is_model(obj: Any) -> bool:
    """Return whether `obj` is a module, optimizer, dictionary of tensors, explorer, or path."""
    if issubclass(type(obj), (WeightsExplorer, torch.nn.Module, torch.optim.Optimizer)):
        return True
    if is_path(obj) or is_saved_optimizer(obj):
        return True
    return not _is_tensor(obj) and has_weights(obj)


def compare_weights(first: WeightsExplorer, second: WeightsExplorer, progress: Progress | None) -> WeightsComparison:
    own, others = _compared(first, second), _compared(second, first)
    table = WeightsComparison(first, second, *without_exempt(_matched(own, others), first, second))
    total, done = sum(own[a].nbytes for a in table._pairs), 0
    for a, b in table._pairs.items():
        try:
            table._found[a] = compare_tensors(own[a]._values_here(), others[b]._values_here())
        except Exception as error:
            # The others are compared none the less.
            table.failed[a] = why_failed(own[a], error)
        done += own[a].nbytes
        if progress is not None:
            progress(done, total)
    return table


def _matched(own: dict[str, WeightEntry], others: dict[str, WeightEntry]) -> Matched:
    """Match weights by their names or by the other names of states.

    A state dict has the number of a parameter, and its name only if the optimizer knows it.
    """
    names, other_names = list(own), list(others)
    first = matched(names, other_names)
    if not any(one._saved_as for side in (own, others) for one in side.values()) or len(first.pairs) == len(own):
        return first
    tried = (
        (names, _called(others, 0)), (_called(own, 0), other_names), (_called(own, 0), _called(others, 0)),
        (_called(own, -1), _called(others, -1)),
    )  # fmt: skip
    # States have no prefix in their other names.
    return max(first, *starmap(matched, tried), key=lambda found: (len(found.pairs), not any(found.prefixes)))


def _called(entries: dict[str, WeightEntry], place: int) -> dict[str, str]:
    return {name: one._saved_as[place] if one._saved_as else name for name, one in entries.items()}


def _compared(explorer: WeightsExplorer, other: WeightsExplorer) -> dict[str, WeightEntry]:
    return {
        name: one
        for name, one in explorer.items()
        if not (one._is_nothing or one._is_pending)
        and (one.kind != COMPUTED or (name in other and other[name].kind != COMPUTED))
    }
