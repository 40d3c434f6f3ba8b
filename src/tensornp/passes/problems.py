"""What a card says above the calls of a pass: at most a few sentences, the most serious first."""

from __future__ import annotations

from tensornp.core.lowlevel.units import counted
from tensornp.passes.failure import failure_of
from tensornp.passes.findings import findings_of
from tensornp.passes.operator_origin import unreached
from tensornp.passes.records import PassRecord
from tensornp.passes.verdict import first_origin, origin_of

_MOST = 5


def problems_of(record: PassRecord) -> list[str]:
    """Return where the first NaN or Inf came from, what failed, and what else was found; the rest as a number."""
    origin = first_origin(record)
    verdict = origin.sentence if origin else ""
    nan = origin_of(record, "nan") if origin is not None and origin.what == "inf" else None
    # What was not finite beforehand may be the verdict itself.
    findings = [one.sentence for one in findings_of(record) if not verdict.startswith(one.sentence)]
    if not verdict and (births := unreached(record)):
        findings.insert(
            0, f"NaN was made in {counted(len(births), 'place')}, and reached nothing that was held in the end"
        )
    told = [one for one in (verdict, nan.sentence if nan else "", failure_of(record), *findings) if one]
    return told if len(told) <= _MOST else [*told[:_MOST], f"{len(told) - _MOST:,} more"]
