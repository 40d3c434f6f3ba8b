"""What attackers found: programs that were ended, or of which something untrue was said, while they were followed."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import Any

import pytest
import torch
from older import since
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_map_only
from torch.utils.checkpoint import checkpoint

import tensornp as tnp
from tensornp.passes.recording.module_hooks import _FOLLOWING

NAN, INF = float("nan"), float("inf")


def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Run forward and backward, and return the loss."""
    loss = model(x).square().sum()
    loss.backward()
    return loss


def test_a_lazy_module_can_be_trained():
    """Its parameter gets a shape in the first call."""
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.ReLU())
    with tnp.follow(model) as run:
        step(model, torch.randn(3, 5))
    assert run.grads["0.weight"].norm == pytest.approx(model[0].weight.grad.norm().item(), rel=1e-5)
    assert run["0"].params[0].shape == (4, 5)


def test_a_parameter_may_get_another_shape_in_the_block():
    """Through .data, as pruning does."""
    model = nn.Linear(4, 3)
    with tnp.follow(model) as run:
        step(model, torch.ones(2, 4))
        model.weight.grad = None
        model.weight.data = torch.ones(3, 5)
        step(model, torch.ones(2, 5))
    assert [call.params[0].shape for call in run.calls] == [(3, 4), (3, 5)]


def test_a_model_that_is_dropped_in_the_block_is_freed():
    """With its weights and gradients."""
    with tnp.follow():
        model = nn.Linear(4, 3)
        step(model, torch.ones(2, 4))
        storages = [StorageWeakRef(one.untyped_storage()) for one in (model.weight, model.weight.grad)]
        del model
        gc.collect()
        assert all(storage.expired() for storage in storages)


def test_a_sparse_gradient_is_told_as_a_whole():
    """With the zeros of what is not stored, and without them where all of it is."""
    for indices, least in (([1, 1, 3], 0.0), ([0, 1, 2, 3], 1.0)):
        model = nn.Embedding(4, 2, sparse=True)
        with tnp.follow(model) as run:
            model(torch.tensor(indices)).sum().backward()
        grad, told = model.weight.grad.to_dense(), run.grads["weight"]
        assert (told.min, told.max, told.count) == (least, grad.max().item(), 8)
        assert (told.sum, told.norm) == pytest.approx((grad.sum().item(), grad.norm().item()))


@pytest.mark.parametrize("is_decorated", [True, False])
def test_a_teacher_has_not_lost_a_gradient(is_decorated: bool):
    """That is meant to have none, whether it is called without gradients or says so itself."""

    class Teacher(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad() if is_decorated else nullcontext():
                return super().forward(x)

    first, teacher, student = nn.Linear(2, 2), Teacher(2, 2), nn.Linear(2, 2)
    with tnp.follow() as run:
        x = first(torch.ones(1, 2))
        with nullcontext() if is_decorated else torch.no_grad():
            aim = teacher(x)
        (student(x) - aim).square().sum().backward()
    assert not any("returned a tensor without a gradient" in problem for problem in run.problems)


def test_an_error_that_was_handled_is_not_the_reason_of_another_one():
    """Which the block ends with."""
    model = nn.Linear(6, 2)
    with pytest.raises(KeyError), tnp.follow(model) as run:
        with suppress(RuntimeError):
            model(torch.ones(2, 3))
        {}["key"]
    assert run.failed is None
    assert run.problems[0].startswith("KeyError after 1 call")
    with pytest.raises(ValueError, match="mine"), tnp.follow(model) as run:
        try:
            model(torch.ones(2, 3))
        except RuntimeError as error:
            raise ValueError("mine") from error
    assert run.failed is run.calls[0]


def test_keyword_arguments_are_read_before_the_call():
    """As it may write them."""

    class Writes(nn.Module):
        def forward(self, *, hidden: torch.Tensor) -> torch.Tensor:
            return hidden.fill_(NAN)

    with tnp.follow() as run:
        Writes()(hidden=torch.ones(2))
    (value,) = run.calls[0].inputs
    assert (value.path, value.has_nan) == ("['hidden']", False)
    assert run.calls[0].outputs[0].relation == "in place"
    assert run.first("nan").sentence.startswith("the first NaN was born in Writes")


def test_running_figures_of_a_training_are_read_at_each_call():
    """Torch does not count what batch norm writes."""
    model = nn.BatchNorm1d(2)
    with tnp.follow(model) as run:
        for _ in range(3):
            model(torch.full((4, 2), 5.0) + torch.randn(4, 2))
    means = [next(one for one in call.params if one.path == "running_mean").max for call in run.calls]
    assert means[0] == 0 < means[1] < means[2]


def test_modules_without_a_name_are_told_apart():
    """Of a plain list, and made in the forward."""

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Linear(2, 2) for _ in range(3)]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
            return x

    model = Plain()
    with torch.no_grad():
        model.layers[1].weight.fill_(NAN)
    with tnp.follow() as run:
        model(torch.ones(1, 2))
    assert [call.title for call in run.calls][1:] == ["(Linear)", "(Linear 2)", "(Linear 3)"]
    assert run.first("nan").sentence == "(Linear 2).weight held NaN before the pass"
    assert not any("one set of weights" in problem for problem in run.problems)
    models = [nn.Linear(2, 2) for _ in range(3)]
    with tnp.follow() as run:
        sum(step(one, torch.ones(1, 2)) for one in models)
    assert len(run.grads) == 6
    assert [call.title for call in run.calls] == ["Linear", "Linear #2", "Linear #3"]


