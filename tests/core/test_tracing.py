"""Looking while something else records, transforms or fakes: it sees nothing, adds nothing, and its results stay."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from child import in_fork
from display import display
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from unchanged import unchanged

import tensornp as tnp

BIG = torch.arange(2000.0)
"""Enough elements that a card gathers corners."""


def look(*tensors: torch.Tensor) -> list[str]:
    """Do all that only looks, and return the texts of the cards."""
    for t in tensors:
        tnp.inspect(t)
    return [display(t) for t in tensors]


def no_look(*tensors: torch.Tensor) -> list[str]:
    """Stand in for `look` in the run that it is compared with."""
    return []


def work_while(looking: Callable[..., list[str]]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a computation that looks at its argument, at results, at views and at what is closed over."""

    def work(x):
        looking(x, BIG)
        y = (x * 2).sin()
        looking(y, y[:1], y.T)
        z = y @ y.T + BIG[:1]
        looking(z)
        return z.sum(0)

    return work


@pytest.mark.filterwarnings("ignore:`torch.jit.trace:DeprecationWarning")
def test_jit_trace_records_no_node_and_no_constant():
    """The traced graph is the same with and without displays."""
    x = torch.randn(3, 4)
    without, with_displays = (torch.jit.trace(work_while(f), x, check_trace=False).graph for f in (no_look, look))
    assert str(without) == str(with_displays)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
@pytest.mark.parametrize("pre_dispatch", [False, True])
def test_make_fx_records_nothing(mode, pre_dispatch):
    """The code of the graph is the same, and so are its constants."""
    without, with_displays = (
        make_fx(work_while(f), tracing_mode=mode, pre_dispatch=pre_dispatch, _allow_non_fake_inputs=True)(
            torch.ones(3, 4)
        )
        for f in (no_look, look)
    )
    assert without.code == with_displays.code
    assert without.state_dict().keys() == with_displays.state_dict().keys()
    assert torch.equal(without(torch.ones(3, 4)), with_displays(torch.ones(3, 4)))


class Exported(torch.nn.Module):
    """A model that looks at its input, at what it computes and at its weight."""

    def __init__(self, looking: Callable[..., list[str]]) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 2)
        self.looking = looking

    def forward(self, x):
        y = self.linear(x).relu()
        self.looking(x, y, y.T, self.linear.weight)
        return y.sum(0)


def test_export_gets_no_guard_and_the_same_program():
    """A batch size that is dynamic stays so: comparing it with a threshold would have bounded it."""
    new_guards: list[int] = []

    def look_and_count(*tensors: torch.Tensor) -> list[str]:
        shape_env = tensors[0].shape[0].node.shape_env
        before = len(shape_env.guards)
        cards = look(*tensors)
        new_guards.append(len(shape_env.guards) - before)
        return cards

    dynamic = {"x": {0: torch.export.Dim("batch")}}
    without, with_displays = (
        torch.export.export(Exported(f), (torch.ones(3, 4),), dynamic_shapes=dynamic, strict=False)
        for f in (no_look, look_and_count)
    )
    assert new_guards
    assert not any(new_guards)
    assert without.graph_module.code == with_displays.graph_module.code
    assert str(without.range_constraints) == str(with_displays.range_constraints)
    assert with_displays.module()(torch.ones(5000, 4)).shape == (2,)


@pytest.mark.slow
@in_fork
def test_compile_breaks_the_graph_once_and_compiles_nothing_of_ours():
    """Graphs, recompilations and results are those of a plain graph break at the same place."""
    from torch._dynamo.backends.registry import lookup_backend

    def run(middle: Callable[[torch.Tensor], object]) -> tuple[list[str], list[list[float]]]:
        graphs: list[str] = []

        def recording(module, inputs):
            graphs.append(module.code)
            return lookup_backend("aot_eager")(module, inputs)

        def function(x):
            y = x * 2
            middle(y)
            return (y + 1).sum(-1)

        torch._dynamo.reset()
        compiled = torch.compile(function, backend=recording)
        inputs = [torch.arange(4.0), torch.arange(5.0), torch.arange(6.0), torch.ones(2, 3).double(), torch.arange(4.0)]
        return graphs, [compiled(x).tolist() for x in inputs]

    expected = run(lambda y: torch._dynamo.graph_break())
    assert len(expected[0]) >= 4
    for read in (display, tnp.stats, lambda y: tnp.compare(y, y)):
        assert run(read) == expected
    assert run(lambda y: tnp.to_numpy(y, copy=True)) == expected


