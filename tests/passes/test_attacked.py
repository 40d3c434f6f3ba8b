"""What attackers found: programs that were ended, or of which something untrue was said, while they were followed."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext, suppress
from typing import Any

import pytest
import torch
from interrupts import interrupted_everywhere
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.ao.quantization import FakeQuantize, MinMaxObserver
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_is_not_followed():
    """Nor does it wait for threads that it does not have."""
    given = torch.ones(3_000_000)
    with tnp.follow():
        nn.Identity()(given)
        child = os.fork()
        if child == 0:
            nn.Identity()(given)
            os._exit(0)
        waiter = threading.Timer(60, os.kill, (child, 9))
        waiter.start()
        assert os.waitpid(child, 0)[1] == 0
        waiter.cancel()


def test_what_came_back_is_told_of_all_elements_of_an_expanded_gradient():
    """As the gradient of a sum is."""
    model = nn.Linear(4, 5)
    with tnp.follow(model) as run:
        model(torch.ones(2, 4)).sum().backward()
    figures = run.calls[0].outputs[0].grad
    assert (figures.norm, figures.sum, figures.count) == (pytest.approx(10**0.5), 10.0, 10)


def test_a_sparse_gradient_is_summed_before_it_is_told():
    """Of an index that came several times."""
    model = nn.Embedding(4, 2, sparse=True)
    with tnp.follow(model) as run:
        model(torch.tensor([1, 1, 1, 2])).sum().backward()
    dense = model.weight.grad.to_dense()
    assert (run.grads["weight"].norm, run.grads["weight"].max) == (pytest.approx(dense.norm().item()), 3.0)


def test_a_sparse_gradient_is_told_as_a_whole():
    """With the zeros of what is not stored, and without them where all of it is."""
    for indices, least in (([1, 1, 3], 0.0), ([0, 1, 2, 3], 1.0)):
        model = nn.Embedding(4, 2, sparse=True)
        with tnp.follow(model) as run:
            model(torch.tensor(indices)).sum().backward()
        grad, told = model.weight.grad.to_dense(), run.grads["weight"]
        assert (told.min, told.max, told.count) == (least, grad.max().item(), 8)
        assert (told.sum, told.norm) == pytest.approx((grad.sum().item(), grad.norm().item()))


def test_what_is_detached_is_another_tensor_for_autograd():
    """And a call that gives it is told to have lost the gradient."""

    class Stop(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.detach()

    model = nn.Sequential(nn.Linear(2, 2), Stop(), nn.Linear(2, 2))
    with tnp.follow(model) as run:
        step(model, torch.ones(1, 2))
    assert run["1"].outputs[0].requires_grad is False
    assert run["1"].inputs[0].requires_grad is True
    assert any("without a gradient" in problem for problem in run.problems)


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


def test_weights_that_are_thawed_in_the_block_have_gradients():
    """Frozen in the first call."""
    model = nn.Linear(2, 2).requires_grad_(False)
    with tnp.follow(model) as run:
        model(torch.ones(1, 2))
        model.requires_grad_(True)
        step(model, torch.ones(1, 2))
    assert run.grads["weight"].norm > 0


def test_gradients_that_are_asked_for_reach_no_parameter_and_none_is_accused():
    """By torch.autograd.grad."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with tnp.follow(model) as run:
        torch.autograd.grad(model(torch.ones(1, 2)).sum(), list(model.parameters()))
    assert not any("no gradient" in problem for problem in run.problems)


def test_a_new_head_is_another_parameter():
    """Under the name of the old one."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with tnp.follow(model) as run:
        model(torch.ones(1, 2))
        model.load_state_dict({name: value + 1 for name, value in model.state_dict().items()}, assign=True)
        step(model, torch.ones(1, 2))
    assert all(figures is not None for figures in run.grads.values())


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


def test_a_class_of_the_user_s_is_not_told_by_the_rules_of_torch_s():
    """Of the same name, with another layout."""

    class Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.ones(6, 8)), nn.Parameter(torch.ones(7))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weight + self.bias

    with pytest.raises(RuntimeError), tnp.follow() as run:
        Linear()(torch.ones(2, 6))
    assert "it takes" not in run.problems[0]
    assert "raised RuntimeError" in run.problems[0]


def test_an_infinity_of_the_forward_comes_before_a_nan_of_the_backward():
    """That it has made."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].bias.zero_()
    with tnp.follow(model) as run:
        loss = torch.log(model(torch.ones(1, 2))).sum()
        (loss * 0).backward()
    assert "holds −Inf" in run.problems[0]


