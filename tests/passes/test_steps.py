"""The steps of optimizers in a pass: how many, where, and what they made of parameters; the training is as it was."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.optim import optimizer as torch_optimizer

import tensornp as tnp

HOOKS = (torch_optimizer._global_optimizer_pre_hooks, torch_optimizer._global_optimizer_post_hooks)


class Spoils(torch.optim.SGD):
    """An optimizer whose step writes NaN into the first parameter."""

    def step(self, closure=None):  # type: ignore[no-untyped-def]
        """Do a step, and spoil."""
        out = super().step(closure)
        with torch.no_grad():
            self.param_groups[0]["params"][0].view(-1)[0] = torch.nan
        return out


def step_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Train for one step."""
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()


def test_steps_are_counted_and_stand_among_calls_and_gradients():
    """With their class and their line."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters())
    with tnp.follow() as run:
        step_of(model, optimizer)
        step_of(model, optimizer)
    first, second = run._record.steps
    assert (first.class_name, first.num_calls, second.num_calls) == ("Adam", 3, 6)
    assert (first.num_gradients, second.num_gradients) == (6, 12)
    assert first.source.text == "optimizer.step()"
    assert first.is_done
    assert first.spoilt == ()
    assert run.first("nonfinite") is None
    assert "2 steps of Adam" in tnp.card(run).text


@pytest.mark.parametrize("is_called_again", [False, True])
def test_a_parameter_that_a_step_spoils_is_told_with_its_line(is_called_again):
    """Also where nobody has called the model since."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = Spoils(model.parameters(), lr=0.1)
    with tnp.follow() as run:
        step_of(model, optimizer)
        if is_called_again:
            model(torch.ones(1, 3))
    origin = run.first("nan")
    assert (origin.phase, origin.name) == ("optimizer", "0.weight")
    assert origin.sentence.startswith("0.weight held NaN after a step of the optimizer (Spoils, test_steps.py:")
    assert "`optimizer.step()`), and was finite before it" in origin.sentence
    assert "?" not in origin.sentence
    assert run.problems[0] == origin.sentence
    assert origin.sentence.partition(" (")[0] in tnp.card(run).text


@pytest.mark.parametrize("level", ["modules", "operators"])
def test_a_step_that_is_too_large_is_named_at_both_levels(level):
    """Where operators are followed, with the one that made it."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=3e38)
    with tnp.follow(level=level) as run:
        step_of(model, optimizer)
    origin = run.first("inf")
    assert (origin.phase, origin.source.text) == ("optimizer", "optimizer.step()")
    assert "after a step of the optimizer (SGD, test_steps.py:" in origin.sentence
    assert bool(origin.operator) is (level == "operators")
    assert run.problems.count(origin.sentence) == 1
    assert tnp.card(run).text


def test_a_loss_that_is_not_finite_is_laid_to_no_step():
    """What the step then writes comes of it."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tnp.follow(level="operators") as run:
        loss = (model(torch.ones(2, 3)).sum() * 0 - 1).sqrt()
        loss.backward()
        optimizer.step()
    assert run.first("nan").operator == "sqrt"
    assert run.first("nan").phase == "forward"


def test_a_loss_on_the_line_of_the_step_is_laid_to_no_step():
    """All in one line, as in a short cell."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tnp.follow(level="operators") as run:
        (model(torch.ones(2, 3)).sum() * 0 - 1).sqrt().backward(); optimizer.step()  # fmt: skip  # noqa: E702
    assert (run.first("nan").operator, run.first("nan").phase) == ("sqrt", "forward")


def test_logits_that_leave_the_range_come_before_the_loss_that_is_nan():
    """The NaN is born in the loss, of an infinity that a module gave."""
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    model[0].weight.data.fill_(1)
    model[1].weight.data.fill_(3e38)
    with tnp.follow() as run:
        loss = nn.functional.cross_entropy(model(torch.ones(2, 3) * 1e3), torch.zeros(2, dtype=torch.long))
        loss.backward()
    assert run.first("nan").name == "loss"
    assert run.problems[0].startswith("the first Inf was born in 1 (Linear)")
    assert run.problems[1].startswith("`loss` holds NaN, which was born in the code around the modules")


def test_a_gradient_that_is_not_finite_is_the_origin_and_what_the_step_made_of_it_is_told_beside():
    """A step writes what it is given."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tnp.follow() as run:
        ((model(torch.ones(2, 3)).sum() * 0).sqrt()).backward()
        optimizer.step()
    assert run.first("nan").phase == "backward"
    assert any("held NaN after a step of the optimizer (SGD" in one for one in run.problems[1:])


