"""Every public look, under modes that record: none of them sees a call, and none of them changes what is shown."""

from __future__ import annotations

import io
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from child import in_fork
from gallery_child import shell as the_shell
from IPython.utils.capture import capture_output
from torch.nn.utils import parametrizations
from unchanged import unchanged

import tensornp as tnp
from tensornp.models.entries.entry import WeightEntry
from tensornp.widget.toggle import TensorWidget
from tensornp.widget.weights import WeightsWidget

_MARKS_OF_SHARING = ("resizable", "lazily copied", "address")
"""What is another after a conversion that shares memory."""


class Model(torch.nn.Module):
    """One with weights that are tied, frozen, sparse, parametrized, registered as None, and buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(6, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.head = torch.nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight
        self.spun = parametrizations.weight_norm(torch.nn.Linear(3, 3))
        self.sparse = torch.nn.Parameter(torch.eye(3).to_sparse(), requires_grad=False)
        self.short = torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16), requires_grad=False)
        self.register_parameter("nothing", None)


def make_surroundings(folder: Path) -> SimpleNamespace:
    """Return what is looked at, by names that the notebook has too; what is stored lies in `folder`."""
    torch.manual_seed(0)
    m = Model()
    opt = torch.optim.Adam([p for p in m.parameters() if p.layout == torch.strided and p.requires_grad])
    m.norm(m.embed(torch.tensor([1, 2]))).sum().backward()
    opt.step()
    w = torch.randn(40, 30, requires_grad=True)
    other = Model()
    found = SimpleNamespace(
        m=m, other=other, opt=opt, w=w, grown=w * 2, half=torch.arange(6.0).bfloat16(), lean=torch.eye(3).to_sparse(),
        pictures=torch.rand(2, 3, 8, 8), batch={"x": w, "y": [torch.arange(3), torch.ones(2)]}, array=np.ones((3, 4)),
        state=m.state_dict(), buffers=list(m.buffers()),
        stored=str(folder / "m.pt"),
    )  # fmt: skip
    torch.save({name: one for name, one in m.state_dict().items() if one.layout == torch.strided}, found.stored)
    the_shell().user_ns.update(vars(found))
    return found


def _all_of(found: Any, depth: int = 3) -> list[str]:
    """Return what all public attributes of `found` and its representations say, and those of what it holds."""
    if isinstance(found, torch.Tensor):
        return []
    said = [repr(found)]
    if depth and (type(found).__module__ or "tensornp").startswith("tensornp"):
        for name in ("_repr_html_", "_repr_png_", "_repr_mimebundle_", "__len__"):
            said += [repr(getattr(found, name)())] if hasattr(type(found), name) else []
        for name in (name for name in dir(found) if not name.startswith("_") and name != "identity"):
            if not callable(value := getattr(found, name, None)):
                said += _all_of(value, depth - 1)
    if depth and isinstance(found, (Mapping, list, tuple)) and not hasattr(found, "_fields"):
        said += [text for one in (found.values() if isinstance(found, Mapping) else found)
                 for text in _all_of(one, depth - 1)]  # fmt: skip
    return said


def _entry(entry: WeightEntry) -> list[Any]:
    parts = [...] if not entry.shape else [..., 0]
    asked = [lambda part=part: entry.plan(part) for part in parts if hasattr(entry, "plan")]
    asked += [lambda part=part: entry.to_numpy(part, copy=None) for part in parts]
    asked += [entry.stats, lambda: type(entry._values()).__name__, lambda: entry.requires_grad, lambda: repr(entry)]
    return [_or_why(one) for one in asked]


def _or_why(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except tnp.errors.TensornpError as error:
        return str(error)


def _explored(obj: Any) -> list[Any]:
    explorer = tnp.weights(obj)
    every = [_entry(entry) for entry in explorer.values()]
    scanned = explorer.scan(progress=False)
    # What it took is another time in each run.
    scanned.seconds = 0.0
    found: list[Any] = [
        explorer,
        explorer.totals,
        explorer.problems,
        explorer.find("*weight"),
        scanned,
    ]
    return [*found, explorer.to_frame().to_dict(), every, found[-1].to_frame().to_dict()]


def _page(widget: Any, *messages: dict[str, Any]) -> list[Any]:
    """Return what a widget tells its page when that has sent messages, each after the answer to the one before."""
    answers: list[Any] = []
    widget.send = lambda content, buffers=None: answers.append(json.dumps(content))
    for number, message in enumerate(messages):
        widget._receive(None, {"page": "p", "number": number, **message}, [])
        end = time.monotonic() + 60
        while isinstance(widget, WeightsWidget) and (len(answers) <= number or widget.progress >= 0):
            assert time.monotonic() < end, "no answer"
            time.sleep(0.01)
        while isinstance(widget, TensorWidget) and len(answers) <= number:
            assert time.monotonic() < end, "no end"
            time.sleep(0.01)
    said = [answers, [widget.get_state().get(name) for name in ("html", "scanned")]]
    widget.close()
    return said


def _tree(a: Any) -> list[Any]:
    explorer = tnp.weights(a.m)
    widget = WeightsWidget(explorer.values(), opened="w", anchor="a",
                           binder=lambda name, make, overwrite: make())  # fmt: skip
    one = [{"weight": 0}, {"weight": 0}, {"weight": 0, "name": "bound"}]
    messages = [{"type": kind, **request} for kind, request in zip(("open", "values", "bind"), one, strict=True)]
    lines = {"type": "rows"}
    scan = {"type": "scan"}
    return _page(widget, lines, *messages, {"type": "stats", "weight": 0}, scan, lines, scan, lines)


def _toggle(a: Any) -> list[Any]:
    widget = TensorWidget(a.w, binder=lambda name, make, overwrite: make())
    chosen = [{"type": "choose", "mode": mode} for mode in ("share", "copy", "view")]
    return _page(widget, *chosen, {"type": "bind", "name": "bound"}, {"type": "stats"})


def _navigator(a: Any) -> list[Any]:
    moves = [{"corner": [0, 0], "size": [9, 9]}, {"seek": "max"}, {"seek": "nan"}, {"index": "[3, 4]"}]
    return _page(tnp.TensorWidget(a.w), {"type": "values"}, *({"type": "move", **one} for one in moves))


def _magic(line: str) -> Callable[[Any], Any]:
    def run(_: Any) -> Any:
        shell = the_shell()
        for under in ("_", "__", "___"):
            # What an earlier run of it has given is another name of the same memory.
            shell.user_ns[under] = ""
            setattr(shell.displayhook, under, "")
        with capture_output() as captured:
            result = shell.run_cell(line, store_history=False)
        result.raise_error()
        return [captured.stdout, *(output.data for output in captured.outputs)]

    return run


def _shown(name: str) -> Callable[[Any], Any]:
    return lambda a: the_shell().display_formatter.format(_named(a, name))


def _named(a: Any, name: str) -> Any:
    return eval(name, {**vars(a), "tnp": tnp})


KINDS = ("grown", "lean", "batch", "m")
EXPLORED = ("m", "opt", "stored")
MAGICS = (
    "%tonumpy w", "%tonumpy --explain grown", "%%tonumpy -c\nhalf", "%totensor array", "%tensors", "%weights m",
    "%weights stored", "%tensorwatch w", "%tensordiff w half", "%tensordiff m state", "%tensorstats w",
    "%tensorstats --axis 0 half", "%tensornp",
)  # fmt: skip
LOOKS: dict[str, Callable[[Any], Any]] = {
    **{f"display {name}": _shown(name) for name in KINDS},
    **{f"{look} {name}": (lambda a, look=look, name=name: getattr(tnp, look)(getattr(a, name)))
       for look in ("inspect", "plan", "stats", "to_numpy") for name in ("grown", "half", "lean")},
    **{f"weights {name}": (lambda a, name=name: _explored(_named(a, name))) for name in EXPLORED},
    "card": lambda a: tnp.card(a.w),
    "display weights": _shown("tnp.weights(opt)"),
    **{magic.replace("\n", " "): _magic(magic) for magic in MAGICS},
    **{f"locate {name}": (lambda a, name=name: tnp.locate(getattr(a, name), "max")) for name in ("half",)},
    "to_jax": lambda a: tnp.to_jax(a.w),
    "aliases": lambda a: len(tnp.aliases(a.w, vars(a))),
    "compare tensors": lambda a: tnp.compare(a.w, a.grown),
    "compare weights": lambda a: (found := tnp.compare(a.m, a.stored), list(found.values()), found.to_frame()),
    "directions": lambda a: tnp.compare(a.m, a.other).directions("head.weight"),
    "display a scan": _shown("tnp.weights(m).scan(progress=False)"),
    "display a comparison": _shown("tnp.compare(m, stored)"),
    "plot": lambda a: tnp.plot(a.w).savefig(io.BytesIO()),
    "image": lambda a: tnp.image(a.pictures),
    "to_numpy batch": lambda a: tnp.to_numpy(a.batch),
    "to_tensor": lambda a: tnp.inspect(tnp.to_tensor(a.array)).shape,
    "quantiles": lambda a: tnp.stats(a.w).quantile([0.1, 0.5]),
    "TensorWidget": lambda a: tnp.TensorWidget(a.w).html,
    "a toggle and its page": _toggle,
    "a navigator and its page": _navigator,
    "a tree of weights and its page": _tree,
}  # fmt: skip
"""Each public kind of look."""


@contextmanager
def _default_device() -> Iterator[None]:
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


def _leaves_marks(look: str) -> bool:
    return any(word in look for word in ("to_numpy", "tonumpy", "weights", "page"))


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
@in_fork
def test_no_mode_sees_a_look(look, tmp_path):
    """Neither one of functions nor one of dispatches, and all tensors and settings are as they were."""
    around = make_surroundings(tmp_path)
    tensors = [around.w, around.grown, around.half, around.lean, *around.m.parameters(), *around.m.buffers()]
    _all_of(LOOKS[look](around))
    with unchanged(*tensors, but=_MARKS_OF_SHARING if _leaves_marks(look) else ()):
        _all_of(LOOKS[look](around))


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
@in_fork
def test_no_default_device_changes_a_look(look, tmp_path):
    """What is made on the way is made where it can be read, and says the same: in a context, and set for good."""
    around = make_surroundings(tmp_path)
    before = _told(around, look)
    for surroundings in (torch.device("meta"), _default_device()):
        with surroundings:
            assert _told(around, look) == before


def _told(around: SimpleNamespace, look: str) -> list[str]:
    """Return all that a look says, without what is another each time."""
    return [re.sub(r"tnp-[0-9a-f]{8}|0x[0-9a-f]+|IPY_MODEL_\w+", "", text) for text in _all_of(LOOKS[look](around))]
