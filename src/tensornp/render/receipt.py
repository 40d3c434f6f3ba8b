"""What a conversion did, or would do, as text and as static HTML."""

from __future__ import annotations

from html import escape

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.summary.surroundings import NO_SURROUNDINGS, Surroundings
from tensornp.render.aliases import stopped_text
from tensornp.render.style import CARD


def receipt_text(plan: ConversionPlan) -> str:
    """Return the line of plain code that does the same, and under it what was done and why."""
    copied = "" if plan.shares_memory else f" ({plan.nbytes_copied:,} bytes, {exactness(plan)})"
    return "\n  ".join([f"{plan.mode}: {plan.code}", plan.reason + copied, *(f"note: {w}" for w in plan.warnings)])


def receipts_text(plans: list[ConversionPlan]) -> str:
    """Return one line that says what the conversion of a whole container did."""
    copied = [plan for plan in plans if not plan.shares_memory]
    nbytes = sum(plan.nbytes_copied for plan in copied)
    lossy = sum(not plan.exact for plan in plans)
    parts = [f"{len(plans) - len(copied)} share memory", f"{len(copied)} copied ({nbytes:,} bytes)"]
    parts += [f"{lossy} lossy"] if lossy else []
    return f"{len(plans)} tensors: {', '.join(parts)}"


def receipt_lines(plan: ConversionPlan, around: Surroundings = NO_SURROUNDINGS) -> list[str]:
    """Return what the folded receipt says, a line each, and where the search around the tensor was not through."""
    lines = [f"{plan.dtype} · {exactness(plan)} · {plan.nbytes_copied:,} bytes copied", plan.reason]
    lines += [f"steps: {', '.join(plan.steps)}"] if plan.steps else []
    lines += [f"note: {warning}" for warning in plan.warnings]
    return lines + ([stopped_text(around)] if around.stopped else [])


def exactness(plan: ConversionPlan) -> str:
    """Return "exact" or "lossy"."""
    return "exact" if plan.exact else "lossy"


def receipt_html(plan: ConversionPlan) -> str:
    """Return the receipt of a conversion that was done, as one line that unfolds."""
    return f'<div class="tensornp" style="{CARD}">{folded_receipt(plan)}</div>'


def folded_receipt(plan: ConversionPlan, around: Surroundings = NO_SURROUNDINGS, *, is_open: bool = False) -> str:
    """Return the receipt as the part of a card that unfolds."""
    text = "<br>".join(escape(line) for line in receipt_lines(plan, around))
    code = f'<code style="background-color:transparent">{escape(plan.code)}</code>'
    # What a write could spoil is not folded away.
    has_hazard = plan.shares_memory and plan.writeable and plan.warnings
    opened = " open" if is_open or has_hazard else ""
    return f'<details{opened} style="font-size:90%"><summary>{plan.mode} · {code}</summary>{text}</details>'
