"""`marimo export html`: one kind of twenty, each in a cell of a real kernel of marimo's."""

from __future__ import annotations

import pytest
from fronts.marimo.notebooks import exported, notebook
from gallery import KINDS

SHOWN = list(KINDS)[::20]

SETUP = """
import gallery, torch, tensornp as tnp
from torch.autograd import forward_ad
tnp.install()
def kind(name):
    # What the kind before has entered, and a process can only once.
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    while forward_ad._current_level >= 0:
        forward_ad.exit_dual_level()
    # An older torch cannot make all.
    return getattr(gallery.made(name), "tensor", torch.zeros(1))
"""
FREED = "freed = torch.ones(3)\nfreed.untyped_storage().resize_(0)\nfreed"


@pytest.fixture(scope="module")
def gallery_page(tmp_path_factory):
    """What the cell of each kind shows, by its name, and one of a tensor that was freed."""
    folder = tmp_path_factory.mktemp("marimo")
    cells = [f"kind({name!r})" for name in SHOWN]
    _, *shown, freed = exported(notebook(folder / "kinds.py", [SETUP, *cells, FREED]))
    return dict(zip(SHOWN, shown, strict=True)) | {"freed": freed}


@pytest.mark.slow
def test_each_kind_of_tensor_shows_as_a_card(gallery_page):
    """In HTML, and none ends the kernel."""
    assert len(gallery_page) > 10
    for name, shown in gallery_page.items():
        assert list(shown) == ["text/html"], (name, shown)
        assert shown["text/html"].startswith('<div class="tensornp'), name
    assert "the storage holds 0 bytes" in gallery_page["freed"]["text/html"]
