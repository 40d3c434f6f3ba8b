"""What a run of the benchmarks has otherwise than an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def changes(now: list[dict[str, Any]], before: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what has changed by more than the spread of either run; of ratios where there are any."""
    known = {_key(figure): figure for figure in before}
    num_alike = 0
    for figure in now:
        old = known.pop(_key(figure), None)
        if old is None:
            yield f"new: {_title(figure)}"
            continue
        was, is_now = _compared(old), _compared(figure)
        if is_now["low"] <= was["high"] and was["low"] <= is_now["high"]:
            num_alike += 1
            continue
        factor = is_now["median"] / was["median"] if was["median"] else float("inf")
        yield f"{factor:.2f} times: {_title(figure)}: {was['median']:.3g} → {is_now['median']:.3g}"
    yield f"{num_alike} of {len(now)} figures are alike: their ranges overlap"


def _key(figure: dict[str, Any]) -> tuple[str, ...]:
    return figure["question"], figure["what"], figure["beside"], figure["unit"]


def _title(figure: dict[str, Any]) -> str:
    beside = f", beside {figure['beside']}" if figure["times"] else f", in {figure['unit']}"
    return f"{figure['question']}: {figure['what']}{beside}"


def _compared(figure: dict[str, Any]) -> dict[str, float]:
    spread: dict[str, float] = figure["times"] or figure["own"]
    return spread
