"""What follows a pass: the calls, the values and the gradients of real programs, which compute what they would have."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from older import since
from programs import in_thread
from torch import nn
from torch.nn.modules import module as torch_module
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import tensornp as tnp
from tensornp.errors import NoSuchCallError


class Block(nn.Module):
    """A layer with a place for a fault in its own code."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.norm, self.attn, self.proj = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)
        self.fault: Callable[[torch.Tensor], torch.Tensor] = lambda h: h

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return a residual step."""
        return x + self.proj(self.fault(self.attn(self.norm(x))))


class Net(nn.Module):
    """Tokens to scores."""

    def __init__(self, num_layers: int = 4) -> None:
        super().__init__()
        self.emb, self.head = nn.Embedding(10, 8), nn.Linear(8, 10)
        self.layers = nn.ModuleList(Block() for _ in range(num_layers))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        scores: torch.Tensor = self.head(x)
        return scores


IDS = torch.arange(6).view(2, 3)


def nan_log(h: torch.Tensor) -> torch.Tensor:
    """Return NaN wherever `h` is negative."""
    return torch.log(h)


def test_calls_values_and_gradients_are_those_of_the_program():
    """Each beside what the program itself computes."""
    model, kept = Net(), {}
    model.layers[1].attn.register_forward_hook(lambda _, args, out: kept.update(x=args[0].detach(), y=out))
    with tnp.follow() as run:
        out = model(IDS)
        kept["y"].retain_grad()
        out.square().sum().backward()
    assert [call.name for call in run.calls][:4] == ["", "emb", "layers.0", "layers.0.norm"]
    call = run["layers.1.attn"]
    assert call is run["model.layers[1].attn"] is run.find("layers.1.a*")[0]
    assert (call.class_name, call.status, call.phase, call.nth, call.depth) == ("Linear", "returned", "forward", 0, 2)
    assert run.calls[call.parent].name == "layers.1"
    (got,), (gave,) = call.inputs, call.outputs
    assert (got.shape, got.dtype, got.path, got.made_by) == ((2, 3, 8), "float32", "[0]", "layers.1.norm")
    assert (gave.relation, gave.path) == ("new", "")
    for value, tensor in ((got, kept["x"]), (gave, kept["y"].detach())):
        assert [value.min, value.max] == [tensor.min().item(), tensor.max().item()]
        assert value.norm == pytest.approx(tensor.norm().item(), rel=1e-5)
        assert value.mean == pytest.approx(tensor.mean().item(), abs=1e-6)
        assert value.sample == tuple(tensor.flatten().tolist())
    assert gave.grad.norm == pytest.approx(kept["y"].grad.norm().item(), rel=1e-5)
    for name, parameter in model.named_parameters():
        assert run.grads[name].norm == pytest.approx(parameter.grad.norm().item(), rel=1e-5, abs=1e-7)
    assert "self.attn(self.norm(x))" in call.source.text
    assert run.complete
    assert run.first("nan") is run.first("inf") is run.failed is None


def test_where_the_first_nan_was_born_is_said_in_a_sentence():
    """In own code between two calls, with its line."""
    model = Net()
    model.layers[2].fault = nan_log
    with tnp.follow() as run:
        model(IDS).sum().backward()
    origin = run.first("nan")
    assert (origin.name, origin.phase, origin.inputs_finite) == ("layers.2", "forward", True)
    assert origin.sentence.startswith("the first NaN was born in layers.2, in its own code, before proj got it")
    assert run.problems[0] == origin.sentence
    assert "layers.2 Block · first NaN" in tnp.card(run).text


def test_a_weight_that_was_bad_before_is_named():
    """And no call is accused."""
    model = Net()
    with torch.no_grad():
        model.layers[1].proj.weight[2, 3] = torch.nan
    with tnp.follow(model) as run:
        model(IDS)
    origin = run.first("nan")
    assert (origin.phase, origin.name) == ("before the pass", "layers.1.proj.weight")


def test_a_nan_of_targets_is_not_said_to_be_born_in_the_loss_alone():
    """Nobody sees what a function gets; by the name of the loss, or by the gradient where nothing holds that."""
    model, target = nn.Linear(2, 2), torch.tensor([[1.0, torch.nan]])
    with tnp.follow(model) as run:
        loss = nn.functional.mse_loss(model(torch.ones(1, 2)), target)
    assert run.problems == [
        "`loss` holds NaN, which was born in the code around the modules, or came in with targets and the like: "
        "nothing that a module gave did"
    ]
    del loss
    with tnp.follow(model) as run:
        nn.functional.mse_loss(model(torch.ones(1, 2)), target).backward()
    assert run.problems[0] == (
        "what modules gave was finite; the first NaN was born in the loss or its backward, after Linear, the last call "
        "with a gradient, or came in with targets and the like"
    )


def test_what_does_not_fit_is_said_with_the_shapes():
    """The error goes on as it was; the block has a record all the same."""
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(6, 2))
    with pytest.raises(RuntimeError, match="cannot be multiplied"), tnp.follow() as run:
        model(torch.ones(5, 4))
    assert run.failed.name == "2"
    assert run.failed.status == run.calls[0].status == "raised"
    assert run.problems[0].startswith("2 (Linear) got (5, 3) and its weight is (2, 6): it takes 6 features")
    assert not run.complete


def test_an_error_that_the_program_handles_is_no_failure_of_the_run():
    """The call is told as one that raised."""
    model = nn.Sequential(nn.Linear(4, 3))
    with tnp.follow() as run:
        try:
            model(torch.ones(5, 7))
        except RuntimeError:
            model(torch.ones(5, 4))
    assert [call.status for call in run.calls] == ["raised", "raised", "returned", "returned"]
    assert run.failed is None


@pytest.mark.parametrize("ending", ["return", "error", "interrupt"])
def test_hooks_are_gone_whatever_ends_the_block(ending):
    """And a pass can be read then."""
    model = nn.Sequential(nn.Linear(2, 2))

    def ended() -> tnp.FollowedPass:
        run = tnp.follow()
        with run:
            model(torch.ones(1, 2))
            if ending != "return":
                raise {"error": ValueError, "interrupt": KeyboardInterrupt}[ending]
            return run
        return run

    if ending == "return":
        assert len(ended()) == 2
    else:
        with pytest.raises((ValueError, KeyboardInterrupt)):
            ended()
    assert not torch_module._global_forward_hooks
    assert not torch_module._global_forward_pre_hooks
    with tnp.follow() as run:
        model(torch.ones(1, 2))
    assert len(run) == 2


def test_nothing_of_the_user_is_kept_alive():
    """Not the model, not a tensor, not the graph; and intermediate memory is given back inside the block."""
    model = Net()
    sizes: list[bool] = []
    reference = weakref.ref(model)
    held: list[Any] = []

    def note(_: Any, __: Any, out: torch.Tensor) -> None:
        held.append(torch.multiprocessing.reductions.StorageWeakRef(out.untyped_storage()))

    model.layers[0].norm.register_forward_hook(note)
    with tnp.follow() as run, torch.no_grad():
        model(IDS)
        sizes.append(held[0].expired())
    del model
    gc.collect()
    assert sizes == [True]
    assert reference() is None
    again = pickle.loads(pickle.dumps(run))
    assert again.calls == run.calls
    assert tnp.card(again).text == tnp.card(run).text


def test_the_record_is_made_as_it_is_first_read():
    """A loop that reads none does not wait for it; what may be another one by then was asked for as the block ended."""
    model = nn.Linear(2, 2)
    with tnp.follow() as run:
        model(torch.ones(1, 2)).sum().backward()
    assert run.is_over
    assert run._made is None
    reference, model = weakref.ref(model), nn.Linear(3, 3)
    assert reference() is None
    assert run[""].code == "model"
    assert run._record is run._record
    assert tnp.card(pickle.loads(pickle.dumps(run))).text == tnp.card(run).text


def test_weights_can_be_swapped_afterwards():
    """No tensor is referred to weakly."""
    model = nn.Linear(2, 2)
    with tnp.follow() as run:
        model(torch.ones(1, 2)).sum().backward()
    torch.utils.swap_tensors(model.weight, nn.Parameter(torch.zeros(2, 2)))
    assert run.grads["weight"] is not None


def test_an_inplace_module_s_input_is_told_as_it_was():
    """It is overwritten by the time it returns."""
    module, x = nn.ReLU(inplace=True), torch.tensor([-3.0, 1.0])
    with tnp.follow() as run:
        module(x)
        module(x)
    first, second = run.calls
    assert (first.inputs[0].min, first.outputs[0].min, first.outputs[0].relation) == (-3, 0, "in place")
    assert (second.inputs[0].min, second.nth) == (0, 1)


def test_a_checkpoint_s_second_calls_are_told_as_recomputed():
    """And end early without having failed."""
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    with tnp.follow() as run:
        checkpoint(model, torch.ones(1, 3, requires_grad=True), use_reentrant=False).sum().backward()
    assert [call.phase for call in run.calls].count("recomputed") == 4
    assert run.failed is None
    assert {call.status for call in run.calls} <= {"returned", "stopped early"}
    assert not run.problems


def test_other_tasks_and_threads_are_not_followed_unless_their_modules_are_named():
    """What runs in another context is not the block's."""
    mine, other = nn.Linear(2, 2), nn.Linear(2, 2)
    with tnp.follow() as run:
        mine(torch.ones(1, 2))
        in_thread(other, torch.ones(1, 2))
    assert [call.code for call in run.calls] == ["mine"]
    with tnp.follow(other) as run:
        mine(torch.ones(1, 2))
        in_thread(other, torch.ones(1, 2))
    assert [call.code for call in run.calls] == ["other"]


