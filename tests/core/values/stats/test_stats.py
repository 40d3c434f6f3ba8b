"""Statistics against NumPy in float64 and Python's own integers, over every dtype, stride and way to cut into parts."""

from __future__ import annotations

import itertools
import math
import pickle
import re
import subprocess
import sys
import threading
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import converted, modulus, tensors
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.lowlevel import raw_memory
from tensornp.core.values.stats import compute as scan
from tensornp.core.values.stats import distribution, keys, tasks
from tensornp.core.values.stats.distribution import MAX_KEPT
from tensornp.core.values.stats.fast import TAKES_LONG
from tensornp.core.values.stats.keys import scheme_of
from tensornp.core.values.stats.record import TensorStats


@pytest.fixture(params=[distribution.MAX_KEPT, 0], ids=["kept", "counted"])
def max_kept(request, monkeypatch):
    """Have few numbers kept as they are, or counted as many are."""
    monkeypatch.setattr(distribution, "MAX_KEPT", request.param)


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
    # Scaled, so that the oracle does not overflow either.
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
@given(tensors(), st.sampled_from([64, 1000, 2**17]), st.integers(1, 3), st.booleans())
@settings(max_examples=300, deadline=None)
def test_every_figure_is_numpys(t, block_numel, num_threads, is_raw):
    """Any dtype, strides and lazy bits, cut into blocks of any size, with and without reading by address."""
    was_on = raw_memory.is_on()
    raw_memory.switch(is_raw)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tensornp.core.values.reading.blocks.BLOCK_NUMEL", block_numel)
            patch.setattr(tasks, "TASK_BLOCKS", 3)
            with unchanged(t):
                found = scan.scan(t, histogram="auto", num_threads=num_threads)
    finally:
        raw_memory.switch(was_on)
    check(found, modulus(t))
    assert found.scope == "all elements"
    if t.is_complex():
        values = converted(t)
        check(found.real, values.real)
        check(found.imag, values.imag)
    if found.histogram is not None:
        assert found.histogram.counts.sum() == found.finite
        assert (np.diff(found.histogram.edges) >= 0).all()


@given(tensors(), st.lists(st.floats(0, 1), min_size=1, max_size=5), st.sampled_from([MAX_KEPT, 0]))
@settings(max_examples=300, deadline=None)
def test_a_quantile_is_exact_of_few_elements_and_of_short_ones_and_else_within_half_a_percent(t, shares, most):
    """Against `numpy.quantile`, of integers too."""
    values = modulus(t).reshape(-1)
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    assume(len(finite))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distribution, "MAX_KEPT", most)
        found = tnp.stats(t)
    is_exact = len(finite) <= most or (t.element_size() <= 2 and not t.is_complex())
    for share in [0.0, 1.0, *shares]:
        ordered = np.sort(finite.astype(np.float64))
        rank = share * (len(ordered) - 1)
        low, high = ordered[math.floor(rank)], ordered[math.ceil(rank)]
        expected = low * (1 - rank % 1) + high * (rank % 1)
        tolerance = 1e-12 if is_exact else 0.005
        # The last bit of the smallest floats is more than that.
        bound = tolerance * max(abs(low), abs(high)) + 5e-324
        assert abs(found.quantile(share) - expected) <= bound or not np.isfinite(bound)


@pytest.mark.slow
@given(tensors(), st.data(), st.sampled_from([MAX_KEPT, 30, 0]))
@settings(max_examples=200, deadline=None)
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
    assert together.distribution == whole.distribution


@given(tensors(), st.data())
@settings(max_examples=200, deadline=None)
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
@settings(max_examples=100, deadline=None)
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


@given(st.floats(-1e12, 1e12), st.floats(1e-3, 1e3), st.integers(1, 3000))
@settings(max_examples=100, deadline=None)
def test_a_large_offset_does_not_swallow_the_deviation(offset, spread, count):
    """A shift, where |mean| is large against std."""
    values = offset + spread * np.sin(np.arange(count, dtype=np.float64))
    exact = [v - offset for v in values.tolist()]
    mean = math.fsum(exact) / count
    std = math.sqrt(math.fsum((v - mean) ** 2 for v in exact) / count)
    assert math.isclose(tnp.stats(values).std, std, rel_tol=1e-6, abs_tol=1e-9 * abs(offset) * 1e-3)


