"""Random graphs of operators with one planted NaN or Inf: named rightly, and none named where none was planted."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from made_passes import FINE, INF, NAN, value

from tensornp.passes.records import OperatorCall, PassRecord, SourceLine
from tensornp.passes.verdict.operator_origin import operator_origin, unreached

PROFILE = settings(max_examples=37, deadline=None)
BAD = {"nan": (NAN,), "inf": (-3.0, INF)}


@st.composite
def graphs(draw: st.DrawFn, what: str | None) -> tuple[PassRecord, int | None, bool]:
    """Return operators of which one makes what had none, its index, and whether that reaches something held.

    Each takes up to three earlier results; some let nothing through, as `where` does.
    """
    count = draw(st.integers(1, 14))
    birth = draw(st.integers(0, count - 1)) if what else None
    takes = [draw(st.lists(st.integers(0, i - 1), max_size=3, unique=True)) if i else [] for i in range(count)]
    stops = [draw(st.integers(0, 4)) == 0 for _ in range(count)]
    held = [draw(st.booleans()) for _ in range(count)]
    is_bad = [False] * count
    operators: list[OperatorCall] = []
    for i in range(count):
        is_bad[i] = i == birth or (not stops[i] and any(is_bad[j] for j in takes[i]))
        got = tuple(operators[j].outputs[0] for j in takes[i])
        gave = replace(value(BAD[what] if what and is_bad[i] else FINE), operator=i)
        line = SourceLine("model.py", i + 1, "forward", f"h = step_{i}(h)")
        operators.append(OperatorCall(i, f"op{i}", source=line, inputs=got, outputs=(gave,), is_held=held[i]))
    goes_on = [False] * count
    for i in reversed(range(count)):
        takers = [j for j in range(count) if i in takes[j]]
        is_taken_on = any(is_bad[j] for j in takers)
        goes_on[i] = is_bad[i] and ((held[i] and (is_taken_on or not takers)) or any(goes_on[j] for j in takers))
    return PassRecord(operators=tuple(operators)), birth, birth is not None and goes_on[birth]


@PROFILE
@given(graphs("nan"))
def test_a_planted_nan_is_named_if_it_reaches_something(case: tuple[PassRecord, int | None, bool]):
    """By its operator and its line; else it is counted."""
    record, birth, is_reached = case
    origin = operator_origin(record, "nan")
    assert (origin is not None) is is_reached
    assert [one.index for one in unreached(record)] == ([] if is_reached else [birth])
    if origin is not None:
        assert (origin.operator_index, origin.operator, origin.source.line) == (birth, f"op{birth}", birth + 1)
        assert f"at `op{birth}`, model.py:{birth + 1} " in origin.sentence


@PROFILE
@given(graphs("inf"))
def test_a_planted_infinity_is_named_likewise_and_no_nan(case: tuple[PassRecord, int | None, bool]):
    """Unless a number had asked for it."""
    record, birth, is_reached = case
    origin = operator_origin(record, "inf")
    assert (origin is not None) is is_reached
    assert operator_origin(record, "nan") is None
    asked = [replace(one, asked_for="inf") if one.index == birth else one for one in record.operators]
    assert operator_origin(replace(record, operators=tuple(asked)), "inf") is None


@PROFILE
@given(graphs(None))
def test_nothing_is_named_where_nothing_was_planted(case: tuple[PassRecord, int | None, bool]):
    """Whatever was dropped, held or stopped."""
    assert [operator_origin(case[0], what) for what in ("nan", "inf", "nonfinite")] == [None] * 3
    assert not unreached(case[0])
