"""A module as the value of a cell: its weights, what of them gives cause for alarm, and what it prints itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.stats_budget import StatsBudget
from tensornp.core.tensor.info import inspect
from tensornp.core.values.stats.alarms import NotFinite, alarms_of
from tensornp.models.entries.tensor import TensorSource
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.scan.findings import ALARM_RANK, Finding, findings_of
from tensornp.models.weights import weights


class Alarming(NamedTuple):
    """What of a weight is not finite: as a scan finds it, and in two words each."""

    findings: tuple[Finding, ...]
    alarms: tuple[NotFinite, ...]

    @property
    def text(self) -> str:
        """What stands behind its name: ``1 NaN, 2 +Inf``."""
        return ", ".join(one.text for one in self.alarms)


@dataclass(frozen=True, slots=True)
class ModuleView:
    """A module as its display shows it.

    Attributes
    ----------
    explorer : WeightsExplorer
    alarms : mapping
        What is not finite, by the name of its weight.
    num_read, num_floats : int
        How many weights were read for that, unasked, of how many that may hold NaN.
    text : str
        What the module prints itself; empty where that raises.
    """

    explorer: WeightsExplorer
    alarms: Mapping[str, Alarming]
    num_read: int
    num_floats: int
    text: str


def module_view(module: torch.nn.Module, options: DisplayOptions, expression: str = "") -> ModuleView:
    """Return what is shown of a module, which `expression` gives; only its own text runs code of the user's."""
    view = _looked_at(module, options, expression)
    try:
        # Its class may return a string of a class of its own.
        return replace(view, text=str.__str__(repr(module)))
    except Exception:
        return view


@outside_modes
def _looked_at(module: torch.nn.Module, options: DisplayOptions, expression: str) -> ModuleView:
    explorer = weights(module, expression=expression, namespace={})
    budget = StatsBudget(options.stats_nbytes)
    alarms: dict[str, Alarming] = {}
    num_read = num_floats = 0
    for name, entry in explorer.items():
        info = inspect(entry.tensor) if isinstance(entry._source, TensorSource) and not entry.problem else None
        if info is None or not (info.dtype.is_floating_point or info.dtype.is_complex) or not info.numel:
            continue
        stats = budget.nonfinite(entry.tensor, info)
        num_floats, num_read = num_floats + 1, num_read + (stats is not None)
        if stats is not None and (found := alarms_of(stats)):
            findings = tuple(one for one in findings_of(entry, stats) if one.rank < ALARM_RANK)
            alarms[name] = Alarming(findings, tuple(found))
    return ModuleView(explorer, alarms, num_read, num_floats, "")
