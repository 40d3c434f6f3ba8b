"""Objects whose classes hide what they are: `%tensors` and the watch go on, and find what they hold."""

from __future__ import annotations

import dataclasses
import re
import weakref
from types import NoneType
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from IPython.core.error import UsageError
from IPython.utils.capture import capture_output

import tensornp as tnp
from tensornp.errors import TensornpError


class _Raising(type):
    """A metaclass that raises whatever its classes are asked."""

    @property
    def __name__(cls) -> str:
        raise RuntimeError("a metaclass was asked for the name")

    @property
    def __module__(cls) -> str:
        raise RuntimeError("a metaclass was asked for the module")

    @property
    def __mro__(cls) -> Any:
        raise RuntimeError("a metaclass was asked for the bases")


class _RaisingTensor(_Raising, type(torch.Tensor)):  # type: ignore[misc]
    pass


class _NoText:
    def __str__(self) -> str:
        raise RuntimeError("a module was written out")

    __repr__ = __str__


class HiddenObject(metaclass=_Raising):
    """A plain object."""


class HiddenDict(dict, metaclass=_Raising):  # type: ignore[type-arg]
    """A container."""


class HiddenModule(torch.nn.Module, metaclass=_Raising):
    """A module."""


class HiddenTensor(torch.Tensor, metaclass=_RaisingTensor):
    """A tensor."""


class HiddenArray(np.ndarray, metaclass=_Raising):  # type: ignore[type-arg]
    """An array."""


class Homeless:
    """A class that belongs to no module."""

    __module__ = None  # type: ignore[assignment]


class Unwritten:
    """A class whose module cannot be written out."""

    __module__ = _NoText()  # type: ignore[assignment]


class Misnamed:
    """A class whose instances have no name but an error."""

    __name__ = property(lambda self: 1 / 0)


HOLDERS = (HiddenObject, HiddenModule, Homeless, Unwritten, Misnamed)


def holder(cls: type) -> Any:
    obj = cls()
    object.__setattr__(obj, "inside", torch.zeros(2))
    return obj


@pytest.fixture
def odd(shell: Any) -> dict[str, Any]:
    """Bind one object of each class; returns the names under which `%tensors` must list what they hold."""
    names = {f"{type.__dict__['__name__'].__get__(cls).lower()}": holder(cls) for cls in HOLDERS}
    found = {f"{name}.inside": obj.__dict__["inside"] for name, obj in names.items()}
    names["table"] = HiddenDict(a=torch.zeros(2))
    names["t"] = found["t"] = torch.zeros(2).as_subclass(HiddenTensor)
    names["a"] = found["a"] = np.zeros(2).view(HiddenArray)
    names["keyed"] = {holder(HiddenObject): torch.zeros(2)}
    shell.namespace.update(names)
    return {**found, "table['a']": names["table"]["a"], "keyed[<HiddenObject>]": next(iter(names["keyed"].values()))}


def test_the_table_is_whole(shell, odd):
    """Each has its row, and so has the ordinary tensor beside them."""
    shell.namespace["w"] = torch.zeros(3)
    shell.run("%tensors")
    text = table_text(shell)
    assert "search stopped" not in text
    listed = {line.split("  ")[0].removesuffix(" (HiddenArray)") for line in text.splitlines()[2:]}
    assert {*odd, "w"} <= listed


def table_text(shell: Any) -> str:
    return next(data["text/plain"] for data in shell.displayed if re.search(r" storages? ·", data["text/plain"]))


def test_the_watch_goes_on(shell, odd):
    """What they hold is watched; a change is told."""
    names = [name.partition(".")[0].partition("[")[0] for name in odd]
    shell.run(f"%tensorwatch {' '.join(names)}")
    with capture_output() as captured:
        for i, value in enumerate(odd.values()):
            np.asarray(value.detach() if isinstance(value, torch.Tensor) else value)[0] = i + 1
        shell.ip.run_cell("0")
    (text,) = [data["text/plain"] for o in captured.outputs if "changed" in (data := o.data)["text/plain"]]
    assert {line.partition(":")[0].strip() for line in text.splitlines()[2:]} == set(odd)


def _raise(*_: Any) -> Any:
    raise RuntimeError("a look has run what is the user's")


def unseen(what: str) -> Any:
    """Return an object that raises where it, or its class, is asked `what`; pytest would ask classes of the module."""
    if what.startswith("class "):
        return type(f"Meta{what[6:]}", (type,), {what[6:]: _raise})("Hidden", (), {})()
    if what == "mock":
        return Mock(spec=dict)
    if what == "fields":
        return dataclasses.make_dataclass("Hidden", ["inside"], namespace={"__getattribute__": _raise})(0)
    return type("Hidden", (), {"__class__": property(_raise)})()


UNSEEN = ("class __eq__", "class __hash__", "class __getattribute__", "class __instancecheck__", "mock", "fields", "is")


@pytest.mark.parametrize("what", UNSEEN)
def test_a_table_has_a_row_for_what_cannot_be_asked(shell, what):
    """And goes on behind it; no metaclass, property or mock is believed, or asked."""
    t = torch.arange(3.0)
    shell.namespace["many"] = [t, unseen(what), t + 5]
    shown = shell.show_within_modes(shell.namespace["many"])
    assert {"text/plain", "text/html"} <= set(shown)
    assert "5., 6., 7." in shown["text/plain"]
    if what != "fields":
        # Those of a dataclass are converted, so that they must be had.
        first, _, last = tnp.to_numpy([t, unseen(what), t])
        assert (first.tolist(), last.tolist()) == ([0, 1, 2], [0, 1, 2])


