"""The pages that show tensornp, as Sphinx makes them by myst-nb: complete, without a network, light and dark."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from older import since

BUILD = Path(__file__).resolve().parents[3] / ".docs" / "build.py"
if not os.environ.get("CI"):
    pytest.importorskip("myst_nb")
    pytest.importorskip("furo")


def built(folder: Path, *options: str) -> Path:
    """Build the pages, which fails where a link leads nowhere, a page would load something, or a cell raises."""
    done = subprocess.run(
        [sys.executable, BUILD, folder, *options], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_pages_are_the_readme_an_example_and_all_that_is_public(tmp_path):
    """Cards as they are in a notebook, the docstring of each name, and what is odd in text is text."""
    pages = built(tmp_path / "pages", "--examples", "2-view-share-copy.ipynb")
    read = {path.stem: path.read_text(encoding="utf-8") for path in pages.glob("*.html")}
    assert {"index", "api", "kinds", "limits", "contributing", "changelog"} <= read.keys()
    assert 'id="limits"' in read["index"] and "<h1>Every kind of tensor" in read["kinds"]
    example = (pages / "examples" / "2-view-share-copy.html").read_text(encoding="utf-8")
    assert example.count('class="tensornp tnp-') > 2
    assert "widget-state" not in example
    for name in ("to_numpy", "WeightsExplorer", "CopyRequiredError"):
        assert f'id="tensornp.{name}"' in read["api"]


def test_a_link_that_leads_nowhere_and_what_comes_from_a_network_are_told(tmp_path):
    """By the page that has them; a link to another site may lead where it wants."""
    spec = importlib.util.spec_from_file_location("build_of_pages", BUILD)
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    (tmp_path / "a.html").write_text(
        "<a href='b.html#there'></a><a href='#gone'></a><a href='c.html'></a><a href='https://example.org/x'></a>"
        "<script src='https://example.org/x.js'></script><img src='data:image/png;base64,'>",
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text("<p id='there'>", encoding="utf-8")
    (tmp_path / "a.css").write_text("@import 'https://example.org/x.css';", encoding="utf-8")
    assert list(build.broken(tmp_path)) == [
        "a.html leads to #gone, a place that is not there",
        "a.html leads to c.html, which is not there",
        "a.html loads https://example.org/x.js",
        "a.css loads https://example.org/x.css",
    ]


@pytest.mark.slow
@since("2.8", "all kinds of the examples can be made")
def test_each_example_is_among_the_pages(tmp_path):
    """All of them run."""
    pages = built(tmp_path / "pages")
    examples = {path.stem for path in (BUILD.parents[1] / "examples").glob("*.ipynb")}
    assert examples <= {path.stem for path in (pages / "examples").glob("*.html")}