def test_closed_forms():
    """Figures that arithmetic tells, of many elements."""
    n = 10**6
    found = tnp.stats(torch.arange(n))
    assert (found.sum, found.min, found.max, found.zeros) == (n * (n - 1) // 2, 0, n - 1, 1)
    assert close(found.mean, (n - 1) / 2)
    assert close(found.std, math.sqrt((n * n - 1) / 12))
    assert close(found.norm, math.sqrt((n - 1) * n * (2 * n - 1) / 6))
    largest = tnp.stats(torch.full((1000,), 2**63 - 1))
    assert (largest.sum, largest.std) == (1000 * (2**63 - 1), 0.0)
    assert tnp.stats(np.array([1.7e308] * 4)).mean == 1.7e308
    assert tnp.stats(np.array([3e-300, 4e-300])).norm == pytest.approx(5e-300)


def test_an_expanded_tensor_is_read_once_and_counted_as_often_as_it_is_meant():
    """2**40 elements at once."""
    found = tnp.stats(torch.tensor([1.0, 3.0]).expand(2**39, 2))
    assert (found.count, found.mean, found.std, found.sum) == (2**40, 2.0, 1.0, 2**41)
    assert found.quantile(0.75) == pytest.approx(3.0, rel=0.005)
    assert found.histogram.counts.sum() == 2**40


def test_threads_and_their_number_change_no_bit():
    """1, 2 or 8 of them, also of the distribution."""
    t = torch.randn(3_000_001, generator=torch.Generator().manual_seed(0))
    t[1234567] = math.nan
    found = [scan.scan(t, num_threads=n) for n in (1, 2, 8)]
    assert found[0] == found[1] == found[2]
    assert len({pickle.dumps(dataclass) for dataclass in found}) == 1
    assert found[0].nan == 1


def test_past_2_to_the_24_the_distribution_is_of_a_stated_sample(monkeypatch):
    """Its rank error bounds what is really wrong; all elements, where they are asked for."""
    monkeypatch.setattr(tasks, "ALL_NUMEL", 2**18)
    monkeypatch.setattr(tasks, "SAMPLE_NUMEL", 2**14)
    t = torch.randn(2**20, generator=torch.Generator().manual_seed(0))
    found, whole = tnp.stats(t), tnp.stats(t, histogram="all")
    assert found.histogram.scope.startswith("sample of 16,3")
    assert whole.histogram.scope == "all elements"
    assert whole.histogram.rank_error == 0 < found.histogram.rank_error < 0.02
    assert found.histogram.counts.sum() == found.distribution.num_seen
    ordered = np.sort(t.numpy())
    for share in (0.01, 0.3, 0.5, 0.9):
        rank = np.searchsorted(ordered, found.quantile(share)) / len(ordered)
        assert abs(rank - share) < 2 * found.histogram.rank_error
    assert (found.min, found.max, found.quantile(0), found.quantile(1)) == (*[t.min(), t.max()] * 2,)
    assert tnp.stats(t, histogram=None).histogram is None


def test_a_sample_is_no_comb_in_step_with_the_rows(monkeypatch):
    """A column of zeros is a tenth of it, as of the whole."""
    monkeypatch.setattr(tasks, "ALL_NUMEL", 2**18)
    monkeypatch.setattr(tasks, "SAMPLE_NUMEL", 2**14)
    for width in (16, 64, 100, 128):
        t = torch.ones(2**20 // width, width)
        t[:, : width // 4] = 0
        found = tnp.stats(t)
        assert abs(found.histogram.counts[0] / found.histogram.counts.sum() - 0.25) < 0.02


def test_small_and_picklable():
    """Under 300 bytes without a distribution; equal after the way through a pickle."""
    found = tnp.stats(torch.randn(1000, 1000), histogram=None)
    assert len(pickle.dumps(found)) < 300
    whole = tnp.stats(torch.randn(100, dtype=torch.complex64))
    assert pickle.loads(pickle.dumps(whole)) == whole
    assert tnp.stats(torch.randn(3, 4), axis=0) != whole


@pytest.mark.parametrize(
    "convert", [lambda t: t.to_sparse(), lambda t: t.to_sparse_csr(), lambda t: t.to_sparse_bsr((2, 2))]
)
def test_of_a_sparse_tensor_the_zeros_are_counted_that_nobody_stores(convert):
    """As of the dense one."""
    dense = torch.randn(8, 6).relu()
    sparse = convert(dense)
    with unchanged(sparse):
        found = tnp.stats(sparse)
    check(found, dense.numpy())
    assert tnp.stats(sparse).quantile(0.1) == 0


def test_duplicates_of_a_sparse_tensor_are_added_and_it_stays_uncoalesced():
    """Nothing is put in order in place."""
    sparse = torch.sparse_coo_tensor([[0, 0, 2]], [1.0, 2.0, 4.0], (5,), check_invariants=False)
    check(tnp.stats(sparse), np.array([3.0, 0, 4, 0, 0]))
    assert not sparse.is_coalesced()
    assert sparse._nnz() == 3


def test_of_a_masked_tensor_only_what_is_shown_counts():
    """And the scope says how much that is."""
    array = np.ma.array(np.arange(9.0), mask=[0, 1, 0, 0, 1, 0, 0, 0, 0])
    tensor = torch.masked.masked_tensor(torch.arange(9.0), torch.from_numpy(~array.mask))
    for obj in (array, tensor):
        found = tnp.stats(obj)
        assert found.scope == "7 of 9 shown"
        check(found, array.compressed())
    rows = tnp.stats(array.reshape(3, 3), axis=0)
    assert rows.count.tolist() == [2, 2, 3]
    assert rows.mean.tolist() == [1.0, 4.0, 7.0]


def test_what_the_user_has_chosen_of_errors_is_neither_asked_nor_changed():
    """Also in the threads of a large scan."""
    t = torch.randn(3 * 2**21)
    t[::1000] = math.nan
    t.view(torch.int32)[5] = 0x7F800001  # a signalling NaN, which no conversion takes in silence
    with np.errstate(all="raise"):
        assert tnp.stats(t).nan == tnp.locate(t).count == (~t.isfinite()).sum()
        assert tnp.compare(t, t.double())._num_changed == 0
        assert tnp.stats(t.view(-1, 2).view(torch.complex64)).nan > 0


def test_the_smallest_floats_are_drawn_whatever_the_user_has_chosen_of_errors():
    """What is shown of them underflows in between, which nobody is told: as card, figure, view and numbers."""
    t = torch.tensor([0, 5e-324, 1e-310, 1.7e308], dtype=torch.float64)
    with np.errstate(all="raise"):
        stats = tnp.stats(t)
        assert stats.histogram.counts.sum() == 4
        assert stats.quantile(0.5) == 5e-311
        assert "shown in short" not in tnp.card(stats).text + tnp.card(t).text
        assert tnp.plot(t)._repr_png_().startswith(b"\x89PNG")
        tnp.TensorWidget(t).close()
        assert np.geterr()["under"] == "raise"


def test_nothing_and_nothing_finite():
    """No figure, and no warning."""
    for empty in (torch.empty(0, 3), np.zeros((2, 0)), torch.full((3,), math.nan), np.array([np.inf, -np.inf])):
        found = tnp.stats(empty)
        assert (found.mean, found.histogram) == (None, None)
        with pytest.raises(tnp.BadRequestError, match="no element is finite"):
            found.quantile(0.5)


def test_a_write_meanwhile_is_said(monkeypatch):
    """By torch, or behind its back; nothing is said without one."""
    t = torch.zeros(2**19)
    assert not tnp.stats(t).changed_while_read

    def write(*_: int) -> bool:
        t.numpy()[:] = 1
        return True

    found = scan.scan(t, progress=write)
    assert found.changed_while_read
    assert found.scope == "all elements, changed while it was read"


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


def test_while_another_thread_runs_it_is_copied_and_the_same():
    """Nothing is read in place that somebody may take away."""
    t, is_over = torch.randn(300_000), threading.Event()
    thread = threading.Thread(target=is_over.wait)
    alone = tnp.stats(t)
    thread.start()
    try:
        assert tnp.stats(t) == alone
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tnp.stats([1, 2]), "stats takes a tensor or an array, not 'list'"),
        (lambda: tnp.stats(np.array(["a"])), "has no numbers"),
        (lambda: tnp.stats(np.array([None])), "has no numbers"),
        (lambda: tnp.stats(torch.zeros(2, 3), axis=2), r"no axis 2 in shape \(2, 3\); choose one from -2 to 1"),
        (lambda: tnp.stats(torch.zeros(2), axis="rows"), "axis is the number of one dimension"),
        (lambda: tnp.stats(torch.eye(3).to_sparse(), axis=0), "not told by axis"),
        (lambda: tnp.stats(torch.zeros(3), histogram="some"), "histogram is"),
        (lambda: tnp.stats(torch.zeros(3)).quantile("x"), "a share between 0 and 1"),
        (lambda: tnp.stats(torch.zeros(3), axis=True), "axis is the number of one dimension"),
        (lambda: tnp.stats(torch.tensor(1.0), axis=0), "a single number has no axis"),
        (lambda: tnp.stats(torch.zeros(3), histogram=np.zeros(2)), "histogram is"),
        (lambda: tnp.stats(np.zeros(3, np.longdouble)), r"take .astype\(np.float64\)"),
        (lambda: tnp.stats(torch.zeros(3)) + tnp.stats(torch.zeros(3).to(torch.complex64)), "do not add up"),
        (lambda: tnp.locate(torch.zeros(1).expand(2**20, 2**20)), "take an index of each expanded dimension"),
        (lambda: tnp.stats(torch.zeros(3)).quantile(1.5), "a share between 0 and 1"),
        (lambda: tnp.stats(torch.zeros(3), histogram=None).quantile(0.5), "no distribution"),
        (lambda: tnp.stats(torch.zeros(3)) + tnp.stats(torch.zeros(3).double()), "do not add up"),
        (lambda: tnp.stats(torch.zeros(3, device="meta")), "no data"),
    ],
)  # fmt: skip
def test_bad_input_gets_a_sentence(call, says):
    """What, where, the cure."""
    with pytest.raises(tnp.TensornpError, match=says):
        call()


