"""`Document`: what is seen of one thing, put together once and read as text and as static HTML."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape

from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.render.layout.bundle import bundle
from tensornp.render.layout.style import (
    ALARM_TEXT,
    BESIDE,
    CARD,
    HANGING,
    HEADING,
    SMALL_TEXT,
    WIDE,
    array_style,
    badge_style,
)
from tensornp.render.layout.table import Table, html_of, name_html, table_html, table_text

_MIN_COLUMNS = 20
"""A terminal that says it has fewer does not know."""


def wrapped(text: str) -> str:
    """Return small print in lines that a terminal has room for; as it is where the text goes elsewhere."""
    try:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 0
    except Exception:
        # What stands for it may be closed, or know nothing of terminals.
        columns = 0
    lines = text.split("\n")
    return "\n".join(_fit(line, columns) if len(line) > columns >= _MIN_COLUMNS else line for line in lines)


def _fit(line: str, columns: int) -> str:
    wrapper = textwrap.TextWrapper(columns, subsequent_indent="    ", replace_whitespace=False)
    # What is longer than a line is a name, or code.
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.fill(line)


@dataclass(frozen=True, slots=True)
class Heading:
    """The line over all."""

    said: str

    @property
    def text(self) -> str:
        """The line."""
        return wrapped(self.said)

    @property
    def html(self) -> str:
        """The line, of a height of its own."""
        return f'<div style="{HEADING}">{escape(self.said)}</div>' if self.said else ""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of small print."""

    said: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines."""
        return "\n".join(map(wrapped, filter(None, self.said)))

    @property
    def html(self) -> str:
        """A block of a line each."""
        lines = "".join(f'<div style="{HANGING}">{html_of(line)}</div>' for line in self.said if line)
        return f'<div style="{SMALL_TEXT}">{lines}</div>' if lines else ""


@dataclass(frozen=True, slots=True)
class Alarm:
    """A line on what gives cause for alarm, and what is said behind it."""

    said: str
    rest: str = ""

    @property
    def text(self) -> str:
        """The line."""
        return wrapped(self.said + self.rest)

    @property
    def html(self) -> str:
        """The line, in which the alarm is amber."""
        said = f'<span style="{ALARM_TEXT}">{html_of(self.said)}</span>'
        return f'<div style="{SMALL_TEXT}">{said}{escape(self.rest)}</div>'


@dataclass(frozen=True, slots=True)
class Both:
    """What text and HTML say in ways of their own; `html` is put in as it is."""

    text: str = ""
    html: str = ""


@dataclass(frozen=True, slots=True)
class Pictures:
    """What a page alone has, and is not made for a text."""

    make: Callable[[], str]

    @property
    def text(self) -> str:
        """Nothing."""
        return ""

    @property
    def html(self) -> str:
        """What is made, as it is."""
        return self.make()


@dataclass(frozen=True, slots=True)
class Group:
    """Parts that stand in the page under a class, by which a script finds them."""

    name: str
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The parts under each other."""
        return _text(self.parts)

    @property
    def html(self) -> str:
        """The parts in one block."""
        return f'<div class="{self.name}">{_html(self.parts)}</div>'


@dataclass(frozen=True, slots=True)
class Beside:
    """Parts that stand beside each other in a page that is wide enough."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The parts under each other."""
        return _text(self.parts)

    @property
    def html(self) -> str:
        """The parts in a row, of which each is as wide as it needs."""
        each = (f"<div>{html}</div>" for part in self.parts if (html := _html((part,))))
        return f'<div style="{BESIDE}">{"".join(each)}</div>'


Part = Heading | Lines | Alarm | Both | Pictures | Group | Beside | Table


@dataclass(frozen=True, slots=True)
class Document:
    """Parts under each other, of which those that say nothing take no room."""

    parts: tuple[Part, ...]
    style: str = WIDE

    @never_compiled
    def text(self) -> str:
        """Return it as lines of text."""
        return _text(self.parts)

    @never_compiled
    def html(self, anchor: str = "") -> str:
        """Return it as static HTML; `anchor` is the class by which a live view finds it."""
        classes = escape(" ".join(filter(None, ["tensornp", anchor])))
        return f'<div class="{classes}" dir="ltr" style="{self.style}">{_html(self.parts)}</div>'


def _text(parts: tuple[Part, ...]) -> str:
    said = ((table_text(part) if part.rows else "") if isinstance(part, Table) else part.text for part in parts)
    return "\n".join(filter(None, said))


def _html(parts: tuple[Part, ...]) -> str:
    return "".join((table_html(part) if part.rows else "") if isinstance(part, Table) else part.html for part in parts)


def headed(names: Sequence[tuple[str, str]], verdict: str) -> Both:
    """Return two names, each with what is said beside it, and the verdict over both."""
    text = " and ".join(name + beside for name, beside in names)
    bold = " and ".join(f"<b>{name_html(name)}</b>{escape(beside)}" for name, beside in names)
    badge = f'<span style="{badge_style("plain")}">{escape(verdict)}</span>'
    return Both(wrapped(f"{text}: {verdict}"), f"<div>{bold} {badge}</div>")


def printed(text: str) -> Document:
    """Return text that a page shows as it is."""
    return Document((Both(text, f'<pre style="{array_style()}">{escape(text)}</pre>'),), CARD)


def displayed(what: str, make: Callable[[], Document], anchor: str = "") -> dict[str, str]:
    """Return a document by MIME type, as `bundle` does; it is put together once."""
    made = cache(make)
    return bundle(what, lambda: made().text(), lambda: made().html(anchor))
