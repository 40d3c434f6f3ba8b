"""No look and no conversion needs another rank: what looks at a sharded tensor on one rank begins no collective."""

from __future__ import annotations

import inspect
import io
import itertools
import logging
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from child import in_fork
from lone_rank import SAID, LoneRank, needs_fsdp
from simulated import Here

import tensornp as tnp

INDICES = (0, slice(None, None, -1), ...)
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {}, {"copy": False}, {"copy": True}, {"writeable": True}, {"dtype": "float16"}, {"shard": "local"},
    {"shard": "local", "copy": True, "writeable": False, "dtype": "float16"}, {"shard": "full"},
)  # fmt: skip


def _followed(t: torch.Tensor) -> str:
    """Return the card of a pass that `t` goes through."""
    with tnp.follow() as run:
        torch.nn.Identity()(t)
    return tnp.card(run).text


def asked_as_a_rank(obj: Any) -> str:
    """Return all that a client has of what this rank answers."""
    found = tnp.ranks(Here(obj), timeout=1000).weights("looked_at")
    return "\n".join([str(found), str(found.drift()), *(str(found.stats(name)) for name in found)])


FUNCTIONS: dict[str, list[Callable[[Any], Any]]] = {
    "aliases": [tnp.aliases, lambda t: tnp.aliases(t, {"t": t})],
    "card": [
        lambda t: str(tnp.card(t)),
        lambda t: tnp.card(t)._repr_html_(),
        lambda t: tnp.card(tnp.inspect(t).shard or t)._repr_html_(),
    ],
    "compare": [lambda t: tnp.compare(t, t), lambda t: tnp.compare(t, torch.ones(3))],
    "follow": [_followed],
    "image": [tnp.image],
    "inspect": [tnp.inspect],
    "locate": [partial(tnp.locate, what=what) for what in ("nan", "zero", "min", "absmax")],
    "plan": [partial(tnp.plan, **arguments) for arguments in ARGUMENTS],
    "plot": [tnp.plot],
    "ranks": [lambda t: asked_as_a_rank({"a": t}), lambda t: str(tnp.ranks(Here(t)).card("looked_at"))],
    "stats": [tnp.stats, partial(tnp.stats, axis=0)],
    "to_cupy": [tnp.to_cupy],
    "to_jax": [tnp.to_jax],
    "to_numpy": [partial(tnp.to_numpy, **arguments) for arguments in ARGUMENTS],
    "TensorWidget": [tnp.TensorWidget],
    "weights": [tnp.weights],
}
"""What is called with each tensor."""
TAKE_NONE = {
    "to_tensor", "install", "register_kind", "uninstall",
}  # fmt: skip
"""Functions that take arrays of others, or a class."""