def test_samples_and_wholes_add_up_by_what_they_stand_for(monkeypatch):
    """Each count of a sample stands for many."""
    monkeypatch.setattr(tasks, "ALL_NUMEL", 2**18)
    monkeypatch.setattr(tasks, "SAMPLE_NUMEL", 2**14)
    whole, sample = tnp.stats(torch.zeros(2**18)), tnp.stats(torch.ones(2**19))
    together = whole + sample
    assert together.quantile(0.5) == 1.0
    assert together.quantile(0.2) == 0.0
    assert 0 < together.histogram.rank_error < sample.histogram.rank_error
    more = sample + tnp.stats(torch.full((2**21,), 2.0))
    assert more.quantile(0.5) == pytest.approx(2.0, rel=0.005)


def test_of_an_expanded_tensor_the_sample_is_what_was_read(monkeypatch):
    """And not what it stands for."""
    monkeypatch.setattr(tasks, "ALL_NUMEL", 2**16)
    monkeypatch.setattr(tasks, "SAMPLE_NUMEL", 2**12)
    found = tnp.stats(torch.arange(2.0**17).expand(2**20, 2**17))
    assert found.histogram.scope == "sample of 4,096"
    assert found.histogram.rank_error > 0.01


def test_a_long_row_of_codes_is_sampled_all_along(monkeypatch):
    """A row that is read at once may be longer than any block."""
    monkeypatch.setattr(tasks, "ALL_NUMEL", 2**18)
    monkeypatch.setattr(tasks, "SAMPLE_NUMEL", 2**14)
    t = torch.arange(2.0**21).reshape(1, -1)
    quantized = torch.quantize_per_tensor(t, 2**21 / 255, 0, torch.quint8)
    assert tnp.stats(quantized).quantile(0.5) == pytest.approx(2**20, rel=0.02)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32])
