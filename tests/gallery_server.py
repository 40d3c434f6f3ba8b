"""What the process that the children are forked from does once, so that no child has to: imports, and a warm shell."""

from __future__ import annotations

import gallery_child
import torch._dynamo  # what some of torch's modes import on first use
import torch.distributed.tensor  # noqa: F401

gallery_child.shell()