def test_hooks_of_a_module_s_own_are_said():
    """What they change is not seen."""
    model = nn.Linear(2, 2)
    model.register_forward_pre_hook(lambda _, args: (args[0] * NAN,))
    model.register_forward_hook(lambda _, args, out: out * 10)
    with tnp.follow(model) as run:
        model(torch.ones(1, 2))
    assert [note.partition(",")[0] for note in run.calls[0].notes] == [
        "1 hook of its own ran before it",
        "1 hook of its own ran after its outputs were read",
    ]
    assert "1 hook of its own ran before it" in tnp.card(run).text
    assert run.first("nan").sentence.endswith("; hooks of its own have changed its inputs, or may have")


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


def test_what_is_written_in_inference_mode_is_read_anew():
    """Where torch counts no versions."""
    model = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))
    with tnp.follow(model) as run, torch.inference_mode():
        h = model[0](torch.ones(1, 2))
        h.fill_(NAN)
        model[1](h)
    assert run.first("nan").sentence.startswith("the input [0] held NaN when 1 (LayerNorm) was called")
    assert run["1"].inputs[0].has_nan


@pytest.mark.parametrize("way", ["data", "numpy", "storage"])
def test_weights_that_torch_did_not_see_written_are_not_called_finite(way: str):
    """They are looked at once more, where something is not finite."""
    model = nn.Linear(2, 2)
    writes = {
        "data": lambda: model.weight.data.fill_(NAN),
        "numpy": lambda: model.weight.detach().numpy().fill(NAN),
        "storage": lambda: model.weight.untyped_storage().copy_(torch.full((4,), NAN).untyped_storage()),
    }
    with tnp.follow(model) as run:
        model(torch.ones(1, 2))
        writes[way]()
        model(torch.ones(1, 2))
    said = run.first("nan").sentence
    assert "weights were finite" not in said
    assert said.endswith("; its weight is not finite now: it was written in a way that torch does not count")


def test_running_figures_of_a_training_are_read_at_each_call():
    """Torch does not count what batch norm writes."""
    model = nn.BatchNorm1d(2)
    with tnp.follow(model) as run:
        for _ in range(3):
            model(torch.full((4, 2), 5.0) + torch.randn(4, 2))
    means = [next(one for one in call.params if one.path == "running_mean").max for call in run.calls]
    assert means[0] == 0 < means[1] < means[2]