def test_what_the_program_itself_writes_is_laid_to_no_step():
    """There was one, and it was not that."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tnp.follow() as run:
        step_of(model, optimizer)
        with torch.no_grad():
            model.weight[0, 0] = torch.nan
        model(torch.ones(1, 3))
    assert "optimizer" not in run.first("nan").sentence
    assert run.first("nan").sentence.endswith("was finite before: written since")


@pytest.mark.parametrize("kind", ["fused", "foreach", "closure", "tied", "two"])
def test_weights_are_read_again_after_each_step(kind):
    """Also where a fused one does not count what it writes, and each by the optimizer that has it."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    if kind == "tied":
        model[1].weight = model[0].weight
    if kind == "closure":
        optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1)
    elif kind == "two":
        optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
        torch.optim.SGD(model[1].parameters(), lr=0.1)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1, **{kind: True} if kind != "tied" else {})
    expected = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        expected.append([p.max().item() for p in (model[0].weight, model[1].weight)])
        loss = model(torch.ones(2, 3)).square().sum()
        loss.backward()
        return loss

    with tnp.follow() as run:
        for _ in range(3):
            if kind == "closure":
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
    found = [[run.calls[i + 1].params[0].max, run.calls[i + 2].params[0].max] for i in range(0, len(run.calls), 3)]
    assert found == expected
    assert len(run._record.steps) == 3
    assert len({str(one) for one in expected}) >= 3


@pytest.mark.parametrize("ending", ["return", "error", "interrupt", "step"])
def test_hooks_of_optimizers_are_gone_whatever_ends_the_block(ending):
    """And a step that raised is told as not done."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = [dict(one) for one in HOOKS]
    run = tnp.follow()

    def raises() -> float:
        raise ValueError

    with pytest.raises((ValueError, KeyboardInterrupt)) if ending != "return" else run as _:
        if ending != "return":
            with run:
                step_of(model, optimizer)
                if ending == "step":
                    optimizer.step(raises)
                raise {"error": ValueError, "interrupt": KeyboardInterrupt}[ending]
        step_of(model, optimizer)
    assert [dict(one) for one in HOOKS] == before
    assert [one.is_done for one in run._record.steps] == [True] + [False] * (ending == "step")
    assert not optimizer._optimizer_step_pre_hooks
    assert not optimizer._optimizer_step_post_hooks


def test_steps_of_other_models_and_of_other_threads_are_not_the_pass_s():
    """Unless a model is named, and they are of its parameters."""
    mine, other = nn.Linear(3, 1), nn.Linear(3, 1)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (mine, other)]
    with tnp.follow(mine) as run:
        step_of(other, optimizers[1])
        thread = threading.Thread(target=step_of, args=(mine, optimizers[0]))
        thread.start()
        thread.join()
    assert len(run._record.steps) == 1
    with tnp.follow() as run:
        thread = threading.Thread(target=step_of, args=(mine, optimizers[0]))
        thread.start()
        thread.join()
    assert run._record.steps == ()
    assert run.calls == ()


def test_the_place_of_a_step_is_right_where_calls_were_dropped():
    """It stands among those that are kept."""
    model = nn.Linear(3, 1)
    optimizer = Spoils(model.parameters(), lr=0.1)
    with tnp.follow(max_calls=4) as run:
        for _ in range(20):
            with torch.no_grad():
                model(torch.ones(1, 3))
        step_of(model, optimizer)
        with torch.no_grad():
            model(torch.ones(1, 3))
    (step,) = run._record.steps
    assert len(run.calls) == 4
    assert step.num_calls == 3
    assert run.first("nan").phase == "optimizer"


def test_a_step_of_a_frozen_weight_is_told():
    """A `.grad` from before it was frozen moves it; one that is let go of does not."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.randn(4, 3)).sum().backward()
    model[0].requires_grad_(False)
    for frozen in (("0.weight", "0.bias"), ()):
        with tnp.follow() as run:
            model(torch.randn(4, 3)).sum().backward()
            optimizer.step()
        assert run.steps[0].frozen == frozen
        told = [one for one in run.problems if "require no gradient" in one]
        assert bool(told) is bool(frozen)
        if told:
            assert told[0].startswith("2 parameters require no gradient, and a step of the optimizer (SGD, ")
            assert told[0].endswith("changed them all the same: 0.weight, 0.bias")
        model.zero_grad()


