"""What a card says above the calls of a pass: at most a few sentences, the most serious first."""

from __future__ import annotations

from tensornp.core.lowlevel.text import counted
from tensornp.passes.records import PassRecord
from tensornp.passes.verdict.failure import failure_of
from tensornp.passes.verdict.findings import findings_of
from tensornp.passes.verdict.operator_origin import unreached
from tensornp.passes.verdict.origin import first_origin, origin_of

_MOST = 5


def problems_of(record: PassRecord) -> list[str]:
    """Return where the first NaN or Inf came from, what failed, and what else was found; the rest as a number."""
    origin = first_origin(record)
    verdict = origin.sentence if origin else ""
    nan = origin_of(record, "nan") if origin is not None and origin.what == "inf" else None
    heads = [one for one in (verdict, nan.sentence if nan else "") if one]
    # What was not finite beforehand, or has been spoilt by a step, may be the verdict itself.
    found = findings_of(record)
    findings = [one.sentence for one in found if not any(head.startswith(one.sentence) for head in heads)]
    is_scaled = any(one.kind == "scaled gradients" for one in found)
    if not verdict and not is_scaled and (births := unreached(record)):
        findings.insert(
            0, f"NaN was made in {counted(len(births), 'place')}, and reached nothing that was held in the end"
        )
    told = [*heads, *filter(None, (failure_of(record),)), *findings]
    return told if len(told) <= _MOST else [*told[:_MOST], f"{len(told) - _MOST:,} more"]
