"""Every kind of tensor in the gallery, each in a process of its own."""

from __future__ import annotations

import json
import os

import gallery_child
import pytest
from gallery import KINDS

EVERY = [pytest.param(name, marks=[pytest.mark.slow] if i % 5 else []) for i, name in enumerate(KINDS)]
"""Each kind; one of five where time is short."""


@pytest.fixture(scope="session")
def endings(folder_of_the_run):
    """A function that says how all that is done with a kind ended: done once in a run, whichever worker asks first."""
    tasks = (gallery_child.check, gallery_child.find)

    def endings(name):
        file = folder_of_the_run / f"kind-{list(KINDS).index(name)}.json"
        if not file.exists():
            written = file.with_suffix(f".{os.getpid()}")
            written.write_text(json.dumps(gallery_child.endings(name, *tasks)))
            written.replace(file)
        return json.loads(file.read_text())

    return endings


@pytest.mark.parametrize("name", EVERY)
def test_a_kind_keeps_every_promise(name, endings):
    """It shows, it becomes the right array or is refused with a cure, and is not changed by being looked at."""
    how, what = endings(name)["check"]
    assert how == "returned", what
    if what:
        pytest.skip(what)


@pytest.mark.parametrize("name", EVERY)
def test_a_kind_is_found_among_names(name, endings):
    """No exception, nothing changed, no alias that is none, and its memory is found."""
    how, what = endings(name)["find"]
    assert how == "returned", what