def test_expressions_of_odd_names_are_code():
    """Of dictionaries of modules, and of names that are no words of Python."""
    model = nn.ModuleDict({"a b": nn.Linear(2, 2), "0": nn.Linear(2, 2)})
    model.add_module("class", nn.Linear(2, 2))
    outer = nn.Sequential(model)
    with tnp.follow(outer) as run:
        for inner in model.children():
            inner(torch.ones(1, 2))
    for call, inner in zip(run.calls, model.children(), strict=True):
        assert eval(call.code, {"outer": outer}) is inner


def test_a_unit_that_gave_something_in_another_call_is_not_dead():
    """Of the same module."""
    act = nn.ReLU()
    with tnp.follow() as run:
        act(torch.tensor([-1.0, -2.0, -3.0]))
        act(torch.tensor([-1.0, 2.0, 3.0]))
    assert not any("dead" in problem for problem in run.problems)


def test_an_empty_result_and_a_norm_beyond_its_range_are_not_told_as_nan_or_infinite():
    """The norm is not known then."""
    with tnp.follow() as run:
        nn.Identity()(torch.ones(0, 3))
        nn.Tanh()(torch.full((4,), 1e-30))
        nn.Identity()(torch.full((4,), 1e30))
    assert "nan" not in tnp.card(run).text
    assert "inf" not in tnp.card(run).text.partition("\n")[2]
    assert run.calls[2].outputs[0].norm != INF


def test_our_own_looks_are_no_calls():
    """Of a program that looks in the block."""
    model = nn.Sequential(nn.Linear(2, 2))
    with tnp.follow(model) as run:
        tnp.card(model(torch.ones(1, 2)))
        _ = tnp.weights(model)["0.weight"].to_numpy()
    assert len(run.calls) == 2


@pytest.mark.slow
def test_arguments_of_many_objects_are_looked_at_in_bounded_time():
    """Lists that share their parts, and long ones."""
    shared: Any = [1]
    for _ in range(60):
        shared = [shared, shared]
    module = nn.Identity()
    with tnp.follow() as run:
        module(shared)
        module(list(range(1_000_000)))
    assert len(run.calls) == 2


def left() -> Any:
    """Return what there is of hooks and modes for all of torch."""
    flags = {name: value for name, value in vars(_python_dispatch).items() if name.startswith("_is_in_")}
    tables = ("forward_pre_hooks", "forward_hooks", "forward_hooks_with_kwargs", "forward_hooks_always_called")
    of_modules = [len(getattr(torch_module, f"_global_{name}", ())) for name in tables]
    of_steps = len(torch_optimizer._global_optimizer_pre_hooks) + len(torch_optimizer._global_optimizer_post_hooks)
    return _get_current_dispatch_mode_stack(), of_modules, of_steps, flags, _FOLLOWING.get()


