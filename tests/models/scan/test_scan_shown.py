"""What a scan has found, as text, as static HTML, and as a table of pandas."""

from __future__ import annotations

import math
import sys
from html import unescape

import pandas
import pytest
import torch

import tensornp as tnp
from tensornp.core.lowlevel.text import format_nbytes
from tensornp.models.scan.table import ScanTable
from tensornp.render.layout.style import ALARM_TEXT
from tensornp.render.models.scan import scan_document


def lines_of(table: ScanTable) -> list[str]:
    return scan_document(table).text().split("\n")


def noise(seed: int) -> torch.Tensor:
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(seed))


def test_alarms_come_before_what_may_be_on_purpose():
    """Under the numbers, with the figures of each; what is sound is not listed."""
    broken = torch.tensor([2.0, 0.0, math.nan, -6.0])
    dead = torch.randn(9, 9, generator=torch.Generator().manual_seed(0))
    dead[4] = 0
    made = {"dead": dead, "ones": torch.ones(5), "sound": noise(0), "broken": broken}
    made |= {"inf": torch.tensor([math.inf, 1.0])} | {f"zeros.{i}": torch.zeros(4) for i in range(5)}
    table = tnp.weights(made).scan()
    heading, nan, inf, headings, *rows, rest = lines_of(table)
    assert heading == "10 weights · 2 findings, 7 remarks"
    assert (nan, inf) == ("1 weight has NaN: broken", "1 weight has infinities: inf")
    assert rest == "6 all ones or all zeros: ones, zeros.0, zeros.1 and 3 more"
    assert headings.split() == ["name", "min", "max", "mean", "std", "zeros", "finding"]
    assert [row.split()[0] for row in rows] == ["broken", "inf", "dead"]
    finite = broken[broken.isfinite()].double()
    std = f"{finite.std(correction=0).item():.4g}"
    assert rows[0].split()[1:] == ["·", "1", "NaN", "-6.0"[:2], "2", f"{finite.mean():.4g}", std, "1"]
    html = scan_document(table).html()
    assert heading in html
    for alarm in ("1 weight has NaN", "1 weight has infinities", "1 NaN", "1 +Inf"):
        assert f'<span style="{ALARM_TEXT}">{alarm}</span>' in html
    assert html.index("broken") < html.index("inf") < html.index("dead")
    assert "sound" not in html + "".join(rows)


def test_what_is_sound_needs_no_table():
    """A line says what was looked at; of nothing at all there is none."""
    made = {"a": noise(0), "b": torch.tensor([0.0, -7.5, 0.25], dtype=torch.float64)}
    table = tnp.weights(made).scan()
    heading, line = lines_of(table)
    assert heading == "2 weights · 0 findings"
    num, nbytes = 3 + made["a"].numel(), 24 + 4 * made["a"].numel()
    assert line == f"nothing stands out of {num} elements, {format_nbytes(nbytes)}"
    assert line in unescape(scan_document(table).html())
    heading, *lines = lines_of(tnp.weights({**made, "ones": torch.ones(5)}).scan())
    assert lines[0].startswith(f"nothing else stands out of {num + 5} elements, ")
    assert lines[1] == "1 all ones or all zeros: ones"
    table = tnp.weights(torch.nn.ReLU()).scan()
    assert scan_document(table).text() == "0 weights · 0 findings"
    assert "<table" not in scan_document(table).html()


def test_a_long_table_is_cut_and_says_so():
    """Of what could not be read, too; the worst stays."""
    made = {f"w{i}": torch.tensor([1.0, math.inf]) for i in range(50)} | {"bad": torch.tensor([math.nan])}
    made |= {f"m{i}": torch.ones(2, device="meta") for i in range(13)}
    table = tnp.weights(made).scan()
    heading, nan, inf, _, *lines = lines_of(table)
    assert heading == "51 weights · 51 findings · 13 without values to read"
    assert (nan, inf) == ("1 weight has NaN: bad", "50 weights have infinities: w0, w1, w2 and 47 more")
    assert lines[0].startswith("bad ")
    assert lines[39].startswith("w38 ")
    assert lines[40] == "… 11 more weights with findings; .to_frame() of the scan has all"
    assert lines[41] == f"m0 was not read: {table.failed['m0']}"
    assert lines[51] == "… 3 more weights could not be read; .failed of the scan tells why"
    assert len(lines) == 52
    html = scan_document(table).html()
    assert html.count("<tr>") == 41
    assert "m9 was not read" in html
    assert "m10" not in html


def test_what_a_scan_shows_is_escaped_and_cut():
    """Names come from files."""
    hostile = "<script>\x1b[2J"
    made = {
        hostile: torch.full((2,), 3.0),
        "": torch.full((3,), 3.0),
        "n" * 5000: torch.ones(4),
        hostile + "2": torch.ones(1, device="meta"),
    }
    table = tnp.weights(made).scan()
    text, html = scan_document(table).text(), scan_document(table).html()
    assert "<script>" not in html
    assert "&lt;script&gt;\\x1b[2J" in html
    assert "\x1b" not in text + html + repr(table)
    assert max(map(len, text.split("\n"))) < 1000
    assert any(line.startswith("'' ") for line in text.split("\n"))


def test_weights_a_scan_and_a_comparison_are_frames(monkeypatch):
    """A row for each weight, in the order of the mapping, with its attributes and its findings."""
    first = {"weight": torch.randn(4, 3), "bias": torch.zeros(4)}
    second = {"weight": first["weight"], "bias": torch.tensor([0, torch.nan, 0, 0])}
    explorer, table, found = tnp.weights(first), tnp.weights(second).scan(), tnp.compare(first, second)
    weights, scanned, compared = every = [one.to_frame() for one in (explorer, table, found)]
    for frame, mapping in zip(every, (explorer, table, found), strict=True):
        assert isinstance(frame, pandas.DataFrame)
        assert list(frame.index) == list(mapping) and frame.index.name == "name"
    for name, entry in explorer.items():
        for column in ("kind", "shape", "dtype", "nbytes", "location", "code", "problem"):
            assert weights.loc[name, column] == getattr(entry, column)
    assert list(scanned.index) == ["bias", "weight"]
    assert scanned.loc["bias", "findings"] == "1 of 4 is NaN"
    assert scanned.loc["weight", "std"] == table["weight"].std
    assert scanned["count"].sum() == 16
    assert compared.loc["weight", "verdict"] == found["weight"].verdict
    monkeypatch.setitem(sys.modules, "pandas", None)
    for obj in (explorer, table, found):
        with pytest.raises(tnp.MissingLibraryError, match="a frame needs pandas; install it, or take the mapping"):
            obj.to_frame()
    assert isinstance(tnp.MissingLibraryError(""), ImportError)
