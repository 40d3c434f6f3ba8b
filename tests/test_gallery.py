"""Every kind of tensor in the gallery, each in a process of its own."""

from __future__ import annotations

import json
import os
import sys

import gallery_child
import gallery_table
import pytest
import torch
from gallery import KINDS


@pytest.fixture(scope="session")
def endings(folder_of_the_run):
    """A function that says how all that is done with a kind ended: done once in a run, whichever worker asks first."""
    tasks = (gallery_child.check, gallery_child.find, *gallery_child.OUTCOMES)

    def endings(name):
        file = folder_of_the_run / f"kind-{list(KINDS).index(name)}.json"
        if not file.exists():
            written = file.with_suffix(f".{os.getpid()}")
            written.write_text(json.dumps(gallery_child.endings(name, *tasks)))
            written.replace(file)
        return json.loads(file.read_text())

    return endings


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_keeps_every_promise(name, endings):
    """It shows, it becomes the right array or is refused with a cure, and is not changed by being looked at."""
    how, what = endings(name)["check"]
    assert how == "returned", what
    if what:
        pytest.skip(what)


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_found_among_names(name, endings):
    """No exception, nothing changed, no alias that is none, and its memory is found."""
    how, what = endings(name)["find"]
    assert how == "returned", what


@pytest.mark.skipif(
    sys.platform != "linux" or not torch.__version__.startswith("2.13."), reason="made with torch 2.13 on Linux"
)
def test_the_table_is_what_the_gallery_gives(endings):
    """`python tests/gallery_table.py --write` makes it anew; nothing in it is wrong."""
    made = gallery_table.table(endings)
    assert gallery_table.written() == made


def test_the_readme_tells_the_sums_of_the_table():
    """In a sentence, of which each number is one of the last row."""
    sums = gallery_table.written().splitlines()[-1].replace("*", "").split("|")[2:-1]
    kinds, right, raises, wrong, ends, ours, refused, ours_wrong, *_ = map(str.strip, sums)
    page = (gallery_table.PAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    said = " ".join(page[page.index("## Every kind of tensor") :].split())
    assert f"Of the {kinds} kinds" in said
    assert (
        f"right for {right}, wrong for {wrong} without a word, raises for {raises}, and ends the process for one"
        in said
    )
    assert f"{ours} become the right array, and {refused} are refused" in said
    assert (ends, ours_wrong) == ("1", "0")