def test_along_an_axis_a_mean_far_larger_than_the_deviation_takes_no_digit_of_it(dtype, axis) -> None:
    """As in a channel that is nearly constant, of several blocks, beside one of zeros."""
    t = (1e6 + torch.randn(300, 40, 25, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3).to(dtype)
    t.movedim(axis, 0)[2] = 0
    found, wide = tnp.stats(t, axis=axis), t.double().movedim(axis, 0).reshape(t.shape[axis], -1).numpy()
    np.testing.assert_allclose(found.std, wide.std(1), rtol=1e-11)
    np.testing.assert_allclose(found.mean, wide.mean(1), rtol=1e-14)
    assert found.zeros.tolist() == (wide == 0).sum(1).tolist()


def test_along_an_axis_of_nothing_there_are_no_figures():
    """Of rows that are dequantized as well."""
    empty = torch.quantize_per_tensor(torch.zeros(0, 3), 0.1, 0, torch.qint8)
    for t in (empty, torch.zeros(0, 3)):
        found = tnp.stats(t, axis=1)
        assert (found.count.tolist(), found.zeros.tolist()) == ([0, 0, 0], [0, 0, 0])
        assert np.isnan(found.mean).all()
        assert tnp.stats(t, axis=0).count.size == 0


def test_along_an_axis_squares_that_no_float64_holds_are_added_up():
    """In several blocks."""
    rows = np.resize(np.array([[1e200, 3e200]]), (2**17, 2))
    rows[::2] *= 3
    np.testing.assert_allclose(tnp.stats(rows, axis=1).std, [1e200, 3e200], rtol=1e-12)


def test_along_an_axis_hidden_large_and_tiny_numbers_are_right():
    """As of each index alone."""
    masked = np.ma.array([[1, 2], [3, 4]], mask=[[1, 0], [0, 0]])
    assert tnp.stats(masked, axis=0).sum.tolist() == [2, 7]
    assert tnp.stats(np.array([[2**60 + 1, 2**60 + 2], [5, 6]]), axis=0).std.tolist() == [0.5, 0.5]
    tiny = tnp.stats(np.array([[1e-200, 3e-200], [1, 2]]), axis=0)
    assert tiny.std.tolist() == pytest.approx([1e-200, 0.5])


def test_short_numbers_of_ml_dtypes_are_exact():
    """And a denormal is no zero."""
    assert tnp.stats(np.array([3, 3, 3, 5, -7, 0]).astype(ml_dtypes.int4)).quantile(0.5) == 3
    assert tnp.stats(np.full(5, 1e-310)).quantile(0.5) == 1e-310


def test_a_tensor_of_shares_stays_as_it_is():
    """It is not locked as an array."""
    shares = torch.tensor([0.5], dtype=torch.float64)
    assert tnp.stats(torch.arange(3)).quantile(shares).tolist() == pytest.approx([1.0], rel=0.005)
    assert shares.untyped_storage().resizable()


def test_equal_statistics_have_equal_hashes():
    """Of two dtypes too."""
    a, b = (tnp.stats(torch.zeros(2, dtype=dtype), histogram=None) for dtype in (torch.int64, torch.float32))
    assert a == b
    assert hash(a) == hash(b)


@pytest.mark.slow
def test_statistics_at_the_end_of_python():
    """Where a pool takes no more work."""
    # Which newer torches import themselves, and nobody can at the end.
    load = "import atexit, concurrent.futures.thread, torch, tensornp as tnp; t = torch.ones(2**23)"
    code = f"{load}\natexit.register(lambda: print(tnp.stats(t).mean))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "1.0\n"
    assert not done.stderr or done.stderr == f"{TAKES_LONG}\n"


@pytest.mark.usefixtures("max_kept")
def test_edges_of_a_histogram_part_no_key():
    """Counts are those of NumPy's own histogram over the same edges."""
    rng = np.random.default_rng(0)
    for values in (rng.standard_normal(10_000).astype(np.float32), rng.integers(-300, 300, 5000), rng.random(9)):
        found = tnp.stats(values).histogram
        assert np.array_equal(found.counts, np.histogram(values, found.edges)[0])


@pytest.mark.usefixtures("max_kept")
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


@pytest.mark.usefixtures("max_kept")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [1, -1])
def test_quantiles_of_the_smallest_floats_are_as_exact_as_others(dtype, sign):
    """Within 0.5%, or the smallest float of all, down to that; beside zeros and normal numbers too."""
    smallest = float(np.finfo(dtype).smallest_subnormal)
    bits = np.finfo(dtype).nmant
    units = sorted({1, 2, 3, 5, 200, 255, 256, 257, 2**bits - 1, 2**bits, *(int(1.37**i) for i in range(3 * bits))})
    values = np.array([sign * n * smallest for n in units if n < 2.0 ** (bits + 2)] + [0.0, -0.0, sign * 1.5], dtype)
    ordered = sorted(map(Fraction, values.tolist()))
    found = tnp.stats(np.random.default_rng(0).permutation(values))
    for share in (*np.linspace(0, 1, len(values)).tolist(), 0.123, 0.5, 0.77):
        rank = Fraction(share * (len(values) - 1))
        low, high, part = ordered[math.floor(rank)], ordered[math.ceil(rank)], rank - math.floor(rank)
        expected = low * (1 - part) + high * part
        bound = Fraction(1, 200) * max(abs(low), abs(high)) + Fraction(5e-324) / 2
        assert abs(Fraction(found.quantile(share)) - expected) <= bound


