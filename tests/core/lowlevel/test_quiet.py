"""What torch warns of for a look is heard by nobody, and no filter of the user's is touched."""

from __future__ import annotations

import warnings

import torch

import tensornp as tnp

CSR = torch.eye(3).to_sparse_csr()


def test_a_look_is_silent_where_every_warning_is_an_error():
    """As a user may have it, in whose own code torch warns then."""
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.quint8)
    every = [CSR, torch.ones(2, dtype=torch.complex32), quantized, torch.nested.nested_tensor([torch.ones(2)])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for tensor in every:
            assert "not shown" not in str(tnp.card(tensor))
            tnp.to_numpy(tensor, copy=True)
        assert "not shown" not in str(tnp.card(every))
