"""Statistics against NumPy in float64 and Python's own integers, over every dtype, stride and way to cut into parts."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import modulus, tensors
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.values.stats import compute as scan
from tensornp.core.values.stats import distribution
from tensornp.core.values.stats.distribution import MAX_KEPT
from tensornp.core.values.stats.record import TensorStats


def close(a: float | None, b: float, scale: float = 1.0) -> bool:
    """Return whether two figures agree to 1e-9, of themselves or of the scale of the numbers."""
    return a is not None and (a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9 * scale))


def check(found: TensorStats, values: np.ndarray) -> None:
    """Hold statistics to what NumPy and exact arithmetic tell of the real `values`."""
    flat = values.reshape(-1)
    assert found.count == flat.size
    if flat.dtype.kind in "biu":
        numbers = [int(v) for v in flat]
        finite = np.array(numbers, object)
        assert (found.sum, found.nan, found.posinf, found.neginf) == (sum(numbers), 0, 0, 0)
    else:
        finite = flat[np.isfinite(flat)].astype(np.float64)
        assert (found.nan, found.posinf, found.neginf) == (
            np.isnan(flat).sum(), (flat == np.inf).sum(), (flat == -np.inf).sum(),
        )  # fmt: skip
    assert found.zeros == sum(v == 0 for v in finite)
    if not len(finite):
        assert (found.min, found.max, found.mean, found.std, found.norm) == (None,) * 5
        return
    assert (found.min, found.max) == (min(finite), max(finite))
    if not 1e-140 < max(map(abs, finite)) < 1e140:
        return
    exact = [float(v) for v in finite]
    top = max(map(abs, exact)) or 1.0
    scaled = [v / top for v in exact]
    mean = math.fsum(scaled) / len(scaled)
    std = math.sqrt(math.fsum((v - mean) ** 2 for v in scaled) / len(scaled))
    assert close(found.mean / top, mean)
    assert close(found.std / top, std)
    if found.norm < math.inf:
        assert close(found.norm / top, math.sqrt(math.fsum(v * v for v in scaled)))


@pytest.mark.slow
@given(tensors(), st.sampled_from([64, 1000, 2**17]), st.integers(1, 3))
@settings(max_examples=75, deadline=None)
def test_every_figure_is_numpys(t, block_numel, num_threads):
    """Any dtype, strides and lazy bits, cut into blocks of any size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tensornp.core.values.blocks.BLOCK_NUMEL", block_numel)
        patch.setattr(scan, "TASK_BLOCKS", 3)
        with unchanged(t):
            found = scan.scan(t, histogram="auto", num_threads=num_threads)
    check(found, modulus(t))
    assert found.scope == "all elements"
    assert found.is_complex == t.is_complex()
    if found.histogram is not None:
        assert found.histogram.counts.sum() == found.finite
        assert (np.diff(found.histogram.edges) >= 0).all()


@pytest.mark.slow
@given(tensors(), st.lists(st.floats(0, 1), min_size=1, max_size=5), st.sampled_from([MAX_KEPT, 0]))
@settings(max_examples=75, deadline=None)
def test_a_quantile_is_exact_of_few_elements_and_of_bfloat16_and_else_within_0_4_percent(t, shares, most):
    """Against `numpy.quantile`, of integers too."""
    values = modulus(t).reshape(-1)
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    assume(len(finite))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distribution, "MAX_KEPT", most)
        found = tnp.stats(t)
    is_exact = len(finite) <= most or t.dtype in (torch.bfloat16, torch.bool, torch.uint8, torch.int8)
    for share in [0.0, 1.0, *shares]:
        ordered = np.sort(finite.astype(np.float64))
        rank = share * (len(ordered) - 1)
        low, high = ordered[math.floor(rank)], ordered[math.ceil(rank)]
        expected = low * (1 - rank % 1) + high * (rank % 1)
        tolerance = 1e-12 if is_exact else 0.004
        # Codes have the range of float32.
        bound = tolerance * max(abs(low), abs(high)) + (5e-324 if is_exact else 1e-38)
        bound = math.inf if not is_exact and max(abs(low), abs(high)) > 3e38 else bound
        assert abs(found.quantile(share) - expected) <= bound or not np.isfinite(bound)