class Found:
    """What was said that should not have been."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def do(self, what: str, look: Callable[[], Any]) -> Any:
        """Return what `look` gives; a refusal is one of ours, and a collective only that of `shard="full"`."""
        try:
            result = look()
        except tnp.TensornpError as error:
            result = error
            if type(error) is tnp.RanksError and "full_tensor() failed" in str(error):
                # Only `shard="full"` begins a collective, and says that it failed.
                return None
        except Exception as error:
            self.wrong.append(f"{what}: {error!r}")
            return None
        self.read(what, str(result))
        return None if isinstance(result, Exception) else result

    def read(self, what: str, text: str) -> None:
        if SAID in text or "Traceback" in text or "process group has not been" in text:
            self.wrong.append(f"{what}: {text[:300]}")


def call_functions(found: Found, name: str, obj: Any) -> None:
    for function, looks in FUNCTIONS.items():
        for look in looks:
            found.do(f"{function}({name})", partial(look, obj))


def ask_weights(found: Found, name: str, obj: Any) -> None:
    """Ask the explorer, and each of its entries, for all that they have."""
    explorer = found.do(f"weights({name})", lambda: tnp.weights(obj))
    if explorer is None:
        return
    for what in ("totals", "problems", "to_frame", "scan"):
        found.do(f"{name}.{what}", lambda what=what: called(getattr(explorer, what)))
    found.do(f"ranks of {name}", lambda: asked_as_a_rank(obj))
    found.do(f"{name} compared", lambda: tnp.compare(explorer, explorer))
    found.do(f"{name} shown", lambda: [tnp.card(obj)._repr_html_(), str(tnp.card(obj)), repr(explorer)])
    for key, entry in explorer.items():
        public = [attribute for attribute in dir(entry) if not attribute.startswith("_")]
        for attribute in ("__repr__", *public):
            found.do(f"{name}[{key}].{attribute}", lambda what=attribute, e=entry: called(getattr(e, what)))
        for verb, index, shard in itertools.product(("plan", "to_numpy"), INDICES, (None, "local", "full")):
            what = f"{name}[{key}].{verb}({index}, {shard})"
            found.do(what, lambda v=verb, i=index, e=entry, s=shard: getattr(e, v)(i, shard=s))


def called(value: Any) -> Any:
    """Return what a method gives that needs no argument; the value of anything else."""
    return value() if inspect.ismethod(value) else value


CELLS = (
    "x", "[x, y]", "%tonumpy x", "%tonumpy -c x", "%tonumpy -s x", "%tonumpy -d float16 x",
    "%tonumpy --explain x",
    "%%tonumpy\nx", "%totensor x", "%tensors", "%weights x", "%tensorwatch x", "y.add_(1)",
    "%%follow\n0", "%tensornp", "%tensordiff x x", "%tensordiff x y", "%tensorstats x", "%tensorstats --axis 0 x",
)  # fmt: skip
"""What is run where `x` is looked at; `y` is another tensor."""


def run_magics(found: Found, name: str, obj: Any) -> None:
    """Show it in a notebook, and name it to every magic."""
    shell = the_shell()
    shell.user_ns.update(x=obj, y=torch.ones(3))
    for cell in CELLS:
        found.read(f"{cell} of {name}", printed(shell, cell))
    found.read(f"a watch of {name} ends", printed(shell, "%tensorwatch --off"))


def printed(shell: Any, cell: str) -> str:
    from IPython.utils.capture import capture_output

    log = io.StringIO()
    handler = logging.StreamHandler(log)
    logging.getLogger().addHandler(handler)
    with capture_output() as captured:
        result = shell.run_cell(cell, store_history=False)
    logging.getLogger().removeHandler(handler)
    error = result.error_in_exec or result.error_before_exec
    # A usage error and a refusal are said in one line; anything else is none of ours.
    is_told = error is None or type(error).__name__ == "UsageError" or isinstance(error, tnp.TensornpError)
    shown = "\n".join(str(output.data) for output in captured.outputs)
    return "\n".join((captured.stdout, captured.stderr if is_told else f"Traceback {error!r}", shown, log.getvalue()))


def the_shell() -> Any:
    """Return a shell with the extension, its search for names in no hurry."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    from tensornp.session import ledger

    ledger.MAX_SEARCH_SECONDS = 60
    if not InteractiveShell.initialized():
        config = Config({"HistoryManager": {"hist_file": ":memory:"}})
        shell = InteractiveShell.instance(colors="nocolor", config=config)
        shell.display_formatter.active_types = shell.display_formatter.format_types
        shell.run_line_magic("load_ext", "tensornp")
    return InteractiveShell.instance()


