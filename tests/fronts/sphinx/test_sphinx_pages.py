"""The pages that show tensornp, as Sphinx makes them by myst-nb: complete, without a network, light and dark."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from kernels import warm_kernels

BUILD = Path(__file__).resolve().parents[3] / ".docs" / "build.py"
if not os.environ.get("CI"):
    pytest.importorskip("myst_nb")
    pytest.importorskip("furo")


@pytest.mark.slow
def test_the_pages_are_the_readme_the_examples_and_all_that_is_public(tmp_path):
    """Cards as they are in a notebook, the docstring of each name, and what is odd in text is text.

    No link leads nowhere, no page would load anything, and each example runs, but for some where torch is old.
    """
    pages, options = tmp_path / "pages", []
    examples = {path.stem for path in (BUILD.parents[1] / "examples").glob("*.ipynb")}
    if not hasattr(torch, "float4_e2m1fn_x2"):
        # Not all kinds of the examples can be made.
        examples, options = {"2-view-share-copy"}, ["--examples", "2-view-share-copy.ipynb"]
    with warm_kernels(tmp_path / "warm"):
        done = subprocess.run(
            [sys.executable, BUILD, pages, *options], capture_output=True, text=True, encoding="utf-8", check=False,
            env=os.environ | {"JUPYTER_PATH": str(tmp_path / "warm")},
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    read = {path.stem: path.read_text(encoding="utf-8") for path in pages.glob("*.html")}
    assert {"index", "api", "kinds", "limits", "contributing", "changelog"} <= read.keys()
    assert examples <= {path.stem for path in (pages / "examples").glob("*.html")}
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
