"""The renderers of records, by class; neither torch nor a renderer is imported here."""

from __future__ import annotations

from typing import Any

RENDERERS = {
    "tensornp.core.convert.plan.ConversionPlan": "tensornp.render.layout.document:lines_document",
    "tensornp.core.memory.aliases.Aliases": "tensornp.render.tensor.aliases:aliases_document",
    "tensornp.core.summary.card.TensorSummary": "",
    "tensornp.core.summary.container.ArraySummary": "tensornp.render.tensor.card:array_document",
    "tensornp.core.summary.container.ContainerSummary": "tensornp.render.collections.container:container_document",
    "tensornp.core.summary.stats.ComparisonSummary": "tensornp.render.values:comparison_document",
    "tensornp.core.summary.stats.StatsSummary": "tensornp.render.values:stats_document",
    "tensornp.core.summary.container.Unshown": "tensornp.render.layout.document:unshown_document",
    "tensornp.core.tensor.facts.TensorInfo": "tensornp.render.tensor.card:info_document",
    "tensornp.core.tensor.shards.ShardFacts": "tensornp.render.layout.document:lines_document",
    "tensornp.core.values.compare.compare.Comparison": "tensornp.render.values:comparison_document",
    "tensornp.core.values.locate.Location": "tensornp.render.values:location_document",
    "tensornp.core.values.stats.record.TensorStats": "tensornp.render.values:stats_document",
    "tensornp.models.comparing.comparison.WeightsComparison": (
        "tensornp.render.models.comparison:weights_comparison_document"
    ),
    "tensornp.models.entries.entry.WeightEntry": "tensornp.render.models.entry:entry_document",
    "tensornp.models.module_view.EntrySummary": "tensornp.render.models.entry:entry_document",
    "tensornp.models.explorer.WeightsExplorer": "tensornp.render.models.weights:weights_document",
    "tensornp.models.module_view.ModuleView": "tensornp.render.models.scan:module_document",
    "tensornp.models.scan.table.ScanTable": "tensornp.render.models.scan:scan_document",
    "tensornp.passes.compare.PassComparison": "tensornp.render.passes.comparison:pass_comparison_document",
    "tensornp.passes.follow.FollowedPass": "tensornp.render.passes.card:pass_document",
    "tensornp.passes.records.Call": "tensornp.render.passes.call:call_document",
    "tensornp.passes.records.Finding": "tensornp.render.passes.call:finding_document",
    "tensornp.processes.merged.Drift": "tensornp.render.ranks:drift_document",
    "tensornp.processes.merged.RankStats": "tensornp.render.ranks:rank_stats_document",
    "tensornp.processes.merged.RankWeights": "tensornp.render.ranks:rank_weights_document",
}
"""The function that makes the document of a class; none is imported before it is used."""


def renderer_of(obj: Any) -> str | None:
    """Return the renderer of a record of tensornp, None for other objects."""
    for cls in type(obj).__mro__:
        path = RENDERERS.get(f"{cls.__module__}.{cls.__qualname__}")
        if path is not None:
            return path
    return None
