"""Calls as lines: repeats are folded, trouble stands alone, and no call is lost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from built_passes import WIDE, Builder, transformer, value
from hypothesis import given, settings
from hypothesis import strategies as st

from tensornp.passes.outline import CallLine, outlined, state_of
from tensornp.passes.records import RAISED, RECOMPUTED, RETURNED, ModuleCall


def told(lines: Sequence[CallLine]) -> list[str]:
    """Return the lines with their indentation, and what each hides."""
    return [
        "  " * one.level + one.label + (f" + {one.num_hidden}" if one.num_hidden else "") for one in lines
    ]  # fmt: skip


def sequence(*kinds: str, **facts: object) -> tuple[ModuleCall, ...]:
    """Return the calls of a container of numbered modules that call nothing."""
    built = Builder()
    with built.call("", "Sequential"):
        for i, kind in enumerate(kinds):
            built.leaf(str(i), kind, inputs=(value(),), outputs=(value(),), **facts)
    return tuple(built.calls)


LAYER = [
    "norm1", "attn", "  qkv", "  drop", "  out", "drop", "norm2", "mlp", "  up", "  act", "  down",
]  # fmt: skip


def test_layers_that_are_alike_are_one_with_their_parts():
    """A transformer of 148 calls has 16 lines."""
    inside = [f"    {part}" for part in LAYER]
    lines = outlined(transformer().calls)
    assert told(lines) == ["model", "  embed", "  layers.{0..11}", *inside, "  norm", "  head"]
    assert [len(one.calls) for one in lines[2:5]] == [12, 12, 12]


def test_the_layer_with_the_first_nan_stands_alone_and_open():
    """What comes before it is closed beside it, and so is what comes after it, apart from what comes before."""
    calls = transformer(nan_in="layers.3.attn.drop").calls
    (first,) = (call.index for call in calls if call.name == "layers.3.attn.drop")
    inside = [f"    {part}" for part in LAYER[:7]]
    lines = ["model", "  embed", "  layers.{0..2} + 33", "  layers.3", *inside, "    mlp + 3"]
    assert told(outlined(calls, [first])) == [*lines, "  layers.{4..11} + 88", "  norm", "  head"]


def test_a_call_that_raised_is_shown_with_all_around_it():
    """Where it is told, what was fine before is closed."""
    calls = transformer(3, raised_in="layers.1.mlp.down").calls
    for chosen, fine in (
        ((), ["  layers.0", *[f"    {part}" for part in LAYER]]),
        ([len(calls) - 1], ["  layers.0 + 11"]),
    ):
        attn = ["    attn + 3"] if chosen else ["    attn", "      qkv", "      drop", "      out"]
        last = ["    drop", "    norm2", "    mlp", "      up", "      act", "      down"]
        assert told(outlined(calls, chosen)) == ["model", "  embed", *fine, "  layers.1", "    norm1", *attn, *last]


@pytest.mark.slow
def test_what_a_checkpoint_computes_again_stands_closed_under_what_it_was():
    """In one line, not with the forward's."""
    *lines, last = outlined(transformer(num_recomputed=12).calls)
    assert told([last]) == ["layers.{0..11} + 132"]
    assert {call.phase for call in last.calls} == {RECOMPUTED}
    assert told(lines) == told(outlined(transformer().calls))


def test_a_module_that_is_called_again_alike_has_one_line():
    """Each call counts; with another shape it is another."""
    built = Builder()
    with built.call("", "Net"):
        for shape in (WIDE, WIDE, (1, 2)):
            built.leaf("shared", "Linear", inputs=(value(shape),), outputs=(value(shape),))
    lines = outlined(built.calls)
    assert [(one.label, len(one.calls)) for one in lines[1:]] == [("shared", 2), ("shared", 1)]


def test_the_model_that_is_called_twice_is_one_tree():
    """As for two batches of one size."""
    built = Builder()
    for _ in range(2):
        with built.call("", "Net"):
            built.leaf("a", "Linear")
    assert [(one.label, len(one.calls)) for one in outlined(built.calls)] == [("Net", 2), ("a", 2)]


