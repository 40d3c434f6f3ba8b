"""Every kind of the gallery over files that were cut under it, and every look at it: none ends the process."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from forked import run_each
from gallery import KINDS, made
from gallery_child import shell
from IPython.core.error import UsageError
from IPython.utils.capture import capture_output

import tensornp as tnp


def _weights(t: Any) -> Any:
    return tnp.weights({"t": t, "x": torch.ones(3)})


def _zeros_like(t: Any) -> torch.Tensor:
    shape = tnp.inspect(t).shape
    return torch.zeros(3 if -1 in shape else shape)


def _followed(t: Any, level: str) -> None:
    # The module never uses what it holds.
    module = torch.nn.Linear(2, 2)
    module.extra = t if isinstance(t, torch.nn.Parameter) else torch.nn.Buffer(t, persistent=False)
    given = torch.nn.Identity()
    with tnp.follow(module, level=level) as run:
        module(torch.ones(2)).sum().backward()
    str(tnp.card(run))
    with tnp.follow(given, level=level) as run:
        given(t)
    str(tnp.card(run))


def _cell(line: str, t: Any) -> None:
    session = shell()
    session.user_ns.update(t=t, x=torch.ones(3))
    with capture_output():
        error = session.run_cell(line).error_in_exec
    if error is not None and not isinstance(error, (tnp.TensornpError, UsageError)):
        raise error


LOOKS: dict[str, Callable[[Any], Any]] = {
    "inspect": lambda t: repr(tnp.inspect(t)),
    "plan": lambda t: repr(tnp.plan(t)),
    "card": lambda t: (str(tnp.card(t)), tnp.card(t).html),
    "card of a list": lambda t: str(tnp.card([torch.ones(3), t])),
    "to_numpy": tnp.to_numpy,
    "to_numpy, copy": lambda t: tnp.to_numpy(t, copy=True),
    "to_numpy, float64": lambda t: tnp.to_numpy(t, dtype="float64"),
    "to_numpy of a list": lambda t: tnp.to_numpy([torch.ones(3), t], copy=True),
    "stats": tnp.stats,
    "stats, axis": lambda t: tnp.stats(t, axis=0),
    "locate": lambda t: (tnp.locate(t, "nan"), tnp.locate(t, "max")),
    "compare": lambda t: repr(tnp.compare(t, t)),
    "compare with another": lambda t: repr(tnp.compare(t, _zeros_like(t))),
    "image": tnp.image,
    "plot": tnp.plot,
    "view": lambda t: repr(tnp.view(t)),
    "aliases": lambda t: tnp.aliases(t, {"t": t, "x": torch.ones(3)}),
    "weights": lambda t: (str(_weights(t)), _weights(t)._repr_html_()),
    "scan": lambda t: str(_weights(t).scan()),
    "weight": lambda t: (_weights(t)["t"].stats(), _weights(t)["t"].to_numpy(copy=True)),
    "a part of a weight": lambda t: _weights(t)["t"].to_numpy(slice(0, 2), copy=True),
    "compare weights": lambda t: repr(tnp.compare({"t": t}, {"t": _zeros_like(t)})),
    "follow": lambda t: _followed(t, "modules"),
    "follow operators": lambda t: _followed(t, "operators"),
    "t": functools.partial(_cell, "t"),
    "x": functools.partial(_cell, "x"),
    "%tensors": functools.partial(_cell, "%tensors"),
    "%tensors --changed": functools.partial(_cell, "%tensors --changed"),
    "%tensorwatch": functools.partial(_cell, "%tensorwatch t"),
    "%tonumpy": functools.partial(_cell, "%tonumpy t"),
    "%tonumpy -c": functools.partial(_cell, "%tonumpy -c t"),
    "%tonumpy x": functools.partial(_cell, "%tonumpy x"),
}


def over_files(tensor: Any, folder: str) -> tuple[Any, list[str]] | None:
    """Return the same tensor, each of its storages mapped to a file of its own; None where it cannot be saved."""
    files: list[str] = []

    def mapped(storage: Any, _: str) -> Any:
        if not storage.nbytes():
            return storage
        files.append(os.path.join(folder, str(len(files))))
        with open(files[-1], "wb") as file:
            file.write(bytes(storage))
        return torch.UntypedStorage.from_file(files[-1], shared=False, nbytes=storage.nbytes())

    saved = io.BytesIO()
    try:
        torch.save(tensor, saved)
        saved.seek(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(saved, map_location=mapped, weights_only=False), files
    except Exception:
        return None


@functools.cache
def _cut(name: str, which: int) -> Any:
    """Return one whose storage of this number was cut, or each where that is -1; how many there are, where -2."""
    folder = tempfile.mkdtemp()
    case = made(name)
    found = None if isinstance(case, str) else over_files(case.tensor, folder)
    if which == -2:
        return len(found[1]) if found is not None else 0
    assert found is not None
    for number, file in enumerate(found[1]):
        if which in (number, -1):
            os.truncate(file, 0)
    return found[0]


def _num_storages(name: str) -> int:
    return int(_cut(name, -2))


def _look(look: str, name: str, which: int) -> str:
    t = _cut(name, which)
    with contextlib.suppress(tnp.TensornpError):
        LOOKS[look](t)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_no_look_at_a_kind_whose_files_were_cut_ends_the_process(name):
    """Each of its storages alone, and all: whatever is read first."""
    if sys.platform != "linux":
        return
    ((how, num),) = run_each([_num_storages], name)
    assert how == "returned", num
    if not num:
        pytest.skip("it cannot be saved, or holds nothing")
    tasks = [functools.partial(_look, look) for look in LOOKS]
    for which in range(-1, num if num > 1 else 0):
        ended = dict(zip(LOOKS, run_each(tasks, name, which), strict=True))
        failed = {look: what for look, (how, what) in ended.items() if how != "returned"}
        assert not failed, (which, {look: what.strip().splitlines()[-1] for look, what in failed.items()}, failed)