def send_messages(found: Found, name: str, obj: Any) -> None:
    """Send each widget all that a page may ask for."""
    from tensornp.widget.weights import WeightsWidget

    if isinstance(obj, torch.Tensor):
        card = tnp.TensorWidget(obj)
        for mode in ("view", "share", "copy"):
            found.do(f"{mode} of {name}", lambda mode=mode: card.set_state({"mode": mode}))
            found.do(f"array of {name}", lambda: card.array)
        for request in ({"type": "stats"}, {"type": "values", "open": True}, {"type": "image", "open": True}):
            found.do(f"{request} of {name}", lambda request=request: card._receive(None, request, []))
            found.read(f"{request} of {name}", card.html)
        return
    explorer = found.do(f"weights({name})", lambda: tnp.weights(obj))
    if explorer is None:
        return
    answers: list[Any] = []
    widget = WeightsWidget(
        explorer.values(), opened="w", anchor="a",
        binder=lambda name, make, overwrite: make(),
    )  # fmt: skip
    widget.send = lambda content, buffers=None: answers.append(content)
    asked = [{"type": "rows"}, {"type": "scan"}, {"type": "end"}]
    for number in range(len(explorer)):
        asked += [
            {"type": kind, "weight": number, "open": True, "name": "a"} for kind in ("open", "stats", "values", "bind")
        ]
    for number, request in enumerate(asked):
        # Each from a page of its own: of statistics that wait for one page, only the latest are computed.
        widget._receive(None, {"page": f"p{number}", "number": 1, **request}, [])
    end = time.monotonic() + 100
    while (len(answers) < len(asked) or widget.progress >= 0) and time.monotonic() < end:
        time.sleep(0.01)
    assert len(answers) == len(asked), "no answer"
    found.read(f"messages to {name}", str(answers))


LOOKS = (call_functions, ask_weights, run_magics, send_messages)


@pytest.mark.slow
@needs_fsdp
@in_fork
def test_one_rank_looks_and_converts_without_the_others():
    """Whatever is public, of a third of what is sharded: an answer or one of our own refusals, and no collective."""
    rank = LoneRank()
    every = rank.tensors() | rank.models()
    with rank.alone():
        with pytest.raises(RuntimeError, match=SAID):
            every["sharded"].full_tensor()
        look_at_each(dict(list(every.items())[::3]))


@pytest.mark.slow
@needs_fsdp
@in_fork
def test_a_look_needs_no_group_of_processes():
    """After `destroy_process_group` there is what this process has, or a refusal in our own words."""
    rank = LoneRank()
    every = rank.tensors() | rank.models()
    with rank.destroyed():
        look_at_each(dict(list(every.items())[1::4]))


def look_at_each(every: dict[str, Any]) -> None:
    """Look at all, and fail with all that was said wrongly."""
    found = Found()
    for look, (name, obj) in itertools.product(LOOKS, every.items()):
        look(found, name, obj)
    assert not found.wrong, "\n".join(found.wrong)


@needs_fsdp
@in_fork
def test_a_local_shard_says_whose_it_is():
    """The rank, and where there is no group the place in the mesh; the figures are those of the shard."""
    rank = LoneRank()
    tensors = rank.tensors()
    known = tensors["sharded"].to_local()
    assert tnp.stats(tensors["sharded"]).scope == "local shard of rank 1"
    with rank.destroyed():
        figures = tnp.stats(tensors["sharded"])
        assert (figures.scope, figures.mean) == ("local shard at (1,) of the mesh", known.mean().item())
        assert tnp.stats(tensors["in two dimensions"]).scope == "local shard at (0, 1) of the mesh"
        assert tnp.stats(tensors["in a part of the mesh"]).scope == "local shard at (1,) of the mesh"
        assert tnp.locate(tensors["sharded"], "max").value == known.max().item()
        with pytest.raises(tnp.NoDataError, match="a part of a sum that is not reduced yet, and no value"):
            tnp.stats(tensors["partial"])


def test_every_public_function_is_tried_alone():
    """A function that is added has a line in the table."""
    stub = (Path(tnp.__file__).parent / "__init__.pyi").read_text()
    public = {name for name in re.findall(r"as (\w+)$", stub, re.MULTILINE) if name[0].islower()} - {"errors"}
    assert public | {"TensorWidget"} == FUNCTIONS.keys() | TAKE_NONE


@in_fork
def test_every_magic_is_tried_alone():
    """And so has a magic."""
    magics = (name for kind in the_shell().magics_manager.magics.values() for name, one in kind.items()
              if one.__module__.startswith("tensornp"))  # fmt: skip
    assert set(magics) == {found for cell in CELLS for found in re.findall(r"^%+(\w+)", cell)}
