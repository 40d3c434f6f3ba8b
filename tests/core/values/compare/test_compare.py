"""What differs between two tensors, against exact arithmetic and NumPy's own equality."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import converted, tensors
from unchanged import unchanged

import tensornp as tnp

G = torch.Generator().manual_seed(0)
BASE = torch.randn(1000, generator=G)


def changed(t: torch.Tensor, **places: float) -> torch.Tensor:
    """Return a copy with other values at places: ``_17=5.0``."""
    t = t.clone()
    for place, value in places.items():
        t[int(place[1:])] = value
    return t


@pytest.mark.slow
@given(tensors(), st.integers(0, 2**32 - 1), st.integers(0, 5), st.sampled_from([40, 2**17]))
@settings(max_examples=50, deadline=None)
def test_every_figure_is_exact(t, seed, num_changes, block_numel):
    """Any dtype and strides; a few elements are changed, at random."""
    rng = np.random.default_rng(seed)
    other = t.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    flat = other.view(-1) if other.numel() else other
    for at in rng.integers(0, max(other.numel(), 1), num_changes) if other.numel() else []:
        flat[int(at)] = flat[int(rng.integers(0, other.numel()))]
    with pytest.MonkeyPatch.context() as patch, unchanged(t, other), np.errstate(all="ignore"):
        patch.setattr("tensornp.core.values.blocks.BLOCK_NUMEL", block_numel)
        found = tnp.compare(t, other)
    a, b = (converted(values).reshape(-1) for values in (t, other))
    differs = (a != b) & ~(np.isnan(a) & np.isnan(b)) if a.dtype.kind in "fc" else a != b
    assert found.equal == (not differs.any())
    assert (found.count, found._num_changed) == (a.size, differs.sum())
    first = int(differs.argmax()) if differs.any() else None
    index = None if first is None else tuple(int(i) for i in np.unravel_index(first, t.shape))
    assert found.first_difference == (index if index is None or t.dim() else ())
    finite = [np.isfinite(values) for values in (a, b)]
    both = finite[0] & finite[1]
    assert found._finite == both.sum()
    assert found._only_finite_first == (finite[0] & ~both).sum()
    assert found._only_finite_second == (finite[1] & ~both).sum()
    if a.dtype.kind in "iu" and a.size:
        assert found.max_abs == max(abs(int(x) - int(y)) for x, y in zip(a, b, strict=True))
    elif a.dtype.kind == "f" and both.any():
        pairs = [(Fraction(float(x)), Fraction(float(y))) for x, y in zip(a[both], b[both], strict=True)]
        largest = max(abs(x - y) for x, y in pairs)
        assert found.max_abs == pytest.approx(float(min(largest, Fraction(1.7e308))), rel=1e-12) or largest > 1e308
        norms = [sum(x * x for x, _ in pairs), sum((x - y) ** 2 for x, y in pairs)]
        if norms[0]:
            assert found.relative == pytest.approx(math.sqrt(norms[1] / norms[0]), rel=1e-9)


VERDICTS = {
    "same bits": (BASE, BASE.clone()),
    "equal": (torch.zeros(3), -torch.zeros(3)),
    "cast from float32": (BASE, BASE.bfloat16()),
    "the same values, bfloat16 and float32": (BASE.bfloat16(), BASE.bfloat16().float()),
    "2 of 1,000 differ, first at [17]": (BASE, changed(BASE, _17=5.0, _400=math.nan)),
    "1 of 2 differs, first at [1, 0]": (torch.zeros(2, 1), torch.tensor([[0.0], [1]])),
    "nearly all elements differ": (BASE, BASE + torch.randn(1000, generator=G) * 1e-3),
    "shapes differ: (2, 3) and (3, 2)": (torch.zeros(2, 3), torch.zeros(3, 2)),
    "many elements differ": (torch.zeros(10), torch.tensor([0.0] * 7 + [1, 2, 3])),
    "float32 and float64: nearly all elements differ": (BASE, (BASE + 1).double()),
}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_verdict_is_the_most_telling_that_is_true(verdict):
    """In a few words."""
    a, b = VERDICTS[verdict]
    found = tnp.compare(a, b)
    assert found.verdict == verdict
    assert found.equal == (verdict in ("same bits", "equal"))
    assert found.same_bits == (verdict == "same bits")


FORMS = [
    lambda t: t, lambda t: t.numpy(), lambda t: t.T.contiguous().T, lambda t: t.to_sparse(),
    lambda t: t.to_sparse_csr(), lambda t: t.to_mkldnn(), torch.nn.Parameter,
    lambda t: t.repeat_interleave(2, 1)[:, ::2],
    lambda t: np.asfortranarray(t.numpy())[::-1][::-1],
]  # fmt: skip


@pytest.mark.parametrize("pair", itertools.combinations(range(len(FORMS)), 2), ids=str)
def test_kinds_mix(pair):
    """Whatever holds the same values is equal to it, and one other value is found at its place."""
    t = torch.randn(6, 8, generator=torch.Generator().manual_seed(1))
    other = t.clone()
    other[3, 5] += 1
    a, b = (FORMS[i] for i in pair)
    assert tnp.compare(a(t), b(t.clone())).equal
    assert tnp.compare(a(t), b(other)).first_difference == (3, 5)


def test_shapes_that_differ_are_said_before_anything_is_read():
    """Also of one that is too large to be read."""
    found = tnp.compare(torch.zeros(1).expand(2**40), torch.zeros(3))
    assert found.verdict == "shapes differ: (1099511627776,) and (3,)"


def test_integers_are_exact_to_their_ends():
    """No float comes between."""
    found = tnp.compare(torch.tensor([2**63 - 1, 5]), torch.tensor([-(2**63), 5]))
    assert found.max_abs == 2**64 - 1
    assert tnp.compare(np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64)).max_abs == 1


def test_arrays_of_ml_dtypes():
    """As tensors of the same dtype."""
    a = np.arange(5).astype(ml_dtypes.bfloat16)
    assert tnp.compare(a, torch.arange(5).bfloat16()).verdict == "same bits"


def test_codes_of_other_scales_have_other_bits():
    """Although the values that they mean are equal."""
    q = [torch.quantize_per_tensor(torch.tensor([1.0, 2]), *scheme, torch.quint8) for scheme in ((0.5, 0), (0.25, 3))]
    assert tnp.compare(*q).verdict == "equal"


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (torch.zeros(3, device="meta"), torch.zeros(3), "no data"),
        (torch.zeros(3), np.array([None]), "torch has no dtype"),
        (torch.zeros(3), [1, 2, 3], "this list holds no tensor and no array"),
        ([None], [None], "this list holds no tensor and no array"),
    ],
)
def test_bad_input_gets_a_sentence(a, b, says):
    """What, where, the cure."""
    with pytest.raises(tnp.TensornpError, match=says):
        tnp.compare(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.complex64])
def test_the_largest_difference_has_its_place(dtype):
    """In whichever block it lies, and whatever its sign, by NumPy."""
    torch.manual_seed(0)
    first = torch.randint(-9, 9, (1100, 700)).to(dtype)
    for at, step in (((3, 5), 40), ((1099, 699), -40)):
        second = first.clone()
        second[::7, ::3] += 1
        second[at] += step
        found = tnp.compare(first, second)
        sizes = (second.to(torch.complex128) - first.to(torch.complex128)).abs()
        assert found._largest_difference == at == divmod(int(sizes.argmax()), 700)
        assert found.max_abs == sizes.max()
    assert tnp.compare(first, first.clone())._largest_difference is None
    assert tnp.compare(torch.tensor(1.0), torch.tensor(3.0))._largest_difference == ()


def nested(*sizes: int) -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(size) for size in sizes])


def test_parts_of_nested_tensors_are_told_apart():
    """Equal numbers in other parts are another tensor, and so is a plain one."""
    assert tnp.compare(nested(2, 1, 3), nested(2, 1, 3)).equal
    for other in (nested(2, 3, 1), nested(2, 4), torch.ones(6), torch.ones(2)):
        found = tnp.compare(nested(2, 1, 3), other)
        assert not found.equal
        assert "differ" in found.verdict
