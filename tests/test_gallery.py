"""Every kind of tensor in the gallery, each in a process of its own."""

from __future__ import annotations

import sys

import gallery_child
import gallery_table
import pytest
import torch
from gallery import KINDS


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_keeps_every_promise(name):
    """It shows, it becomes the right array or is refused with a cure, and is not changed by being looked at."""
    how, what = gallery_child.run(gallery_child.check, name)
    assert how == "returned", what


@pytest.mark.skipif(
    sys.platform != "linux" or not torch.__version__.startswith("2.13."), reason="made with torch 2.13 on Linux"
)
def test_the_table_in_the_readme_is_what_the_gallery_gives():
    """`python tests/gallery_table.py --write` makes it anew; nothing in it is wrong."""
    made = gallery_table.table()
    assert gallery_table.in_readme() == made
