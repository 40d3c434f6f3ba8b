"""Which modules have something to see."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tensornp.fronts.ours import holds_tensors

QUANTIZED = torch.ao.nn.quantized


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif("fbgemm" not in torch.backends.quantized.supported_engines, reason="no engine packs weights here")
def test_packed_weights_are_something_to_see():
    """Quantized modules register neither a parameter nor a buffer."""
    packed = [
        torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(3, 3)), {nn.Linear}, dtype=torch.qint8),
        torch.ao.quantization.quantize_dynamic(nn.LSTM(3, 3), {nn.LSTM}, dtype=torch.qint8),
        QUANTIZED.Conv2d(3, 4, 3),
        QUANTIZED.Embedding(4, 4),
    ]
    assert all(map(holds_tensors, packed))
    assert not any(map(holds_tensors, [nn.ReLU(), QUANTIZED.ReLU6(), nn.Sequential(nn.Flatten())]))
