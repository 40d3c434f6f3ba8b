"""The renderers of records, by class path; none is imported before it is used."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

_mro_of, _name_of = (type.__dict__[name].__get__ for name in ("__mro__", "__name__"))


class View(NamedTuple):
    """The renderer of a record: `summarize` prepares the argument of `document`.

    `takes_options` says whether it depends on the display options. A card of a tensor has no document: its text and its
    HTML are two things.
    """

    document: str = ""
    summarize: str = ""
    takes_options: bool = False


_ARRAY = View("tensornp.render.tensor.array.array", takes_options=True)
_ENTRY = View("tensornp.render.models.entry.entry", takes_options=True)
VIEWS = {
    "tensornp.core.summary.card.TensorSummary": View(),
    "tensornp.core.summary.container.ArraySummary": _ARRAY,
    "tensornp.models.module_view.ModuleView": View("tensornp.render.models.module.module"),
    "tensornp.core.summary.container.ContainerSummary": View("tensornp.render.collections.container.container"),
    "tensornp.core.summary.stats.StatsSummary": View("tensornp.render.values.stats.stats"),
    "tensornp.core.summary.stats.ComparisonSummary": View("tensornp.render.values.comparison.comparison"),
    "tensornp.models.entries.summary.EntrySummary": _ENTRY,
    "tensornp.core.summary.view.Unshown": View("tensornp.render.simple.unshown"),
    "tensornp.core.convert.plan.ConversionPlan": View("tensornp.render.tensor.receipt.plan"),
    "tensornp.core.tensor.facts.TensorInfo": View("tensornp.render.tensor.info.info"),
    "tensornp.core.tensor.shards.ShardFacts": View("tensornp.render.tensor.shard.shard"),
    "tensornp.core.memory.aliases.Aliases": View("tensornp.render.tensor.aliases.aliases"),
    "tensornp.core.values.stats.record.TensorStats": View(
        "tensornp.render.values.stats.stats", "tensornp.core.summary.stats.summary_of_figures"
    ),
    "tensornp.core.values.compare.compare.Comparison": View(
        "tensornp.render.values.comparison.comparison", "tensornp.core.summary.stats.summary_of_comparison"
    ),
    "tensornp.core.values.stats.distribution.Histogram": View("tensornp.render.pictures.histogram.histogram"),
    "tensornp.passes.follow.FollowedPass": View("tensornp.render.passes.card.pass"),
    "tensornp.passes.compare.PassComparison": View("tensornp.render.passes.comparison.pass_comparison"),
    "tensornp.passes.records.Call": View("tensornp.render.passes.call.call"),
    "tensornp.passes.records.Finding": View("tensornp.render.passes.call.finding"),
    "tensornp.core.values.locate.Location": View("tensornp.render.values.location.location"),
    "tensornp.models.explorer.WeightsExplorer": View("tensornp.render.models.weights.weights"),
    "tensornp.models.explorer.Totals": View("tensornp.render.models.weights.totals"),
    "tensornp.models.entries.entry.WeightEntry": _ENTRY._replace(
        summarize="tensornp.models.entries.summary.summarize_entry"
    ),
    "tensornp.models.scan.table.ScanTable": View("tensornp.render.models.scan.scan"),
    "tensornp.processes.merged.RankWeights": View("tensornp.render.ranks.weights.rank_weights"),
    "tensornp.processes.merged.RankStats": View("tensornp.render.ranks.stats.rank_stats"),
    "tensornp.processes.merged.Drift": View("tensornp.render.ranks.drift.drift"),
    "tensornp.models.comparing.comparison.WeightsComparison": View(
        "tensornp.render.models.comparison.weights_comparison"
    ),
}
"""By the module and the name of a class."""


def view_of(obj: Any) -> View | None:
    """Return the view of a record of ours, without asking its class.

    None for what is none, whose class nobody met.
    """
    for cls in _mro_of(type(obj)):
        path = _PATHS.get(_name_of(cls))
        if path is not None and getattr(sys.modules.get(path[0]), path[1], None) is cls:
            return VIEWS[".".join(path)]
    return None


_PATHS = {name: (module, name) for module, _, name in (path.rpartition(".") for path in VIEWS)}
"""The module and the name of each class, by its name."""
