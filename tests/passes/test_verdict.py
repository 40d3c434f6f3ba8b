"""The sentence for each place in which the first NaN or Inf of a pass can be born."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_passes import FINE, INF, NAN, chain, figures, gradients, leaf, line, one_call, value, weight, with_grads

from tensornp.passes.records import (
    BACKWARD,
    BEFORE,
    FORWARD,
    OPTIMIZER,
    RAISED,
    RECOMPUTED,
    OptimizerStep,
    PassRecord,
)
from tensornp.passes.verdict.origin import origin_of
from tensornp.passes.verdict.problems import problems_of

MASK = (-INF, 0.0)


def attention(got: tuple[float, ...] = FINE, proj_got: tuple[float, ...] = (NAN,), mask=None) -> PassRecord:
    """Return a pass of an attention, whose own code is between two calls."""
    inputs = [value(got, "[0]"), *([value(mask, "['mask']")] if mask else [])]
    at = line(14, "return self.proj(h)")
    return PassRecord((
        one_call(0, "attn", "Attention", got=inputs, gave=[value(proj_got, maker=2)], order=3),
        one_call(
            1, "attn.qkv", "Linear", got=[value(got, "[0]")], gave=[value()], params=[weight()], parent=0, order=1,
        ),
        one_call(
            2, "attn.proj", "Linear", got=[value(proj_got, "[0]")], gave=[value(proj_got)], params=[weight()],
            parent=0, order=2, source=at,
        ),
    ))  # fmt: skip


def second(record: PassRecord) -> PassRecord:
    """Return the pass as if each module had been called before."""
    return replace(record, calls=tuple(replace(call, nth=1) for call in record.calls))


def back(*grads, names="fc1 fc2 fc3", forward=FINE) -> PassRecord:
    """Return a pass of calls of which each got a gradient, or none."""
    return chain(*(leaf(name, ends=forward, grad=grad) for name, grad in zip(names.split(), grads, strict=True)))


def stepped(record: PassRecord, num_calls: int, *spoilt, **facts) -> PassRecord:
    """Return the pass with a step of an optimizer after so many calls, and what that has made of parameters."""
    told = tuple((name, figures(*ends)) for name, ends in spoilt)
    step = OptimizerStep("Adam", num_calls, source=line(30, "optimizer.step()"), spoilt=told)
    return replace(record, steps=(step,), **facts)


def again(record: PassRecord, name: str, ends: tuple[float, ...], **facts) -> PassRecord:
    """Return the pass with a call that was recomputed."""
    at = len(record.calls)
    call = one_call(at, name, "Linear", got=[value()], gave=[value(ends)], phase=RECOMPUTED, order=at + 9, **facts)
    return replace(record, calls=(*record.calls, call))


CLEAN = "what modules gave was finite"

SITUATIONS = {
    "own code between children": (
        "nan", attention(), FORWARD, "attn",
        "the first NaN was born in attn, in its own code, before proj got it, model.py:14 `return self.proj(h)`; its "
        "inputs and weights were finite",
    ),
    "own code, of a mask": (
        "nan", attention(mask=MASK), FORWARD, "attn",
        "the first NaN was born in attn, in its own code, before proj got it, model.py:14 `return self.proj(h)`; its "
        "input ['mask'] held −Inf",
    ),
    "a leaf": (
        "nan", chain(leaf("0"), leaf("norm", "LayerNorm", (NAN,), source=line(7, "h = self.norm(h)")), inside="Net"),
        FORWARD, "norm",
        "the first NaN was born in norm (LayerNorm), model.py:7 `h = self.norm(h)`; its inputs were finite, from −1 to "
        "2",
    ),
    "a leaf whose input is constant": (
        "nan", chain(leaf("0", ends=(0.5, 0.5)), leaf("norm", "LayerNorm", (NAN,))), FORWARD, "norm",
        "the first NaN was born in norm (LayerNorm); its inputs were finite, 0.5 throughout",
    ),
    "the second call of a module": (
        "nan", chain(leaf("act", "GELU"), leaf("act", "GELU", (NAN,), nth=1)), FORWARD, "act",
        "the first NaN was born in act (GELU, 2nd call); its inputs were finite, from −1 to 2",
    ),
    "masked rows": (
        "nan", chain(leaf("softmax", "Softmax", (NAN,), got=(value(MASK, "[0]"),))), FORWARD, "softmax",
        "the first NaN was born in softmax (Softmax); its input [0] held −Inf",
    ),
    "own code, in a second call": (
        "nan", second(attention()), FORWARD, "attn",
        "the first NaN was born in attn (2nd call), in its own code, before proj got it, model.py:14 "
        "`return self.proj(h)`; its inputs and weights were finite",
    ),
    "after the last child": (
        "nan", PassRecord((
            one_call(0, "", "Net", got=[value()], gave=[value((NAN,))], order=2),
            one_call(1, "fc", "Linear", got=[value()], gave=[value()], params=[weight()], parent=0, order=1),
        )), FORWARD, "Net",
        "the first NaN was born in Net, in its own code: nothing that it called gave it; its inputs and "
        "weights were finite",
    ),
    "a weight": (
        "nan", chain(leaf("body"), leaf("head", ends=(NAN,), params=(weight((NAN,)),))), BEFORE, "head.weight",
        "head.weight held NaN before the pass",
    ),
    "a weight that holds −Inf": (
        "inf", chain(leaf("head", ends=(-INF, INF), params=(weight(MASK),))), BEFORE, "head.weight",
        "head.weight held −Inf before the pass",
    ),
    "NaN of a weight that holds Inf": (
        "nan", chain(leaf("head", ends=(NAN,), params=(weight((-1.0, INF)),))), FORWARD, "head",
        "the first NaN was born in head (Linear); its weight held Inf",
    ),
    "a buffer, whose name is whole": (
        "nan", chain(leaf("norm", ends=(NAN,), params=(weight((NAN,), "norm.running_var", requires_grad=False),))),
        BEFORE, "norm.running_var", "norm.running_var held NaN before the pass",
    ),
    "a weight that is not used": (
        "nan", chain(leaf("emb", "Embedding", params=(weight((NAN,)),))), BEFORE, "emb.weight",
        "emb.weight held NaN before the pass; what emb gave was finite",
    ),
    "a weight that is not used, before what is born": (
        "nan", chain(leaf("emb", "Embedding", params=(weight((NAN,)),)), leaf("log", "Log", (NAN,))), FORWARD, "log",
        "the first NaN was born in log (Log); its inputs were finite, from −1 to 2",
    ),
    "a weight that was written, and by no step": (
        "nan", chain(leaf("fc"), leaf("fc", ends=(NAN,), params=(weight((NAN,)),), nth=1)), FORWARD, "fc.weight",
        "fc.weight held NaN when fc (Linear, 2nd call) was called, and was finite before: written since",
    ),
    "a weight that a step has spoilt": (
        "nan", stepped(
            chain(leaf("fc"), leaf("fc", ends=(NAN,), params=(weight((NAN,)),), nth=1)), 1, ("fc.weight", (NAN,))
        ), OPTIMIZER, "fc.weight",
        "fc.weight held NaN after a step of the optimizer (Adam, model.py:30 `optimizer.step()`), and was finite "
        "before it",
    ),
    "weights that the last step has spoilt": (
        "inf", stepped(chain(leaf("fc", grad=FINE)), 1, ("fc.weight", (-INF, INF)), ("fc.bias", (INF, INF))),
        OPTIMIZER, "fc.weight",
        "fc.weight and 1 more parameter held Inf after a step of the optimizer (Adam, model.py:30 "
        "`optimizer.step()`), and were finite before it",
    ),
    "a weight that a step has spoilt by a gradient": (
        "nan", stepped(
            chain(
                leaf("fc", grad=(NAN,)),
                leaf(
                    "fc", ends=(NAN,), params=(weight((NAN,)),), grad=(NAN,), grad_orders=(1,), nth=1, num_gradients=1
                ),
            ),
            1, ("fc.weight", (NAN,)), backwards=(0, 1),
        ), BACKWARD, "fc",
        "the first NaN was born in the loss or its backward, after fc, the last call with a gradient, or came "
        "in with targets and the like",
    ),
    "a buffer that a call has spoilt": (
        "nan", chain(
            leaf("bn", "BatchNorm1d", params=(weight(path="running_var", requires_grad=False),)),
            leaf("bn", "BatchNorm1d", (NAN,), params=(weight((NAN,), "running_var", requires_grad=False),), nth=1),
        ), FORWARD, "bn.running_var",
        "bn.running_var held NaN when bn (BatchNorm1d, 2nd call) was called, and was finite before: written since",
    ),
    "the input of the model": (
        "nan", chain(leaf("0", ends=(NAN,), got=(value((NAN,), "['x']"),)), inside="Net"), BEFORE, "Net",
        "the input ['x'] held NaN when Net was called",
    ),
    "the input of a later model": (
        "nan", chain(leaf("body"), leaf("loss", "MSELoss", (NAN,), got=(value((NAN,), "[0]"),))), FORWARD, "loss",
        "the input [0] held NaN when loss (MSELoss) was called: it came with the call, or was born after body had "
        "returned",
    ),
    "what was written over in the cell": (
        "nan", chain(leaf("body"), leaf("loss", "MSELoss", (NAN,), got=(value((NAN,), "[0]", 0),))), FORWARD, "loss",
        "the input [0] held NaN when loss (MSELoss) was called: it came with the call, or was born after body had "
        "returned",
    ),
    "what a call gave that was not read": (
        "nan", chain(leaf("fp8", ends=None), leaf("fc", ends=(NAN,), got=(value((NAN,), "[0]", 0),))), FORWARD, "fp8",
        "the first NaN was born in fp8 (Linear); its inputs and weights were finite, the inputs from −1 to 2",
    ),
    "overflow": (
        "inf", chain(leaf("0", ends=(-61300.0, 20.0), dtype="torch.float16"),
                     leaf("mlp.2", ends=(-9.0, INF), dtype="torch.float16")), FORWARD, "mlp.2",
        "mlp.2 (Linear) left the range of float16 (65,504): its inputs reached 61,300",
    ),
    "an overflow, and NaN of it": (
        "nan", chain(leaf("mlp.2", ends=(-9.0, INF), dtype="float16"), leaf("norm", "LayerNorm", (NAN,))),
        FORWARD, "norm",
        "the first NaN was born in norm (LayerNorm); its input [0] held Inf; before, mlp.2 (Linear) left the range of "
        "float16 (65,504): its inputs reached 2",
    ),
    "a division by 0 is no overflow": (
        "inf", chain(leaf("div", "Div", (0.0, INF))), FORWARD, "div",
        "the first Inf was born in div (Div); its inputs were finite, from −1 to 2",
    ),
    "what reaches nothing": (
        "nan", PassRecord((
            one_call(0, "", "Net", got=[value()], gave=[value()], order=2),
            one_call(1, "log", "Log", got=[value()], gave=[value((NAN,))], parent=0, order=1),
        )), FORWARD, "log",
        "the first NaN was born in log (Log); its inputs were finite, from −1 to 2; what Net gave was finite",
    ),
    "a call that raised": (
        "nan", chain(leaf("fc", ends=(NAN,)), replace(leaf("dist", "Dist"), outputs=(), status=RAISED)), FORWARD, "fc",
        "the first NaN was born in fc (Linear); its inputs and weights were finite, the inputs from −1 to 2",
    ),
    "recomputed": (
        "nan", again(chain(leaf("fc")), "fc", (NAN,)), BACKWARD, "fc",
        "the first NaN was born in fc (Linear); its inputs were finite, from −1 to 2; this was when a checkpoint "
        "recomputed it in the backward",
    ),
    "recomputed, and in the forward": (
        "nan", again(chain(leaf("fc", ends=(NAN,))), "fc", (NAN,)), FORWARD, "fc",
        "the first NaN was born in fc (Linear); its inputs and weights were finite, the inputs from −1 to 2",
    ),
    "after the last call": (
        "nan", back((NAN,), (NAN,), (NAN,)), BACKWARD, "fc3",
        f"{CLEAN}; the first NaN was born in the loss or its backward, after fc3, the last call "
        "with a gradient, or came in with targets and the like",
    ),
    "between two calls": (
        "nan", back((NAN,), FINE, FINE), BACKWARD, "fc1",
        f"{CLEAN}; NaN entered the gradients between fc2 (fine) and fc1",
    ),
    "an overflow of gradients": (
        "inf", back((-INF, INF), FINE, FINE), BACKWARD, "fc1",
        f"{CLEAN}; Inf entered the gradients between fc2 (fine) and fc1",
    ),
    "NaN of Inf": (
        "nan", back((NAN,), (-1.0, INF), (-1.0, INF)), BACKWARD, "fc1",
        f"{CLEAN}; NaN entered the gradients between fc2 (Inf) and fc1; before, the first Inf was "
        "born in the loss or its backward, after fc3, the last call with a gradient, or came in with targets and the "
        "like",
    ),
    "in the backward of a call": (
        "nan", with_grads(back(FINE, FINE, FINE), gradients(("fc3.weight", FINE), ("fc2.weight", (NAN,)))),
        BACKWARD, "fc2",
        f"{CLEAN}; the first NaN came in the backward of fc2 (Linear): the gradient of what it gave was "
        "finite, that of fc2.weight was not",
    ),
    "in own code": (
        "nan", chain(leaf("fc1", grad=(NAN,)), leaf("fc2", got=(value(path="[0]"),), grad=FINE)), BACKWARD, "fc1",
        f"{CLEAN}; NaN entered the gradients in the cell, after fc1: those of the calls that followed "
        "were fine",
    ),
    "by parameters alone, NaN of an infinity": (
        "nan", with_grads(chain(leaf("fc")), gradients(("b.bias", (INF,)), ("b.weight", (NAN,)))),
        BACKWARD, "b.weight", f"{CLEAN}; NaN entered the gradients between b.bias (Inf) and b.weight",
    ),
    "by parameters alone": (
        "nan", with_grads(chain(leaf("fc")), gradients(("c.weight", FINE), ("b.weight", (NAN,)), ("a.weight", (NAN,)))),
        BACKWARD, "b.weight", f"{CLEAN}; NaN entered the gradients between c.weight (fine) and b.weight",
    ),
    "of the first parameter": (
        "nan", with_grads(chain(leaf("fc")), gradients(("c.weight", (NAN,)))), BACKWARD, "c.weight",
        f"{CLEAN}; the gradient of c.weight, the first that came, held NaN",
    ),
}  # fmt: skip


def test_a_gradient_of_an_infinity_was_not_born_in_the_loss():
    """The forward held it."""
    record = back((NAN,), (-1.0, INF), (-1.0, INF), forward=(-1.0, INF))
    assert problems_of(record)[:2] == [
        "the first Inf was born in fc1 (Linear); its inputs and weights were finite, the inputs from −1 to 2",
        "NaN entered the gradients between fc2 (Inf) and fc1; before, what fc3 gave held Inf, and its gradient held "
        "Inf",
    ]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_place_is_named_in_one_sentence(situation):
    what, record, phase, name, sentence = SITUATIONS[situation]
    for asked in (what,) if "NaN of" in situation else (what, "nonfinite"):
        origin = origin_of(record, asked)
        assert origin is not None
        assert (origin.phase, origin.name, origin.sentence) == (phase, name, sentence)
    assert problems_of(record)[0] == sentence


HEALTHY = {
    "nothing": PassRecord(),
    "finite": chain(leaf("fc"), leaf("fc2"), inside="Net"),
    "a mask that came with the call": attention(mask=MASK, proj_got=FINE),
    "a mask of own code": chain(leaf("softmax", "Softmax", got=(value(MASK, "[0]"),))),
    "a mask that is a buffer": chain(leaf("attn", params=(weight(MASK, "mask", requires_grad=False),))),
    "a mask that a call gave, inside of one whose result is finite": PassRecord((
        one_call(0, "", "Net", got=[value()], gave=[value()], order=3),
        one_call(1, "mask", "Mask", got=[value()], gave=[value(MASK)], parent=0, order=1),
        one_call(2, "softmax", "Softmax", got=[value(MASK, "[0]", 1)], gave=[value()], parent=0, order=2),
    )),
    "what was not read": chain(leaf("fp8", ends=None), leaf("fp8.2", ends=None)),
    "a finite backward": with_grads(back(FINE, None, FINE), gradients(("fc1.weight", FINE), ("fc2.weight", None))),
}  # fmt: skip


@pytest.mark.parametrize("situation", HEALTHY)
def test_nothing_is_named_where_nothing_is_wrong(situation):
    """Masks are not accused, nor is what cannot be read."""
    assert [origin_of(HEALTHY[situation], what) for what in ("nan", "inf", "nonfinite")] == [None] * 3


def test_what_a_mask_has_beside_it_is_named_and_not_the_mask():
    record = chain(leaf("attn", got=(value(path="[0]"), value(MASK, "[1]"))), leaf("fc", ends=(-1.0, INF)))
    origin = origin_of(record, "nonfinite")
    assert origin is not None and origin.name == "fc"


def test_the_source_is_the_line_at_which_it_was_born():
    origin = origin_of(attention(), "nan")
    assert origin is not None and str(origin.source) == "model.py:14 `return self.proj(h)`"
    assert (origin.call, origin.inputs_finite) == (0, True)