def test_a_tensor_that_raises_for_its_class_is_watched_and_listed(shell):
    """Alone, and in a list beside an ordinary one."""
    t = torch.arange(3.0)
    hidden = type("HiddenEverywhere", (torch.Tensor,), {"__getattribute__": _raise})
    shell.namespace["t"] = torch.Tensor._make_subclass(hidden, t)
    shell.namespace["many"] = [shell.namespace["t"], t]
    shell.run("%tensorwatch t many")
    shell.run("%tensors")
    assert {"t", "many[0]", "many[1]"} <= {line.split("  ")[0].lstrip("├└ ") for line in table_text(shell).splitlines()}
    assert "(HiddenEverywhere)" not in shell.show_within_modes(shell.namespace["many"])["text/plain"]


KINDS: dict[str, tuple[type, Any]] = {
    "tensor": (torch.Tensor, lambda cls: torch.arange(3.0).as_subclass(cls)),
    "parameter": (torch.nn.Parameter, lambda cls: cls(torch.arange(3.0))),
    "module": (torch.nn.Linear, lambda cls: cls(3, 1)),
    "dict": (dict, lambda cls: cls(inside=torch.arange(3.0))),
    "list": (list, lambda cls: cls([torch.arange(3.0)])),
    "stand-in": (object, lambda cls: cls()),
}
LINES = (
    "%tonumpy -o taken x", "%tonumpy --explain x", "%tensors", "%tensors x", "%tensors --release",
    "%tensorwatch x", "%tensorwatch --off", "%tensorstats x", "%tensordiff x x", "%weights x", "%totensor -o taken x",
    "tnp.card(x)", "repr(tnp.card(x))", "repr(tnp.weights(x))", "str(tnp.aliases(x))",
    "repr(tnp.compare(x, x))", "repr(tnp.stats(x))", "repr(tnp.inspect(x))", "repr(tnp.plan(x))", "repr(tnp.locate(x))",
    "tnp.view(x).close()", "type(tnp.to_numpy([x]))", "repr(tnp.weights([x]))",
    "%tonumpy -o taken [x]", "%weights {'a': x, 'b': [x]}", "type(tnp.to_tensor([x]))", "repr(tnp.compare([x], [x]))",
)  # fmt: skip


def odd_object(kind: str, asked: str) -> Any:
    """Return an object whose class raises when it is asked something; torch asks while it is made."""
    base, make = KINDS[kind]
    is_armed = []

    def answer(cls: Any) -> Any:
        if is_armed:
            raise RuntimeError(f"a class was asked for its {asked}")
        return slot(cls)

    slot = {**vars(object), **vars(type)}[asked].__get__
    # A class that says how it compares has no hash, unless it says that too.
    meta = type("Meta", (type(base),), {"__hash__": type.__hash__, asked: property(answer)})
    own = {"__tensornp__": lambda self: torch.arange(3.0)} if kind == "stand-in" else {}
    obj = make(meta("Hidden", (base,), own))
    is_armed.append(True)
    return obj


@pytest.mark.parametrize("asked", ["__name__", "__module__", "__mro__", "__hash__", "__eq__"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_display_prints_what_a_class_raises(shell, kind, asked):
    """Whatever its metaclass raises for: there is a card or a table, as text and as HTML, and nothing before it."""
    obj = odd_object(kind, asked)
    for _ in range(2):
        with capture_output() as captured:
            data = shell.show_within_modes(obj)
        assert set(data) == {"text/plain", "text/html"}
        assert captured.stdout + captured.stderr == ""


@pytest.mark.slow
@pytest.mark.parametrize("asked", ["__name__", "__module__", "__hash__", "__eq__"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_magic_prints_what_a_class_raises(shell, kind, asked):
    """Each shows something, or ends in a sentence of ours."""
    shell.namespace["x"] = odd_object(kind, asked)
    shell.run("import tensornp as tnp")
    wrong = {}
    for line in LINES:
        with capture_output() as captured:
            result = shell.ip.run_cell(line, store_history=False)
        error = result.error_in_exec
        said = captured.stdout + captured.stderr
        if (error is None and "Traceback" in said) or not isinstance(error, (NoneType, UsageError, TensornpError)):
            wrong[line] = said
    assert not wrong


@pytest.mark.parametrize(
    "call",
    ["stats(gone)", "locate(gone)", "plot(gone)", "compare(gone, w)", "compare(w, gone)", "weights(gone)",
     "to_tensor(gone)", "to_numpy(gone)", "card(gone)", "compare({'w': gone}, {'w': w})", "compare({'w': w}, gone)"],
)  # fmt: skip
def test_a_weak_proxy_of_what_is_gone_is_refused_in_a_sentence(call):
    """It raises for whatever it is asked, and `isinstance` asks it for its class."""
    with pytest.raises(TensornpError, match=r"not an? '?ProxyType'?$|not 'ProxyType'$|has none$"):
        eval(f"tnp.{call}", {"tnp": tnp, "w": torch.ones(2), "gone": gone()})


def test_a_weak_proxy_of_what_is_gone_among_the_names_is_nothing(shell):
    """Beside tensors, in a container, and after a magic."""
    shell.namespace.update(gone=gone(), w=torch.ones(2))
    shell.run("%tensors")
    assert "gone" not in table_text(shell)
    assert "1 tensor" in shell.show_within_modes([shell.namespace["w"], shell.namespace["gone"]])["text/plain"]
    for line in ("%totensor gone", "%tonumpy gone", "%tensorstats gone", "%tensordiff w gone", "%weights gone"):
        assert "ProxyType" in shell.fail(line)


def gone() -> Any:
    """Return a weak proxy of an object that no longer is."""
    return weakref.proxy(HiddenObject())
