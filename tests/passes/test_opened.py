"""The calls as somebody opens them: what is folded, unfolded, revealed, searched and sorted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from built_passes import Builder, transformer, value

from tensornp.models.outline.choose import Asked
from tensornp.passes.opened import MAX_OPEN, OpenedCalls
from tensornp.passes.records import ModuleCall

TREE = Asked()


def opened(calls: tuple[ModuleCall, ...], told: tuple[int, ...] = ()) -> OpenedCalls:
    return OpenedCalls(calls, told, lambda _, call: call.index % 3 or None, lambda _, wanted, call: call.name == wanted)


def labels(tree: OpenedCalls, asked: Asked = TREE) -> list[str]:
    return [one.line.label for one in tree.lines(asked, 0, 10**6)]


@pytest.mark.parametrize("num_layers", [2, 12, 50])
def test_every_call_has_one_line_once_all_is_open(num_layers):
    """Whatever was folded; each line is below that of the call around it, or of its repeats."""
    calls = transformer(num_layers, num_recomputed=2).calls
    tree = opened(calls)
    asked = TREE
    for _ in range(20):
        closed = [one.branch for one in tree.lines(asked, 0, 10**6) if one.branch >= 0 and not one.is_open]
        asked = replace(asked, toggled=asked.toggled ^ frozenset(closed))
    lines = tree.lines(asked, 0, 10**6)
    assert sorted(one.number for one in lines if one.number >= 0) == list(range(len(calls)))
    for line in lines:
        if line.number >= 0 and line.parent >= 0:
            above = lines[line.parent]
            folded = lines[above.parent].number if above.number < 0 and above.parent >= 0 else above.number
            assert folded == (-1 if calls[line.number].parent is None else calls[line.number].parent)


@pytest.mark.parametrize("told", [(), (30,), (30, 77)])
def test_any_call_is_revealed_from_any_state(told):
    """With all that holds it open, and nothing else changed."""
    calls = transformer(nan_in="layers.3.attn.drop").calls
    tree = opened(calls, told)
    for start in (TREE, Asked(toggled=frozenset({0})), Asked(toggled=frozenset(range(2 * len(calls))))):
        for number in range(0, len(calls), 7):
            asked, at = tree.revealed(start, number)
            assert tree.lines(asked, at, 1)[0].number == number
            assert tree.revealed(asked, number) == (asked, at)


def test_what_is_told_is_seen_at_first_and_stands_alone():
    """However deep it is; beside it what is fine stays closed."""
    calls = transformer(40).calls
    told = next(call.index for call in calls if call.name == "layers.30.mlp.down")
    tree = opened(calls, (told,))
    lines = tree.lines(TREE, 0, 10**6)
    assert [one.number for one in lines if one.number == told] == [told]
    assert {"layers.{0..29,31..39}", "layers.30"} <= set(labels(tree))
    assert not any(one.is_open for one in lines if one.line.label == "layers.{0..29,31..39}")
    assert len(lines) <= MAX_OPEN


def test_calls_of_one_module_are_one_line_until_they_are_unfolded():
    """Each then has its own."""
    built = Builder()
    with built.call("", "Net", code="net"):
        for _ in range(9):
            built.leaf("cell", "GRUCell", outputs=(value(),))
    tree = opened(tuple(built.calls))
    assert labels(tree) == ["net", "cell"]
    fold = tree.lines(TREE, 1, 1)[0]
    assert (fold.number, len(fold.line.calls)) == (-1, 9)
    assert [one.number for one in tree.lines(Asked(toggled=frozenset({fold.branch})), 2, 99)] == list(range(1, 10))


def test_a_list_has_whole_names_in_the_order_that_is_asked_for():
    """What has no number comes last, whichever way it is sorted."""
    calls = transformer(3).calls
    tree = opened(calls)
    for is_descending in (False, True):
        found = tree.lines(Asked(sort="x", descending=is_descending), 0, 10**6)
        keys = [one.number % 3 for one in found]
        known = [key for key in keys if key]
        assert known == sorted(known, reverse=is_descending) and not any(keys[len(known) :])
        assert len(found) == len(calls) and {one.level for one in found} == {1}
    assert labels(tree, Asked(filters=(("name", "head"),))) == ["head"]
    assert labels(tree, Asked(search="layers.{0,2}.norm1")) == ["layers.0.norm1", "layers.2.norm1"]
    assert tree.revealed(Asked(search="norm1"), calls[-1].index)[1] == -1
