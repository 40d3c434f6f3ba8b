"""What the process that others are forked from does once, so that none of them has to: imports, and a warm shell."""

from __future__ import annotations

import contextlib
import gc
import importlib
import pkgutil

import gallery_child
import hypothesis  # noqa: F401
import numpy as np
import pytest  # noqa: F401
import torch._dynamo  # what some of torch's modes import on first use
import torch.distributed.checkpoint
import torch.distributed.fsdp
import torch.distributed.tensor
import torch.fx.experimental.symbolic_shapes
import torch.testing._internal.two_tensor  # noqa: F401

import tensornp

# What kinds of the gallery import when they are made; not all are there with every torch.
for name in (
    "networkx", "tensordict", "torch._functorch.aot_autograd", "torch.masked._ops",
    "torchao.prototype.mx_formats.mx_tensor",
):  # fmt: skip
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
# What tensornp imports when it is first asked for.
for package in ("fronts", "models", "passes", "render", "widget"):
    for module in pkgutil.walk_packages([f"{tensornp.__path__[0]}/{package}"], f"tensornp.{package}."):
        importlib.import_module(module.name)

gallery_child.shell()
# Cards then print as NumPy does, to be compared with it.
np.set_printoptions(linewidth=76)
# What is never collected is never written to, and so need not be copied.
gc.collect()
gc.freeze()