@pytest.mark.parametrize(
    "cut", [lambda loss: loss.detach().requires_grad_(), lambda loss: torch.tensor(loss.item(), requires_grad=True)]
)
def test_a_step_to_which_no_gradient_came_is_told(cut: Callable[[torch.Tensor], torch.Tensor]):
    """A loss that is cut from its model has a backward, and no error; without gradients, nothing is known."""
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    told = "began, and no gradient had come back to what was called before it"
    for is_cut, grads in ((True, True), (False, True), (True, False)):
        with tnp.follow(grads=grads) as run:
            for _ in range(2):
                optimizer.zero_grad()
                loss = model(torch.randn(4, 3)).mean()
                (cut(loss) if is_cut else loss).backward()
                optimizer.step()
        assert sum(told in one for one in run.problems) == (is_cut and grads)
    with tnp.follow() as run:
        with torch.no_grad():
            model(torch.randn(4, 3))
        optimizer.step()
    assert not run.problems


@pytest.mark.parametrize("level", ["modules", "operators"])
def test_a_step_after_what_came_back_was_let_go_of_is_told(level: str):
    """As where `zero_grad` stands between `backward` and `step`; zeros are gradients, which may move a weight."""
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    for between, is_told in ((True, True), (False, False), (None, False)):
        with tnp.follow(level=level) as run:
            for _ in range(2):
                model(torch.randn(4, 3)).mean().backward()
                if between is not None:
                    optimizer.zero_grad(set_to_none=between)
                optimizer.step()
                optimizer.zero_grad()
        assert run.steps[0].has_gradients is not is_told and run.steps[0].has_lost is is_told
        assert sum("found no gradient at any of its parameters" in one for one in run.problems) == is_told


@pytest.mark.parametrize("is_bound", [True, False])
def test_a_step_before_all_that_it_could_take_is_told(is_bound: bool):
    """As where it stands before the forward; one that has a gradient from before the block is none."""
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for is_zeroed in (True, False, True):
        with tnp.follow(*[model] * is_bound) as run:
            if is_zeroed:
                optimizer.zero_grad()
            optimizer.step()
            model(torch.randn(4, 3)).mean().backward()
        told = [one for one in run.problems if "backward() belongs before it" in one]
        assert len(told) == is_zeroed and all("found no gradient at any of its parameters" in one for one in told)
    with tnp.follow(*[model] * is_bound) as run:
        optimizer.zero_grad()
        optimizer.step()
        step_of(model, optimizer)
    assert not run.problems


def test_an_optimizer_that_had_nothing_to_take_is_not_accused():
    """That of a head that was not called in this batch, stepped with the others."""
    body, heads = nn.Linear(3, 3), [nn.Linear(3, 1), nn.Linear(3, 2)]
    optimizers = [torch.optim.Adam(one.parameters()) for one in (body, *heads)]
    with tnp.follow(body, *heads) as run:
        for used in (0, 0, 1):
            heads[used](body(torch.randn(4, 3))).sum().backward()
            for one in optimizers:
                one.step()
            for one in optimizers:
                one.zero_grad()
    assert not any(step.has_lost for step in run.steps)
    assert not any("found no gradient" in one for one in run.problems)


