"""The metadata of a tensor: its badges over the facts that tell something, as text and as static HTML."""

from __future__ import annotations

import dataclasses
from html import escape
from typing import Any

from tensornp.core.lowlevel.legible import legible
from tensornp.core.lowlevel.units import counted
from tensornp.core.summary.card import TensorSummary
from tensornp.core.tensor.facts import StorageSpan, TensorInfo
from tensornp.render.layout.style import CARD, SMALL_TEXT
from tensornp.render.layout.table import Table, TableRow, table_html, table_text
from tensornp.render.tensor.badges import Badge, badge_html, badges_of

HEADINGS = ("fact", "value")


def info_text(info: TensorInfo) -> str:
    """Return the badges, and under them a line for each fact that is not as usual."""
    badges = " | ".join(badge.text for badge in _badges(info))
    return "\n".join(filter(None, [badges, table_text(_table(info)), _usual_text(info)]))


def info_html(info: TensorInfo) -> str:
    """Return the badges over a table of those facts; all others are folded."""
    badges = " ".join(map(badge_html, _badges(info)))
    usual = _usual(info)
    said = "".join(f"<div>{escape(name)}: {escape(value)}</div>" for name, value in usual)
    folded = f'<details style="{SMALL_TEXT}"><summary>{escape(_usual_text(info))}</summary>{said}</details>'
    return f'<div class="tensornp" style="{CARD}"><div>{badges}</div>{table_html(_table(info))}{folded}</div>'


def _badges(info: TensorInfo) -> list[Badge]:
    """Return what a card says of the tensor, without what it says of an array."""
    summary = TensorSummary(info.type_name, "view", info, None, "", None)
    return [badge for badge in badges_of(summary) if badge.kind != "memory"]


def _table(info: TensorInfo) -> Table:
    rows = (TableRow((field.name, _said(getattr(info, field.name)))) for field in _unusual(info))
    return Table(HEADINGS, tuple(rows))


def _unusual(info: TensorInfo) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(info) if not _is_usual(info, field)]


def _usual(info: TensorInfo) -> list[tuple[str, str]]:
    fields = [field for field in dataclasses.fields(info) if _is_usual(info, field)]
    return [(field.name, _said(getattr(info, field.name))) for field in fields]


def _is_usual(info: TensorInfo, field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING and getattr(info, field.name) == field.default


def _usual_text(info: TensorInfo) -> str:
    return f"{counted(len(_usual(info)), 'more fact')}, each as usual"


def _said(value: Any) -> str:
    """Return a value as a person would write it; the address of a storage tells nobody anything."""
    if isinstance(value, StorageSpan):
        resizable = "" if value.resizable else "; it cannot be resized"
        return f"{counted(value.nbytes, 'byte')}; the last element ends at byte {value.reach:,}{resizable}"
    if isinstance(value, TensorInfo):
        return f"{value.type_name} {value.shape} {value.dtype}"
    return legible(str(value))