def test_a_call_that_was_left_has_no_calls_inside_that_came_later():
    """After Ctrl-C that was handled."""

    class Ends(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise KeyboardInterrupt

    with tnp.follow() as run:
        with suppress(KeyboardInterrupt):
            Ends()(torch.ones(1))
        nn.Identity()(torch.ones(1))
    assert [(call.status, call.depth) for call in run.calls] == [("left", 0), ("returned", 0)]


def test_a_call_that_raises_what_was_being_handled_has_raised():
    """Above it."""
    handled = ValueError("first")

    class Again(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise handled

    class Gives(nn.Module):
        def forward(self, x: torch.Tensor) -> None:
            return None

    with tnp.follow() as run:
        try:
            raise handled
        except ValueError:
            Gives()(torch.ones(1))
            with pytest.raises(ValueError, match="first"):
                Again()(torch.ones(1))
    assert [call.status for call in run.calls] == ["returned", "raised"]


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


def test_a_call_in_the_backward_is_no_recomputation_of_one_with_other_inputs():
    """As a hook of a tensor makes."""
    model, x = nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True)
    with tnp.follow(model) as run:
        out = model(x)
        out.register_hook(lambda grad: model(grad * 3).detach())
        out.sum().backward()
    assert not any("recomputed" in problem for problem in run.problems)


def test_our_own_looks_are_no_calls():
    """Of a program that looks in the block."""
    model = nn.Sequential(nn.Linear(2, 2))
    with tnp.follow(model) as run:
        tnp.card(model(torch.ones(1, 2)))
        _ = tnp.weights(model)["0.weight"].to_numpy()
    assert len(run.calls) == 2


def test_a_module_whose_parameters_is_another_method_loses_nothing():
    """It is the user's to define."""

    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def parameters(self, group: str) -> list[Any]:  # type: ignore[override]
            raise ValueError(group)

        def named_modules(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
            raise ValueError

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x)

    with tnp.follow() as run:
        Odd()(torch.ones(1, 2))
    assert [call.name for call in run.calls] == ["", "fc"]


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


def test_a_name_that_was_not_called_is_refused_with_the_closest():
    """And a pass is iterated by its calls."""
    model = nn.Sequential(nn.Linear(2, 2))
    with tnp.follow(model) as run:
        model(torch.ones(1, 2))
    with pytest.raises(tnp.errors.NoSuchCallError, match=r"no call of 'mode\[0\]' was followed; the closest name is"):
        run["mode[0]"]
    assert list(run) == list(run.calls)


def test_nothing_is_left_wherever_ctrl_c_comes():
    """In entering and leaving, torch's own part of which is interrupted as well."""
    model, x, runs = nn.Linear(2, 2), torch.ones(1, 2), []

    def act() -> None:
        runs.append(tnp.follow(level="operators"))
        with runs[-1]:
            model(x).sum().backward()

    files = ("passes/follow.py", "module_hooks.py", "optimizer_hooks.py", "_python_dispatch.py", "optim/optimizer.py")
    act()
    assert left() == NOTHING
    for place, error in interrupted_everywhere(act, lambda file: file.endswith(files)):
        del error
        assert left() == NOTHING, place
        runs.clear()


@pytest.mark.parametrize("level", ["modules", "operators"])
def test_nothing_is_let_go_of_in_python_where_ctrl_c_would_be_lost(level: str):
    """In a `__del__`, Python prints KeyboardInterrupt and goes on."""
    model, seen = nn.Sequential(*[nn.Linear(4, 4) for _ in range(9)]), []
    optimizer = torch.optim.Adam(model.parameters())

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name == "__del__":
            seen.append(frame.f_code.co_qualname)

    run = tnp.follow(level=level)
    sys.setprofile(note)
    try:
        with run:
            for _ in range(9):
                step(model, torch.ones(2, 4))
                optimizer.step()
    finally:
        sys.setprofile(None)
    assert len(run.calls) == 90
    assert seen == []


def left() -> Any:
    """Return what there is of hooks and modes for all of torch."""
    flags = {name: value for name, value in vars(_python_dispatch).items() if name.startswith("_is_in_")}
    tables = ("forward_pre_hooks", "forward_hooks", "forward_hooks_with_kwargs", "forward_hooks_always_called")
    of_modules = [len(getattr(torch_module, f"_global_{name}", ())) for name in tables]
    of_steps = len(torch_optimizer._global_optimizer_pre_hooks) + len(torch_optimizer._global_optimizer_post_hooks)
    return _get_current_dispatch_mode_stack(), of_modules, of_steps, flags, _FOLLOWING.get()


NOTHING = left()


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


def test_an_error_that_is_handled_around_a_block_has_not_ended_it():
    """One that is raised again in it has."""
    try:
        raise ValueError("before")
    except ValueError as error:
        with tnp.follow() as run:
            nn.Identity()(torch.ones(1))
        with suppress(ValueError), tnp.follow() as again:
            raise error
    with suppress(ValueError), ExitStack() as stack:
        stacked = stack.enter_context(tnp.follow())
        raise ValueError("inside")
    assert [one._record.error for one in (run, again, stacked)] == ["", "ValueError: before", "ValueError: inside"]


def test_threads_that_still_call_as_the_block_ends_lose_nothing():
    """Of what was before."""
    model, is_over = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), threading.Event()

    def work() -> None:
        while not is_over.is_set():
            model(torch.ones(2, 4))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(100):
            with tnp.follow(model) as run:
                model(torch.ones(2, 4))
            assert not run._record.notes
            assert len(run.calls) >= 3
    finally:
        is_over.set()
        thread.join()


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