def test_gradients_of_two_models_whose_weights_have_one_name_are_told_apart():
    """Each by the name of its model."""
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    with tnp.follow() as run:
        second(first(torch.ones(1, 3))).sum().backward()
    assert list(run.grads) == ["first.weight", "first.bias", "second.weight", "second.bias"]
    for model, name in ((first, "first"), (second, "second")):
        assert run.grads[f"{name}.weight"].norm == pytest.approx(model.weight.grad.norm().item(), rel=1e-5)


class _Operators(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("mode", [_Operators, _Functions])
def test_the_user_s_modes_see_no_look(mode):
    """Neither an operator nor an attribute that is asked for."""
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU(inplace=True))
    seen = []
    for is_followed in (False, True):
        model.zero_grad()
        with mode() as active, tnp.follow() if is_followed else nullcontext():
            model(torch.ones(4, 3)).sum().backward()
        seen.append(active.seen)
    assert seen[0] == seen[1] != []


@pytest.mark.parametrize("transform", ["vmap", "jvp", "grad", "script", "trace"])
def test_what_cannot_be_followed_costs_nothing_but_facts(transform):
    """A transform, a script, a tracer: what they compute is the same, and no call is lost with a note."""
    model, x = nn.Linear(3, 1), torch.ones(4, 3)
    programs = {
        "vmap": lambda: torch.vmap(model)(x),
        "jvp": lambda: torch.func.jvp(model, (x,), (x,))[1],
        "grad": lambda: torch.func.grad(lambda y: model(y).sum())(x),
        "script": lambda: torch.jit.script(model)(x),
        "trace": lambda: torch.jit.trace(model, x)(x),
    }
    plain = programs[transform]()
    with tnp.follow() as run:
        followed = programs[transform]()
    assert torch.equal(plain, followed)
    assert run._record.notes == ()
    assert ("inside a torch.func transform: not read" in tnp.card(run).text) is (transform in ("vmap", "jvp", "grad"))
    assert "Error" not in tnp.card(run).text