class Around(torch.optim.Optimizer):
    """Makes the steps of another one, as wrappers do that call what they derive from."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        super().__init__(inner.param_groups, {})
        self.inner = inner

    def step(self, closure: Callable[[], torch.Tensor] | None = None) -> torch.Tensor | None:
        return self.inner.step(closure)


@pytest.mark.parametrize("has_wrapper", [False, True])
def test_a_step_within_that_of_a_wrapper_is_one(has_wrapper: bool):
    """What was accumulated before a closure, and in it, is taken once."""
    model = nn.Linear(3, 1)
    inner = torch.optim.SGD(model.parameters(), 0.1)
    optimizer = Around(inner) if has_wrapper else inner

    def closure() -> torch.Tensor:
        loss = model(torch.randn(4, 3)).square().mean()
        loss.backward()
        return loss

    with tnp.follow() as run:
        for _ in range(2):
            closure()
            optimizer.step(closure)
            optimizer.zero_grad()
    assert not any("was not zeroed between two steps" in one for one in run.problems)


def test_what_a_closure_unfreezes_was_not_frozen():
    """It required a gradient when the step was taken."""
    model = nn.Linear(3, 1).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def closure() -> torch.Tensor:
        model.requires_grad_(True)
        loss = model(torch.randn(4, 3)).mean()
        loss.backward()
        return loss

    with tnp.follow(model) as run:
        optimizer.step(closure)
    assert run.steps[0].frozen == () and not any("requires no gradient" in one for one in run.problems)


def test_a_step_of_what_was_not_called_needs_no_gradient_of_calls():
    """As of a temperature that is learned beside a detached actor."""
    actor, temperature = nn.Linear(3, 2), torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.Adam([temperature])
    with tnp.follow() as run:
        (temperature.exp() * actor(torch.ones(4, 3)).detach().mean()).backward()
        optimizer.step()
    assert run.problems == []


def test_a_step_of_a_bare_tensor_is_no_step_of_others():
    """A prompt or a perturbation that is learned, of a model that is not frozen."""
    model, delta = nn.Linear(3, 2), nn.Parameter(torch.zeros(4, 3))
    optimizer = torch.optim.Adam([delta])
    with tnp.follow() as run:
        model(torch.ones(4, 3) + delta).square().sum().backward()
        optimizer.step()
    assert run.problems == []


@pytest.mark.parametrize(("rate", "num_steps", "phase"), [(1, 4, "forward"), (1, 6, "forward"), (0.1, 6, "backward")])
def test_a_loop_that_diverges_is_told_by_what_left_its_range(rate: float, num_steps: int, phase: str):
    """However long it goes on, and with weights that are NaN by then."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer, x = torch.optim.SGD(model.parameters(), rate), torch.randn(64, 16) * 5
    with tnp.follow(model) as run:
        for _ in range(num_steps):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), x.sum(1, keepdim=True) * 10).backward()
            optimizer.step()
    assert run.first("inf").phase == phase
    assert run.problems[0] == run.first("inf").sentence


def test_gradients_that_a_closure_brings_are_none_that_are_missing():
    """After the loss was shown first, as one does with LBFGS."""
    model = nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(2, 3)).square().mean()
        loss.backward()
        return loss

    with tnp.follow() as run:
        model(torch.ones(2, 3)).square().mean().item()
        optimizer.step(closure)
    assert run.steps[0].num_inside > 0
    assert not any("no gradient had come back" in one for one in run.problems)


def test_tied_weights_get_their_gradient_in_one_backward():
    """Two names, and one node that accumulates."""
    emb, head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
    head.weight = emb.weight
    with tnp.follow() as run:
        head(emb(torch.arange(3))).sum().backward()
    assert not any("backwards" in one for one in run.problems)
    assert all(one.num_backwards == 1 for one in run._record.grads)


def by_closure(lr: float, *, is_frozen: bool = False) -> tnp.FollowedPass:
    """Follow a step that calls a model of which nobody knows before."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    model.bias.requires_grad_(not is_frozen)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(4, 3)).square().mean()
        loss.backward()
        if is_frozen:
            model.bias.grad = torch.ones(2)
        return loss

    with tnp.follow() as run:
        optimizer.step(closure)
    return run


def test_a_step_whose_closure_calls_the_model_first_has_its_parameters():
    """As LBFGS takes one, and Lightning makes every step."""
    run = by_closure(float("inf"))
    assert run.steps[0].num_parameters == 2 and [name for name, _ in run.steps[0].spoilt] == ["weight", "bias"]
    assert run.first("inf").phase == "optimizer"
    assert by_closure(0.1, is_frozen=True).steps[0].frozen == ("bias",)
    told = tnp.card(tnp.compare(by_closure(1e-3), by_closure(1e3))).text
    assert "the 1st step, of SGD, made other values of the parameters" in told
    assert by_closure(0.1).steps[0].after == by_closure(0.1).steps[0].after != b""


def test_what_a_step_has_spoilt_is_told_once():
    """Of infinite gradients, clipping makes NaN, and a step takes these."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tnp.follow(model) as run:
        model(torch.full((4, 3), 1e30)).square().sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert run.problems[1].startswith("weight held NaN after a step of the optimizer")
    assert len(run.problems) == 2


@pytest.mark.parametrize("is_zeroed", [False, True])
def test_what_comes_in_a_closure_is_taken_by_its_step(is_zeroed):
    """With what came before it; gradients are accumulated so where a training has closures."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def backward() -> torch.Tensor:
        loss = model(torch.ones(4, 3)).square().mean()
        loss.backward()
        return loss

    with tnp.follow() as run:
        for _ in range(2):
            if is_zeroed:
                optimizer.zero_grad()
            backward()
            optimizer.step(backward)
    assert [one.num_backwards for one in run._record.grads] == [2, 2]
    assert any("gradients came in 2 backwards with no step of theirs between:" in one for one in run.problems)
    assert any("not zeroed between two steps" in one for one in run.problems) is not is_zeroed
