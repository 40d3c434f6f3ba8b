"""The metadata of a tensor: its badges over the facts that tell something, as text and as static HTML."""

from __future__ import annotations

import dataclasses
from html import escape
from typing import Any

from tensornp.core.lowlevel.text import counted, legible
from tensornp.core.summary.card import TensorSummary
from tensornp.core.tensor.facts import StorageSpan, TensorInfo
from tensornp.render.layout.document import Document, Part
from tensornp.render.layout.style import SMALL_TEXT
from tensornp.render.layout.table import Table, TableRow
from tensornp.render.tensor.badges import badges_line, badges_of


def info_document(info: TensorInfo) -> Document:
    """Return the badges over a table of unusual facts; a page folds all other facts."""
    summary = TensorSummary(info.type_name, "view", info, None, "", None)
    badges = [badge for badge in badges_of(summary) if badge.kind != "memory"]
    facts: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for field in dataclasses.fields(info):
        value = getattr(info, field.name)
        is_usual = field.default is not dataclasses.MISSING and value == field.default
        facts[is_usual].append((field.name.lstrip("_"), _said(value)))
    table = Table(("fact", "value"), tuple(map(TableRow, facts[False])))
    lines = "".join(f"<div>{escape(name)}: {escape(value)}</div>" for name, value in facts[True])
    usual = f"{counted(len(facts[True]), 'more fact')}, each as usual"
    folded = f'<details style="{SMALL_TEXT}"><summary>{escape(usual)}</summary>{lines}</details>'
    return Document((badges_line(badges), table, Part(usual, folded)))


def _said(value: Any) -> str:
    """Return a value as a person would write it; the address of a storage tells nobody anything."""
    if isinstance(value, StorageSpan):
        return f"{counted(value.nbytes, 'byte')}; the last element ends at byte {value.reach:,}"
    if isinstance(value, TensorInfo):
        return f"{value.type_name} {value.shape} {value.dtype}"
    return legible(str(value))
