"""What the process that others are forked from does once, so that none of them has to: imports, and a warm shell."""

from __future__ import annotations

import gc

import gallery_child
import hypothesis  # noqa: F401
import pytest  # noqa: F401
import torch._dynamo  # what some of torch's modes import on first use
import torch.distributed.fsdp
import torch.distributed.tensor
import torch.testing._internal.two_tensor  # noqa: F401

gallery_child.shell()
# What is never collected is never written to, and so need not be copied.
gc.collect()
gc.freeze()