@pytest.mark.slow
@given(tensors(), st.data(), st.sampled_from([MAX_KEPT, 30, 0]))
@settings(max_examples=50, deadline=None)
def test_parts_add_up_in_any_order(t, data, most):
    """Cut anywhere along the first dimension, and merged in any order."""
    assume(t.dim() and t.shape[0] > 1)
    cuts = sorted({0, t.shape[0], *data.draw(st.lists(st.integers(0, t.shape[0]), max_size=3))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distribution, "MAX_KEPT", most)
        parts = [tnp.stats(t[i:j]) for i, j in itertools.pairwise(cuts)]
        together = sum(data.draw(st.permutations(parts)))
        whole = tnp.stats(t)
    check(together, modulus(t))
    for name in ("count", "nan", "posinf", "neginf", "zeros", "min", "max"):
        assert getattr(together, name) == getattr(whole, name)
    np.testing.assert_equal(vars(together.distribution), vars(whole.distribution))


@pytest.mark.slow
@given(tensors(), st.data())
@settings(max_examples=50, deadline=None)
def test_an_axis_gives_the_figures_of_each_of_its_indices(t, data):
    """Each is what `stats` tells of that index alone."""
    assume(t.dim())
    axis = data.draw(st.integers(-t.dim(), t.dim() - 1))
    found = tnp.stats(t, axis=axis)
    assert len(found.count) == t.shape[axis]
    for i in range(t.shape[axis]):
        alone = tnp.stats(t.select(axis, i), histogram=None)
        for name in ("count", "nan", "posinf", "neginf", "zeros", "sum"):
            a, b = getattr(found, name)[i], getattr(alone, name)
            assert a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9 * abs(alone.norm or 0)) or math.isnan(a)
        if alone.min is None:
            assert all(math.isnan(getattr(found, name)[i]) for name in ("min", "max", "mean", "std", "norm"))
            continue
        assert (found.min[i], found.max[i]) == (alone.min, alone.max)
        scale = max(abs(alone.min), abs(alone.max))
        if scale < 1e150:
            assert close(found.mean[i], alone.mean, scale)
            assert close(found.std[i], alone.std, scale)


@pytest.mark.parametrize("kind", ["int64", "uint64"])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_along_an_axis_integers_of_64_bits_may_be_any(kind, data):
    """Their distance needs 64 bits without a sign; each figure has its closed form in Python's own integers."""
    limits = np.iinfo(kind)
    rows = data.draw(st.lists(st.tuples(*[st.integers(limits.min, limits.max)] * 3), min_size=1, max_size=4))
    found = tnp.stats(np.array(rows, kind), axis=1)
    for i, column in enumerate(zip(*rows, strict=True)):
        assert (found.min[i], found.max[i], found.sum[i]) == (min(column), max(column), sum(column))
        assert found.zeros[i] == column.count(0)
        scale = max(map(abs, column))
        mean = Fraction(sum(column), len(column))
        assert close(found.mean[i], float(mean), scale)
        variance = sum((number - mean) ** 2 for number in column) / len(column)
        assert close(found.std[i], math.sqrt(variance), scale)


def test_an_expanded_tensor_is_read_once_and_counted_as_often_as_it_is_meant():
    """2**40 elements at once."""
    found = tnp.stats(torch.tensor([1.0, 3.0]).expand(2**39, 2))
    assert (found.count, found.mean, found.std, found.sum) == (2**40, 2.0, 1.0, 2**41)
    assert found.quantile(0.75) == pytest.approx(3.0, rel=0.005)
    assert found.histogram.counts.sum() == 2**40


def test_past_2_to_the_24_the_distribution_is_of_a_stated_sample(monkeypatch):
    """Every k-th element; all of them if they are requested."""
    monkeypatch.setattr(scan, "ALL_NUMEL", 2**18)
    monkeypatch.setattr(scan, "SAMPLE_NUMEL", 2**15)
    t = torch.randn(2**20, generator=torch.Generator().manual_seed(0))
    found, whole = tnp.stats(t), tnp.stats(t, histogram="all")
    assert found.accuracy == "sampled 1/33, values ± 0.4 %"
    assert found.histogram.scope == "sampled 1/33"
    assert whole.histogram.scope == "all elements"
    assert found.histogram.counts.sum() == found.distribution.num_seen
    ordered = np.sort(t.numpy())
    for share in (0.01, 0.3, 0.5, 0.9):
        rank = np.searchsorted(ordered, found.quantile(share)) / len(ordered)
        assert abs(rank - share) < 0.02
    assert (found.min, found.max, found.quantile(0), found.quantile(1)) == (*[t.min(), t.max()] * 2,)
    assert tnp.stats(t, histogram=None).histogram is None


def test_reading_does_not_lock_the_storage():
    """FSDP resizes storages after a display; a `.numpy()` would end that for good."""
    t = torch.randn(300_000)
    tnp.stats(t), tnp.compare(t, t.clone()), tnp.locate(t), tnp.plot(t)
    assert t.untyped_storage().resizable()


def test_duplicates_of_a_sparse_tensor_are_added_and_it_stays_uncoalesced():
    """Nothing is put in order in place."""
    sparse = torch.sparse_coo_tensor([[0, 0, 2]], [1.0, 2.0, 4.0], (5,), check_invariants=False)
    check(tnp.stats(sparse), np.array([3.0, 0, 4, 0, 0]))
    assert tnp.stats(sparse).quantile(0.5) == 0
    assert not sparse.is_coalesced()
    assert sparse._nnz() == 3


def test_nothing_and_nothing_finite():
    """No figure, and no warning."""
    for empty in (torch.empty(0, 3), np.zeros((2, 0)), torch.full((3,), math.nan), np.array([np.inf, -np.inf])):
        found = tnp.stats(empty)
        assert (found.mean, found.histogram) == (None, None)
        with pytest.raises(tnp.BadRequestError, match="no element is finite"):
            found.quantile(0.5)


