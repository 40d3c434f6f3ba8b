"""Whatever a user gives as an option ends in what was asked for, or in one short sentence of ours."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest
import torch

import tensornp as tnp
from tensornp.core.lowlevel.text import quoted
from tensornp.core.summary.options import DisplayOptions

MOST = 300


class Mute:
    """Raises for its text."""

    def __repr__(self):
        raise RuntimeError("no text")

    __str__ = __repr__


GIVEN = {
    "a long integer": 10**5000,
    "a long negative one": -(10**5000),
    "a long text": "x" * 10**6,
    "many lines": "x\n" * 10**5,
    "NaN": float("nan"),
    "a mute object": Mute(),
    "long ones in a list": [10**5000, "x" * 10**6, Mute()],
    "one of a class of a well-known name": type("array", (), {})(),
    "a tensor of several": torch.ones(3),
}


def options():
    """Yield the public functions with each of their parameters, and how they are called."""
    picture = torch.rand(3, 16, 16)
    firsts = {"to_tensor": np.ones(3)}
    others = {"locate": {"what": "nan"}, "compare": {"b": picture}}
    for name in tnp.__all__:
        function = getattr(tnp, name)
        # They change what the whole session knows.
        if not inspect.isfunction(function) or name.startswith(("register", "unregister", "load", "unload")):
            continue
        told = inspect.signature(function).parameters.values()
        for one in [one for one in told if one.kind is not one.VAR_KEYWORD][1:]:
            yield name, function, firsts.get(name, picture), others.get(name, {}), one.name
    for field in dataclasses.fields(DisplayOptions):
        yield "card", tnp.card, picture, {}, field.name


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_any_value_of_any_option_ends_in_one_short_sentence(given):
    """It is ours, whatever Python, NumPy or torch make of it."""
    seen, faults = set(), []
    for name, function, first, others, option in options():
        seen.add((name, option))
        try:
            function(first, **(others | {option: given}))
        except tnp.TensornpError as error:
            said = str(error)
            if len(said) > MOST or "\n" in said:
                faults.append(f"{name}({option}=): {len(said)} characters, {said[:80]!r}")
        except Exception as error:
            faults.append(f"{name}({option}=): {type(error).__name__}")
    assert not faults
    assert {("image", "mean"), ("stats", "axis"), ("plot", "index"), ("locate", "what"), ("card", "max_height")} <= seen


@pytest.mark.parametrize("given", list(GIVEN.values())[:-3], ids=list(GIVEN)[:-3])
def test_any_object_ends_in_one_short_sentence(given):
    """In the place of a tensor, too."""
    for function in (
        tnp.to_numpy,
        tnp.stats,
        tnp.image,
        tnp.plot,
        tnp.weights,
        tnp.card,
        tnp.TensorWidget,
        tnp.aliases,
    ):
        with pytest.raises(tnp.TensornpError) as raised:
            function(given)
        assert len(str(raised.value)) <= MOST and "\n" not in str(raised.value)


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_any_key_and_any_index_ends_in_one_short_sentence(given):
    """Of weights, what is compared, and statistics."""
    weights = tnp.weights({"tensor": torch.ones(3, 4), "array": np.ones((3, 4))})
    compared, stats = tnp.compare(weights, weights), tnp.stats(torch.rand(9))
    asked = [weights.__getitem__, compared.__getitem__, compared.directions, weights.find, stats.quantile]
    for entry in weights.values():
        asked += [entry.to_numpy, entry.plan, lambda index, entry=entry: entry.to_numpy((0, index))]
        asked.append(lambda dtype, entry=entry: entry.to_numpy(dtype=dtype))
    asked.append(lambda number: compared.directions("array", number))
    for function in asked:
        try:
            function(given)
        except tnp.TensornpError as error:
            assert len(str(error)) <= MOST and "\n" not in str(error)


def test_a_value_is_quoted_as_python_writes_it_and_cut():
    """A text, a number, a tuple; what is long, and what says nothing of itself."""
    for value in ("text", 3, -2.5, (1, 2), [None, True], {"a": 1}, "it's", 2**64, slice(1, 2)):
        assert quoted(value) == repr(value)
    assert quoted(10**5000) == "<int>"
    assert quoted(Mute()).startswith("<Mute instance at ")
    assert quoted(torch.ones(2)) == "<Tensor>"
    assert quoted([10**5000]) == "<list>"
    assert quoted("\x1b[2J") == repr("\x1b[2J")
    for value in ("x" * 10**6, ["x" * 10**6] * 100, "\n" * 10**6, {i: "y" * 99 for i in range(99)}):
        assert len(quoted(value)) <= 60 and quoted(value).isprintable()
