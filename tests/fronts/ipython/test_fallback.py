"""A printer lets no exception out: whatever raises while a view is made, the next simpler true thing is shown."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from IPython.utils.capture import capture_output

import tensornp
import tensornp as tnp
from tensornp.core.lowlevel import fallback

SRC = Path(tensornp.__file__).parent
FAULTS = 15
"""Calls of each view that are made to raise, one at a time."""
EXEMPT = ("core/lowlevel/fallback.py", "core/lowlevel/attributes.py")
"""What the last resort itself is made of."""
GUARDS = ("card", "summary_of", "summary_text", "summary_bundle", "displayed", "bundle", "preformatted", "__exit__")
"""What catches cannot catch the call of itself, and what leaves a block cannot be left out."""


class InjectedError(Exception):
    """Raised where a test says so."""


class Pair(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(3, 2)
        self.register_buffer("steps", torch.arange(3))


def _freed() -> torch.Tensor:
    freed = torch.ones(1000)
    freed.untyped_storage().resize_(0)
    return freed


VIEWS: dict[str, Callable[[], Any]] = {
    "tensor": lambda: torch.arange(6.0).reshape(2, 3),
    "parameter": lambda: torch.nn.Parameter(torch.ones(300)),
    "freed": _freed,
    "subclass": lambda: torch.ones(3).as_subclass(type("Mine", (torch.Tensor,), {"__repr__": lambda self: "x" * 9})),
    "list": lambda: [torch.arange(3), [torch.ones(2), 1, "a"]],
    "dict": lambda: {"input_ids": torch.arange(3), "freed": _freed()},
    "module": Pair,
    "generator": lambda: Pair().named_parameters(),
    "plan": lambda: tnp.plan(torch.ones(3)),
    "info": lambda: tnp.inspect(torch.ones(3)),
    "explorer": lambda: tnp.weights(Pair()),
    "scan": lambda: tnp.weights(Pair()).scan(),
    "comparison": lambda: tnp.compare(Pair(), Pair()),
}


@pytest.fixture
def no_last_resort(monkeypatch):
    """Torch's own repr, which kills the process of a freed storage, and which is never the next simpler thing."""
    monkeypatch.delenv(fallback.RAISE)
    monkeypatch.setattr(fallback, "_told", set())
    monkeypatch.setattr(torch.Tensor, "__repr__", lambda self, **_: pytest.fail("repr(tensor) was asked for"))


class Fault:
    """Raises at one call among those of tensornp's functions while it is entered, and counts them."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.count, self.where = at, 0, ""

    def __enter__(self) -> Fault:
        self.before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> None:
        file = Path(frame.f_code.co_filename)
        # A generator is also called when it is closed, where nobody hears what it raises.
        if event != "call" or frame.f_code.co_flags & inspect.CO_GENERATOR or not file.is_relative_to(SRC):
            return
        name = file.relative_to(SRC).as_posix()
        is_exempt = name in EXEMPT or frame.f_code.co_name in GUARDS
        if is_exempt or name.startswith(("fronts/", "widget/", "session/")):
            return
        self.count += 1
        if self.count == self.at:
            self.where = f"{name}: {frame.f_code.co_name}"
            raise InjectedError("on purpose")


def faults(act: Callable[[], Any]) -> list[int]:
    """Return some of the calls that `act` makes, spread over all of them."""
    act()
    with Fault() as counting:
        act()
    assert counting.count > 5
    return sorted({1 + i * (counting.count - 1) // (FAULTS - 1) for i in range(FAULTS)})


@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_a_display_lets_no_exception_out(shell, name, no_last_resort, caplog):
    """Wherever one is raised: there is text, it names the class or the values, and no traceback is printed."""
    obj = VIEWS[name]()
    for at in faults(lambda: shell.ip.display_formatter.format(obj)):
        caplog.clear()
        with capture_output() as captured, Fault(at) as fault:
            data, _ = shell.ip.display_formatter.format(obj)
        assert not captured.stdout and "Traceback" not in captured.stderr, (fault.where, captured.stdout)
        assert data["text/plain"].strip(), fault.where
        assert data.get("text/html", "-").strip(), fault.where
        assert len([record for record in caplog.records if record.name == "tensornp"]) <= 1, fault.where


@pytest.mark.parametrize("change", [
    lambda formatter: setattr(formatter, "active_types", ["text/html"]),
    lambda formatter: setattr(formatter, "active_types", []),
])  # fmt: skip
@pytest.mark.parametrize("cls", [torch.Tensor, type("Mine", (torch.Tensor,), {"__repr__": lambda self: 1 / 0})])
def test_torch_never_prints_what_is_freed(bare_shell, cls, change, no_last_resort, monkeypatch):
    """Also where somebody has turned the text off, which IPython asks for all the same, or put in its own formatter."""
    monkeypatch.setattr(bare_shell.display_formatter, "formatters", dict(bare_shell.display_formatter.formatters))
    bare_shell.run_line_magic("load_ext", "tensornp")
    try:
        change(bare_shell.display_formatter)
        text = bare_shell.display_formatter.format(_freed().as_subclass(cls))[0]["text/plain"]
        assert "the storage holds 0 bytes" in text
        assert "tensor" in bare_shell.display_formatter.format([_freed()])[0]["text/plain"]
    finally:
        bare_shell.run_line_magic("unload_ext", "tensornp")
        bare_shell.display_formatter.active_types = bare_shell.display_formatter.format_types
        bare_shell.display_formatter.formatters["text/plain"].pprint = True
