"""Words that every view has in common."""

from __future__ import annotations

import pytest

from tensornp.core.lowlevel.units import with_article
from tensornp.render.layout.words import cost_of_scan


@pytest.mark.parametrize(
    ("nbytes", "said"),
    [
        (100, "reads 100 bytes, less than a second"),
        (4 * 2**30, "reads 4 GiB, about 4 s"),
        (90 * 10**9, "reads 83.8 GiB, about 90 s"),
        (700 * 10**9, "reads 651.9 GiB, about 12 minutes"),
    ],
)
def test_what_a_scan_costs_is_said_before_it_is_asked_for(nbytes, said):
    """In bytes, and about how long."""
    assert cost_of_scan(nbytes) == said


@pytest.mark.parametrize(
    "said", ["an int", "a float32", "an int8", "a uint8", "an ndarray", "an Adam", "a User", "an UninitializedBuffer"]
)
def test_a_noun_stands_behind_its_article(said):
    """As it is spoken: uint8 begins with no vowel, and ndarray with one."""
    assert with_article(said.partition(" ")[2]) == said
