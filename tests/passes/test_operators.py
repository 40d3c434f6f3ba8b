"""Operators that are followed: which one made a NaN, at which line, in programs that compute what they would have."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from child import in_fork
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils.checkpoint import checkpoint

import tensornp as tnp

INF = float("inf")


class Layer(nn.Module):
    """A layer with a place for a fault in its own code."""

    def __init__(self, fault: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.fc, self.fault, self.out = nn.Linear(4, 4), fault, nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a residual step."""
        return x + self.out(self.fault(self.fc(x)))


def net(fault: Callable[[torch.Tensor], torch.Tensor] = lambda h: h) -> nn.Sequential:
    """Return three layers, with a fault in the second."""
    torch.manual_seed(0)
    return nn.Sequential(Layer(lambda h: h), Layer(fault), Layer(lambda h: h))


def followed(fault: Callable[[torch.Tensor], torch.Tensor], **options: Any) -> tnp.FollowedPass:
    """Follow a step of such a net."""
    model = net(fault)
    with tnp.follow(level="operators", **options) as run:
        loss = model(torch.ones(2, 4)).sum()
        loss.backward()
    return run


def masked_softmax(h: torch.Tensor) -> torch.Tensor:
    """Return a softmax with a row of which all is masked."""
    mask = torch.zeros(2, 4, dtype=torch.bool)
    mask[1] = True
    scores = h.masked_fill(mask, -INF)
    return scores.softmax(-1)


def reused_memory(h: torch.Tensor) -> torch.Tensor:
    """Return what was written into memory by parts, on top of NaN."""
    buffer = torch.full((2, 4), float("nan"))
    memory = torch.empty(2, 4)
    memory.copy_(buffer)
    memory.zero_()
    memory[:, :2] = h[:, :2].detach()
    return h + memory


BOUND = torch.full((4,), INF)


def masked_by_index(h: torch.Tensor) -> torch.Tensor:
    """Return what a mask gives that is written by indices, as by slices of a mask of its own."""
    mask = torch.zeros(4)
    mask[3:] = -INF
    scores = h + mask
    scores[:, 2] = -INF
    return scores.softmax(-1)


