"""A fault planted in a random model is reported, whatever the model; without a fault nothing is."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from planted import Plan, forwards, graphs

from tensornp.passes.findings import findings_of
from tensornp.passes.origin import origin_of
from tensornp.passes.records import Call, PassRecord

PROFILE = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def expected_of(plan: Plan, record: PassRecord) -> tuple[str, str]:
    """Return the begin of the fact and the name of the call: the oracle."""
    word, call = {"nan": "NaN", "inf": "Inf"}[plan.what], next(one for one in record.calls[1:] if one.name == plan.name)
    if plan.kind == "weight":
        return f"{plan.name}.weight contained {word} when ".lstrip("."), plan.name
    if plan.kind == "input":
        return f"input [0] of Block contained {word}", ""
    if plan.kind != "own code":
        return f"{word} was first produced in {call.title}", plan.name
    inside = record.children(call)
    is_before = plan.at < len(inside)
    place = f", {'before' if is_before else 'after'} it called {inside[plan.at if is_before else -1].title}"
    return f"{word} first appeared in the code of {call.title}{place}", plan.name


@pytest.mark.slow
@PROFILE
@given(forwards(("leaf", "overflow", "weight", "input", "own code")))
def test_a_fault_of_the_forward_is_reported_if_it_reaches_the_result(case: tuple[Plan, PassRecord]):
    plan, record = case
    origin = origin_of(record)
    assert (origin is not None) is record.calls[1].outputs[""].is_odd
    if origin is not None:
        fact, name = expected_of(plan, record)
        assert origin.fact.startswith(fact)
        assert record.calls[origin.call].name == name
        assert origin.kind == plan.what
        is_overflow = origin.explanation.startswith("it left the range of float16 (65,504); its inputs reached 2")
        assert is_overflow is (plan.what == "inf" and plan.kind in ("leaf", "overflow"))


@pytest.mark.slow
@PROFILE
@given(forwards(("",)))
def test_without_a_fault_nothing_is_reported(case: tuple[Plan, PassRecord]):
    assert findings_of(case[1]) == []


@pytest.mark.slow
@PROFILE
@given(graphs())
def test_a_fault_of_an_operator_is_reported_if_it_reaches_a_result(case: tuple[Call, PassRecord]):
    """A result is bound to a name, or read by no later operator."""
    faulty, record = case
    origin = origin_of(record)
    read = {id(value) for call in record.calls for value in call.inputs.values()}
    bound = record.calls[0].outputs["h"]
    last = [
        value.figures.has_nan or (value.is_odd and any(one.requires_grad for one in call.inputs.values()))
        for call in record.calls[1:]
        for value in call.outputs.values()
        if id(value) not in read
    ]
    assert (origin is not None) is (bound.is_odd or any(last))
    if origin is not None:
        assert (origin.call, origin.source) == (faulty.index, faulty.source)
        assert f"was first produced in the cell, at `{faulty.name}`, model.py:{faulty.index} " in origin.fact
        faulty.asked_for = "Inf"
        is_nan = origin.kind == "nan"
        assert (origin_of(record) is not None) is is_nan
