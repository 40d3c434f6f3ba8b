"""The table: what stands in one column begins in one column."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tensornp.render.layout.table import (
    Drawn,
    Table,
    TableRow,
    name_html,
    table_html,
    table_text,
    without_common,
)

TABLE = Table(
    ("name", "bytes"),
    (
        TableRow(("a<b", "1"), begins_group=True),
        TableRow(("… 3 more",)),
        TableRow(("层.权重", "22")),
    ),
)


def test_columns_are_aligned_by_their_characters():
    """A row across all of them widens none."""
    assert table_text(TABLE) == "name  bytes\na<b       1\n… 3 more\n层.权重     22"


def test_html_escapes_cells_and_spans_what_stands_across():
    """No more attributes than are needed; a line over each group."""
    html = table_html(TABLE)
    assert [unescape(cell) for cell in re.findall(r"<t[dh]\b[^>]*>([^<]*)<", html)] == [
        "name", "bytes", "a<b", "1", "… 3 more", "层.权重", "22",
    ]  # fmt: skip
    assert html.count('colspan="2"') == 1
    assert html.partition("<style>")[0].count("border-top") == 2


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("input_ids", ["input_ids"]),
        ("encoder.layer.7.self_attn.weight", ["encoder.", "layer.7.", "self_", "attn.", "weight"]),
        ("before['a.b'].grad of <c>.{0..5}.w × 6", ["before[", "'a.", "b'].", "grad of <c>.", "{0..5}.", "w × 6"]),
        ("x" * 30, ["x" * 24, *"xxxxxx"]),
        ("most at 0.1234567 and 12.5 times", ["most at 0.1234567 and 12.5 times"]),
    ],
)
def test_a_long_name_breaks_after_its_parts_and_is_copied_as_it_is(name, parts):
    """By a tag that is no text; numbers stay whole."""
    assert [unescape(part) for part in name_html(name).split("<wbr>")] == parts
    assert "".join(parts) == name


def test_what_all_rows_have_in_common_is_said_once():
    """Rows of other things do not count, nor does one that stands across; a single row keeps its cells."""
    rows = tuple(TableRow((name, "float32", "cpu")) for name in "ab")
    other = TableRow(("n", "", ""), has_facts=False)
    table = Table(("name", "dtype", "device"), (*rows, other, TableRow(("… 3 more",))))
    assert without_common(table, ("dtype", "device")) == (
        Table(("name",), (*(TableRow((name,)) for name in "ab"), TableRow(("n",), has_facts=False),
                          TableRow(("… 3 more",)))),
        ("float32", "cpu"),
    )  # fmt: skip
    assert without_common(Table(table.headings, rows[:1]), ("dtype",)) == (Table(table.headings, rows[:1]), ())
    mixed = Table(table.headings, (rows[0], TableRow(("b", "int8", "cpu"))))
    assert without_common(mixed, ("dtype", "device"))[1] == ("cpu",)


def test_a_tree_is_indented_in_text_and_in_html():
    """A row that stands across is, too; a paler row is a whole one; what is drawn has its own HTML."""
    rows = (
        TableRow(("model", "1")),
        TableRow((Drawn("layer", "<i>layer</i>"), "2"), level=1, is_quiet=True, alarm="odd"),
        TableRow(("… 3 more",), level=2),
    )
    table = Table(("call", "bytes"), rows)
    assert table_text(table) == "call           bytes\nmodel              1\n  layer · odd      2\n    … 3 more"
    html = table_html(table)
    assert re.findall(r"padding-left:(\d+)px", html) == ["16", "32"]
    assert html.count('<tr style="opacity') == 1
    assert "<i>layer</i>" in html
