"""What a scan has found, as text and as static HTML."""

from __future__ import annotations

import math
import re
from html import unescape

import torch

import tensornp as tnp
from tensornp.core.lowlevel.units import format_nbytes
from tensornp.models.scan import findings
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
    assert heading == "10 weights · 2 findings, 7 probably intended"
    assert (nan, inf) == ("1 weight has NaN: broken", "1 weight has infinities: inf")
    assert rest == "6 constant, as initialized: ones, zeros.0, zeros.1 and 3 more"
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
    """A line says what was looked at, and the figures of all of it; of nothing at all there is none."""
    made = {"a": noise(0), "b": torch.tensor([0.0, -7.5, 0.25], dtype=torch.float64)}
    table = tnp.weights(made).scan()
    heading, line = lines_of(table)
    assert heading == "2 weights · 0 findings"
    num, nbytes = 3 + made["a"].numel(), 24 + 4 * made["a"].numel()
    time, high = (r"(less than 0\.1|[\d,]+\.\d) s", re.escape(f"{made['a'].max().item():.6g}"[:4]))
    size = re.escape(format_nbytes(nbytes))
    says = rf"nothing stands out of {num} elements, {size}, read in {time}, from [-−]7\.5 to {high}\d*, 1 zero"
    assert re.fullmatch(says, line), line
    assert line in unescape(scan_document(table).html())
    heading, *lines = lines_of(tnp.weights({**made, "ones": torch.ones(5)}).scan())
    assert lines[0].startswith(f"nothing else stands out of {num + 5} elements, ")
    assert lines[1] == "1 constant, as initialized: ones"
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


def test_what_is_found_of_many_alike_is_said_once():
    """With the figures of all of them; what has the same values is one row for each that are equal."""
    equal, other = noise(5), noise(6)
    made = {f"dead.{i}": torch.cat([*(noise(9 * i + j) for j in range(1, 4)), torch.zeros(1, 4)]) for i in range(4)}
    made |= {f"a.{i}": equal.clone() for i in range(72)} | {"b": other, "c": other.clone()}
    made |= {f"few.{i}": torch.full((2,), 3.0 + i) for i in range(3)}
    _, _, *rows = lines_of(tnp.weights(made).scan())
    assert len(rows) == 6
    assert [row.split()[0] for row in rows[:3]] == ["few.0", "few.1", "few.2"]
    by_name = {row.split("  ")[0]: row for row in rows}
    dead = by_name["dead.0, dead.1, dead.2 and 1 more"]
    assert dead.endswith("4 with channels of zeros")
    every = torch.cat([made[f"dead.{i}"] for i in range(4)]).double()
    assert dead.removesuffix("4 with channels of zeros").split()[-5:] == [
        f"{every.min():.4g}", f"{every.max():.4g}", f"{every.mean():.4g}", f"{every.std(correction=0):.4g}", "16",
    ]  # fmt: skip
    assert "72 with the same values" in by_name["a.0, a.1, a.2 and 69 more"]
    assert "2 with the same values" in by_name["b, c"]


def test_a_scan_that_was_stopped_tells_what_it_left():
    """And what it has read."""
    table = tnp.weights({"a": noise(0), "b": noise(1), "c": noise(2)}).scan(progress=lambda done, total: False)
    left = 3 - len(table)
    assert left > 0
    heading, *_ = lines_of(table)
    verb = "was" if left == 1 else "were"
    assert heading.endswith(f" · 0 findings · stopped, {left} {verb} not read")
    whole = tnp.weights({"a": noise(0)}).scan()
    whole.complete = False
    assert lines_of(whole)[0] == "1 weight · 0 findings · stopped"


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


def test_a_new_finding_is_a_row(monkeypatch):
    """It is counted, ranked and shown wherever others are."""

    def told(entry, stats):
        if stats.max is not None and stats.max > 1000:
            yield f"{entry.name} goes up to {stats.max:g}"

    monkeypatch.setattr(findings, "RULES", (findings.Rule(3, told), *findings.RULES))
    table = tnp.weights({"a": torch.tensor([1.0, 2000.0]), "b": noise(0), "c": torch.ones(3)}).scan()
    assert [one.text for one in table.findings("a")] == ["a goes up to 2000"]
    heading, _, row, *_ = lines_of(table)
    assert heading == "3 weights · 1 finding, 1 probably intended"
    assert "a goes up to 2000" in row
    assert "a goes up to 2000" in scan_document(table).html()
    assert table.num_alarms == 1