def test_a_scan_that_is_ended_keeps_what_it_has():
    """Marked partial, with the figures of what was read."""
    t = torch.ones(2**25)
    seen = []

    def stop(done: int, total: int) -> bool:
        seen.append((done, total))
        return len(seen) < 2

    found = scan.scan(t, progress=stop, num_threads=1)
    assert found.count == seen[-1][0] < 2**25 == seen[-1][1]
    assert found.scope == f"partial: {found.count:,} of 33,554,432 elements"
    assert (found.mean, found.histogram.counts.sum()) == (1.0, found.distribution.num_seen)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tnp.stats([1, 2]), "stats takes a tensor or an array, not 'list'"),
        (lambda: tnp.stats(np.array(["a"])), "torch has no dtype"),
        (lambda: tnp.stats(torch.zeros(2, 3), axis=2), r"axis must be a dimension of shape \(2, 3\)"),
        (lambda: tnp.stats(torch.eye(3).to_sparse(), axis=0), "has no statistics by axis"),
        (lambda: tnp.stats(torch.zeros(3), histogram="some"), "histogram must be"),
        (lambda: tnp.stats(torch.zeros(3)).quantile("x"), "must be a share between 0 and 1"),
        (lambda: tnp.stats(torch.zeros(3), axis=True), "axis must be a dimension"),
        (lambda: tnp.stats(torch.tensor(1.0), axis=0), "axis must be a dimension"),
        (lambda: tnp.stats(torch.zeros(3), histogram=np.zeros(2)), "histogram must be"),
        (lambda: tnp.stats(np.zeros(3, np.longdouble)), "torch has no dtype"),
        (lambda: tnp.stats(torch.zeros(3)) + tnp.stats(torch.zeros(3).to(torch.complex64)), "do not add up"),
        (lambda: tnp.stats(torch.zeros(3)).quantile(1.5), "must be a share between 0 and 1"),
        (lambda: tnp.stats(torch.zeros(3), histogram=None).quantile(0.5), "no distribution"),
        (lambda: tnp.stats(torch.zeros(3, device="meta")), "no data"),
    ],
)  # fmt: skip
def test_bad_input_gets_a_sentence(call, says):
    """What, where, the cure."""
    with pytest.raises(tnp.TensornpError, match=says):
        call()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_zero_of_either_sign_is_counted_where_zero_is(dtype):
    """At an edge of 0.0 it lies above, as for NumPy; what is less than it, however little, below."""
    dtype = getattr(torch, dtype)
    least = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    t = torch.tensor([-1.0, *[-0.0] * 5, *[0.0] * 2, -least, -least, least, 1.0], dtype=dtype)
    found = tnp.stats(t).distribution.histogram(-1.0, 1.0, 2)
    assert found.edges.tolist() == [-1, 0, 1]
    assert found.counts.tolist() == [3, 9]
    assert str(tnp.stats(t).quantile(0.5)) == "0.0"


@pytest.mark.parametrize("axis", [None, 0])
def test_a_complex_number_is_infinite_if_one_of_its_parts_is(axis):
    """A modulus that is larger than any float64 is the largest, and none of the infinities."""
    numbers = [complex(1.7e308, 1.7e308), complex(-math.inf, 1), complex(math.nan, math.inf), 3 + 4j]
    t = torch.tensor(numbers, dtype=torch.complex128)
    largest = np.finfo(np.float64).max
    found = tnp.stats(t.reshape(4, 1), axis=None if axis is None else 1)
    for name, expected in {"nan": 1, "posinf": 1, "neginf": 0, "min": 5.0, "max": largest}.items():
        assert getattr(found, name) == expected, name
    np.testing.assert_allclose(float(np.squeeze(found.mean)), largest / 2)
    full = tnp.stats(torch.full((3,), complex(1.7e308, 1.7e308), dtype=torch.complex128))
    assert (full.num_infinite, full.min, full.max, full.mean, full.std) == (0, largest, largest, largest, 0)
    assert full.histogram is not None and full.histogram.counts.sum() == 3


def test_of_a_masked_tensor_only_what_is_shown_counts():
    """And the scope says how much that is; places and pictures are refused with a cure."""
    array = np.ma.array(np.arange(9.0), mask=[0, 1, 0, 0, 1, 0, 0, 0, 0])
    tensor = torch.masked.masked_tensor(torch.arange(9.0), torch.from_numpy(~array.mask))
    for obj in (array, tensor):
        found = tnp.stats(obj)
        assert found.scope == "7 of 9 shown"
        check(found, array.compressed())
        assert tnp.compare(obj, obj).equal
        for call in (tnp.locate, tnp.image, lambda x: tnp.stats(x, axis=0)):
            with pytest.raises(tnp.BadRequestError, match="hides elements; pass"):
                call(obj)
    assert "--" in tnp.card(tensor).text
