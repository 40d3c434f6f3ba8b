"""JSON records of the command line, one entry for each weight."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensornp.models.comparing.comparison import WeightsComparison
    from tensornp.models.explorer import WeightsExplorer
    from tensornp.models.outline.columns import Column
    from tensornp.models.scan.table import ScanTable

_OF_ENTRY = "name kind shape dtype nbytes location tied_to note problem wanted_imports".split()
_OF_STATS = "count nan posinf neginf zeros min max mean std norm scope".split()
_OF_COMPARED = (
    "equal same_bits verdict max_abs relative cosine_distance changed_fraction _only_finite_first _only_finite_second"
).split()
_OF_BOTH = ("equal same_bits missing unexpected _renamed reshaped retyped _beside _exempt failed _not_listed").split()


def json_of(record: dict[str, Any]) -> str:
    """Return a record as JSON, in ASCII."""
    return json.dumps(_plain(record), indent=1, allow_nan=False)


def listed_record(explorer: WeightsExplorer, order: Column | None) -> dict[str, Any]:
    """Return the weights, totals and problems of an explorer; a column gives the order."""
    entries = order.sorted(explorer.values(), lambda one: one) if order else explorer.values()
    weights = [_some(one, _OF_ENTRY) for one in entries]
    return {
        "source": explorer.source, "totals": explorer.totals._asdict(), "problems": explorer.problems,
        "weights": weights,
    }  # fmt: skip


def scanned_record(explorer: WeightsExplorer, found: ScanTable) -> dict[str, Any]:
    """Return the findings and statistics of a scan, worst first."""
    weights = [
        {"name": name, "findings": [one.text for one in found.findings(name)], **_some(stats, _OF_STATS)}
        for name, stats in found.items()
    ]
    return {
        "source": explorer.source, "complete": found.complete, "problems": explorer.problems, "failed": found.failed,
        "weights": weights,
    }  # fmt: skip


def compared_record(found: WeightsComparison) -> dict[str, Any]:
    """Return the differences of two models, largest change first."""
    first, second = found._sources
    weights = [{"name": name, **_some(one, _OF_COMPARED)} for name, one in found.items()]
    return {"first": first, "second": second, "verdict": found._told(), **_some(found, _OF_BOTH), "weights": weights}


def _some(obj: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name.lstrip("_"): getattr(obj, name) for name in names}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; other objects and non-finite numbers are texts."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)