@pytest.mark.slow
def test_threads_that_call_at_once_mix_nothing_up():
    """Each call has its own figures and its own parent."""
    model = nn.Sequential(nn.Identity(), nn.Identity())

    def work(value: float) -> None:
        for _ in range(100):
            model(torch.full((3,), value))

    with tnp.follow(model) as run:
        threads = [threading.Thread(target=work, args=(float(i),)) for i in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [call.index for call in run.calls] == list(range(1200))
    for call in run.calls:
        assert call.inputs[0].min == call.inputs[0].max == call.outputs[0].max
        assert call.parent is None or run.calls[call.parent].inputs[0].max == call.inputs[0].max


def test_an_encoder_layer_keeps_its_fast_path():
    """Which it leaves under a function mode, or for hooks of its own: then its parts would be called."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 3, 8)
    with torch.inference_mode():
        plain = layer(x)
        with tnp.follow() as run:
            followed = layer(x)
    assert torch.equal(plain, followed)
    assert [call.class_name for call in run.calls] == ["TransformerEncoderLayer"]
    assert run.calls[0].outputs[0].is_finite


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_figures_of_nested_tensors_are_those_of_all_parts(layout):
    parts = [torch.randn(3, 8), torch.randn(5, 8)]
    x = torch.nested.nested_tensor(parts, layout=layout, requires_grad=True)
    model = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 2))
    with tnp.follow(model) as run:
        given = model(x)
        (given.values() if layout is torch.jagged else given.to_padded_tensor(0.0)).sum().backward()
    got, packed = run["0"].inputs[0], torch.cat(parts)
    assert (got.shape, got.figures.count, got.min) == ((2, "?", 8), 64, packed.min().item())
    assert got.norm == pytest.approx(packed.norm().item())
    assert run["1"].outputs[0].grad_norm == pytest.approx(16**0.5)
    assert run["1"].inputs[0].maker == 1 and run.problems == []
    with tnp.follow() as run:
        nn.Identity()(torch.nested.nested_tensor(parts).transpose(1, 2))
    assert run.calls[0].inputs[0].note == "nested: not read"


def test_passes_nest():
    """Each has what is called in its block."""
    model = nn.Linear(2, 2)
    with tnp.follow() as outer:
        model(torch.ones(1, 2))
        with tnp.follow() as inner:
            model(torch.ones(1, 2)).sum().backward()
        model(torch.ones(1, 2))
    assert (len(outer), len(inner)) == (3, 1)
    assert inner.grads["weight"] is not None


@pytest.mark.slow
def test_of_more_calls_than_are_kept_trouble_is_found_all_the_same():
    """The first NaN of call 2,501."""
    module = nn.Identity()
    with tnp.follow(max_calls=100) as run:
        for i in range(3000):
            module(torch.tensor(torch.nan if i == 2500 else 1.0))
    assert run._record.num_dropped == 2899
    assert not run.complete
    (bad,) = [call for call in run.calls if call.outputs[0].has_nan]
    assert bad.nth == 2500
    assert run.first("nan") is not None


@pytest.mark.slow
def test_a_compiled_module_is_followed_from_outside_and_computes_the_same():
    """Torch warns of hooks when it traces a call into them."""
    compiled = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend="eager")
    x = torch.ones(2, 4)
    before = compiled(x)
    with tnp.follow() as run:
        during = compiled(x)
    after = compiled(x)
    assert torch.equal(before, during) and torch.equal(before, after)
    assert (run.calls[0].class_name, run.calls[0].status) == ("OptimizedModule", "returned")
    assert "warn of hooks" in " ".join(run.calls[0].notes)
    assert "warn of hooks" in tnp.card(run).text


def compiled_in_place(*modules: nn.Module) -> nn.Module:
    model = nn.Sequential(*modules)
    model.compile(backend="eager")
    return model


@pytest.mark.slow
@since("2.8", "compiled code calls no hooks")
@pytest.mark.parametrize("is_bound", [True, False])
def test_what_was_compiled_in_place_is_one_call(is_bound: bool):
    """Torch calls no hooks there; its own code is put back."""
    model = compiled_in_place(nn.Linear(4, 3), nn.ReLU())
    x, code = torch.ones(2, 4), model._compiled_call_impl
    before = model(x)
    with tnp.follow(*[model] * is_bound) as run:
        during = model(input=x)
        during.sum().backward()
    assert torch.equal(before, during) and model._compiled_call_impl is code
    assert [call.title for call in run] == ["Sequential"] and run.complete and not run.problems
    assert run[0].inputs[0].path == "['input']" and run[0].outputs[0].grad_norm == pytest.approx(6**0.5)
    assert set(run.grads) == {"0.weight", "0.bias"} and None not in run.grads.values()
    assert "compiled by Module.compile: compiled code is one call" in tnp.card(run).text


@since("2.8", "compiled code calls no hooks")
def test_a_weight_of_compiled_code_that_is_nan_is_told():
    """It calls no module that has it."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x)

    for name in ("linear.weight", "_orig_mod.linear.weight"):
        model = Net()
        model.linear.weight.data[0] = torch.nan
        if name.startswith("_"):
            model = torch.compile(model, backend="eager")
        else:
            model.compile(backend="eager")
        with tnp.follow() as run:
            model(torch.ones(2, 4))
        assert run.problems[0] == f"{name} held NaN before the pass"


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (lambda: tnp.follow(3), "follow takes modules, not an int"),
        (lambda: tnp.follow(max_calls=1), "max_calls is an integer from 2 on"),
        (lambda: tnp.follow(namespace=3), "namespace is a mapping"),
        (lambda: tnp.follow().calls, "not over"),
        (lambda: _over().first("all"), "'nan', 'inf' or 'nonfinite'"),
        (lambda: [_entered_again()], "followed once"),
    ],
)
def test_bad_requests_get_a_sentence(request_, says):
    """Of what, and the cure."""
    with pytest.raises(tnp.BadRequestError, match=says):
        request_()


