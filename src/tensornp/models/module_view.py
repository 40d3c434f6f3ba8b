"""Summarize a module, an optimizer, a container of many tensors or a weight for its card."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.torch_private import is_module
from tensornp.core.summary.card import StatsBudget
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.dtypes import is_differentiable
from tensornp.core.tensor.info import inspect
from tensornp.core.values.shown.preview import Preview, preview
from tensornp.core.values.shown.window import subject_of
from tensornp.core.values.stats.record import TensorStats, alarms_of
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.in_memory import TensorSource
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.scan.findings import Finding, findings_of
from tensornp.models.weights import weights


class ModuleView(NamedTuple):
    """Weights as their display shows them; `alarms` are the statistics of weights with non-finite values."""

    explorer: WeightsExplorer
    alarms: Mapping[str, TensorStats]
    num_read: int
    num_floats: int
    class_name: str = ""

    def findings(self) -> dict[str, tuple[Finding, ...]]:
        """Return the findings on non-finite values by name."""
        every = ((name, findings_of(self.explorer[name], stats)) for name, stats in self.alarms.items())
        return {name: tuple(one for one in found if one.is_alarm) for name, found in every}


def module_view(
    obj: Any, options: DisplayOptions, expression: str = "", names: Mapping[str, Any] = MappingProxyType({})
) -> ModuleView:
    """Return the view of an object with weights; `names` may have the model of an optimizer."""
    # A module's weights need no other names.
    explorer = weights(obj, expression=expression, namespace={} if is_module(obj) else names)
    return view_of(explorer, options)._replace(class_name=type(obj).__name__)


@outside_modes
def view_of(explorer: WeightsExplorer, options: DisplayOptions) -> ModuleView:
    """Return the view of weights, and look for non-finite values in those in memory."""
    budget, alarms = StatsBudget(options.stats_nbytes), {}
    num_read = num_floats = 0
    for name, entry in explorer.items():
        is_here = isinstance(entry._source, TensorSource) and not entry.problem and entry.numel
        if not is_here or not is_differentiable(entry.dtype):
            continue
        stats = budget.nonfinite(entry.tensor, inspect(entry.tensor)) if budget.has_room else None
        num_floats, num_read = num_floats + 1, num_read + (stats is not None)
        if stats is not None and alarms_of(stats):
            alarms[name] = stats
    return ModuleView(explorer, alarms, num_read, num_floats)


_MAX_ELEMENTS = 10_000


class EntrySummary(NamedTuple):
    """A weight as a card shows it; `refusal` says why no value is shown."""

    entry: WeightEntry
    preview: Preview
    refusal: str = ""


def preview_of(entry: WeightEntry, printoptions: Mapping[str, Any]) -> Preview:
    """Return NumPy's text of a weight, by reading only the printed elements.

    A sharded tensor counts with this rank's part.
    """
    subject = subject_of(entry._values_here())
    found = preview(subject.tensor, subject.info, subject.plan, max_elements=_MAX_ELEMENTS, printoptions=printoptions)
    if subject.shard is None:
        return found
    return found._replace(note=", ".join(filter(None, (subject.shard.scope, found.note))))


def summarize_entry(entry: WeightEntry, options: DisplayOptions) -> EntrySummary:
    """Return the summary of a weight; never raises."""
    why = f"no values: {entry.problem}"
    if entry._can_be_read:
        try:
            return EntrySummary(entry, preview_of(entry, options.printoptions))
        except Exception as error:
            # Looking never fails: the facts are there all the same.
            why = str(error) if isinstance(error, TensornpError) else error_text(error)
    return EntrySummary(entry, Preview(""), why)
