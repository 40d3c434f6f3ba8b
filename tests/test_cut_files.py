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
    return torch.zeros(3) if -1 in shape else torch.zeros(()).expand(shape)


def _followed(t: Any, level: str) -> None:
    # The module never uses what it holds.
    module = torch.nn.Linear(2, 2)
    module._parameters["extra"] = t
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
    "%tensorwatch": functools.partial(_cell, "%tensorwatch t"),
    "%tonumpy": functools.partial(_cell, "%tonumpy t"),
    "%tonumpy -c": functools.partial(_cell, "%tonumpy -c t"),
    "%tonumpy x": functools.partial(_cell, "%tonumpy x"),
}


def over_cut_files(tensor: Any, number: int | None = None) -> tuple[Any, int] | None:
    """Return the same tensor over files of which one, or each, was then cut, and how many there are.

    None where it cannot be saved.
    """
    files: list[str] = []
    saved = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def mapped(storage: Any, _: str) -> Any:
            if not storage.nbytes():
                return storage
            files.append(os.path.join(folder, str(len(files))))
            with open(files[-1], "wb") as file:
                file.write(torch.empty(0, dtype=torch.uint8).set_(storage).numpy())
            return torch.UntypedStorage.from_file(files[-1], shared=False, nbytes=storage.nbytes())

        try:
            torch.save(tensor, saved)
            saved.seek(0)
            made = torch.load(saved, map_location=mapped, weights_only=False)
        except Exception:
            return None
        for file in files if number is None else files[number : number + 1]:
            os.truncate(file, 0)
    return made, len(files)


@functools.cache
def _cut(name: str) -> dict[str, Any]:
    """Return a kind with all of its storages cut, and with each alone; none where it cannot be saved."""
    try:
        case = made(name)
    except (RuntimeError, ValueError):
        # Some cannot be made beside others.
        return {}
    every = None if isinstance(case, str) else over_cut_files(case.tensor)
    if isinstance(case, str) or every is None or not every[1]:
        return {}
    alone = {f"storage {number}": over_cut_files(case.tensor, number) for number in range(every[1])}
    return {"all": every[0], **{which: found[0] for which, found in alone.items() if found is not None}}


def _look(name: str, look: str) -> int:
    tensors = _cut(name)
    for which, t in tensors.items() if len(tensors) > 2 else [*tensors.items()][:1]:
        print(f"{name}, {which}: {look}", flush=True)
        with contextlib.suppress(tnp.TensornpError):
            LOOKS[look](t)
    return len(tensors)


NUM_BATCHES = 20
"""Groups of kinds, each in as few processes as can tell."""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(NUM_BATCHES))
def test_no_look_at_a_kind_whose_files_were_cut_ends_the_process(number):
    """Each of its storages alone, and all: whatever is read first."""
    if sys.platform != "linux":
        return
    pairs = [(name, look) for name in [*KINDS][number::NUM_BATCHES] for look in LOOKS]
    ended = run_each([functools.partial(_look, *pair) for pair in pairs])
    failed = {pair: what for pair, (how, what) in zip(pairs, ended, strict=True) if how != "returned"}
    assert not failed, "\n".join([*map(str, failed), *failed.values()])
    assert sum(num for _, num in ended) > 2 * len(LOOKS)
