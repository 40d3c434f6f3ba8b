"""What else a pass tells: each with its numbers, alike ones in one sentence, and nothing of a pass that is well."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_passes import FINE, INF, NAN, chain, gradients, leaf, line, one_call, value, weight, with_grads

from tensornp.passes.records import RECOMPUTED, PassRecord
from tensornp.passes.verdict.findings import findings_of
from tensornp.passes.verdict.problems import problems_of

ZERO = (0.0, 0.0)


def layers(norms, grads=(), name="layers.{}", inside="Net", **facts) -> PassRecord:
    """Return a pass of numbered layers with norms of what they gave, and of what came back."""
    backs = [{"grad": FINE, "grad_norm": norm} for norm in grads] or [{}] * len(norms)
    calls = (
        leaf(name.format(i), "Block", norm=norm, **back, **facts)
        for i, (norm, back) in enumerate(zip(norms, backs, strict=True))
    )
    return chain(*calls, inside=inside)


def recomputed(record: PassRecord, name: str, ends: tuple[float, ...]) -> PassRecord:
    """Return the pass with a call that a checkpoint made again."""
    at = len(record.calls)
    call = one_call(at, name, "Linear", got=[value()], gave=[value(ends)], phase=RECOMPUTED, order=at + 9, nth=1)
    return replace(record, calls=(*record.calls, call))


SITUATIONS = {
    "growth": (
        layers([1.6**i for i in range(12)]),
        ["norms grow ×1.6 a layer, from 1 at layers.0 to 176 at layers.11"],
    ),
    "growth that begins late": (
        layers([3, 3.1, 3, 3.2, 3, 30, 300, 3000]),
        ["norms grow ×10 a layer, from 3 at layers.4 to 3,000 at layers.7"],
    ),
    "decay": (
        layers([0.4**i for i in range(6)]),
        ["norms fall ×0.4 a layer, from 1 at layers.0 to 0.0102 at layers.5"],
    ),
    "a gradient that vanishes": (
        layers([3.0] * 8, [1e-9 * 10**i for i in range(8)]),
        ["gradient norms fall ×0.1 a layer, from 0.01 at layers.7 to 1e−09 at layers.0"],
    ),
    "a gradient that explodes": (
        layers([3.0] * 6, [2.0 ** (20 - i) for i in range(6)]),
        ["gradient norms grow ×2 a layer, from 32,768 at layers.5 to 1,048,576 at layers.0"],
    ),
    "parts of layers": (
        layers([3.0 * 5**i for i in range(5)], name="net.layers.{}.mlp.2"),
        ["norms grow ×5 a layer, from 3 at net.layers.0.mlp.2 to 1,875 at net.layers.4.mlp.2"],
    ),
    "dead units": (
        chain(leaf("mlp.0"), leaf("mlp.1", "ReLU", ZERO)),
        ["mlp.1 (ReLU) gave 12 values, all of them 0: its units are dead"],
    ),
    "several of them": (
        chain(leaf("0"), leaf("1", "ReLU", ZERO), leaf("2"), leaf("3", "GELU", ZERO)),
        ["2 activations gave 0 and nothing else: 1 (ReLU), 3 (GELU)"],
    ),
    "a constant": (
        chain(leaf("fc"), leaf("drop", "Dropout", (0.5, 0.5))),
        ["drop (Dropout) gave one value only, 0.5"],
    ),
    "an infinity throughout, of which the verdict tells": (chain(leaf("fc"), leaf("fc2", ends=(INF, INF))), []),
    "a constant that is 0, behind its sign": (
        chain(leaf("fc"), leaf("drop", "Dropout", (-0.0, 0.0))),
        ["drop (Dropout) gave one value only, 0"],
    ),
    "near the edge": (
        chain(leaf("layers.8", dtype="float16"), leaf("layers.9", ends=(-40000.0, 3.0), dtype="float16")),
        ["layers.9 comes within a factor of 2 of float16's range (65,504); it reached 40,000"],
    ),
    "near the edge of bfloat16": (
        chain(leaf("a", ends=(0.0, 2e38), dtype="torch.bfloat16"), leaf("b", ends=(0.0, 3e38), dtype="torch.bfloat16")),
        ["2 calls come within a factor of 2 of bfloat16's range (3.39e+38): a, b; they reached 3e+38"],
    ),
    "no gradient": (
        with_grads(chain(leaf("fc")), gradients(("fc.weight", FINE), ("fc.bias", None))),
        ["fc.bias got no gradient"],
    ),
    "no gradients": (
        with_grads(PassRecord(), gradients(*((f"fc.{i}", None) for i in range(5)))),
        ["5 parameters got no gradient: fc.0, fc.1, fc.2, …"],
    ),
    "a gradient that is lost": (
        chain(
            leaf("0", requires_grad=True),
            leaf("1", source=line(20, "with torch.no_grad():")),
            leaf("2"),
            inside="Net",
        ),
        ["1 (Linear) returned a tensor without a gradient, though its inputs had one, model.py:20 `with "
         "torch.no_grad():`"],
    ),
    "recomputed otherwise": (
        recomputed(chain(leaf("fc")), "fc", (-1.0, 3.0)),
        ["fc came out otherwise when it was recomputed: RNG or state had moved"],
    ),
    "a weight that is not finite": (
        chain(leaf("emb", "Embedding", params=(weight((NAN,)),))), ["emb.weight held NaN before the pass"],
    ),
    "weights that are not finite": (
        chain(leaf("a", params=(weight((NAN,)),)), leaf("b", params=(weight((-1.0, INF)),))),
        ["2 parameters held Inf or NaN before the pass: a.weight, b.weight"],
    ),
    "buffers that are not finite": (
        chain(leaf("bn", params=[weight((NAN,), name, requires_grad=False, relation="buffer") for name in "ab"])),
        ["2 buffers held NaN before the pass: bn.a, bn.b"],
    ),
    "an input that is not finite": (
        chain(leaf("fc", got=(value((NAN,), "['x']"),))), ["the input ['x'] held NaN when fc (Linear) was called"],
    ),
    "called twice": (
        chain(leaf("shared"), leaf("act", "GELU"), leaf("shared", nth=1), leaf("act", "GELU", nth=1), inside="Net"),
        ["shared is called 2 times; one set of weights"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_finding_is_one_sentence(situation):
    record, sentences = SITUATIONS[situation]
    assert [one.sentence for one in findings_of(record)] == sentences


HEALTHY = {
    "nothing": PassRecord(),
    "norms that stay": layers([3.0, 3.3, 2.9, 3.5, 3.1, 3.0]),
    "three layers": layers([1, 10, 100]),
    "growth by little": layers([1.3**i for i in range(12)]),
    "growth over few": layers([1.0, 1.6, 2.5, 4.0]),
    "layers of several shapes": chain(*(leaf(f"layers.{i}", norm=9.0**i, shape=(i + 1, 2)) for i in range(6))),
    "norms that are not finite": layers([1.0, NAN, INF, 0.0, NAN, INF]),
    "numbers that are no names": layers([9.0**i for i in range(6)], name="conv{}"),
    "a constant made of one": chain(leaf("0", got=(value((1.0, 1.0), "[0]"),), ends=(2.0, 2.0), params=())),
    "a number": chain(leaf("loss", "MSELoss", got=(value(),), ends=(0.5, 0.5), shape=())),
    "the edge of float32": chain(leaf("fc", ends=(0.0, 40000.0))),
    "no backward": replace(PassRecord(), grads=gradients(("fc.weight", None))),
    "no gradient anywhere": chain(leaf("fc"), leaf("fc2")),
    "a reentrant checkpoint": recomputed(chain(leaf("fc", got=(value(path="[0]", requires_grad=True),))), "fc", FINE),
    "recomputed as before": recomputed(chain(leaf("fc")), "fc", FINE),
    "NaN as before": recomputed(chain(leaf("fc", ends=(NAN,))), "fc", (NAN,)),
    "several batches": chain(leaf("fc"), leaf("fc", nth=1)),
    "a mask": chain(leaf("fc", got=(value((-INF, 0.0), "[0]"),))),
    "indices": chain(leaf("argmax", "Argmax", got=(value(requires_grad=True),), dtype="int64")),
}


@pytest.mark.parametrize("situation", HEALTHY)
def test_of_what_is_well_nothing_is_said(situation):
    assert findings_of(HEALTHY[situation]) == ()


def test_of_a_layer_and_its_parts_that_grow_alike_the_layer_is_named():
    calls = []
    for i in range(6):
        at = 2 * i
        calls.append(one_call(at, f"layers.{i}", "Block", got=[value()], gave=[value(norm=4.0**i)], order=at + 1))
        calls.append(
            one_call(at + 1, f"layers.{i}.fc", "Linear", got=[value()], gave=[value(norm=4.0**i)], parent=at, order=at)
        )
    (finding,) = findings_of(PassRecord(tuple(calls)))
    assert (finding.name, finding.figures) == ("layers.0", pytest.approx((4, 1, 1024)))


def test_problems_begin_with_the_verdict_and_end_with_a_number():
    calls = [
        leaf("0", requires_grad=True, params=(weight((NAN,)),), ends=(NAN,)),
        leaf("1", "ReLU", ZERO),
        leaf("2", ends=(0.0, 60000.0), dtype="float16"),
        leaf("3", "Dropout", (2.0, 2.0)),
        leaf("4"),
        leaf("4", nth=1),
    ]
    record = with_grads(chain(*calls, inside="Net"), gradients(("0.bias", None)))
    problems = problems_of(replace(record, error="RuntimeError: no"))
    assert problems == [
        "0.weight held NaN before the pass; what Net gave was finite",
        "RuntimeError after 7 calls; the last that returned was Net",
        "1 (ReLU) returned a tensor without a gradient, though its inputs had one",
        "0.bias got no gradient",
        "1 (ReLU) gave 12 values, all of them 0: its units are dead",
        "3 more",
    ]


def test_a_pass_that_is_well_has_no_problems():
    assert problems_of(chain(leaf("fc"), leaf("fc2"), inside="Net")) == []
