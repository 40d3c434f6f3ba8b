"""Every kind of tensor in the gallery, each in a process of its own."""

from __future__ import annotations

import gallery_child
import gallery_table
import pytest
from gallery import KINDS


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_keeps_every_promise(name):
    """It shows, it becomes the right array or is refused with a cure, and is not changed by being looked at."""
    how, what = gallery_child.run(gallery_child.check, name)
    assert how == "returned", what


def test_the_table_in_the_readme_is_what_the_gallery_gives():
    """`python tests/gallery_table.py --write` makes it anew; nothing in it is wrong."""
    made = gallery_table.table()
    assert gallery_table.in_readme() == made
