"""Programs that train, each with what is odd about it; and all that one leaves behind, bit for bit."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from older import is_since
from torch import nn
from torch.nn.modules import module as torch_module
from torch.optim import optimizer as torch_optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

NUM_STEPS = 3
NUM_NODES = 200
"""Nodes of a graph whose order is looked at."""
Follow = Callable[[nn.Module], Any]


class First(nn.Module):
    """What an LSTM gave, without its state."""

    def forward(self, out: Any) -> torch.Tensor:
        given: torch.Tensor = out[0]
        return given


class Reused(nn.Module):
    """A module that is called three times, and a weight that is tied."""

    def __init__(self) -> None:
        super().__init__()
        self.emb, self.body, self.head = nn.Linear(6, 6, bias=False), nn.Linear(6, 6), nn.Linear(6, 6)
        self.head.weight = self.emb.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.emb(x)
        for _ in range(3):
            h = self.body(h).tanh_()
        out: torch.Tensor = self.head(h)
        return out


@dataclass
class Training:
    """One run of a program: `pause` is called between what a step does, and may end it."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    follow: Follow
    pause: Callable[[], None]
    scaler: Any = None
    losses: list[torch.Tensor] = field(default_factory=list)
    nodes: list[list[str]] = field(default_factory=list)

    def backward(self, loss: torch.Tensor) -> None:
        self.losses.append(loss.detach())
        self.nodes.append(names_of_nodes(loss.grad_fn))
        self.pause()
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        self.pause()

    def step(self) -> None:
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        self.pause()
        self.optimizer.zero_grad()


def inputs() -> torch.Tensor:
    return torch.randn(4, 6)


def scored(training: Training, call: Callable[[nn.Module, torch.Tensor], torch.Tensor]) -> None:
    training.backward(call(training.model, inputs()).square().mean())
    training.step()


def accumulated(training: Training) -> None:
    for _ in range(2):
        training.backward(training.model(inputs()).square().mean())
    training.step()


def of_a_closure(training: Training) -> None:
    """Make a step that calls the model itself."""
    x = inputs()

    def closure() -> torch.Tensor:
        training.optimizer.zero_grad()
        loss = training.model(x).square().mean()
        training.backward(loss)
        return loss

    training.optimizer.step(closure)  # type: ignore[arg-type]
    training.pause()


def without_gradients(training: Training) -> None:
    with torch.inference_mode():
        training.losses.append(training.model(inputs()).clone())
        training.pause()


def nested(training: Training) -> None:
    with training.follow(training.model):
        loss = training.model(inputs()).square().mean()
        with training.follow(training.model):
            training.backward(loss + training.model(inputs()).mean())
    training.step()


def penalized(training: Training) -> None:
    x = inputs().requires_grad_()
    loss = training.model(x).square().mean()
    (grad,) = torch.autograd.grad(loss, x, create_graph=True)
    training.backward(loss + grad.square().sum())
    training.step()


def by_functions(training: Training) -> None:
    """Take gradients by a transform."""
    parameters, x = dict(training.model.named_parameters()), inputs()

    def loss_of(given: dict[str, torch.Tensor]) -> torch.Tensor:
        out: torch.Tensor = torch.func.functional_call(training.model, given, (x,))
        return out.square().mean()

    grads, loss = torch.func.grad_and_value(loss_of)(parameters)
    training.losses.append(loss.detach())
    training.pause()
    for name, parameter in parameters.items():
        parameter.grad = grads[name]
    training.step()


def of_computed_weights(training: Training) -> None:
    """Call a model with weights that are made of its own: none of them is a leaf of the graph."""
    made = {name: one * 1.5 for name, one in training.model.named_parameters()}
    out = torch.func.functional_call(training.model, made, (inputs(),))
    training.backward(out.square().mean())
    training.step()


def two_threads(training: Training) -> None:
    """Train two models at once; each by itself, since torch adds to one gradient in no order."""
    losses: dict[int, torch.Tensor] = {}
    xs = [inputs(), inputs()]

    def work(i: int) -> None:
        loss = training.model[i](xs[i]).square().mean()  # type: ignore[index]
        loss.backward()
        losses[i] = loss.detach()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    training.losses += [losses[i] for i in range(2)]
    training.pause()
    training.step()


