"""One class for each kind of tensor: a new kind needs nothing else."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp
from tensornp.core.summary.card import summarize
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor import kinds
from tensornp.core.tensor.form import Kind
from tensornp.core.tensor.steps import Obstacle, Step
from tensornp.render.tensor.card import tensor_html, tensor_text


class MadeUp(torch.Tensor):
    """A kind that torch does not have."""


class MadeUpKind(Kind):
    name = "made-up"
    step = Step.TO_LOCAL
    label = "made up"
    sentence = "There is no such kind."
    obstacle = Obstacle("that was made up", "{type_name} was made up")
    access = "t.inner"

    def holds(self, t, bare):
        return type(t) is MadeUp

    def inner(self, t):
        return t.inner

    def detail(self, t):
        return "by hand"


def test_a_new_kind_needs_its_class_alone(monkeypatch):
    """Its badge, obstacle, code, values and receipt come from the class."""
    monkeypatch.setattr(kinds, "KINDS", (MadeUpKind(), *kinds.KINDS))
    t = torch.zeros(3).as_subclass(MadeUp)
    t.inner = torch.arange(3.0).bfloat16()
    plan = tnp.plan(t)
    assert plan.steps == (tnp.Step.TO_LOCAL, tnp.Step.WIDEN)
    assert plan.code == "t.inner.to(torch.float32).numpy()"
    assert "copy: MadeUp was made up" in plan.reason
    assert tnp.to_numpy(t).tolist() == [0, 1, 2]
    with pytest.raises(tnp.CopyRequiredError, match="tensor that was made up cannot share memory"):
        tnp.to_numpy(t, copy=False)
    summary = summarize(t, DisplayOptions())
    for text in (tensor_text(summary), tensor_html(summary, DisplayOptions())):
        assert "made up · by hand" in text
        assert "array([0., 1., 2.], dtype=float32)" in text
