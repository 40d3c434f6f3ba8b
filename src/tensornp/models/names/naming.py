"""Make the names of weights unique."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count


def own_names(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return unique names: repeated ones come from `others`, numbered if needed."""
    times = Counter(names)
    found = [name if times[name] == 1 else other for name, other in zip(names, others, strict=True)]
    taken = {name for name in names if times[name] == 1}
    numbers: dict[str, count[int]] = {}
    for i, name in enumerate(found):
        if times[names[i]] == 1:
            continue
        unlike = name
        while unlike in taken:
            unlike = f"{name} ({next(numbers.setdefault(name, count(2)))})"
        taken.add(unlike)
        found[i] = unlike
    return found
