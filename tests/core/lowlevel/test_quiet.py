"""What torch warns of for a look is heard by nobody, and no filter of the user's is touched."""

from __future__ import annotations

import warnings

import pytest
import torch

import tensornp as tnp
from tensornp.core.lowlevel.quiet import quietly

CSR = torch.eye(3).to_sparse_csr()
MAKES = [
    (torch.Tensor.detach, CSR),
    (torch.Tensor.clone, torch.ones(2, dtype=torch.complex32)),
    (torch.quantize_per_tensor, torch.ones(2), 0.5, 0, torch.quint8),
]


@pytest.mark.parametrize("call", MAKES, ids=lambda call: call[0].__name__)
def test_a_quiet_call_warns_nobody(call):
    """Which the same call elsewhere does; nothing is kept of either."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        filters = list(warnings.filters)
        made = quietly(*call)
        assert (heard, warnings.filters) == ([], filters)
        again = call[0](*call[1:])
    if not heard:
        pytest.skip("this torch does not warn of it")
    assert type(made) is type(again) and made.dtype == again.dtype


def test_a_look_is_silent_where_every_warning_is_an_error():
    """As a user may have it, in whose own code torch warns then."""
    every = [CSR, MAKES[1][1], torch.quantize_per_tensor(*MAKES[2][1:]), torch.nested.nested_tensor([torch.ones(2)])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for tensor in every:
            assert "not shown" not in str(tnp.card(tensor))
            tnp.to_numpy(tensor, copy=True)
        assert "not shown" not in str(tnp.card(every))