def in_thread(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    out: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: out.append(model(x)))
    thread.start()
    thread.join()
    return out[0]


def compiled(backend: str) -> Callable[[nn.Module, torch.Tensor], torch.Tensor]:
    """Return what compiles a model once, when it is first called."""
    known: dict[int, Any] = {}

    def call(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        if id(model) not in known:
            known.clear()
            torch._dynamo.reset()
            known[id(model)] = torch.compile(model, backend=backend)
        out: torch.Tensor = known[id(model)](x)
        return out

    return call


def plain(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    out: torch.Tensor = model(x)
    return out


def small() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))


@dataclass(frozen=True)
class Program:
    """A program: what it trains, what one step does, and with what."""

    model: Callable[[], nn.Module]
    step: Callable[[Training], None]
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam
    scale: float = 0.0


def lbfgs(parameters: Any, lr: float) -> torch.optim.Optimizer:
    """Return an optimizer that calls its closure several times a step."""
    return torch.optim.LBFGS(parameters, lr=lr, max_iter=4)


def adam_fused(parameters: Any, lr: float) -> torch.optim.Optimizer:
    """Return an optimizer whose step does not count what it writes."""
    return torch.optim.Adam(parameters, lr=lr, fused=True)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "dropout": lambda: nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5), nn.Linear(6, 6)),
    "batch norm": lambda: nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU(inplace=True), nn.Linear(6, 6)),
    "shared": lambda: nn.Sequential(*[nn.Linear(6, 6)] * 3),
    "reused and tied": Reused,
    "encoder": lambda: nn.TransformerEncoderLayer(6, 2, 12, batch_first=True),
    "lstm": lambda: nn.Sequential(nn.LSTM(6, 6, batch_first=True), First()),
}
CALLS: dict[str, Callable[[nn.Module, torch.Tensor], torch.Tensor]] = {
    "plain": plain,
    "checkpoint": lambda model, x: checkpoint(model, x, use_reentrant=False),  # type: ignore[no-any-return]
    "reentrant": lambda model, x: checkpoint(model, x.requires_grad_(), use_reentrant=True),  # type: ignore[no-any-return]
    "autocast": lambda model, x: torch.autocast("cpu", torch.bfloat16)(model)(x).float(),
    "thread": in_thread,
}
PROGRAMS: dict[str, Program] = (
    {
        f"{model}, {call}": Program(MODELS[model], lambda training, call=call: scored(training, CALLS[call]))  # type: ignore[misc]
        for model in MODELS
        for call in CALLS
        # Of an LSTM, torch computes bfloat16 only where the processor has instructions for it.
        if (model, call) != ("lstm", "autocast") or torch.ops.mkldnn._is_mkldnn_bf16_supported()
    }
    | {
        "scaler": Program(MODELS["batch norm"], lambda training: scored(training, CALLS["autocast"]), scale=4.0),
        "scaler that skips": Program(small, lambda training: scored(training, plain), scale=2.0**127),
        "scaler, fused": Program(small, lambda training: scored(training, plain), adam_fused, scale=2.0**127),
        "accumulated": Program(MODELS["dropout"], accumulated),
        "closure": Program(small, of_a_closure, lbfgs),
        "fused": Program(small, lambda training: scored(training, plain), adam_fused),
        "vmap": Program(small, lambda training: scored(training, lambda model, x: torch.vmap(model)(x))),
        "functions": Program(small, by_functions),
        "computed weights": Program(small, of_computed_weights),
        "inference": Program(lambda: MODELS["encoder"]().eval(), without_gradients),
        "penalty": Program(small, penalized),
        "nested": Program(MODELS["dropout"], nested),
        "two threads": Program(lambda: nn.ModuleList([small(), small()]), two_threads),
    }
    | (
        # Before, what dynamo keeps of a module decides whether its parameters can be swapped.
        {"compiled": Program(MODELS["dropout"], lambda training: scored(training, compiled_eagerly))}
        if is_since("2.8")
        else {}
    )
)
compiled_eagerly = compiled("eager")