FAULTS = {
    "log": (torch.log, "log", "the first NaN was born in 1, at `log`"),
    "softmax": (masked_softmax, "_softmax", "1 row of its input was −Inf throughout (`masked_fill`"),
    "division": (lambda h: (h - h) / (h - h), "div", "its inputs were finite, 0 throughout and 0 throughout"),
    "in place": (lambda h: h.mul(1).log_(), "log_", "at `log_`"),
    "asked for": (lambda h: h.masked_fill(h > -9, float("nan")), "masked_fill", "the first NaN was asked for in 1, by"),
    "two steps": (lambda h: (h.exp() * 0 + INF) - INF, "sub", "its input held Inf"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_the_operator_and_its_line_are_named(name: str):
    """With what it was given."""
    fault, operator, said = FAULTS[name]
    run = followed(fault)
    origin = run.first("nan")
    assert (origin.operator, origin.name, origin.phase) == (operator, "1", "forward")
    assert said in origin.sentence
    assert origin.source.file == __file__
    assert run.operators[origin.operator_index].name == operator
    assert f"`{origin.source.text}`" in origin.sentence
    assert run.calls[origin.call].name == "1"


@pytest.mark.parametrize(
    "fault",
    [
        lambda h: torch.where(h > 0, torch.log(h), torch.zeros(())),
        lambda h: (torch.log(h), h)[1],
        lambda h: h.masked_fill(h > 0, -INF).softmax(-1),
        lambda h: torch.empty(2, 4).fill_(1) * h,
        lambda h: h.new_empty(h.shape).copy_(h),
        lambda h: torch.full((4,), INF).clamp(max=1) * h,
        reused_memory,
        masked_by_index,
        lambda h: torch.full_like(h, -INF).scatter(1, *h.topk(2)[::-1]).softmax(-1),
        lambda h: torch.where(h > 0, h, torch.tensor(-INF)).softmax(-1),
        lambda h: torch.minimum(h, BOUND),
    ],
    ids=[
        "where",
        "dropped",
        "mask",
        "filled",
        "copied",
        "clamped",
        "reused",
        "by index",
        "like",
        "a tensor",
        "a bound",
    ],
)
def test_who_made_nothing_that_counts_is_not_accused(fault: Callable[[torch.Tensor], torch.Tensor]):
    """What is masked, dropped or written before it is read; an infinity that was asked for."""
    run = followed(fault)
    assert run.first("nan") is run.first("inf") is None


def test_a_nan_that_reaches_nothing_is_told_and_alarms_nobody():
    """Where all is finite in the end."""
    run = followed(lambda h: torch.where(h > 0, torch.log(h), torch.zeros(())))
    assert run.problems[0] == "NaN was made in 1 place, and reached nothing that was held in the end"
    assert "first" not in tnp.card(run).text


def test_a_nan_of_the_backward_leads_to_the_line_of_the_forward():
    """As the root of 0 has an infinite slope, of which 0 times makes NaN."""
    run = followed(lambda h: (h * 0).sqrt() * 0)
    origin = run.first("nan")
    assert (origin.phase, origin.operator, origin.name) == ("backward", "sqrt", "1")
    assert origin.sentence.startswith("the forward was finite; the first NaN came in the backward of `sqrt` of 1, ")
    assert origin.sentence.endswith("where its input was 0 throughout")
    assert "(h * 0).sqrt() * 0" in origin.source.text
    odd = run.operators[origin.operator_index]
    assert odd.node == "SqrtBackward0"
    assert run.operators[odd.forward].name == "sqrt"


def test_what_was_there_before_is_told_by_its_name():
    """A weight, an input, memory that nobody has written."""
    model = net()
    with torch.no_grad():
        model[2].out.weight[1, 1] = float("nan")
    with tnp.follow(level="operators") as run:
        model(torch.ones(2, 4)).sum()
    assert run.first("nan").sentence == "2.out.weight held NaN before the pass"
    assert run.first("nan").phase == "before the pass"
    given = torch.tensor([1.0, float("nan")])
    with tnp.follow(level="operators") as run:
        out = given * 2
    assert run.first("nan").sentence.startswith("what `mul`, ")
    assert out.isnan().any()


def test_what_wrote_over_a_value_that_the_backward_needs_is_named():
    """Of torch's error, which names a node and a version."""
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="inplace operation"), tnp.follow(level="operators") as run:
        y = torch.sqrt(x)
        y.add_(1)
        y.sum().backward()
    assert run.problems[0].startswith("`add_`, test_operators.py:")
    assert "wrote over what `sqrt`, test_operators.py:" in run.problems[0]


@pytest.mark.slow
def test_only_limits_operators_to_some_modules():
    """In forward and backward, and the sentence is right all the same."""
    run = followed(torch.log, only="1")
    assert {run.calls[one.call].name.split(".")[0] for one in run.operators} == {"1"}
    assert {one.phase for one in run.operators} == {"forward", "backward"}
    assert run.first("nan").operator == "log"
    elsewhere = followed(torch.log, only="2")
    assert elsewhere.first("nan").sentence.startswith("the first NaN was born in 1, in its own code")
    (note,) = followed(torch.log, only="1.fx")._record.notes
    assert note == "only='1.fx' matches no module that was called; the closest name is '1.fc'"


def test_keep_copies_what_a_call_got_and_gave():
    """As it was then, and nothing of other calls."""
    model = net()
    with tnp.follow(keep="1.*") as run:
        model(torch.ones(2, 4))
    call = run["1.fc"]
    assert torch.equal(call.outputs[0].tensor, model[1].fc(call.inputs[0].tensor))
    assert run["0.fc"].outputs[0].tensor is None
    assert not call.outputs[0].tensor.requires_grad
    again = pickle.loads(pickle.dumps(run))
    assert torch.equal(again["1.fc"].outputs[0].tensor, call.outputs[0].tensor)


def test_keep_stops_at_its_bound_and_says_so(monkeypatch: pytest.MonkeyPatch):
    """The first that come are kept."""
    monkeypatch.setattr("tensornp.passes.recording.kept.MAX_BYTES", 40)
    with tnp.follow(keep="*") as run:
        net()(torch.ones(2, 4))
    assert run.calls[0].inputs[0].tensor is not None
    assert any("were not kept" in note for note in run._record.notes)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"level": "lines"}, "level is 'modules' or 'operators', not 'lines'"),
        ({"only": "layers"}, "only says inside which modules operators are followed: pass level='operators' with it"),
        ({"keep": 3}, "keep is a pattern for the names of modules, not an int"),
        ({"level": "operators", "only": 3}, "only is a pattern for the names of modules, not an int"),
    ],
)
def test_what_cannot_be_followed_is_refused(options: dict[str, Any], said: str):
    """In one sentence."""
    with pytest.raises(tnp.errors.BadRequestError, match=said.replace("*", r"\*")):
        tnp.follow(**options)