def test_a_name_that_is_made_of_gradients_is_no_origin():
    """As a norm of them is; the gradients tell."""
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with tnp.follow(model) as run:
        out = model(torch.ones(1, 2))
        (out * 0).sqrt().sum().backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    assert norm.isnan()
    assert "`norm`" not in run.problems[0]


def test_a_nan_of_the_code_around_the_modules_is_told_as_often_as_it_is_made():
    """Although what had the name before is freed in the block, and the new one may have its address."""
    model, x, labels = nn.Linear(3, 2), torch.ones(4, 3), torch.full((4,), -100)
    for _ in range(6):
        with tnp.follow() as run:
            out = model(x)
            loss = nn.functional.cross_entropy(out, labels)
            loss.backward()
        assert run.problems[0].startswith("`loss` holds NaN"), run.problems


def test_a_nan_of_a_name_from_before_is_no_origin():
    """Whatever the layout of it is."""
    weight = torch.ones(2, 2, requires_grad=True)
    dense, sparse = weight * NAN, (weight * NAN).to_sparse()
    with tnp.follow() as run:
        nn.Linear(2, 2)(torch.ones(1, 2))
    assert not dense.is_leaf and not sparse.is_leaf and run.first("nan") is None, run.problems


@pytest.mark.parametrize("level", ["modules", "operators"])
def test_what_was_bound_to_an_infinity_on_purpose_is_no_trouble(level: str):
    """A bound that is to be lowered, a figure that is not known yet, a mask."""
    model, x = nn.Linear(3, 4), torch.randn(4, 3)
    with tnp.follow(level=level) as run:
        best, worst = torch.tensor(INF), torch.full((), -float("inf"))
        seen: torch.Tensor = torch.tensor(float("nan"))  # noqa: F841
        away = torch.cdist(model(x), x.new_ones(4, 4))
        away = away.masked_fill(torch.eye(4, dtype=torch.bool), torch.inf)
        nearest = away.min(1).values
    assert not best.isfinite() and not worst.isfinite() and nearest.isfinite().all()
    assert run.first("inf") is run.first("nan") is None, run.problems


@pytest.mark.parametrize("level", ["modules", "operators"])
def test_what_became_an_infinity_is_told_although_the_program_speaks_of_one(level: str):
    """In a test, or as what it had been before."""
    model, x = nn.Linear(3, 1), torch.ones(2, 3)
    with tnp.follow(level=level) as run, torch.no_grad():
        best = torch.tensor(INF)
        loss = (model(x).mean() + 1e4).exp()
        best = loss + 1  # noqa: F841
        assert loss != float("inf") or loss.isinf(), "inf"
    assert run.first("inf") is not None
    if level == "modules":
        assert run.problems[0].startswith("`best` holds Inf")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("level", ["modules", "operators"])
def test_an_observer_that_has_observed_nothing_is_no_trouble(level: str):
    """Torch makes them with infinities."""
    model = nn.Sequential(nn.Linear(3, 2), FakeQuantize(), MinMaxObserver())
    for _ in range(2):
        model.zero_grad()
        with tnp.follow(model, level=level) as run:
            model(torch.ones(4, 3)).sum().backward()
        assert not run.problems, run.problems
    assert run["2"].params[0].figures is not None


def test_parameters_of_parts_that_are_never_called_are_those_of_who_uses_them():
    """The projection of attention, lists of parameters."""
    model = nn.MultiheadAttention(4, 2)
    with torch.no_grad():
        model.out_proj.weight[0, 0] = NAN
    with tnp.follow(model) as run:
        x = torch.ones(3, 1, 4)
        model(x, x, x)[0].sum().backward()
    assert run.first("nan").sentence == "out_proj.weight held NaN before the pass"
    assert set(run.grads) == {name for name, _ in model.named_parameters()}


