"""`Document`: what is seen of one thing, put together once and read as text and as static HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.render.layout import style as css
from tensornp.render.layout.table import Table, html_of, name_html, table_html, table_text

if TYPE_CHECKING:
    from tensornp.core.summary.container import Unshown

_HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"><title>tensornp</title></head>
"""


class Part(NamedTuple):
    """One part of a document, or a group of `parts`; HTML that the text needs not is a function."""

    text: str = ""
    html: str | Callable[[], str] = ""
    parts: tuple[Part | Table, ...] = ()


def headline(said: str) -> Part:
    return Part(said, f'<div style="{css.HEADING}">{escape(said)}</div>' if said else "")


def small_print(*said: str) -> Part:
    """Return lines of small print without the empty ones."""
    lines = "".join(f'<div style="{css.HANGING}">{html_of(line)}</div>' for line in said if line)
    html = f'<div style="{css.SMALL_TEXT}">{lines}</div>' if lines else ""
    return Part("\n".join(filter(None, said)), html)


def alarm_line(said: str, rest: str = "") -> Part:
    """Return a line whose first words are an amber alarm."""
    html = f'<span style="{css.ALARM_TEXT}">{html_of(said)}</span>{html_of(rest)}'
    return Part(said + rest, f'<div style="{css.SMALL_TEXT}">{html}</div>')


def section(name: str, parts: tuple[Part | Table, ...]) -> Part:
    """Return parts with a CSS class, for a script."""
    return Part(html=lambda: f'<div class="{name}">{parts_html(parts)}</div>', parts=parts)


def fold(summary: str, parts: tuple[Part | Table, ...], text: str) -> Part:
    """Return parts that a page shows below `summary` when it is clicked; a terminal has the `text` alone."""
    heading = f"<summary>{escape(summary)}</summary>"
    return Part(text, lambda: f'<details style="{css.SMALL_TEXT}">{heading}{parts_html(parts)}</details>')


def side_by_side(parts: tuple[Part | Table, ...]) -> Part:
    """Return parts that stand next to each other if the page is wide enough."""

    def html() -> str:
        each = (f"<div>{html}</div>" for part in parts if (html := parts_html((part,))))
        return f'<div style="{css.BESIDE}">{"".join(each)}</div>'

    return Part(html=html, parts=parts)


class Document(NamedTuple):
    """Parts below each other; empty ones are skipped."""

    parts: tuple[Part | Table, ...]
    style: str = css.WIDE

    @never_compiled
    def text(self) -> str:
        return _text(self.parts)

    @never_compiled
    def html(self, anchor: str = "") -> str:
        """Return it as static HTML; `anchor` is a class for its live part."""
        classes = escape(" ".join(filter(None, ["tensornp", anchor])))
        return f'<div class="{classes}" dir="ltr" style="{self.style}">{parts_html(self.parts)}</div>'


def _text(parts: tuple[Part | Table, ...]) -> str:
    texts = (table_text(part) if isinstance(part, Table) else _text(part.parts) or part.text for part in parts)
    return "\n".join(filter(None, texts))


def parts_html(parts: Sequence[Part | Table]) -> str:
    made = (table_html(part) if isinstance(part, Table) else part.html for part in parts)
    return "".join(html if isinstance(html, str) else html() for html in made)


def headed(names: Sequence[tuple[str, str]], verdict: str) -> Part:
    """Return a heading of two names with their remarks, and a verdict."""
    text = " and ".join(name + beside for name, beside in names)
    bold = " and ".join(f"<b>{name_html(name)}</b>{escape(beside)}" for name, beside in names)
    badge = f'<span style="{css.BADGES["plain"]}">{escape(verdict)}</span>'
    return Part(f"{text}: {verdict}", f"<div>{bold} {badge}</div>")


def printed(text: str) -> Document:
    return Document((Part(text, f'<pre style="{css.ARRAY}">{escape(text)}</pre>'),), css.CARD)


def unshown_document(record: Unshown) -> Document:
    return printed(f"{record.type_name} (not shown: {record.reason})")


def lines_document(record: object) -> Document:
    return Document((small_print(*str(record).split("\n")),), css.CARD)


def displayed(what: str, make: Callable[[], Document], anchor: str = "") -> dict[str, str]:
    made = cache(make)
    return bundle(what, lambda: made().text(), lambda: made().html(anchor))


def bundle(what: str, text: Callable[[], str], html: Callable[[], str]) -> dict[str, str]:
    """Return the texts of two functions by MIME type; if one raises, `what` it is stands there."""
    said = first_that_works(f"the text of {what}", text, lambda reason: f"{what} (not shown: {reason})")
    return {
        "text/plain": said,
        "text/html": first_that_works(f"the HTML of {what}", html, lambda _: printed(said).html()),
    }


def page_of(html: str) -> str:
    """Return a page around static HTML, in the colours of the reader's system."""
    return f"{_HEAD}<body>\n{html}\n</body></html>\n"
