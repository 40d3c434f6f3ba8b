"""What is planted in a random model is named, whatever the model; where nothing is planted, nothing is named."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from planted import Plan, backwards, damaged, forwards

from tensornp.passes.records import BACKWARD, BEFORE, FORWARD, PassRecord
from tensornp.passes.verdict.origin import origin_of
from tensornp.passes.verdict.problems import problems_of

PROFILE = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
WHAT = ("nan", "inf", "nonfinite")
KINDS = ("leaf", "overflow", "weight", "input", "own code")


def title(record: PassRecord, name: str) -> str:
    return name or record.calls[0].class_name


@pytest.mark.slow
@PROFILE
@given(forwards(KINDS))
def test_what_was_planted_in_the_forward_is_named(case: tuple[Plan, PassRecord]):
    plan, record = case
    for what in (plan.what, "nonfinite"):
        origin = origin_of(record, what)
        assert origin is not None
        word = "NaN" if plan.what == "nan" else "Inf"
        if plan.kind == "weight":
            name = f"{plan.name}.weight".lstrip(".")
            assert (origin.phase, origin.name) == (BEFORE, name)
            assert origin.sentence.startswith(f"{name} held {word} before the pass")
        elif plan.kind == "input":
            assert (origin.phase, origin.call, origin.path) == (BEFORE, 0, "[0]")
            assert origin.sentence.startswith(f"the input [0] held {word} when Block was called")
        else:
            assert (origin.phase, origin.name) == (FORWARD, title(record, plan.name))
            assert origin.inputs_finite is True
            check_inside(plan, record, origin.sentence, word)


def check_inside(plan: Plan, record: PassRecord, sentence: str, word: str) -> None:
    """Check where in a module it is said to have been born."""
    if plan.kind != "own code":
        left = f"{plan.name} (Linear) left the range of float16 (65,504): its inputs reached 2"
        born = f"the first NaN was born in {plan.name} (Linear); its inputs and weights were finite, the inputs from −1"
        assert sentence.startswith(born if word == "NaN" else left)
        return
    children = [call.name.rpartition(".")[2] for call in record.calls if call.parent == call_of(record, plan).index]
    place = f"the first {word} was born in {title(record, plan.name)}, "
    if plan.at == len(children):
        place += "in its own code: nothing that it called gave it"
    else:
        place += f"in its own code, before {children[plan.at]} got it"
    assert sentence.startswith(place)


def call_of(record: PassRecord, plan: Plan):
    return next(call for call in record.calls if call.name == plan.name)


@pytest.mark.slow
@PROFILE
@given(forwards(("",)))
def test_where_nothing_was_planted_nothing_is_named(case: tuple[Plan, PassRecord]):
    assert [origin_of(case[1], what) for what in WHAT] == [None] * 3


@pytest.mark.slow
@PROFILE
@given(forwards(KINDS))
def test_no_infinity_is_named_where_a_nan_was_planted_nor_the_other_way_round(case: tuple[Plan, PassRecord]):
    plan, record = case
    assert origin_of(record, "inf" if plan.what == "nan" else "nan") is None


@pytest.mark.slow
@PROFILE
@given(backwards())
def test_what_was_planted_in_the_backward_is_bracketed(case: tuple[Plan, PassRecord]):
    plan, record = case
    origin = origin_of(record, plan.what)
    assert (origin is not None) is bool(plan.expected)
    if origin is None:
        return
    assert (origin.phase, origin.inputs_finite) == (BACKWARD, True)
    word = "NaN" if plan.what == "nan" else "Inf"
    if f"the first {word} came in the backward of" in origin.sentence:
        assert origin.name == plan.name
    else:
        start = f"what modules gave was finite; {word} entered the gradients between "
        assert origin.sentence.startswith(start)
        fine = origin.sentence.removeprefix(start).partition(" (fine) and ")[0].split(", ")
        assert any(f"{plan.name}.".startswith(f"{name}.") for name in fine), (fine, plan.name)


@pytest.mark.slow
@PROFILE
@given(damaged())
def test_whatever_is_missing_sentences_are_made(record: PassRecord):
    """Of calls without figures, without those around them, of odd names, dtypes and shapes."""
    told = [*problems_of(record), *(origin.sentence for what in WHAT if (origin := origin_of(record, what)))]
    assert all(told) and len(problems_of(record)) <= 6
    assert not any("None" in sentence for sentence in told)