def test_a_nan_that_is_held_is_named_although_something_dropped_has_read_it():
    """In a list."""
    kept = []
    with tnp.follow(level="operators") as run:
        kept.append(torch.log(torch.tensor([-1.0, 2.0])))
        kept[0].mean()
    assert run.first("nan").operator == "log"


def test_the_backward_of_another_thread_s_forward_is_laid_to_no_line_of_this_one():
    """Each thread counts its operators by itself."""
    made: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: made.append((torch.zeros(2, requires_grad=True) * 1).sqrt().sum()))
    with tnp.follow(level="operators") as run:
        a = torch.ones(2, requires_grad=True) * 2
        b = a + 1
        thread.start()
        thread.join()
        (made[0] * 0 + b.sum()).backward()
    origin = run.first("nan")
    assert origin is None or "`add`" not in origin.sentence


def of_another_thread(model: nn.Module | None) -> Any:
    """Follow a backward of what two threads have made, each of its first operators; of NaN in that of the other one."""

    def made(x: torch.Tensor) -> torch.Tensor:
        return (x * 1).sqrt().sum() if model is None else model(x).sum()

    def follow() -> Any:
        with ThreadPoolExecutor(1) as pool, tnp.follow(*filter(None, [model]), level="operators") as run:
            theirs = pool.submit(made, torch.zeros(2, requires_grad=True)).result()
            x = torch.ones(2, requires_grad=True)
            ours = (x * 2).sqrt().sum() if model is None else model(x).sum()
            (theirs * 0 + ours).backward()
        return run

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(follow).result()


class Root(nn.Module):
    """A root of numbers, by an operator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return it."""
        return (x * 1).sqrt()


@pytest.mark.parametrize("model", [None, Root()])
def test_a_backward_is_laid_to_the_line_of_its_own_thread_alone(model: nn.Module | None):
    """Two threads give the same numbers to operators of one name."""
    run = of_another_thread(model)
    told = [one for one in run.operators if one.node.startswith("Sqrt") and one.source is not None]
    assert all(value.is_finite for one in told for value in one.outputs)
    assert told
    origin = run.first("nan")
    assert origin is None or "(x * 2).sqrt()" not in origin.sentence


def test_what_was_not_read_is_not_called_free_of_nan():
    """A layout that a library has packed is named as such."""
    with tnp.follow(level="operators") as run:
        held = torch.zeros(2, 3).to_mkldnn() * NAN
    assert held.is_mkldnn
    assert tnp.card(run).text.startswith("no NaN and no infinity in what could be read\n")


def test_a_graph_is_freed_as_it_would_have_been_beside_another_thread():
    """That waits: who looks whether it does keeps no frame of the program's."""
    with ThreadPoolExecutor(1) as pool, tnp.follow() as run:
        pool.submit(int).result()
        gc.collect()
        gc.disable()
        try:
            model = nn.Linear(2, 2)
            storage = StorageWeakRef(step(model, torch.ones(1, 2)).untyped_storage())
            is_freed = storage.expired()
        finally:
            gc.enable()
    assert is_freed
    assert run.grads["weight"] is not None


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


def test_operators_of_other_threads_are_said_to_be_missing():
    """And what was used already is not advised."""
    model = nn.Linear(4, 3)
    with tnp.follow(model, level="operators") as run, ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: (model(torch.ones(2, 4)) * torch.nan).sum().backward()).result()
    text = tnp.card(run).text
    assert "operators of other threads were not followed" in text and "--operators" not in text
    assert not run.operators and not run.complete


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


def test_a_batch_without_rows_has_no_wrong_count_of_gradients():
    """There is nothing to read of them."""
    model = nn.Linear(4, 3)
    with tnp.follow(model) as run:
        model(torch.ones(0, 4)).sum().backward()
    assert "gradients back" not in tnp.card(run).text and model.weight.grad is not None
