"""The documentation builds without warnings, and its pages show cards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kernels import warm_kernels

PAGES = Path(__file__).resolve().parents[3] / ".docs"
if not os.environ.get("CI"):
    pytest.importorskip("myst_nb")
    pytest.importorskip("furo")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the page of ranks uses gloo")
def test_the_documentation_builds_without_warnings(tmp_path):
    with warm_kernels(tmp_path / "warm"):
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", "-q", "-W", "-n", PAGES, tmp_path / "pages"],
            capture_output=True, text=True, encoding="utf-8", check=False,
            env=os.environ | {"JUPYTER_PATH": str(tmp_path / "warm"), "IPYTHONDIR": str(tmp_path / "ipython")},
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    read = {name: (tmp_path / "pages" / f"{name}.html").read_text(encoding="utf-8") for name in ("index", "kinds")}
    assert "_static/tour.gif" in read["index"]
    assert read["kinds"].count('class="tensornp tnp-') > 3
    assert (tmp_path / "pages" / "examples" / "1-tour.html").exists()