class _Dropped(nn.Module):
    """All that moves state or RNG: dropout, batch norm, in-place, a shared layer, a checkpoint."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.fc, self.norm, self.drop, self.act = nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.ReLU(True)
        self.reentrant = reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what a stack of them gives."""
        x = self.act(self.norm(self.fc(x)))
        x = checkpoint(self._inner, x, use_reentrant=self.reentrant)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.fc(self.drop(x)).float()

    def _inner(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.fc(x))


@pytest.mark.slow
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.LBFGS])
def test_a_training_computes_the_same_bits(reentrant: bool, optimizer: Any):
    """Losses, parameters, gradients, buffers, RNG."""
    ends = []
    for options in ({}, {"level": "operators"}, {"level": "operators", "only": "drop"}):
        torch.manual_seed(1)
        model, x = _Dropped(reentrant=reentrant), torch.randn(5, 6)
        opt, losses = optimizer(model.parameters(), lr=0.01), []

        def step(model=model, x=x, opt=opt, losses=losses) -> torch.Tensor:
            opt.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            losses.append(loss.detach().clone())
            return loss

        for _ in range(3):
            if options:
                with tnp.follow(**options) as run:
                    opt.step(step)
                assert not run._record.notes
            else:
                opt.step(step)
        grads = [p.grad for p in model.parameters()]
        ends.append([*losses, *model.state_dict().values(), *grads, torch.get_rng_state()])
    assert all(torch.equal(a, b) for other in ends[1:] for a, b in zip(ends[0], other, strict=True))


@in_fork
def test_nothing_is_left_behind_whatever_ends_the_block():
    """No mode, and a mode of the user's that is active still stays; torch's own flags are then as that one saw them."""

    class Mine(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    for error in (None, ValueError, KeyboardInterrupt):
        try:
            with tnp.follow(level="operators"):
                torch.ones(2) + 1
                if error:
                    raise error
        except (ValueError, KeyboardInterrupt):
            pass
        assert _get_current_dispatch_mode_stack() == []
    run, mine = tnp.follow(level="operators"), Mine()
    run.__enter__()
    mine.__enter__()
    run.__exit__(None, None, None)
    assert _get_current_dispatch_mode_stack() == [mine]
    mine.__exit__(None, None, None)


def test_the_user_s_own_mode_sees_no_look():
    """The same operators as with another mode, for which older versions of torch detach."""
    seen: list[list[str]] = []

    class Another(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Mine(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen[-1].append(str(func))
            return func(*args, **(kwargs or {}))

    for inner in (Another(), tnp.follow(level="operators")):
        seen.append([])
        model = net()
        with Mine(), inner:
            model(torch.ones(2, 4)).sum().backward()
    assert seen[0] == seen[1] != []


def test_inference_mode_and_no_grad_are_followed():
    """Where torch counts no versions, what is written is read anew."""
    for context in (torch.inference_mode, torch.no_grad):
        with tnp.follow(level="operators") as run, context():
            x = torch.ones(3)
            x.mul_(2)
            y = x.sub_(2).log()
        assert y.isinf().all()
        assert run.first("inf").operator == "log"
        assert [one.outputs[0].max for one in run.operators] == [1.0, 2.0, 0.0, -INF]


def test_more_operators_than_are_kept_are_bounded_and_the_first_nan_is_found_all_the_same():
    """With all that refers to it."""
    with tnp.follow(level="operators", max_calls=10) as run:
        x = torch.ones(2)
        for i in range(50):
            x = x + 1 if i != 20 else (x - 100).log()
    assert x.isnan().all()
    assert run.first("nan").operator == "log"
    assert not run.complete
    assert run._record.num_dropped == 52 - len(run.operators) > 0
    assert all(one.index == place for place, one in enumerate(run.operators))


def test_the_card_shows_the_operators_around_the_birth():
    """By rows, with the line; without modules, line by line."""
    text = tnp.card(followed(masked_softmax)).text
    row = next(line for line in text.split("\n") if line.startswith("softmax · first"))
    assert "1 row of its input was −Inf throughout" in row
    assert any(line.startswith("masked_fill") and "inf was asked for" in line for line in text.split("\n"))
    with tnp.follow(level="operators") as run:
        x = torch.ones(2, 3)
        (x * 2).sum()
    text = tnp.card(run).text
    assert text.startswith("no NaN and no infinity in 3 operators\n3 operators")
    assert "mul, sum" in text
    assert "<td" in tnp.card(run).html
