"""A module as the value of a cell: its weights, what of them gives cause for alarm, and what it prints itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from tensornp.core.lowlevel.modes import unnoticed
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.unasked import Unasked
from tensornp.core.tensor.info import inspect
from tensornp.core.values.stats.alarms import alarm_text
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.tensor import TensorSource
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.weights import weights


@dataclass(frozen=True, slots=True)
class ModuleView:
    """A module as its display shows it.

    Attributes
    ----------
    explorer : WeightsExplorer
    alarms : mapping
        By the name of a weight, what of its values gives cause for alarm, as far as these are read unasked.
    text : str
        What the module prints itself; empty where that raises.
    """

    explorer: WeightsExplorer
    alarms: Mapping[str, str]
    text: str


def module_view(module: torch.nn.Module, options: DisplayOptions, expression: str = "") -> ModuleView:
    """Return what is shown of a module, which `expression` gives; only its own text runs code of the user's."""
    explorer, alarms = _looked_at(module, options, expression)
    try:
        text = repr(module)
    except Exception:
        text = ""
    return ModuleView(explorer, alarms, text)


@unnoticed
def _looked_at(
    module: torch.nn.Module, options: DisplayOptions, expression: str
) -> tuple[WeightsExplorer, dict[str, str]]:
    explorer = weights(module, expression=expression, namespace={})
    unasked = Unasked(options.unasked_nbytes)
    told = {name: _alarm(entry, unasked) for name, entry in explorer.items()}
    return explorer, {name: alarm for name, alarm in told.items() if alarm}


def _alarm(entry: WeightEntry, unasked: Unasked) -> str:
    if entry.problem or not isinstance(entry.source, TensorSource):
        return ""
    return alarm_text(unasked.not_finite(entry.tensor, inspect(entry.tensor)))
