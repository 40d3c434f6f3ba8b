"""TensorInfo: metadata of any tensor, however odd, without touching it."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import tensornp as tnp


def test_an_ordinary_tensor_tells_all():
    """Each field says what torch says."""
    t = torch.arange(24.0).view(2, 3, 4).transpose(0, 2)[1:]
    info = tnp.inspect(t)
    assert (info.type_name, info.shape, info.dtype, info.itemsize) == ("Tensor", (3, 3, 2), torch.float32, 4)
    assert (info.numel, info.nbytes, info.device, info.layout) == (18, 72, t.device, torch.strided)
    assert (info.stride, info.storage_offset, info.is_contiguous) == ((1, 4, 12), 1, False)
    assert (info.version, info.data_state) == (t._version, "available")
    assert info.storage.address == t.data_ptr()
    assert info.storage.nbytes == 96


def test_grad_facts_of_leaf_and_non_leaf():
    """Leaf, grad, grad_fn and parameter are told apart."""
    p = torch.nn.Parameter(torch.ones(2))
    out = (p * 2).sum()
    out.backward()
    assert (tnp.inspect(p).is_leaf, tnp.inspect(p).has_grad, tnp.inspect(p).is_parameter) == (True, True, True)
    assert (tnp.inspect(out).is_leaf, tnp.inspect(out).grad_fn, tnp.inspect(out).has_grad) == (
        False,
        "SumBackward0",
        False,
    )


@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3), (1, 4, 1), (3, 1, 2)])
@pytest.mark.parametrize(
    "act", [torch.clone, lambda t: t.transpose(0, -1) if t.ndim else t, lambda t: t[..., ::2] if t.ndim else t]
)
def test_the_order_of_elements_is_torchs_own(shape, act):
    """Also of a fake tensor, and of one without memory."""
    plain = act(torch.ones(shape))
    expected = plain.is_contiguous()
    with FakeTensorMode() as mode:
        fake = act(mode.from_tensor(torch.ones(shape)))
    for t in (plain, fake, act(torch.ones(shape, device="meta"))):
        assert tnp.inspect(t).is_contiguous == expected


def test_process_shared_memory_is_told():
    """`share_memory_()` is about processes, and about nothing else."""
    t = torch.ones(2)
    assert not tnp.inspect(t).is_shared
    assert tnp.inspect(t.share_memory_()).is_shared


def test_what_is_no_tensor_is_refused():
    """One sentence, with the type, and the name of the function that was called."""
    for function in (tnp.inspect, tnp.plan, tnp.TensorWidget):
        with pytest.raises(tnp.NotATensorError, match=f"^{function.__name__} takes a torch.Tensor, not an int"):
            function(5)
    for function in (tnp.stats, tnp.locate, tnp.image, tnp.plot):
        with pytest.raises(tnp.NotATensorError, match=f"^{function.__name__} takes a tensor or an array, not 'int'$"):
            function(5)


def test_a_ragged_size_is_said_to_be_unknown():
    """The parts of a nested tensor differ in a size that no number tells."""
    nested = torch.nested.nested_tensor([torch.ones(2, 4), torch.ones(3, 4)])
    assert tnp.inspect(nested).shape == (2, -1, 4)


def test_a_jagged_tensor_of_another_ragged_dimension_is_read():
    """Its offsets fit, of whichever dimension."""
    later = torch.nested.nested_tensor_from_jagged(torch.ones(3, 5), torch.tensor([0, 2, 5]), jagged_dim=2)
    assert [part.shape for part in tnp.to_numpy(later)] == [(3, 2), (3, 3)]
