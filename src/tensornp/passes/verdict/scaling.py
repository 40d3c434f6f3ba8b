"""What a gradient scaler explains: gradients that are infinite because of their scale, and a step that was skipped."""

from __future__ import annotations

from tensornp.core.lowlevel.text import counted
from tensornp.passes.records import LossScaling, PassRecord
from tensornp.passes.verdict.backward_origin import backward_origin
from tensornp.passes.verdict.call_tree import CallTree
from tensornp.passes.verdict.wording import are_finite, holds, number


def is_overflow_of_scale(tree: CallTree) -> bool:
    """Return whether Inf came first into gradients that were scaled up, after a forward that was finite.

    A scale of 1 or less explains none: where it has fallen so far, the gradients are infinite by themselves.
    """
    scaling = tree.record.scaling
    return scaling is not None and scaling.was_used and scaling.scale > 1 and _came_first(tree)


def _came_first(tree: CallTree) -> bool:
    """Return whether the first that was not finite was Inf, and a gradient."""
    if any(are_finite(call.outputs) is False for call in tree.ended):
        return False
    infinite, nan = (backward_origin(tree, what) for what in ("inf", "nan"))
    # Inf of one backward explains no NaN that was born in the loss of another.
    is_explained = nan is None or nan.inputs_finite is False or (infinite is not None and infinite.call == nan.call)
    return infinite is not None and is_explained


def told_of_scaling(tree: CallTree) -> str:
    """Return what is known of a scaler, where gradients are not finite or it has skipped a step; else nothing."""
    scaling = tree.record.scaling
    if scaling is None:
        return ""
    if not scaling.was_used:
        # It may be another model's.
        named = f"a gradient scaler (scale {number(scaling.scale)}) is there, and was not seen at work"
        return f"{named}: Inf may be of scaled gradients" if _came_first(tree) else ""
    if is_overflow_of_scale(tree):
        return f"Inf in the scaled gradients {_scale(scaling)}{_then(scaling)}"
    word = _word(tree)
    if word or scaling.num_skipped:
        return f"{word or 'what is not finite'} in the scaled gradients {_scale(scaling)}{_then(scaling)}"
    return ""


def scale_told(record: PassRecord) -> str:
    """Return how much larger gradients of a loss are that a scaler has scaled, if it is not told otherwise."""
    scaling = record.scaling
    if scaling is None or not scaling.was_used or told_of_scaling(CallTree(record)):
        return ""
    if not scaling.is_sole:
        return "those of scaled losses larger by their scales"
    return f"those of a scaled loss {number(scaling.scale)} times as large" if scaling.scale != 1 else ""


def _scale(scaling: LossScaling) -> str:
    # Each step that is skipped has it fall.
    return f"(scale {number(scaling.scale)}{' at first' if scaling.num_skipped > 1 else ''})"


def _then(scaling: LossScaling) -> str:
    if scaling.num_skipped:
        steps = "this step" if scaling.num_skipped == 1 else counted(scaling.num_skipped, "step")
        return f"; the scaler skipped {steps}"
    return "; the scaler will skip this step" if scaling.will_skip else ""


def _word(tree: CallTree) -> str:
    """Return what is not finite in the gradients."""
    back = [one.figures for one in tree.record.grads]
    back += [value.grad for call in (*tree.ended, *tree.again) for value in call.outputs]
    return next((word for word, what in (("NaN", "nan"), ("Inf", "inf")) if any(holds(what, one) for one in back)), "")