def test_the_smallest_floats_add_up_across_parts():
    """With many zeros among them, in blocks that are counted one after the other."""
    t = torch.zeros(2**19 + 77, dtype=torch.float32)
    t[::1000] = 3e-43
    t[1::1000] = -3e-41
    t[2::1000] = -0.0
    whole, parts = tnp.stats(t), tnp.stats(t[:300_000]) + tnp.stats(t[300_000:])
    assert whole.distribution == parts.distribution
    counts = dict(zip(whole.distribution.in_order()[0].tolist(), whole.distribution.in_order()[2], strict=True))
    assert sum(n for low, n in counts.items() if low < 0) == 525
    assert sum(n for low, n in counts.items() if low > 0) == 525
    assert whole.quantile(0.0005) == pytest.approx(-3e-41, rel=0.005)
    assert whole.quantile(0.9995) == pytest.approx(3e-43, rel=0.005)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint64])
def test_of_few_elements_histogram_and_quantiles_are_exact(dtype):
    """Around a centre far from zero, where all lie within 1%: as NumPy tells from the elements themselves."""
    noise = np.random.default_rng(0).standard_normal(768)
    values = (1 + 1e-3 * noise if np.dtype(dtype).kind == "f" else 10**6 + 1e3 * noise).astype(dtype)
    found = tnp.stats(values)
    shares = np.linspace(0, 1, 257)
    assert found.quantile(shares) == pytest.approx(np.quantile(values, shares), rel=1e-15)
    counts, edges = np.histogram(values.astype(np.float64), 64)
    assert found.histogram.edges == pytest.approx(edges, rel=1e-15)
    assert np.array_equal(found.histogram.counts, np.histogram(values.astype(np.float64), found.histogram.edges)[0])
    assert abs(found.histogram.counts - counts).sum() <= 2


