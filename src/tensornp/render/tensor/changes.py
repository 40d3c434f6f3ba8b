"""The words for a change of a tensor or an array: a badge, its sentence, a line of the watch."""

from __future__ import annotations

from typing import NamedTuple

from tensornp.core.memory.changes import ALL_BLOCKS, Cause, Change


class _Words(NamedTuple):
    """The words of one cause: verb, badge, line, and end of the sentence."""

    verb: str
    badge: str
    line: str
    sentence: str


_CAUSES: dict[Cause, _Words] = {
    "": _Words("changed", "", "", ""),
    "torch": _Words(
        "changed", "with a write counted by torch", "with a write counted by torch",
        "and torch has counted a write since then, which need not be the only one",
    ),
    "uncounted": _Words(
        "changed", "unseen by autograd", "unseen by autograd",
        "by a write that torch has not counted: so write NumPy, .data and DLPack for example, and kernels of torch's "
        "own, such as batch norm, fused optimizers, fake quantization, apply_, GradScaler's unscale and dist.scatter",
    ),
    "unknown": _Words("changed", "", "by a road that cannot be told", "by a road that cannot be told"),
    "moved": _Words("moved", "", "", "its elements lie elsewhere now"),
    "retyped": _Words("was", "", "", "so it has other elements now"),
    "may": _Words(
        "written", "", "torch has counted a write; the sample is unchanged",
        "torch has counted a write, and the sample that was read is unchanged",
    ),
}  # fmt: skip


def change_text(change: Change) -> str:
    """Return a few words: "changed since the card in In[4] · row 0 of 64 · unseen by autograd"."""
    if change.cause == "retyped":
        return f"was {change.was} at {change.since}"
    words = _CAUSES[change.cause]
    sampled = "" if change.coverage == ALL_BLOCKS else change.coverage
    # A write that torch has counted needs no word if the rows are known.
    cause = "" if change.rows and change.cause == "torch" else words.badge
    return " · ".join(filter(None, (f"{words.verb} since {change.since}", change.rows, cause, sampled)))


def change_sentence(change: Change) -> str:
    """Return the same with the cause and what was compared."""
    words = change_text(change).partition(" · ")[0]
    where = f" ({change.delta})" if change.delta else ""
    return f"{words[0].upper()}{words[1:]}{where}, {_CAUSES[change.cause].sentence} ({change.coverage})."


def change_parts(change: Change) -> tuple[str, ...]:
    """Return the changed rows, the size and cause of the change, and other changes."""
    cause = _CAUSES[change.cause].line
    told = f"{cause} ({change.coverage})" if change.cause == "may" else cause
    return tuple(filter(None, (change.rows, change.delta, told, *change.facts)))