def _over() -> tnp.FollowedPass:
    with tnp.follow() as run:
        nn.Identity()(torch.ones(1))
    return run


def _entered_again() -> None:
    with _over():
        pass


def test_a_pass_without_calls_says_so_and_one_that_is_not_over_too():
    """In the card."""
    with tnp.follow() as run:
        assert "not over" in tnp.card(run).text
    assert tnp.card(run).text == "no module was called here; %%follow --operators follows functions"
    with pytest.raises(KeyError, match="no call of 'head' was followed"):
        _over()["head"]


def test_a_frame_has_a_row_for_each_call():
    """With the figures of its first result."""
    frame = _over().to_frame()
    assert frame["max"].tolist() == [1.0]
    assert frame.index.tolist() == ["Identity"]


def test_a_frame_of_operators_has_a_row_for_each():
    """With the call inside which it came, and its line."""
    model = nn.Linear(2, 3)
    with tnp.follow(level="operators") as run:
        model(torch.ones(1, 2)).exp()
    frame = run.to_frame("operators")
    assert frame.index.tolist() == [one.name for one in run.operators]
    last = frame.iloc[-1]
    assert (last.name, last["shape"], last["phase"]) == ("exp", (1, 3), "forward")
    assert not isinstance(last["call"], str)
    assert frame["call"].iloc[-2] == run.calls[0].title
    assert last["line"].endswith("`model(torch.ones(1, 2)).exp()`")
    assert last["max"] == run.operators[-1].outputs[0].max
    with pytest.raises(tnp.BadRequestError, match="'calls' or 'operators'"):
        run.to_frame("steps")


def test_calls_are_found_by_name_and_by_number():
    """The first of a module, the nth, and that in which a NaN was born."""
    shared = nn.Linear(3, 3)
    model = nn.Sequential(shared, shared, nn.ReLU())
    with tnp.follow(model) as run:
        model(torch.ones(1, 3))
    assert run["0"] is run.calls[1] is run[1] and run[-1] is run.calls[-1]
    assert [call.nth for call in run.find("0")] == [0, 1]
    assert [call.num_calls for call in run.calls] == [1, 2, 2, 1]
    assert run.find("model[0]") == run.find("0")
    with pytest.raises(NoSuchCallError, match="there is no call 4: 4 calls were followed"):
        run[4]


def test_the_end_of_float16_is_told_where_no_operator_is_known():
    """Of a module that computes in its own code, the line is not known, and the range may have been left there."""

    class Squares(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.inner(x)
            return h * 3e4

    model = Squares().half()
    nn.init.ones_(model.inner.weight)
    with tnp.follow() as run:
        model(torch.full((1, 2), 9.0, dtype=torch.float16))
    assert run.problems[0].endswith("its inputs and weights were finite; float16 ends at 65,504")