def test_a_block_inside_of_fake_tensors_leaves_nothing():
    """Whose mode stands above all others."""
    # Whose flag an older torch leaves set.
    with FakeTensorMode():
        nn.Linear(2, 2)(torch.ones(1, 2))
    before = left()
    with FakeTensorMode(), tnp.follow(level="operators") as run:
        nn.Linear(2, 2)(torch.ones(1, 2))
    assert left() == before
    assert len(run.calls) == 1


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}])
@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD])
def test_writes_are_counted_as_they_would_have_been(optimizer: Any, options: dict[str, bool]):
    """Of operators on lists torch counts none under a mode, so that a backward over what they wrote would not raise."""
    versions = []
    for level in (None, "modules", "operators"):
        torch.manual_seed(0)
        model = nn.Linear(2, 2)
        opt = optimizer(model.parameters(), lr=0.1, **options)
        first = model(torch.ones(1, 2, requires_grad=True)).sum()
        with tnp.follow(level=level) if level else nullcontext():
            for _ in range(3):
                step(model, torch.ones(1, 2))
                opt.step()
        state = [value for one in opt.state.values() for value in one.values() if isinstance(value, torch.Tensor)]
        versions.append([one._version for one in (*model.parameters(), *state)])
        try:
            first.backward()
        except RuntimeError:
            versions[-1].append(-1)
    assert versions[0] == versions[1] == versions[2]


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}])
@pytest.mark.parametrize("is_bound", [False, True])
def test_a_step_that_spoils_is_named_among_operators_too(options: dict[str, bool], is_bound: bool):
    """Whether or not its operators are followed."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    opt = torch.optim.SGD(model.parameters(), lr=NAN, **options)
    with tnp.follow(*[model] * is_bound, level="operators") as run:
        step(model, torch.ones(1, 2))
        opt.step()
        model(torch.ones(1, 2))
    said = run.first("nan").sentence
    assert "before the pass" not in said
    assert "finite" not in said or "step" in said, said


class Wrapper(torch.Tensor):
    """A tensor around another one, which notes each operator that it is given."""

    seen: list[str] = []  # noqa: RUF012
    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Wrapper:
        """Make one."""
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: torch.Tensor) -> None:
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute with what is inside."""
        cls.seen.append(str(func))
        args, kwargs = tree_map_only(cls, lambda one: one.inner, (args, kwargs or {}))
        return tree_map_only(torch.Tensor, cls, func(*args, **kwargs))


class IdleMode(TorchDispatchMode):
    """A mode that does nothing."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Compute."""
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("level", ["modules", "operators"])
def test_a_class_that_overrides_operators_sees_none_of_ours(level: str):
    """Of its parameters as well."""
    seen = []
    # An older torch detaches more under any mode.
    alone = nullcontext() if level == "modules" else IdleMode()
    for run in (alone, tnp.follow(level=level)):
        model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
        model[0].weight = nn.Parameter(Wrapper(torch.ones(2, 3)))
        Wrapper.seen.clear()
        with run:
            step(model, torch.ones(4, 3))
        seen.append(list(Wrapper.seen))
    assert seen[0] == seen[1] != []


@pytest.mark.slow
@since("2.8", "compiled code calls no hooks")
def test_modules_that_were_called_but_not_followed_are_told():
    """Another model, one that was compiled, and one that another thread has called; not that nothing was called."""
    model, other = nn.Sequential(nn.Linear(4, 3), nn.ReLU()), nn.Linear(4, 3)
    with tnp.follow(model) as run:
        other(torch.ones(2, 4))
    assert tnp.card(run).text == "model was not called here; other modules were"
    compiled = torch.compile(model, backend="eager")
    with tnp.follow(model, level="operators") as run:
        compiled(torch.ones(2, 4)).sum().backward()
    assert tnp.card(run).text.startswith("model was called as compiled code alone: follow what torch.compile has")
    with tnp.follow() as run, ThreadPoolExecutor(1) as pool:
        pool.submit(model, torch.ones(2, 4)).result()
    assert tnp.card(run).text.startswith(
        "no module was called here; what another thread or task calls is followed by name"
    )
    with tnp.follow() as run:
        pass
    assert tnp.card(run).text == "no module was called here; %%follow --operators follows functions"


def test_gradients_inside_reentrant_checkpoints_come_back():
    """At the calls that were recomputed, of which a NaN is told where it was made."""

    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * torch.nan

    class Layer(nn.Module):
        def forward(self, x):
            return Bad.apply(x)

    blocks = nn.ModuleList([nn.Linear(4, 4), Layer(), nn.Linear(4, 4)])
    x = torch.ones(2, 4, requires_grad=True)
    with tnp.follow(*blocks) as run:
        y = x
        for block in blocks:
            y = checkpoint(block, y, use_reentrant=True)
        y.sum().backward()
    assert "3 gradients back" in tnp.card(run).text
    assert [call.outputs[0].grad is not None for call in run.calls if call.phase == "recomputed"] == [True] * 3
    origin = run.first("nan")
    assert origin is not None
    assert origin.sentence.endswith("NaN entered the gradients between Layer (fine) and Linear")
