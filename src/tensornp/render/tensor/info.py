"""The metadata of a tensor: its badges over the facts that tell something, as text and as static HTML."""

from __future__ import annotations

import dataclasses
from html import escape
from typing import Any

from tensornp.core.lowlevel.text import counted, legible
from tensornp.core.summary.card import TensorSummary
from tensornp.core.tensor.facts import StorageSpan, TensorInfo
from tensornp.core.tensor.shards import ShardFacts
from tensornp.render.layout.document import Both, Document, Lines
from tensornp.render.layout.style import SMALL_TEXT
from tensornp.render.layout.table import Table, TableRow
from tensornp.render.tensor.badges import Badge, badges_line, badges_of

HEADINGS = ("fact", "value")


def info_document(info: TensorInfo) -> Document:
    """Return the badges over a table of what is not as usual; all other facts are folded in a page."""
    said = "".join(f"<div>{escape(name)}: {escape(value)}</div>" for name, value in _usual(info))
    usual = f"{counted(len(_usual(info)), 'more fact')}, each as usual"
    folded = f'<details style="{SMALL_TEXT}"><summary>{escape(usual)}</summary>{said}</details>'
    return Document((badges_line(_badges(info)), _table(info), Both(usual, folded)))


def _badges(info: TensorInfo) -> list[Badge]:
    """Return what a card says of the tensor, without what it says of an array."""
    summary = TensorSummary(info.type_name, "view", info, None, "", None)
    return [badge for badge in badges_of(summary) if badge.kind != "memory"]


def _table(info: TensorInfo) -> Table:
    rows = (TableRow((field.name.lstrip("_"), _said(getattr(info, field.name)))) for field in _unusual(info))
    return Table(HEADINGS, tuple(rows))


def _unusual(info: TensorInfo) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(info) if not _is_usual(info, field)]


def _usual(info: TensorInfo) -> list[tuple[str, str]]:
    fields = [field for field in dataclasses.fields(info) if _is_usual(info, field)]
    return [(field.name.lstrip("_"), _said(getattr(info, field.name))) for field in fields]


def _is_usual(info: TensorInfo, field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING and getattr(info, field.name) == field.default


def _said(value: Any) -> str:
    """Return a value as a person would write it; the address of a storage tells nobody anything."""
    if isinstance(value, StorageSpan):
        resizable = "" if value.resizable else "; it cannot be resized"
        return f"{counted(value.nbytes, 'byte')}; the last element ends at byte {value.reach:,}{resizable}"
    if isinstance(value, TensorInfo):
        return f"{value.type_name} {value.shape} {value.dtype}"
    return legible(str(value))


def shard_document(facts: ShardFacts) -> Document:
    """Return the part of this rank; other ranks are not asked."""
    return Document((Lines((str(facts),)),))