@in_fork
def test_an_array_made_in_compiled_code_is_right():
    """Values are those of the moment, and the first call costs no compilation of our frames."""
    from torch._dynamo import convert_frame

    frames: list[str] = []
    compile_frame = convert_frame.ConvertFrameAssert.__call__

    def noting(self, frame, *args, **kwargs):
        frames.append(frame.f_code.co_filename)
        return compile_frame(self, frame, *args, **kwargs)

    convert_frame.ConvertFrameAssert.__call__ = noting
    arrays = []

    @torch.compile(backend="eager")
    def function(x):
        y = x * 2
        arrays.append(tnp.to_numpy(y, copy=True))
        y.add_(1)
        return y

    assert function(torch.arange(3.0)).tolist() == [1, 3, 5]
    assert arrays[0].tolist() == [0, 2, 4]
    assert frames
    assert not [name for name in frames if Path(tnp.__file__).parent in Path(name).parents]


@in_fork
def test_fullgraph_refuses_with_a_reason():
    """Torch's error names our function, and since 2.8 why it cannot be in a graph."""
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"tensornp reads values|to_numpy"):
        torch.compile(lambda x: tnp.to_numpy(x * 2), backend="eager", fullgraph=True)(torch.ones(2))


TRANSFORMS = {
    "vmap": lambda f, x: torch.func.vmap(f)(x),
    "grad": lambda f, x: torch.func.grad(lambda x: f(x).sum())(x),
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (torch.ones_like(x),)),
    "functionalize": lambda f, x: torch.func.functionalize(f)(x),
    "hessian": lambda f, x: torch.func.hessian(lambda x: f(x).sum())(x),
    "vmap of grad": lambda f, x: torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(x),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_inside_a_transform_wrappers_show_why_and_constants_their_values(transform):
    """The wrapper has a card without values, a closed-over tensor an ordinary one, and the result is unchanged."""
    outside = torch.arange(3.0).requires_grad_()
    cards: list[str] = []

    def function(x, looking):
        y = (x * outside.detach()).sin()
        cards.extend(looking(x, y, outside, BIG))
        if looking is look:
            assert tnp.to_numpy(outside).tolist() == [0, 1, 2]
            assert tnp.to_numpy(outside, copy=True).tolist() == [0, 1, 2]
            with pytest.raises(tnp.NoDataError):
                tnp.to_numpy(y)
        return y

    x = torch.ones(2, 3)
    results = [transform(lambda x, looking=looking: function(x, looking), x) for looking in (no_look, look)]
    torch.testing.assert_close(results[0], results[1], rtol=0, atol=0)
    of_x, of_y, of_outside, of_big = cards[:4]
    assert "cannot be read here" in of_x
    assert "cannot be read here" in of_y
    assert repr(outside.detach().numpy()) in of_outside
    assert repr(BIG.numpy()) in of_big


with warnings.catch_warnings():
    # Quantized and nested tensors announce themselves as deprecated and as prototypes.
    warnings.simplefilter("ignore")
    KINDS = {
        "plain": BIG,
        "grad": torch.ones(3, requires_grad=True),
        "bfloat16": torch.ones(2000, dtype=torch.bfloat16),
        "conjugated": torch.full((3,), 1 + 2j).conj(),
        "negated": torch.full((3,), 1 + 2j).conj().imag,
        "expanded": torch.ones(1).expand(3000),
        "parameter": torch.nn.Parameter(torch.ones(2, 2)),
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(1.5),
        "sparse": torch.eye(3).to_sparse(),
        "meta": torch.ones(3, device="meta"),
        "quantized": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    }


@pytest.mark.slow
def test_defaults_of_the_user_change_no_card():
    """A default device of meta, and other default dtypes, are for tensors that the user makes."""
    contexts: list[Callable[[], AbstractContextManager[Any]]] = [
        nullcontext,
        lambda: torch.device("meta"),
        torch.inference_mode,
        torch.no_grad,
        torch.enable_grad,
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        lambda: torch.autograd.graph.saved_tensors_hooks(pytest.fail, pytest.fail),
    ]
    for name, t in KINDS.items():
        expected = display(t)
        for context in contexts:
            with context():
                assert display(t) == expected, name
        for dtype in (torch.float64, torch.bfloat16):
            torch.set_default_dtype(dtype)
            try:
                assert display(t) == expected, name
                with unchanged(t):
                    display(t)
            finally:
                torch.set_default_dtype(torch.float32)
        torch.set_default_device("meta")
        try:
            assert display(t) == expected, name
            if name == "plain":
                assert tnp.to_numpy(t, dtype="float64").tolist() == t.tolist()
                assert tnp.to_tensor(np.ones(3)).device.type == "cpu"
        finally:
            torch.set_default_device(None)


def test_a_dual_number_shows_its_primal_and_keeps_its_tangent():
    """Forward mode goes on as if nobody had looked."""
    primal, tangent = torch.arange(3.0), torch.ones(3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(primal, tangent)
        with unchanged(dual):
            text = display(dual)
        assert tnp.to_numpy(dual).tolist() == [0, 1, 2]
        assert forward_ad.unpack_dual(dual * 2).tangent.tolist() == [2, 2, 2]
    assert repr(np.arange(3, dtype=np.float32)) in text
