"""Where a change lies, in a sentence, by a definition that counts one element after the other."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.values.compare import where
from tensornp.core.values.compare.where import SPREAD, element_with_nearly_all, sums_by_axis, where_text


def told(delta):
    """Return the sentence of an array of differences."""
    return where_text(sums_by_axis(np.zeros_like(delta), delta))


def block(shape, *places, noise=0.0, seed=0):
    """Return noise, and ones at some places."""
    delta = noise * np.random.default_rng(seed).standard_normal(shape)
    for place in places:
        delta[place] = 1
    return delta


ROWS = np.s_[0:16]


@pytest.mark.parametrize(
    ("delta", "text"),
    [
        (block((128, 60), np.s_[3], noise=0.01), "nearly all of it in row 3"),
        (block((128, 60), np.s_[:, 59], noise=0.01), "nearly all of it in column 59"),
        (block((128, 60), ROWS, noise=0.01), "nearly all of it in rows 0 to 15 of 128"),
        (block((1280, 60), np.s_[1000:1016], noise=0.001), "nearly all of it in rows 1,000 to 1,015 of 1,280"),
        (
            block((400, 300), np.s_[100:140, 50:60], noise=0.001),
            "nearly all of it in rows 100 to 139 of 400, columns 50 to 59 of 300",
        ),
        (block((128, 60), np.s_[[3, 70, 90]]), "nearly all of it in 3 of 128 rows"),
        (block((128, 60), np.s_[3:9], np.s_[10:12]), "nearly all of it in rows 3 to 11 of 128"),
        (block((128, 60), np.s_[3, 7], noise=1e-4), "nearly all of it in one element [3, 7]"),
        (block((1, 60), np.s_[0, 7]), "nearly all of it in one element [0, 7]"),
        (block(50, np.s_[7]), "nearly all of it in one element [7]"),
        (block(50, np.s_[7:12]), "nearly all of it in elements 7 to 11 of 50"),
        (block((4, 64, 3, 3), np.s_[:, 5]), "nearly all of it in index 5 on axis 1"),
        (block((4, 64, 3, 3), np.s_[:, 8:12]), "nearly all of it in indices 8 to 11 of 64 on axis 1"),
        (block((4, 64, 3, 3), np.s_[:, [1, 30, 60]]), "nearly all of it in 3 of 64 indices on axis 1"),
        # One row has 93% of it, and one has 70%.
        (block((128, 60), np.s_[3], noise=(0.07 / 0.93 / 127) ** 0.5), "nearly all of it in row 3"),
        (block((128, 60), np.s_[3], noise=(0.3 / 0.7 / 127) ** 0.5), "most of it in row 3"),
        (block((128, 60), noise=1.0), SPREAD),
        (np.eye(40), SPREAD),
        (np.ones((2, 2)), SPREAD),
        (np.ones(()), ""),
        (np.zeros((4, 5)), ""),
        (np.zeros((0, 5)), ""),
    ],
)  # fmt: skip
def test_a_sentence_says_where_a_change_lies(delta, text):
    """What has nine tenths of |Δ|², or half of it; a block is named whole, and a gap in few rows is left out."""
    assert told(delta) == text


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=3).map(tuple),
    st.integers(0, 2**32 - 1),
    st.floats(0, 3),
    st.sampled_from([1e-200, 1e-3, 1.0, 1e200]),
)
@example((1,), 0, 0.0, 1.0)
@settings(deadline=None, max_examples=75)
def test_what_is_named_has_what_it_is_said_to_have(shape, seed, tail, size):
    """However large or small the numbers are, by sums over the elements, which are counted one by one."""
    generator = np.random.default_rng(seed)
    delta = size * generator.standard_normal(shape)
    for axis, length in enumerate(shape):
        weights = np.exp(-tail * generator.permutation(length))
        delta *= weights.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    text = told(delta)
    squares = {index: (delta[index] / np.abs(delta).max()) ** 2 for index in np.ndindex(shape)}
    total = math.fsum(squares.values())
    share = {"nearly": 0.9, "most": 0.5}.get(text.split()[0])
    if text == SPREAD:
        for axis, length in enumerate(shape):
            by_index = [math.fsum(v for at, v in squares.items() if at[axis] == i) for i in range(length)]
            assert len(naive(by_index, 0.5)) > length / 2
    elif "one element" in text:
        assert squares[tuple(map(int, re.findall(r"\d+", text)))] >= share * total * (1 - 1e-9)
    elif " of it in " in text and not re.search(r"in \d|, \d", text):
        places = [range(length) for length in shape]
        for part in text.split(" of it in ")[1].split(", "):
            numbers = list(map(int, re.findall(r"\d+", part)))
            axis = 1 if "column" in part else numbers.pop() if "axis" in part else 0
            places[axis] = range(numbers[0], (numbers[1] if " to " in part else numbers[0]) + 1)
            assert len(places[axis]) <= shape[axis] / 2
        inside = math.fsum(squares[index] for index in itertools.product(*places))
        assert inside >= share * total * (1 - 1e-9)


def naive(by_index, level):
    """Return the indices that are named, one after the other from the largest on."""
    kept, have = [], 0.0
    for i in sorted(range(len(by_index)), key=lambda i: -by_index[i]):
        if have >= level * math.fsum(by_index) * (1 - 1e-12) and by_index[i] < by_index[kept[-1]]:
            break
        if have < level * math.fsum(by_index) * (1 - 1e-12):
            kept.append(i)
            have += by_index[i]
    least = by_index[kept[-1]]
    return [i for i, own in enumerate(by_index) if own >= least / 2 and own > 0]


@given(
    st.lists(st.integers(0, 1000).map(float), min_size=1, max_size=30).filter(any), st.sampled_from([0.5, 0.9, 0.95])
)
def test_the_fewest_indices_are_found_as_one_by_one(by_index, level):
    """And those that have half as much as the least of them."""
    assert where.indices_with(level, np.array(by_index)).tolist() == naive(by_index, level)


def test_the_sums_are_those_of_numpy_over_any_number_of_blocks():
    """Of what is finite on both sides; nothing is changed, and other axes than two are summed too."""
    torch.manual_seed(0)
    a, b = torch.randn(130, 3, 700), torch.randn(130, 3, 700).half()
    a[0, 0, 0], b[1, 1, 1] = math.nan, math.inf
    with unchanged(a, b):
        sums = sums_by_axis(a, b)
    delta = b.double().numpy() - a.double().numpy()
    delta[~np.isfinite(delta)] = 0
    squares = (delta / np.abs(delta).max()) ** 2
    for axis, own in enumerate(sums):
        expected = squares.sum(axis=tuple(i for i in range(3) if i != axis))
        assert own == pytest.approx(expected, rel=1e-12)


def test_an_axis_of_too_many_indices_is_not_told(monkeypatch):
    """Nor is it said that all is spread, where it might lie in few of these."""
    monkeypatch.setattr(where, "MAX_SIZE", 100)
    assert told(block((128, 60), np.s_[3])) == ""
    assert told(block((128, 60), np.s_[:, 3])) == "nearly all of it in column 3"
    assert told(block((128, 60), np.s_[5, 3])) == "nearly all of it in column 3"


def test_one_element_is_told_by_the_figures_of_a_comparison():
    """Of several that differ, where it has nine tenths of all."""
    a = torch.zeros(30, 30)
    b = a + 1e-3
    assert element_with_nearly_all(tnp.compare(a, b)) is None
    b[3, 7] = 2
    assert element_with_nearly_all(tnp.compare(a, b)) == (3, 7)
    alone = a.clone()
    alone[3, 7] = 2
    assert element_with_nearly_all(tnp.compare(a, alone)) is None
