"""The report of a watch, opened: what changed most comes first, what did not is named, nothing is cut unsaid."""

from __future__ import annotations

import re

from tensornp.render.collections.report import Report, ReportLine, report_document


def changed(num: int, **more: object) -> Report:
    lines = tuple(ReportLine(f"w{i}", (f"largest difference {i} at [0]",), size=float(i)) for i in range(num))
    return Report("In[1] changed", lines, num_watched=num + 2, **more)  # type: ignore[arg-type]


def test_what_has_changed_most_comes_first():
    """In text and page; of few lines the order is that of the names, as they are."""
    lines = [line.strip() for line in report_document(changed(5)).text().splitlines()]
    assert [line.partition(":")[0] for line in lines if line.startswith("w")] == ["w4", "w3", "w2", "w1", "w0"]
    page = report_document(changed(5)).html()
    assert page.index("w4:") < page.index("w0:")


def test_the_rest_is_one_fold_away():
    """A text says how many they are; a page has them."""
    report = report_document(changed(60))
    assert "… and 40 more" in report.text()
    page = report.html()
    assert re.search(r"<details><summary>… and 40 more</summary><div>w39:", page)
    assert len(re.findall(r"<div>w\d+:", page)) == 60


def test_what_is_not_finite_any_more_comes_before_all():
    """And what counts comes last."""
    lines = [
        ReportLine("a", ("x",), size=9.0), ReportLine("count", ("y",), size=99.0, is_count=True),
        ReportLine("bad", ("z",), alarm="all NaN"), ReportLine("b", ("w",), size=10.0),
    ]  # fmt: skip
    text = report_document(Report("In[1] changed", tuple(lines), num_watched=4)).text()
    names = re.findall(r"^ +(\w+): ", text, re.MULTILINE)
    assert names == ["bad", "b", "a", "count"]