@pytest.mark.parametrize("num_finite", [MAX_KEPT - 1, MAX_KEPT, MAX_KEPT + 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_how_many_are_finite_decides_what_is_kept_wherever_it_is_cut(num_finite, dtype):
    """Among many NaN, in any order, through a pickle, and with zeros of either sign, denormals and repeated ones."""
    t = torch.full((600_000,), math.nan, dtype=dtype)
    places = torch.randperm(len(t), generator=torch.Generator().manual_seed(0))[:num_finite]
    t[places] = torch.linspace(0.99, 1.01, num_finite, dtype=dtype)
    for i, value in enumerate((0.0, -0.0, 1e-43, -1e-43, 1.0, 1.0, 0.995)):
        t[places[i::1000]] = value
    whole = tnp.stats(t).distribution
    finite = t[t.isfinite()].double().numpy()
    assert whole.scheme.is_exact == (num_finite <= MAX_KEPT)
    if whole.scheme.is_exact:
        lows, highs, counts = whole.in_order()
        assert np.array_equal(np.repeat(lows, counts), np.sort(finite))
        assert np.array_equal(lows, highs)
    parts = [tnp.stats(part) for part in t.split(70_001)]
    for ordered in (parts, parts[::-1], parts[3:] + parts[:3]):
        together = sum(pickle.loads(pickle.dumps(part)) for part in ordered).distribution
        assert together == whole
        assert pickle.dumps(together) == pickle.dumps(whole)


def test_elements_that_are_meant_many_times_are_as_many():
    """An expanded tensor is counted as the same elements laid out; so are zeros that nobody stores."""
    t = torch.tensor([1.001, 3.0, 0.0])
    for times in (MAX_KEPT // 3, MAX_KEPT // 3 + 1):
        assert tnp.stats(t.expand(times, 3)).distribution == tnp.stats(t.repeat(times, 1)).distribution
    for length in (MAX_KEPT, MAX_KEPT + 1):
        dense = torch.zeros(length)
        dense[::100] = 1.001
        found = tnp.stats(dense.to_sparse()).distribution
        assert found == tnp.stats(dense).distribution
        assert found.scheme.is_exact == (length == MAX_KEPT)


def test_every_short_number_is_a_key_of_its_own():
    """All bits of each dtype of up to 16 bits."""
    for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "int16", "uint16", "int8", "uint8"):
        bits = np.arange(2 ** (8 * getattr(torch, name).itemsize), dtype=f"u{getattr(torch, name).itemsize}")
        t = torch.from_numpy(bits.view(f"i{bits.itemsize}")).view(getattr(torch, name))
        found = tnp.stats(t)
        assert len(found.distribution.keys) == found.finite
        lows, highs, _ = found.distribution.in_order()
        assert (lows == highs).all()
    assert scheme_of("float32").is_exact is False


@given(tensors(), st.sampled_from([MAX_KEPT, 30, 0]), st.integers(0, 40), st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_keys_that_are_sorted_and_keys_that_are_counted_are_the_same_to_the_last_bit(t, most, cut, times):
    """Of every dtype and special value, of a whole, of its parts together, and of elements that are meant often."""
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distribution, "MAX_KEPT", most)
        for keys_a_number in (0, 2**18):
            patch.setattr(keys, "_KEYS_A_NUMBER", keys_a_number)
            every = [tnp.stats(part) for part in (t, t.expand(times, *t.shape), t.flatten()[:cut], t.flatten()[cut:])]
            found.append([one.distribution for one in (*every, every[2] + every[3], sum(every))])
    for is_sorted, is_counted in zip(*found, strict=True):
        assert pickle.dumps(is_sorted) == pickle.dumps(is_counted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int16])
def test_of_few_numbers_no_counter_of_another_is_walked(dtype, monkeypatch):
    """Nor where those of many small tensors are added up."""
    monkeypatch.setattr(keys.Scheme, "count_into", lambda *_: pytest.fail("all keys are walked"))
    monkeypatch.setattr(keys.Scheme, "counted", lambda *_: pytest.fail("all keys are walked"))
    parts = [tnp.stats(torch.tensor([i, -i, 100], dtype=dtype)) for i in range(50)]
    found = sum(parts).distribution
    assert found.num_seen == 150
    assert dict(zip(found.in_order()[0].tolist(), found.in_order()[2].tolist(), strict=True))[100] == 50


@pytest.mark.usefixtures("max_kept")
def test_quantiles_of_small_integers_are_exact():
    """Of every integer dtype, though their keys are ranges."""
    for dtype in (torch.int32, torch.int64, torch.uint64):
        found = tnp.stats(torch.tensor([0, 1, 2, 3, 4, 200], dtype=dtype))
        assert found.quantile([0.2, 0.4, 0.5, 0.8, 1]).tolist() == [1, 2, 2.5, 4, 200]


@pytest.mark.parametrize(
    ("numel", "dtype", "words"),
    [
        (100, torch.float32, "exact"),
        (2**15, torch.bfloat16, "exact"),
        (2**15, torch.float32, "values ± 0.5%"),
        (2**16, torch.bfloat16, "sample of 32,768: ranks ± 0.75%"),
        (2**16, torch.float32, "sample of 32,768: ranks ± 0.75%, values ± 0.5%"),
    ],
)
def test_how_exact_quantiles_are_is_said_everywhere_in_the_same_words(numel, dtype, words, monkeypatch):
    """Also that they are of a sample, whose ranks are not exact either; the card and the figure say that too."""
    monkeypatch.setattr(tasks, "ALL_NUMEL", 2**15)
    monkeypatch.setattr(tasks, "SAMPLE_NUMEL", 2**15)
    t = torch.linspace(1, 2, numel).to(dtype)
    found = tnp.stats(t)
    assert repr(found).endswith(f", accuracy={words!r})")
    assert found.accuracy == words
    assert tnp.stats(t, histogram=None).accuracy == ""
    assert all(hasattr(found, name) for name in re.findall(r"(\w+)=", repr(found)))
    assert f"quantiles  {words}\n" in tnp.card(found).text
    assert re.search(rf">quantiles</th><th[^>]*>{re.escape(words)}</th>", tnp.card(found).html)
    sample, _, ranks = words.partition(":")
    assert (f"histogram of a {sample}" in tnp.card(t).text) == bool(ranks)
    scope = sample if ranks else "all elements"
    assert f" · {scope}</div>" in tnp.card(found).html
    assert f"histogram: {scope}" in tnp.plot(found).get_supxlabel()


def test_any_byte_but_zero_is_true():
    """As in a mask of 0 and 255 that is viewed so: figures, means along an axis, and what is equal."""
    mask = torch.tensor([[0, 255, 7], [1, 0, 0]], dtype=torch.uint8).view(torch.bool)
    true = mask != 0
    found, told = tnp.stats(mask), tnp.stats(true)
    assert (found.max, found.mean, found.norm, found.zeros) == (told.max, told.mean, told.norm, told.zeros)
    assert found.quantile(0.9) == told.quantile(0.9)
    assert tnp.stats(mask, axis=0).mean.tolist() == tnp.stats(true, axis=0).mean.tolist()
    assert tnp.compare(mask, true).equal
    assert tnp.compare(mask, mask.clone()).equal


@pytest.mark.parametrize("axis", [None, 0])
def test_a_complex_number_is_infinite_if_one_of_its_parts_is(axis):
    """A modulus that is larger than any float64 is the largest, and none of the infinities."""
    numbers = [complex(1.7e308, 1.7e308), complex(-math.inf, 1), complex(math.nan, math.inf), 3 + 4j]
    t = torch.tensor(numbers, dtype=torch.complex128)
    largest = np.finfo(np.float64).max
    found = tnp.stats(t.reshape(4, 1), axis=None if axis is None else 1)
    for name, expected in {"nan": 1, "posinf": 1, "neginf": 0, "min": 5.0, "max": largest}.items():
        assert getattr(found, name) == expected, name
    np.testing.assert_allclose([float(np.squeeze(found.mean)), float(np.squeeze(found.std))], [largest / 2] * 2)
    full = tnp.stats(torch.full((3,), complex(1.7e308, 1.7e308), dtype=torch.complex128))
    assert (full.num_infinite, full.min, full.max, full.mean, full.std) == (0, largest, largest, largest, 0)
    assert full.histogram is not None and full.histogram.counts.sum() == 3
