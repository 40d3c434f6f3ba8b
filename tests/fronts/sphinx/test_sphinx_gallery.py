"""sphinx-gallery, which runs scripts: of each block it shows what its last line is, by `_repr_html_`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from fronts.everywhere import SETUP, SHOWN, amiss, words_of

CONF = """
extensions = ["sphinx_gallery.gen_gallery"]
exclude_patterns = ["scripts"]
sphinx_gallery_conf = {"examples_dirs": "scripts", "gallery_dirs": "gallery", "abort_on_example_error": True}
"""
HEAD = '"""\nTensors\n=======\n"""\nimport tensornp as tnp\nnet = t = None\n'
BLOCKS = (
    "tnp.card(t)",
    "tnp.card({'a': torch.ones(3), 'w': torch.zeros(2)})",
    "tnp.weights(net)",
    "with tnp.follow(net) as run:\n    net(torch.ones(2, 4)).sum().backward()\nrun",
)
"""What the cells of the notebook are in a script."""


@pytest.mark.slow
def test_each_block_shows_its_card_once(tmp_path: Path):
    """As it is in a notebook, without a script; no bare `repr` stands beside it or in its place."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "README.rst").write_text("Gallery\n=======\n")
    (scripts / "plot_tensors.py").write_text("\n# %%\n".join((HEAD, SETUP.partition("\n")[2], *BLOCKS)))
    (tmp_path / "conf.py").write_text(CONF)
    (tmp_path / "index.rst").write_text("Start\n=====\n\n.. toctree::\n\n   gallery/index\n")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(tmp_path), str(tmp_path / "pages")],
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    page = (tmp_path / "pages" / "gallery" / "plot_tensors.html").read_text(encoding="utf-8")
    shown = re.findall(r'(?s)<div class="output_subarea [^>]*>(.*?)<br />', page)
    assert len(shown) == len(BLOCKS) and "sphx-glr-script-out" not in page
    for cell, block in zip(SHOWN, shown, strict=True):
        assert "<script" not in block
        assert amiss(words_of(block), [cell]) == {}, words_of(block)
