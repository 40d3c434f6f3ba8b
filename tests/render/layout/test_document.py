"""One document, read as text and as static HTML."""

from __future__ import annotations

import io
import sys

import pytest

from tensornp.core.summary.report import Report, ReportLine
from tensornp.render.collections.report import report_document
from tensornp.render.layout.document import Both, Document, Group, Heading, Lines, Pictures, displayed
from tensornp.render.layout.table import Table, TableRow

TABLE = Table(("name", "bytes"), (TableRow(("a<b", "1")),))
PARTS = (Heading("a & b"), TABLE, Lines(("", "small <print>")), Both("text alone"), Both(html="<i>page alone</i>"))


def test_text_and_page_say_the_same_but_for_what_one_has_alone():
    """Whatever is said is escaped in a page, but for what is its own HTML."""
    document = Document((*PARTS, Pictures(lambda: "<img>")))
    assert document.text().split("\n") == ["a & b", "name  bytes", "a<b       1", "small <print>", "text alone"]
    page = document.html("anchor")
    assert page.startswith('<div class="tensornp anchor" ')
    for said in ("a &amp; b", "a&lt;b", "small &lt;print&gt;", "<i>page alone</i>", "<img>"):
        assert said in page
    assert "text alone" not in page


def test_what_says_nothing_takes_no_room():
    """No empty line, no empty block; but a group stays, since a script may look for it."""
    empty = (Heading(""), Lines(("",)), Both(), Table(("name",), ()))
    document = Document((*empty, Group("place", empty)))
    assert document.text() == ""
    assert document.html().endswith('"><div class="place"></div></div>')


def test_a_picture_is_made_for_a_page_alone():
    """A terminal pays for none."""
    document = Document((Heading("h"), Pictures(lambda: 1 / 0)))
    assert document.text() == "h"
    with pytest.raises(ZeroDivisionError):
        document.html()


def test_what_is_displayed_is_put_together_once():
    """For both forms."""
    calls = []
    shown = displayed("a thing", lambda: calls.append(1) or Document((Heading("h"),)), "anchor")
    assert shown["text/plain"] == "h"
    assert '"tensornp anchor"' in shown["text/html"]
    assert len(calls) == 1


def test_small_print_breaks_where_a_terminal_ends_and_nowhere_else(monkeypatch):
    """A heading, a line and a report; a notebook breaks them by itself, and a file keeps them whole."""
    said = " · ".join(f"{i} tensors of device {i}" for i in range(12))
    report = report_document(Report("In[1] changed", (ReportLine("w", tuple(said.split(" · "))),)))
    shown = [Document((Heading(said), Lines((said, "short")))), report]
    monkeypatch.setenv("COLUMNS", "80")
    whole = [document.text() for document in shown]
    assert whole[0].split("\n") == [said, said, "short"]
    monkeypatch.setattr(sys, "stdout", Terminal())
    report = report_document(Report("In[1] changed", (ReportLine("w", tuple(said.split(" · "))),)))
    for text, before in zip([shown[0].text(), report.text()], whole, strict=True):
        assert max(map(len, text.split("\n"))) <= 80
        assert text.split() == before.split()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True
