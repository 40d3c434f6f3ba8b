"""Reads the rows that a live tree sends to a page."""

from __future__ import annotations

from typing import Any

from bs4 import BeautifulSoup


def rows_of(html: str, head: str) -> list[dict[str, Any]]:
    """Return each row as its name, id, level, cells by column, and what leads to another."""
    columns = [one.button["name"] if one.button else one.text for one in BeautifulSoup(head, "html.parser")("th")]
    found = []
    for row in BeautifulSoup(html, "html.parser")("tr"):
        if "data-id" not in row.attrs:
            found.append({"more": row.text})
            continue
        link = row.find("button")
        cells = dict(zip(columns, row("td"), strict=True))
        found.append(
            {
                "name": row.find(class_="tensornp-name-text").text,
                "class": getattr(row.find(class_="tensornp-class-name"), "text", ""),
                "id": int(row["data-id"]),
                "number": int(row.get("data-number", -1)),
                "level": int(row["aria-level"]),
                "open": {"true": True, "false": False}.get(row.get("aria-expanded", "")),
                "title": row["title"],
                "quiet": "tensornp-quiet" in row.get("class", []),
                "cells": {column: cell.text for column, cell in cells.items()},
                "pictures": len(row("img")),
                "link": (link.text, int(link["data-target"]), link["data-goal"]) if link else None,
            }
        )
    return found


def findings_of(html: str) -> list[dict[str, Any]]:
    """Return each finding above a tree as its text, whether it is an alarm, and its buttons."""
    found = []
    for one in BeautifulSoup(html, "html.parser")(class_="tensornp-finding"):
        first, others = [*one("button"), None, None][:2]
        name = first.text if first else ""
        found.append(
            {
                "text": first["aria-label"].removesuffix(f": {name}") if first else one.text,
                "name": name,
                "number": int(first["data-number"]) if first else -1,
                "goal": first["data-goal"] if first else "",
                "isAlarm": one.find(class_="tensornp-alarm") is not None,
                "list": others["data-list"] if others else "",
            }
        )
    return found
