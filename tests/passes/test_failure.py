"""Which call a block failed in, and why its input did not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_passes import FINE, chain, leaf, one_call, value, weight

from tensornp.passes.records import LEFT, RAISED, STOPPED_EARLY, PassRecord
from tensornp.passes.verdict.failure import failed_call, failure_of

ERROR = "RuntimeError: mat1 and mat2 shapes cannot be multiplied"


def failed(class_name: str, got: tuple[int, ...], needs: tuple[int, ...], ends=FINE, **facts) -> PassRecord:
    """Return a pass that ended in a call with a weight, before which another one returned."""
    dtype, device = facts.pop("dtype", "float32"), facts.pop("device", "cpu")
    given = value(ends, "[0]", 0, shape=got, dtype=dtype, device=device)
    return PassRecord((
        one_call(0, "1", "ReLU", got=[value()], gave=[value(shape=got)], order=0),
        one_call(1, "2.0", class_name, got=[given], params=[weight(shape=needs)], status=RAISED, error=ERROR, order=1),
    ), error=ERROR)  # fmt: skip


GAVE = "; the call before (1) gave"
MISFITS = {
    "linear": (
        failed("Linear", (3, 5), (2, 6)),
        f"2.0 (Linear) got (3, 5) and its weight is (2, 6): it takes 6 features{GAVE} (3, 5)",
    ),
    "convolution": (
        failed("Conv2d", (8, 4, 9, 9), (16, 3, 3, 3)),
        f"2.0 (Conv2d) got (8, 4, 9, 9) and its weight is (16, 3, 3, 3): it takes 3 channels in each group{GAVE} "
        "(8, 4, 9, 9)",
    ),
    "convolution of one image": (
        failed("Conv2d", (4, 9, 9), (16, 3, 3, 3)),
        f"2.0 (Conv2d) got (4, 9, 9) and its weight is (16, 3, 3, 3): it takes 3 channels in each group{GAVE} "
        "(4, 9, 9)",
    ),
    "convolution, axes": (
        failed("Conv1d", (9,), (16, 3, 3)),
        f"2.0 (Conv1d) got (9,) and its weight is (16, 3, 3): it takes 2 or 3 axes{GAVE} (9,)",
    ),
    "transposed convolution": (
        failed("ConvTranspose1d", (2, 6, 9), (3, 8, 4)),
        f"2.0 (ConvTranspose1d) got (2, 6, 9) and its weight is (3, 8, 4): it takes 3 channels{GAVE} (2, 6, 9)",
    ),
    "batch norm": (
        failed("BatchNorm2d", (2, 6, 9, 9), (3,)),
        f"2.0 (BatchNorm2d) got (2, 6, 9, 9) and its weight is (3,): it takes 3 channels{GAVE} (2, 6, 9, 9)",
    ),
    "layer norm": (
        failed("LayerNorm", (2, 6), (5,)),
        f"2.0 (LayerNorm) got (2, 6) and its weight is (5,): it takes (5,) at the end{GAVE} (2, 6)",
    ),
    "embedding": (
        failed("Embedding", (2, 6), (100, 8), (0.0, 105.0), dtype="int64"),
        f"2.0 (Embedding) got (2, 6) and its weight is (100, 8): it takes indices below 100, and got 105{GAVE} (2, 6)",
    ),
    "dtypes": (
        failed("Linear", (3, 6), (2, 6), dtype="torch.float16"),
        "2.0 (Linear) got a float16 tensor, and its weight is a float32 one",
    ),
    "devices": (
        failed("Linear", (3, 6), (2, 6), device="cuda:0"),
        "2.0 (Linear) got a tensor on cuda:0, and its weight is on cpu",
    ),
    "what fits": (failed("Linear", (3, 6), (2, 6)), f"2.0 (Linear) raised {ERROR}; it got (3, 6)"),
    "a depthwise convolution": (
        failed("Conv2d", (3, 6, 9, 9), (6, 1, 3, 3)), f"2.0 (Conv2d) raised {ERROR}; it got (3, 6, 9, 9)",
    ),
    "a class that is not known": (failed("Mine", (3, 5), (2, 6)), f"2.0 (Mine) raised {ERROR}; it got (3, 5)"),
}  # fmt: skip


@pytest.mark.parametrize("situation", MISFITS)
def test_a_failure_is_told_with_what_does_not_fit(situation):
    record, sentence = MISFITS[situation]
    assert failure_of(record) == sentence


def nested(*statuses: str, error: str = ERROR) -> PassRecord:
    """Return a pass of calls of which each came inside of the one before."""
    calls = (
        one_call(i, ".".join("a" * i), parent=i - 1 if i else None, order=len(statuses) - i, status=status, error=error)
        for i, status in enumerate(statuses)
    )
    return PassRecord(tuple(calls), error=error)


@pytest.mark.parametrize(
    ("record", "index"),
    [
        (nested(RAISED, RAISED, RAISED), 2),
        (nested(RAISED, RAISED, "returned"), 1),
        (nested("returned", RAISED, RAISED), None),
        (nested(LEFT, LEFT), None),
        (nested(STOPPED_EARLY, STOPPED_EARLY), None),
        (nested(RAISED, RAISED, error=""), None),
        (PassRecord(error=ERROR), None),
    ],
)
def test_the_innermost_call_that_raised_is_the_failure(record, index):
    """A raised child of a call that returned is none, nor is what was left by Ctrl-C or by a checkpoint."""
    call = failed_call(record)
    assert (call.index if call else None) == index


def test_a_call_whose_error_was_caught_before_another_returned_is_no_failure():
    """The last child that ended had returned: the error came from the code of the model itself."""
    calls = (
        one_call(0, "", "Net", status=RAISED, error=ERROR, order=3),
        one_call(1, "fast", "Fast", status=RAISED, error="no", parent=0, order=1),
        one_call(2, "slow", "Slow", gave=[value()], parent=0, order=2),
    )
    call = failed_call(PassRecord(calls, error=ERROR))
    assert call is not None and call.title == "Net"


def test_what_was_left_has_ended_after_what_raised():
    """An error was caught, then came Ctrl-C: what it left has no order."""
    left = replace(one_call(0, "", "Net", status=LEFT), order=-1)
    raised = one_call(1, "fast", "Fast", status=RAISED, error="no", parent=0, order=0)
    record = PassRecord((left, raised), error="KeyboardInterrupt")
    assert failed_call(record) is None
    assert failure_of(record) == "KeyboardInterrupt in Net, after 2 calls"


def test_an_error_of_the_cell_itself_is_told_by_what_returned_before():
    record = chain(leaf("fc"), leaf("norm", "LayerNorm"))
    assert failure_of(replace(record, error=ERROR)) == "RuntimeError after 2 calls; the last that returned was norm"
    assert failure_of(PassRecord(error="KeyboardInterrupt")) == "KeyboardInterrupt after 0 calls"
    assert failure_of(record) == ""
