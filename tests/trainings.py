"""Small trainings, one for each family of models that people train: what a step does, phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.ao.quantization import FakeQuantize, FusedMovingAvgObsFakeQuantize
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
from torch.utils.checkpoint import checkpoint


class Around(nn.Module):
    """Joins what it is given with what a model makes of it, by one of three ways."""

    def __init__(self, join: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], *inside: nn.Module) -> None:
        super().__init__()
        self.inside, self.join = nn.Sequential(*inside), join

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.join(x, self.inside(x))


class Beside(nn.Module):
    """Joins the channels of several branches."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


class Tokens(nn.Module):
    """Pieces of a picture as a sequence, with a learned place for each."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces, self.places = nn.Conv2d(3, 8, 4, 4), nn.Parameter(torch.zeros(1, 4, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pieces(x).flatten(2).transpose(1, 2) + self.places


class Last(nn.Module):
    """The last state of a recurrent layer over the rows of a picture."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.flatten(0, 1))[0][:, -1].view(len(x), -1)


class Again(nn.Module):
    """Computes what is inside again in backward."""

    def __init__(self, *inside: nn.Module) -> None:
        super().__init__()
        self.inside = nn.Sequential(*inside)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(self.inside, x, use_reentrant=False)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return their sum, as a residual block does."""
    return x + y


def concatenate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return their channels side by side, as a dense block and a U do."""
    return torch.cat([x, y], 1)


def scale(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the one scaled by the other, as squeeze and excitation does."""
    return x * y


def conv(channels: int, out: int, kernel: int = 3, norm: Any = nn.BatchNorm2d, **options: Any) -> nn.Sequential:
    """Return a convolution that keeps the size, a norm and a rectifier."""
    layer = nn.Conv2d(channels, out, kernel, padding=kernel // 2, **options)
    return nn.Sequential(layer, norm(out), nn.ReLU(inplace=True))


def head(channels: int) -> nn.Sequential:
    """Return what makes two figures of a picture."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(channels, 2))


def _instance_norm(channels: int) -> nn.Module:
    return nn.InstanceNorm2d(channels, affine=True, track_running_stats=True)


def _group_norm(channels: int) -> nn.Module:
    return nn.GroupNorm(2, channels)


def _frozen() -> nn.Sequential:
    model = nn.Sequential(conv(3, 8), conv(8, 8), head(8))
    model[0].requires_grad_(False).eval()
    return model


def _rows(layer: nn.Module) -> nn.Sequential:
    return nn.Sequential(Last(layer), nn.Linear(24, 2))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "resnet": lambda: nn.Sequential(
        conv(3, 8), Around(add, conv(8, 8), nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8)), head(8)
    ),
    "mobilenet": lambda: nn.Sequential(
        conv(3, 8), Around(add, conv(8, 16, 1), conv(16, 16, groups=16), nn.Conv2d(16, 8, 1), nn.BatchNorm2d(8)),
        Around(scale, nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 8, 1), nn.Hardsigmoid()), head(8),
    ),
    "vgg": lambda: nn.Sequential(
        conv(3, 8), nn.MaxPool2d(2), conv(8, 8), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(32, 2)
    ),
    "densenet": lambda: nn.Sequential(
        conv(3, 4), Around(concatenate, nn.BatchNorm2d(4), nn.ReLU(), conv(4, 4)),
        Around(concatenate, conv(8, 4)), head(12),
    ),
    "inception": lambda: nn.Sequential(
        Beside(conv(3, 4, 1), conv(3, 4), nn.Sequential(nn.AvgPool2d(3, 1, 1), conv(3, 4, 1))), head(12)
    ),
    "vit": lambda: nn.Sequential(
        Tokens(), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.LayerNorm(8), nn.Flatten(),
        nn.Linear(32, 2),
    ),
    "unet": lambda: nn.Sequential(
        conv(3, 4), Around(concatenate, nn.MaxPool2d(2), conv(4, 8), nn.ConvTranspose2d(8, 4, 2, 2)),
        conv(8, 4), head(4),
    ),
    "lstm": lambda: _rows(nn.LSTM(8, 8, 2, batch_first=True, dropout=0.1)),
    "gru": lambda: _rows(nn.GRU(8, 4, bidirectional=True, batch_first=True)),
    "rnn": lambda: _rows(nn.RNN(8, 8, batch_first=True)),
    "group norm": lambda: nn.Sequential(conv(3, 8, norm=_group_norm), head(8)),
    "instance norm": lambda: nn.Sequential(conv(3, 8, norm=_instance_norm), head(8)),
    "spectral and weight norm": lambda: nn.Sequential(
        spectral_norm(nn.Conv2d(3, 8, 3)), nn.LeakyReLU(0.2), nn.Flatten(), weight_norm(nn.Linear(288, 2))
    ),
    "checkpointed": lambda: nn.Sequential(conv(3, 8), Again(conv(8, 8)), head(8)),
    "fine-tuned": _frozen,
    "fake quantized": lambda: nn.Sequential(
        conv(3, 8), FusedMovingAvgObsFakeQuantize(), conv(8, 8), FakeQuantize(), head(8)
    ),
}  # fmt: skip
OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01, foreach=True),
    "fused": lambda parameters: torch.optim.AdamW(parameters, lr=0.01, fused=True),
}