def test_a_few_leaves_stay_in_their_order():
    """Many are folded by what they are; what is unlike in a note, a relation or a dtype is not."""
    assert told(outlined(sequence("Linear", "ReLU", "Linear", "ReLU")))[1:] == ["  0", "  1", "  2", "  3"]
    assert told(outlined(sequence(*("Linear", "ReLU") * 4)))[1:] == ["  {0,2,4,6}", "  {1,3,5,7}"]
    calls = [*sequence(*["Linear"] * 6)]
    given = {"outputs": (value(dtype="float16"),)}
    built = Builder()
    with built.call("", "Sequential"):
        for i in range(6):
            facts = {"inputs": calls[1].inputs, "outputs": calls[1].outputs, **(given if i == 2 else {})}
            built.leaf(str(i), "Linear", **facts)
    assert told(outlined(built.calls))[1:] == ["  {0..1,3..5}", "  2"]


def test_numbers_that_are_no_indices_are_not_folded():
    """Nor are parts of a word."""
    built = Builder()
    for name in ("01", "1", "001", "0001", "conv1", "conv2", "conv3", "conv4"):
        built.leaf(name, "Linear")
    assert len(outlined(built.calls)) == 8


@st.composite
def passes(draw: st.DrawFn) -> list[ModuleCall]:
    """Draw calls of any form: names that repeat or look like numbers, a few that raise or give a NaN."""
    calls: list[ModuleCall] = []
    around: list[ModuleCall] = []
    for index in range(draw(st.integers(0, 40))):
        del around[draw(st.integers(0, len(around))) :]
        key = draw(st.sampled_from(["a", "0", "1", "2", "layers.0", "layers.1", "layers.2", "b.3.c", "01"]))
        above = around[-1] if around else None
        name = f"{above.name}.{key}" if above is not None else key
        outputs = (value((draw(st.integers(1, 2)),), is_nan=draw(st.integers(0, 9)) == 0),)
        status = draw(st.sampled_from([RETURNED] * 9 + [RAISED]))
        parent = None if above is None else above.index
        call = ModuleCall(index, name, draw(st.sampled_from("AB")), parent=parent, status=status, outputs=outputs)
        calls.append(call)
        around.append(call)
    return calls


@pytest.mark.slow
@given(passes(), st.sets(st.integers(0, 39), max_size=2), st.integers(1, 40))
@settings(max_examples=75, deadline=None)
def test_no_call_is_lost_and_none_is_told_twice(calls, chosen, max_lines):
    """However few lines there are: what has none is counted; calls of one line are alike."""
    chosen = {index for index in chosen if index < len(calls)}
    lines = outlined(calls, chosen, max_lines)
    assert len(lines) <= max_lines
    shown = [call.index for one in lines for call in one.calls]
    assert len(set(shown)) == len(shown)
    assert len(shown) + sum(one.num_hidden for one in lines) == len(calls)
    for one in lines:
        alike = {(call.class_name, call.status, call.outputs[0].shape, state_of(call)) for call in one.calls}
        assert len(alike) <= 1
        assert len(one.calls) == 1 or not chosen & {call.index for call in one.calls}


@pytest.mark.slow
@given(passes(), st.sets(st.integers(0, 39), max_size=1))
@settings(max_examples=50, deadline=None)
def test_what_is_told_or_in_trouble_is_shown(calls, chosen):
    """With all that called it, where there is room: a line stands under that of what called it."""
    chosen = {index for index in chosen if index < len(calls)}
    lines = outlined(calls, chosen)
    shown = {call.index for one in lines for call in one.calls}
    assert shown >= chosen | {call.index for call in calls if state_of(call) == "trouble"}
    above: list[CallLine] = []
    for one in lines:
        del above[one.level :]
        assert len(above) == one.level
        if above and one.calls:
            assert {call.parent for call in one.calls} <= {call.index for call in above[-1].calls}
        above.append(one)
