"""One row for each kind of tensor: whoever asks what a kind means reads it there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch

import tensornp as tnp
from tensornp.core.convert import to_numpy as conversion
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor import info, kinds
from tensornp.core.tensor.form import Form, form_of
from tensornp.core.tensor.kinds import KINDS, Kind
from tensornp.core.tensor.reading import READINGS, Reading
from tensornp.render.tensor.card import tensor_html, tensor_text

SRC = Path(tnp.__file__).parent


class MadeUp(torch.Tensor):
    """A kind that torch does not have."""


@pytest.fixture
def _made_up(monkeypatch):
    kind = Kind(
        "made-up",
        step=tnp.Step.TO_LOCAL,
        label="made up",
        sentence="There is no such kind.",
        obstacle=kinds.Obstacle("that was made up", "{type_name} was made up"),
        access="t.inner",
    )
    monkeypatch.setitem(KINDS, kind.name, kind)
    monkeypatch.setitem(READINGS, kind.name, Reading(held=lambda t: t.inner, detail=lambda t: "by hand"))

    def form(t):
        return Form("available", kind) if type(t) is MadeUp else form_of(t)

    for module in (info, conversion):
        monkeypatch.setattr(module, "form_of", form)


@pytest.mark.usefixtures("_made_up")
def test_a_made_up_kind_needs_a_row_a_reading_function_and_to_be_told_apart():
    """Its badge, its obstacle, its code, its values and its receipt come from these alone."""
    t = torch.zeros(3).as_subclass(MadeUp)
    t.inner = torch.arange(3.0).bfloat16()
    plan = tnp.plan(t)
    assert plan.steps == (tnp.Step.TO_LOCAL, tnp.Step.WIDEN)
    assert plan.code == "t.inner.to(torch.float32).numpy()"
    assert tnp.to_numpy(t).tolist() == [0, 1, 2]
    with pytest.raises(tnp.CopyRequiredError, match="tensor that was made up cannot share memory"):
        tnp.to_numpy(t, copy=False)
    summary = summarize(t, DisplayOptions())
    assert "copy: MadeUp was made up" in tnp.plan(t).reason
    for text in (tensor_text(summary), tensor_html(summary, DisplayOptions())):
        assert "made up · by hand" in text
        assert "array([0., 1., 2.], dtype=float32)" in text


def test_each_row_has_its_reading_function():
    """And the other way round."""
    assert KINDS.keys() == READINGS.keys()
    assert [kind.name for kind in KINDS.values() if kind.access and READINGS[kind.name].held is None] == []


@pytest.mark.slow
def test_nobody_asks_for_a_kind_by_its_name():
    """What differs from one kind to the next is a field of its row."""
    for path in SRC.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                asked = any(isinstance(side, ast.Attribute) and side.attr in ("kind", "form") for side in sides)
                words = {n.value for side in sides for n in ast.walk(side) if isinstance(n, ast.Constant)}
                assert not (asked and words & KINDS.keys()), f"{path.relative_to(SRC)}:{node.lineno}"
