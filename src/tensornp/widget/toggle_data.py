"""Convert a tensor's summary to plain data that the page inserts as text."""

from __future__ import annotations

import dataclasses
from typing import Any

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.summary.card import TensorSummary
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.values.scopes import PARTIAL
from tensornp.core.values.stats.alarms import alarms_of
from tensornp.core.values.stats.record import TensorStats
from tensornp.render.pictures.png import data_uri
from tensornp.render.pictures.stats_line import stats_line
from tensornp.render.tensor.aliases import memory_lines
from tensornp.render.tensor.badges import badges_of
from tensornp.render.tensor.receipt import receipt_of

_MODE_TITLES = {
    "view": "Live and read-only: the array sees every write to the tensor, NumPy cannot write.",
    "share": "Live and writeable: a write on either side is seen on the other.",
    "copy": "New memory: no later write is seen on the other side.",
}


def figures_data(stats: TensorStats, info: TensorInfo | None, *, has_picture: bool) -> dict[str, Any]:
    """Return the statistics line as texts and the address of a picture."""
    line = stats_line(stats, info, has_picture=has_picture)
    is_partial = stats.scope.startswith(PARTIAL)
    picture = {"src": data_uri(line.png), "alt": line.alt} if line.png else {}
    return {
        "words": line.words,
        "alarms": [(one.goal, one.text) for one in alarms_of(stats)],
        "title": line.title,
        "picture": picture,
        "isPartial": is_partial,
    }


def is_scan_offered(summary: TensorSummary) -> bool:
    """Return whether a scan can compute statistics that the card lacks."""
    info = summary.info
    return summary.stats is None and info is not None and info.data_state == "available" and info.numel > 0


def body_text(summary: TensorSummary) -> str:
    """Return NumPy's text of the array, or the reason without one."""
    return summary.preview.text if summary.preview else summary.refusal


def card_data(summary: TensorSummary, mode: str, plan: ConversionPlan | str) -> dict[str, Any]:
    """Return the badges, lines and receipt of `mode`."""
    if isinstance(plan, str):
        now = dataclasses.replace(summary, mode=mode, plan=None, refusal=plan)
    else:
        now = dataclasses.replace(summary, mode=mode, plan=plan, refusal="")
    return {
        "badges": [dataclasses.asdict(badge) for badge in badges_of(now)],
        "memory": [line.text for line in memory_lines(summary.surroundings)],
        "receipt": dataclasses.asdict(receipt_of(now)),
    }


def choice_data(name: str, plan: ConversionPlan | str) -> dict[str, Any]:
    """Return the text of a mode's button, and whether it is enabled."""
    if isinstance(plan, str):
        return {"name": name, "enabled": False, "title": plan}
    title = _MODE_TITLES[name] if plan.shares_memory or name == "copy" else f"{_MODE_TITLES[name]} Here: {plan.reason}."
    return {"name": name, "enabled": True, "title": title}
