"""Check that torch can read the parts of a tensor."""

from __future__ import annotations

import torch

from tensornp.core.lowlevel.raw_memory import is_on
from tensornp.core.memory.footprint import check_parts
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import plain
from tensornp.errors import NotReadError

CODES = {torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32}
"""The dtype of the codes of a quantized tensor."""


def still(tensor: torch.Tensor, info: TensorInfo) -> torch.Tensor:
    """Return `tensor`; raise NotReadError if the memory of a part is gone."""
    if info.device.type == "cpu" and is_on():
        check_parts(tensor, info)
    return tensor


def parts_still(tensor: torch.Tensor, info: TensorInfo) -> list[torch.Tensor]:
    """Return the parts of a nested tensor; raise NotReadError if the memory of a part is gone."""
    try:
        return [plain(part) for part in still(tensor, info).unbind()]
    except RuntimeError as error:
        raise NotReadError("its memory was freed") from error