class Stopped(Exception):
    pass


def state_after(
    program: Program, follow: Follow, stop: Any = None, stop_at: int = -1
) -> tuple[dict[str, Any], list[Any]]:
    """Return all that some steps of a training leave behind, and what was followed.

    `stop` is raised at one of its pauses; ``"return"`` ends the block there by a return.
    """
    torch.manual_seed(2)
    model = program.model()
    hooks, modes = hooks_of_torch(), modes_of_torch()
    num_pauses, runs = 0, []

    def pause() -> None:
        nonlocal num_pauses
        num_pauses += 1
        if num_pauses - 1 == stop_at:
            raise Stopped if stop == "return" else stop

    optimizer = program.optimizer(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=program.scale) if program.scale else None
    training = Training(model, optimizer, follow, pause, scaler)

    def block() -> None:
        with follow(model) as run:
            runs.append(run)
            try:
                program.step(training)
            except Stopped:
                return

    for _ in range(NUM_STEPS):
        try:
            block()
        except (ValueError, KeyboardInterrupt):
            assert stop != "return"
        if num_pauses > stop_at >= 0:
            # An optimizer that was left in the middle of its step may not make another.
            break
    assert hooks_of_torch() == hooks
    assert modes_of_torch() == modes
    return {
        "losses": [bits(loss) for loss in training.losses],
        "state": {name: bits(tensor) for name, tensor in model.state_dict().items()},
        "optimizer": [bits(one) for one in tensors_of(optimizer.state_dict())],
        "scaler": scaler.state_dict() if scaler is not None else None,
        "rng": bits(torch.get_rng_state()),
        "nodes": training.nodes,
        "tensors": [facts_of(one) for one in (*model.parameters(), *model.buffers())],
        "num pauses": num_pauses,
        "can be swapped": [can_be_swapped(one) for one in {id(one): one for one in model.parameters()}.values()],
    }, runs


def tensors_of(tree: Any) -> Iterator[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, (dict, list, tuple)):
        for one in tree.values() if isinstance(tree, dict) else tree:
            yield from tensors_of(one)


def bits(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.dtype, bytes(tensor.detach().contiguous().view(-1).view(torch.uint8).tolist())


def facts_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return what else might be left on a tensor: versions, hooks, and a gradient."""
    grad = None if tensor.grad is None else (bits(tensor.grad), tensor.grad._version, tensor.grad.requires_grad)
    post = getattr(tensor, "_post_accumulate_grad_hooks", None)
    return tensor._version, tensor._backward_hooks, post, tensor.untyped_storage().resizable(), grad


def can_be_swapped(parameter: torch.Tensor) -> bool:
    """Return whether nothing refers to a parameter weakly, as an LSTM does; it has another identity then."""
    try:
        torch.utils.swap_tensors(parameter, nn.Parameter(parameter.detach().clone()))
    except RuntimeError:
        return False
    return True


def names_of_nodes(node: Any) -> list[str]:
    """Return the names of the nodes of a graph, breadth first."""
    found, queue = [], [node]
    while queue and len(found) < NUM_NODES:
        one = queue.pop(0)
        if one is not None:
            found.append(one.name())
            queue += [below for below, _ in one.next_functions]
    return found


def hooks_of_torch() -> dict[str, Any]:
    """Return what torch has registered for all modules, and for all optimizers."""
    return {
        name: dict(value) if isinstance(value, dict) else value
        for module in (torch_module, torch_optimizer)
        for name, value in vars(module).items()
        if name.startswith("_global_")
    }


def modes_of_torch() -> tuple[Any, ...]:
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"),
        torch.is_autocast_cache_enabled(), torch.is_anomaly_enabled(), torch.get_default_dtype(),
        torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack(),
    )  # fmt: skip


class Nothing(TorchDispatchMode):
    """A mode that does nothing: torch reshapes and adds up by other operators under any, of which values are equal."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def in_a_mode(_: nn.Module) -> Any:
    return Nothing()


def no_follow(_: nn.Module) -> Any:
    return nullcontext()