class Training:
    """A model that is trained on noise, always the same; `phases` yields after each phase what a user would call it."""

    def __init__(self, family: str, optimizer: str) -> None:
        torch.manual_seed(0)
        self.model = MODELS[family]()
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        self.loss: torch.Tensor | None = None

    def phases(self, num_steps: int) -> Iterator[str]:
        """Train, step by step."""
        for step in range(num_steps):
            torch.manual_seed(step)
            x, target = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 1, 0])
            self.loss = nn.functional.cross_entropy(self.model(x), target)
            yield "forward"
            self.loss.backward()
            yield "backward"
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            yield "step"
            self.optimizer.zero_grad()
            yield "zero_grad"


class Scaled(Training):
    """The same in mixed precision, with a scaler."""

    def phases(self, num_steps: int) -> Iterator[str]:
        """Train, step by step."""
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
        for step in range(num_steps):
            torch.manual_seed(step)
            with torch.autocast("cpu", torch.bfloat16):
                self.loss = self.model(torch.randn(4, 3, 8, 8)).float().square().mean()
            yield "forward"
            scaler.scale(self.loss).backward()
            yield "backward"
            scaler.unscale_(self.optimizer)
            yield "unscale"
            scaler.step(self.optimizer)
            scaler.update()
            yield "step"
            self.optimizer.zero_grad(set_to_none=False)
            yield "zero_grad"


class Adversarial:
    """Two models in one module, each with an optimizer of its own."""

    def __init__(self, optimizer: str) -> None:
        torch.manual_seed(0)
        making = nn.Sequential(nn.Linear(5, 48), nn.Unflatten(1, (3, 4, 4)), conv(3, 3))
        self.model = nn.ModuleDict({"making": making, "judging": nn.Sequential(conv(3, 8), head(8))})
        self.makes = OPTIMIZERS[optimizer](making.parameters())
        self.judges = OPTIMIZERS[optimizer](self.model["judging"].parameters())
        self.loss: torch.Tensor | None = None

    def phases(self, num_steps: int) -> Iterator[str]:
        """Train one, and then the other."""
        for step in range(num_steps):
            torch.manual_seed(step)
            made = self.model["making"](torch.randn(4, 5))
            real, fake = self.model["judging"](torch.randn(4, 3, 4, 4)), self.model["judging"](made.detach())
            self.judges.zero_grad()
            yield "zero_grad of the one that judges"
            self.loss = (fake - real).mean()
            yield "forward"
            self.loss.backward()
            yield "backward"
            self.judges.step()
            yield "step"
            self.makes.zero_grad()
            yield "zero_grad of the one that makes"
            self.loss = -self.model["judging"](made).mean()
            yield "second forward"
            self.loss.backward()
            self.makes.step()
            yield "second step"


TRAININGS: dict[str, Callable[[str], Any]] = {
    **{family: (lambda optimizer, family=family: Training(family, optimizer)) for family in MODELS},
    "scaled": lambda optimizer: Scaled("resnet", optimizer),
    "adversarial": Adversarial,
}


def state_of(training: Any) -> dict[str, torch.Tensor]:
    """Return copies of all parameters, buffers and gradients of a training, by name."""
    found = dict(training.model.state_dict())
    found |= {f"{name}.grad": p.grad for name, p in training.model.named_parameters() if p.grad is not None}
    return {name: tensor.detach().clone() for name, tensor in found.items()}
