"""What a followed pass records of real programs: calls, values, gradients and steps, and nothing of the user's."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext, suppress
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from older import since
from programs import in_thread
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

import tensornp as tnp

NAN, INF = float("nan"), float("inf")
LEVELS = ("modules", "operators")


class Block(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.norm, self.attn, self.proj = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.proj(self.attn(self.norm(x)))


class Net(nn.Module):
    def __init__(self, num_layers: int = 3) -> None:
        super().__init__()
        self.emb, self.head = nn.Embedding(10, 8), nn.Linear(8, 10)
        self.layers = nn.ModuleList(Block() for _ in range(num_layers))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        scores: torch.Tensor = self.head(x)
        return scores


IDS = torch.arange(6).view(2, 3)


def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    loss = model(x).square().sum()
    loss.backward()
    return loss


def depth_of(run: tnp.FollowedPass, call: Any) -> int:
    depth = 0
    while call.parent:
        call, depth = run[call.parent], depth + 1
    return depth


@pytest.mark.parametrize("level", LEVELS)
def test_calls_values_and_gradients_are_those_of_the_program(level: str):
    model, kept = Net(), {}
    model.layers[1].attn.register_forward_hook(lambda _, args, out: kept.update(x=args[0].detach(), y=out))
    with tnp.follow(level=level) as run:
        out = model(IDS)
        kept["y"].retain_grad()
        out.square().sum().backward()
    assert [call.name for call in run][:4] == ["", "emb", "layers.0", "layers.0.norm"]
    call = run["layers.1.attn"]
    assert call is run["model.layers[1].attn"] is run.find("layers.1.a*")[0] is run[call.index]
    assert (call.class_name, call.status, call.phase, call.nth) == ("Linear", "returned", "forward", 0)
    assert run[call.parent].name == "layers.1" and depth_of(run, call) == 2
    got, gave = call.inputs["[0]"], call.outputs[""]
    assert (got.shape, got.dtype) == ((2, 3, 8), "float32")
    assert gave.relation == ("new" if level == "modules" else "view")
    maker = run[got.maker]
    assert (maker if level == "modules" else run[maker.parent]).name == "layers.1.norm"
    for value, tensor in (
        (got, kept["x"]),
        (gave, kept["y"].detach()),
        (call.params["bias"], model.layers[1].attn.bias),
    ):
        assert [value.figures.min, value.figures.max] == [tensor.min().item(), tensor.max().item()]
        assert value.figures.norm == pytest.approx(tensor.norm().item(), rel=1e-5)
        assert value.figures.mean == pytest.approx(tensor.mean().item(), abs=1e-6)
    assert list(gave.sample) == kept["y"].flatten().tolist() and gave.requires_grad
    assert gave.grad.norm == pytest.approx(kept["y"].grad.norm().item(), rel=1e-5)
    assert list(run.grads) == [name for name, _ in model.named_parameters()] or len(run.grads) == 22
    for name, parameter in model.named_parameters():
        assert run.grads[name].norm == pytest.approx(parameter.grad.norm().item(), rel=1e-5, abs=1e-7)
    assert "self.attn(self.norm(x))" in call.source.text
    assert run.complete and run.failed is None


def test_operators_stand_in_the_calls_of_modules_with_their_lines():
    model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(-1))
    with tnp.follow(level="operators") as run:
        hidden = model(torch.ones(2, 4))
        (hidden * 2).exp().sum().backward()
    by_name = {one.name: one for one in run.operators if one.phase == "forward"}
    assert run[by_name["_softmax"].parent].name == "1" and by_name["exp"].parent == 0
    assert by_name["exp"].source.text == "(hidden * 2).exp().sum().backward()"
    assert by_name["exp"].inputs["self"].maker == by_name["mul"].index
    backward = [one for one in run.operators if one.phase == "backward"]
    assert {run[one.forward].name for one in backward if one.forward} >= {"_softmax", "exp", "mul", "addmm"}
    assert all(run[one.forward].source == one.source for one in backward if one.forward)
    assert run[run["0"].outputs[""].maker] is by_name["addmm"]
    assert [one.index for one in run._record.calls] == list(range(len(run._record.calls)))


def test_several_steps_have_all_their_gradients():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.Adam(model.parameters())
    norms = []
    with tnp.follow() as run:
        for _ in range(3):
            optimizer.zero_grad()
            step(model, torch.ones(2, 3))
            norms.append(model[0].weight.grad.norm().item())
            optimizer.step()
    assert [(one.class_name, one.num_calls, one.num_with_gradient) for one in run.steps] == [
        ("Adam", 4, 4), ("Adam", 7, 4), ("Adam", 10, 4),
    ]  # fmt: skip
    assert run.steps[0].source.text == "optimizer.step()"
    assert run.grads["0.weight"].norm == pytest.approx(norms[-1], rel=1e-5)
    assert [one.held for one in run._record.grads] == [None] * 4
    weights = [call.params["weight"].figures.norm for call in run.find("0")]
    assert len(set(weights)) == 3


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}])
@pytest.mark.parametrize("level", LEVELS)
def test_a_parameter_that_a_step_spoils_is_read_at_the_end(level: str, options: dict[str, bool]):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model[:1].parameters(), lr=NAN, **options)
    with tnp.follow(level=level) as run:
        step(model, torch.ones(2, 3))
        optimizer.step()
    assert list(run._record.finals) == ["0.weight", "0.bias"]
    call, value = run._record.finals["0.weight"]
    assert run[call] is run["0"] and value.figures.has_nan


def test_a_buffer_that_becomes_nan_is_read_at_the_end():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    with tnp.follow() as run:
        model(torch.tensor([[1.0, 2.0, NAN], [1.0, 2.0, 3.0]]))
    assert list(run._record.buffers) == ["1.running_mean", "1.running_var"]
    with tnp.follow() as run:
        model(torch.ones(2, 3))
    assert not run._record.buffers


def test_running_statistics_of_a_training_are_read_at_each_call():
    model = nn.BatchNorm1d(2)
    with tnp.follow(model) as run:
        for _ in range(3):
            model(torch.full((4, 2), 5.0) + torch.randn(4, 2))
    means = [call.params["running_mean"].figures.max for call in run]
    assert means[0] == 0 < means[1] < means[2]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_block_has_its_record_whatever_ends_it(error: type[BaseException]):
    with suppress(error), tnp.follow() as run:
        nn.Linear(2, 2)(torch.ones(1, 2))
        try:
            {}["key"]  # type: ignore[index]
        except KeyError as cause:
            raise error from cause
    assert len(run) == 1 and not run.complete
    assert (run._record.error, run._record.causes) == (error.__name__, ("KeyError: 'key'",))


def test_an_error_that_the_program_handles_is_no_failure_of_the_run():
    model = nn.Sequential(nn.Linear(4, 3))
    with tnp.follow() as run:
        try:
            model(torch.ones(5, 7))
        except RuntimeError:
            model(torch.ones(5, 4))
    assert [call.status for call in run] == ["raised", "raised", "returned", "returned"]
    assert run.failed is None and run[0].status == "returned"
    with pytest.raises(RuntimeError), tnp.follow() as run:
        model(torch.ones(5, 7))
    assert run.failed is run["0"] and run[0].status == "raised"


def test_nothing_of_the_user_is_kept_alive():
    model, held, is_freed = Net(), [], []
    reference = weakref.ref(model)

    def note(_: Any, __: Any, out: torch.Tensor) -> None:
        held.append(StorageWeakRef(out.untyped_storage()))

    model.layers[0].norm.register_forward_hook(note)
    with tnp.follow() as run, torch.no_grad():
        model(IDS)
        is_freed.append(held[0].expired())
    del model
    gc.collect()
    assert is_freed == [True] and reference() is None
    again = pickle.loads(pickle.dumps(run))
    assert [(one.title, one.source) for one in again] == [(one.title, one.source) for one in run]
    assert again["head"].outputs[""].figures == run["head"].outputs[""].figures


@pytest.mark.parametrize("level", LEVELS)
def test_a_model_that_is_dropped_in_the_block_is_freed(level: str):
    with tnp.follow(level=level):
        model = nn.Linear(4, 3)
        loss = step(model, torch.ones(2, 4))
        storages = [StorageWeakRef(one.untyped_storage()) for one in (model.weight, model.weight.grad)]
        del model, loss
        gc.collect()
        assert all(storage.expired() for storage in storages)


def test_the_input_of_an_inplace_module_is_read_before_the_call():
    module, x = nn.ReLU(inplace=True), torch.tensor([-3.0, 1.0])
    with tnp.follow() as run:
        module(x)
        module(x)
    first, second = run
    assert first.inputs["[0]"].figures.min == -3
    assert (first.outputs[""].figures.min, first.outputs[""].relation) == (0, "in place")
    assert second.inputs["[0]"] is first.outputs[""] and second.nth == 1


def test_views_are_made_by_the_call_that_made_their_memory():
    model = nn.Sequential(nn.Linear(4, 6), nn.Unflatten(1, (2, 3)), nn.Flatten(), nn.Linear(6, 1))
    with tnp.follow() as run:
        model(torch.ones(2, 4))[:1]
    assert run["1"].outputs[""].maker == run["0"].index and run["1"].outputs[""].relation == "view"
    assert run["3"].inputs["[0]"] is run["0"].outputs[""] or run["3"].inputs["[0]"].maker == run["0"].index


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_calls_of_a_checkpoint_are_recomputed_and_bring_their_gradients(use_reentrant: bool):
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    x = torch.ones(1, 3, requires_grad=True)
    with tnp.follow() as run:
        checkpoint(model, x, use_reentrant=use_reentrant).sum().backward()
    assert [call.phase for call in run].count("recomputed") == 4
    assert {call.status for call in run} <= {"returned", "stopped early"} and run.failed is None
    assert run.grads["0.weight"].norm == pytest.approx(model[0].weight.grad.norm().item())
    assert any(call.outputs[""].grad for call in run if call.name == "0" and call.outputs)


def test_other_tasks_and_threads_are_not_followed_unless_their_modules_are_named():
    mine, other = nn.Linear(2, 2), nn.Linear(2, 2)
    with tnp.follow() as run:
        mine(torch.ones(1, 2))
        in_thread(other, torch.ones(1, 2))
    assert [call.code for call in run] == ["mine"]
    with tnp.follow(other) as run:
        mine(torch.ones(1, 2))
        in_thread(other, torch.ones(1, 2))
    assert [call.code for call in run] == ["other"]
    with tnp.follow(other) as run:
        mine(torch.ones(1, 2))
    assert not run.calls and "other was not called in this block" in run._record.notes[0]


def test_threads_that_call_at_once_mix_nothing_up():
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
    assert [call.index for call in run] == list(range(1, 1201))
    for call in run:
        got, gave = call.inputs["[0]"].figures, call.outputs[""].figures
        assert got.min == got.max == gave.max
        assert not call.parent or run[call.parent].inputs["[0]"].figures.max == got.max


def test_models_whose_weights_have_one_name_are_distinguished():
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    with tnp.follow() as run:
        second(first(torch.ones(1, 3))).sum().backward()
    assert list(run.grads) == ["first.weight", "first.bias", "second.weight", "second.bias"]
    for model, name in ((first, "first"), (second, "second")):
        assert run.grads[f"{name}.weight"].norm == pytest.approx(model.weight.grad.norm().item(), rel=1e-5)
    models = [nn.Linear(2, 2) for _ in range(3)]
    with tnp.follow() as run:
        [step(model, torch.ones(1, 2)) for model in models]
    assert [call.name for call in run] == ["Linear", "Linear #2", "Linear #3"] and len(run.grads) == 6


def test_expressions_of_odd_names_are_code():
    model = nn.ModuleDict({"a b": nn.Linear(2, 2), "0": nn.Linear(2, 2)})
    model.add_module("class", nn.Linear(2, 2))
    outer = nn.Sequential(model)
    with tnp.follow(outer) as run:
        for inner in model.children():
            inner(torch.ones(1, 2))
    for call, inner in zip(run, model.children(), strict=True):
        assert eval(call.code, {"outer": outer}) is inner


class _Operators(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_modes_of_the_user_see_no_read():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU(inplace=True))
    seen = []
    for is_followed in (False, True):
        model.zero_grad()
        with _Operators() as active, tnp.follow() if is_followed else nullcontext():
            model(torch.ones(4, 3)).sum().backward()
        seen.append(active.seen)
    assert seen[0] == seen[1] != []


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("transform", ["vmap", "jvp", "grad", "script", "trace", "fake"])
def test_transforms_scripts_and_tracers_compute_the_same(transform: str, level: str):
    model, x = nn.Linear(3, 1), torch.ones(4, 3)

    def fake() -> torch.Tensor:
        with FakeTensorMode():
            nn.Linear(2, 2)(torch.ones(1, 2))
        return x

    programs: dict[str, Callable[[], Any]] = {
        "vmap": lambda: torch.vmap(model)(x),
        "jvp": lambda: torch.func.jvp(model, (x,), (x,))[1],
        "grad": lambda: torch.func.grad(lambda y: model(y).sum())(x),
        "script": lambda: torch.jit.script(model)(x),
        "trace": lambda: torch.jit.trace(model, x)(x),
        "fake": fake,
    }
    plain = programs[transform]()
    with tnp.follow(level=level) as run:
        followed = programs[transform]()
    assert torch.equal(plain, followed)
    assert run._record.notes == ()
    if transform in ("vmap", "jvp", "grad"):
        assert (
            "inside a torch.func transform: not read" in [value.note for value in run[1].inputs.values()]
            or run.operators
        )


def test_a_lazy_module_can_be_trained():
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.ReLU())
    with tnp.follow(model) as run:
        step(model, torch.randn(3, 5))
    assert run.grads["0.weight"].norm == pytest.approx(model[0].weight.grad.norm().item(), rel=1e-5)
    assert run["0"].params["weight"].shape == (4, 5) and run["0"].params["weight"].figures is not None


def test_a_sparse_gradient_counts_as_a_whole():
    for indices, least in (([1, 1, 3], 0.0), ([0, 1, 2, 3], 1.0)):
        model = nn.Embedding(4, 2, sparse=True)
        with tnp.follow(model) as run:
            model(torch.tensor(indices)).sum().backward()
        grad, told = model.weight.grad.to_dense(), run.grads["weight"]
        assert (told.min, told.max, told.count) == (least, grad.max().item(), 8)
        assert told.norm == pytest.approx(grad.norm().item())


def test_odd_values_are_read_or_noted():
    values = {
        "half": torch.tensor([1.0, -2.0], dtype=torch.float16),
        "complex": torch.tensor([3 + 4j]),
        "complex32": torch.tensor([3 + 4j], dtype=torch.complex32),
        "conj": torch.tensor([3 + 4j]).conj(),
        "integers": torch.tensor([[1, 2], [3, 4]]),
        "bools": torch.tensor([True, False]),
        "expanded": torch.tensor([2.0]).expand(3, 4),
        "transposed": torch.arange(6.0).view(2, 3).t(),
        "empty": torch.ones(0, 3),
        "meta": torch.ones(2, device="meta"),
        "sparse": torch.tensor([0.0, 7.0]).to_sparse(),
    }
    with tnp.follow() as run:
        nn.Identity()(values)
    inputs = {path.strip("[]'0"): value for path, value in run[1].inputs.items()}
    inputs = {path.split("'")[-1].strip("[]"): value for path, value in inputs.items()}
    told = {
        name: (one.figures.min, one.figures.max, one.figures.sum) if one.figures else one.note
        for name, one in inputs.items()
    }
    assert told["half"] == (-2, 1, -1)
    assert told["complex"] == told["complex32"] == told["conj"] == (5, 5, 5)
    assert told["integers"] == (1, 4, 10) and told["bools"] == (0, 1, 1)
    assert told["expanded"] == (2, 2, 24) and inputs["expanded"].figures.norm == pytest.approx(48**0.5)
    assert told["transposed"] == (0, 5, 15) and inputs["empty"].figures.count == 0
    assert "not read" in told["meta"] and told["sparse"] == (7, 7, 7)
    with tnp.follow() as run:
        nn.Tanh()(torch.full((4,), 1e-30))
        nn.Identity()(torch.full((4,), 1e30))
    assert all(one.outputs[""].figures.is_norm_beyond and "norm" not in repr(one.outputs[""]) for one in run)


def test_tensors_in_objects_and_keywords_are_found():
    class Gives(nn.Module):
        def forward(self, x: torch.Tensor, *, cache: Any) -> Any:
            return SimpleNamespace(logits=x + 1, past=[x, {"k": x * 2}]), torch.distributions.Normal(x, 1.0)

    shared: Any = [1]
    for _ in range(60):
        shared = [shared, shared]
    with tnp.follow() as run:
        Gives()(torch.ones(2), cache=SimpleNamespace(key=torch.zeros(3)))
        nn.Identity()(shared)
        nn.Identity()(list(range(1_000_000)))
    assert run[1].inputs["['cache'].key"].shape == (3,)
    assert {"[0].logits", "[0].past[0]", "[0].past[1]['k']", "[1].loc"} <= set(run[1].outputs)


def test_an_encoder_layer_keeps_its_fast_path():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 3, 8)
    with torch.inference_mode():
        plain = layer(x)
        with tnp.follow() as run:
            followed = layer(x)
    assert torch.equal(plain, followed)
    assert [call.class_name for call in run] == ["TransformerEncoderLayer"]
    assert run[1].outputs[""].figures.is_finite
    assert run[1].params["linear1.weight"].shape == (16, 8)


@pytest.mark.parametrize("level", LEVELS)
def test_inference_tensors_have_their_makers(level: str):
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    with torch.inference_mode(), tnp.follow(level=level) as run:
        model(torch.ones(2, 3))
    maker = run[run["2"].inputs["[0]"].maker]
    assert (maker if level == "modules" else run[maker.parent]).name == "1"


def test_recording_ends_after_so_many_calls():
    module = nn.Identity()
    with tnp.follow(max_calls=100) as run:
        for _ in range(300):
            module(torch.ones(1))
    assert len(run) == 100 and run[100].status == "returned"
    assert not run.complete and "after 100 calls" in run._record.notes[0]


def test_our_own_reads_are_no_calls():
    model = nn.Sequential(nn.Linear(2, 2))
    with tnp.follow(model, level="operators") as run:
        x = model(torch.ones(1, 2))
        before = len(run._recorder.calls)
        str(tnp.card(x).text)
        tnp.weights(model)["0.weight"].to_numpy()
        assert len(run._recorder.calls) == before


@pytest.mark.slow
def test_a_compiled_module_is_one_call_and_computes_the_same():
    compiled = torch.compile(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), backend="eager")
    x = torch.ones(2, 4)
    before = compiled(x)
    with tnp.follow() as run:
        during = compiled(x)
        during.sum().backward()
    after = compiled(x)
    assert torch.equal(before, during) and torch.equal(before, after)
    assert [(call.class_name, call.status) for call in run] == [("OptimizedModule", "returned")]
    assert run[1].params["_orig_mod.0.weight"].shape == (4, 4)
    assert len([one for one in run.grads.values() if one is not None]) == 2


@pytest.mark.slow
@since("2.8", "compiled code calls no hooks")
def test_models_that_were_called_as_compiled_code_are_noted():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    compiled = torch.compile(model, backend="eager")
    with tnp.follow(model, level="operators") as run:
        compiled(torch.ones(2, 4)).sum().backward()
    assert "follow the result of torch.compile" in run._record.notes[0]
    model.compile(backend="eager")
    with tnp.follow() as run:
        model(torch.ones(2, 4)).sum().backward()
    assert "model is compiled in place" in run._record.notes[0]


@pytest.mark.parametrize("options", [{}, {"foreach": True}, {"fused": True}])
@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD])
def test_writes_are_counted_as_they_would_have_been(optimizer: Any, options: dict[str, bool]):
    """Torch counts no writes of operators on lists under a mode: a backward over what they wrote would not raise."""
    versions = []
    for level in (None, *LEVELS):
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


def _two(**options: Any) -> tnp.FollowedPass:
    first, second = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Sequential(nn.Linear(4, 2))
    with tnp.follow(**options) as run:
        second(first(torch.ones(2, 4))).sum().backward()
    return run


@pytest.mark.parametrize("name", ["first.0", "first[0]", "first*0", "second.0", "first"])
def test_keep_copies_inputs_and_outputs(name: str):
    run = _two(keep=name)
    kept = [one for one in run if one.outputs[""].tensor is not None and one.inputs["[0]"].tensor is not None]
    assert run[name] in kept if "*" not in name else run["first.0"] in kept
    assert run["first.0"].inputs["[0]"].tensor is None or torch.equal(
        run["first.0"].inputs["[0]"].tensor, torch.ones(2, 4)
    )


def test_only_follows_operators_of_some_modules_and_their_backward():
    run, whole = _two(level="operators", only="first.0"), _two(level="operators")
    expected = [(one.name, one.phase) for one in whole.operators if whole[one.parent].name == "first.0"]
    assert [(one.name, one.phase) for one in run.operators] == expected
    assert len(run) == 5
    assert "matches no module" in _two(level="operators", only="x")._record.notes[0]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (lambda: tnp.follow(3), "modules must be torch modules, got an int"),
        (lambda: tnp.follow(level="x"), "level must be"),
        (lambda: tnp.follow(only="x"), "only must be None"),
        (lambda: tnp.follow(keep=3), "keep must be a pattern"),
        (lambda: tnp.follow(max_calls=1), "max_calls must be an integer"),
        (lambda: tnp.follow(namespace=3), "namespace must be a mapping"),
        (lambda: tnp.follow().calls, "not over"),
        (lambda: _two().to_frame("steps"), "'calls' or 'operators'"),
        (lambda: _two().__enter__(), "followed once"),
    ],
)
def test_bad_requests_get_a_sentence(request_: Callable[[], Any], says: str):
    with pytest.raises(tnp.BadRequestError, match=says):
        request_()


def test_calls_are_found_by_name_and_by_number():
    shared = nn.Linear(3, 3)
    model = nn.Sequential(shared, shared, nn.ReLU())
    with tnp.follow(model) as run:
        model(torch.ones(1, 3))
    assert run["0"] is run.calls[1] is run[2] and run[-1] is run.calls[-1]
    assert [call.nth for call in run.find("0")] == [0, 1] and run.find("model[0]") == run.find("0")
    with pytest.raises(KeyError, match="there is no call 5"):
        run[5]
    with pytest.raises(KeyError, match="no call of '7'"):
        run["7"]


def test_frames_have_a_row_for_each_call():
    pytest.importorskip("pandas")
    run = _two(level="operators")
    frame = run.to_frame()
    assert frame.index.tolist() == [call.title for call in run]
    assert frame["max"].tolist() == [call.outputs[""].figures.max for call in run]
    frame = run.to_frame("operators")
    assert frame["class_name"].tolist() == [one.name for one in run.operators]
    assert "first.0 (Linear)" in frame["inside"].tolist()
