"""The badges of a tensor, and the words for its changes: a few words each, and a sentence behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

from tensornp.core.convert.receipt import ASKED_FOR, saved_text
from tensornp.core.lowlevel.text import counted, format_nbytes
from tensornp.core.lowlevel.torch_private import GATHERED
from tensornp.core.memory.changes import Cause, Change
from tensornp.core.summary.card import Surroundings, TensorSummary
from tensornp.core.tensor.dtypes import is_differentiable, name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.values.stats.record import alarms_of
from tensornp.render.layout.document import Part
from tensornp.render.layout.style import BADGES, Tone
from tensornp.render.layout.words import on_this_rank


class Badge(NamedTuple):
    """One fact: `kind` names it, `text` is shown, `title` explains it in a sentence."""

    kind: str
    text: str
    title: str
    tone: Tone = "plain"


def badges_line(badges: Sequence[Badge]) -> Part:
    return Part(" | ".join(badge.text for badge in badges), f"<div>{' '.join(map(badge_html, badges))}</div>")


def badge_html(badge: Badge, *, is_link: bool = False) -> str:
    """Return one badge as HTML; in a live card, one of values is a button that leads to the first of them."""
    rest = f'style="{BADGES[badge.tone]}">{escape(badge.text)}'
    if is_link:
        title = f'title="{escape(badge.title)} Go to the first."'
        return f'<button type="button" class="tensornp-alarm" data-seek="{badge.kind}" {title} {rest}</button>'
    return f'<span title="{escape(badge.title)}" {rest}</span>'


def badges_of(summary: TensorSummary) -> tuple[Badge, ...]:
    """Return the badges of a tensor in display order."""
    info = summary.info
    if info is None:
        return (Badge("type", summary.type_name, "The type of the tensor; its metadata cannot be read.", "alarm"),)
    around = summary.surroundings
    calm = (*_identity(info), *_grad(info, around), memory_badge(summary), *_hazards(summary), *_peculiarities(info))
    badges = (*_not_finite(summary), *calm)
    alarms = [one for one in badges if one.tone == "alarm"]
    return (*alarms, *[one for one in badges if one.tone != "alarm"]) if alarms else badges


def _not_finite(summary: TensorSummary) -> Iterator[Badge]:
    if summary.stats is None:
        return
    for found in alarms_of(summary.stats):
        verb = "is" if found.number == 1 else "are"
        sentence = f"{found.number:,} of {counted(summary.stats.count, 'element')} {verb} {found.sign}."
        yield Badge(found.goal, found.text, sentence, "alarm")


def _identity(info: TensorInfo) -> list[Badge]:
    name, where = name_of(info.dtype), "in main memory" if str(info.device) == "cpu" else f"on {info.device}"
    badges = [] if info.type_name == "Tensor" else [Badge("type", info.type_name, f"The type is {info.type_name}.")]
    return [
        *badges,
        _shape(info),
        Badge("dtype", name, f"Each element takes {counted(info.itemsize, 'byte')}."),
        Badge("device", str(info.device), f"The values live {where}."),
    ]


def _shape(info: TensorInfo) -> Badge:
    if info.data_state == "uninitialized":
        return Badge("shape", "no shape yet", "The shape is not known before the first forward pass.")
    if -1 in info.shape:
        text = str(tuple(info.shape)).replace("-1", "?")
        return Badge("shape", text, "A size marked ? is symbolic, or differs from one part to the next.")
    held = f"in {counted(info._held_nbytes, 'byte')}"
    if info._part_nbytes is not None and info.detail:
        held = f"of which {info.detail}, {held}"
    if info._numel_elsewhere:
        # Without it, the part on this rank would be read as the whole.
        held += on_this_rank(counted(info._nbytes_here, "byte"))
    return Badge("shape", str(info.shape), f"Shape: {counted(info.numel, 'element')} {held}.")


def _grad(info: TensorInfo, around: Surroundings) -> Iterator[Badge]:
    """Yield the badge on gradients; none for integers, which autograd never tracks."""
    if not (is_differentiable(name_of(info.dtype)) or info.requires_grad or info.is_parameter or info.is_buffer):
        return
    filled = ""
    if info.has_grad:
        filled = " · has .grad"
    if info.requires_grad and not info.is_leaf:
        retained = " · retains grad" if info._retains_grad and not info.has_grad else ""
        sentence = f"Autograd made this tensor by {info.grad_fn}; it is not a leaf."
        yield Badge("grad", f"from {info.grad_fn}{retained}{filled}", sentence)
    elif info.requires_grad:
        states = {None: "was not looked at, since another thread is running", True: "is filled", False: "is empty"}
        yield Badge("grad", f"requires grad{filled}", f"Autograd tracks this leaf and .grad {states[info.has_grad]}.")
    elif info.is_parameter:
        yield Badge("grad", f"frozen{filled}", "A parameter that requires no grad: no optimizer step changes it.")
    elif info.is_buffer:
        yield Badge("grad", f"buffer{filled}", "A buffer of a module: autograd does not track it.")
    elif filled:
        yield Badge("grad", filled.removeprefix(" · "), "Autograd does not track this tensor.")


def _hazards(summary: TensorSummary) -> Iterator[Badge]:
    plan, info, change = summary.plan, summary.info, summary.surroundings.change
    # Every training writes, also without counting: that is no alarm.
    is_spoiled = change is not None and summary.surroundings.is_spoiled
    tone: Tone = "alarm" if is_spoiled else "plain"
    if change is not None:
        yield Badge("changed", change_text(change), change_sentence(change), tone)
    if info is None or not info._saved_for:
        return
    name = info._saved_for[0]
    if plan is not None and plan.shares_memory and plan.writeable:
        sentence = saved_text(info._saved_for, frozen=False)
        yield Badge("saved", f"saved for {name}", f"{sentence[0].upper()}{sentence[1:]}.", "alarm")
    elif is_spoiled:
        sentence = f"{name} saved it before that write, so backward gives wrong gradients without an error."
        yield Badge("saved", f"saved for {name}", sentence, "alarm")


def memory_badge(summary: TensorSummary) -> Badge:
    """Return the badge on memory: shared, a copy, or the reason for no array."""
    plan, refusal, word = summary.plan, summary.refusal, memory_word(summary)
    if plan is None:
        sentence = f"{refusal[:1].upper()}{refusal[1:]}."
        if summary.too_large:
            return Badge("memory", f"{word}, {format_nbytes(summary.too_large)}", sentence)
        return Badge("memory", word, sentence)
    if plan.shares_memory:
        # Read-only is the default.
        return Badge("memory", f"{word}, writeable" if plan.writeable else word, f"The array {plan.reason}.")
    if not plan.nbytes_copied:
        return Badge("memory", word, "There is nothing to share or to copy.")
    told = "" if plan.reason.startswith(ASKED_FOR) else f"{plan.reason[:1].upper()}{plan.reason[1:]}. "
    sentence = f"{told}The array is new memory: no later write is seen on the other side."
    return Badge("memory", f"{word} {format_nbytes(plan.nbytes_copied)}", sentence)


def memory_word(summary: TensorSummary) -> str:
    """Return the memory of the array in a word or two: shared, copy, float32 copy."""
    plan, info = summary.plan, summary.info
    if plan is None:
        return "too large" if summary.too_large else "no array"
    if plan.shares_memory:
        return "shared"
    if not plan.nbytes_copied:
        return "empty"
    return "copy" if info is None or plan.dtype.name == name_of(info.dtype) else f"{plan.dtype} copy"


_FLAGS = (
    ("process-shared", "is_shared", "Other processes may see and change this memory (is_shared())."),
    ("pinned", "is_pinned", "Page-locked host memory, for faster transfers to a device."),
    ("inference", "is_inference", "Made in inference mode: autograd cannot use it."),
    ("conj", "is_conj", "A lazy conjugate: its memory holds the unconjugated values."),
    ("neg", "is_neg", "A lazy negative: its memory holds the values with the other sign."),
)
"""Words for attributes that are true, each with its sentence."""


def _peculiarities(info: TensorInfo) -> Iterator[Badge]:
    if info.kind.sentence:
        text = info.kind.label or name_of(info.layout)
        sentence = f"{info.kind.sentence} In the mesh: {info.shard}." if info.shard is not None else info.kind.sentence
        yield Badge(info.kind.name, f"{text} · {info.detail}" if info.detail else text, sentence)
    if info._is_gathered:
        sentence = "FSDP has gathered it from all ranks, and frees this memory when it shards it again."
        yield Badge("spread", GATHERED, sentence)
    if info._array_shape != info.shape:
        title = f"Each element packs several values, so the array has shape {info._array_shape}."
        yield Badge("packed", f"packed · {info._array_shape}", title)
    yield from [Badge(word, word, sentence) for word, attribute, sentence in _FLAGS if getattr(info, attribute)]
    if info._is_expanded:
        yield Badge("expanded", "expanded", f"Strides {info.stride}: several indices show the same element.")
    elif info.stride is not None and not info.is_contiguous:
        yield Badge("non-contiguous", "non-contiguous", f"Strides {info.stride}: elements are not in row order.")


_CAUSES: dict[Cause, tuple[str, str, str]] = {
    "": ("changed", "", ""),
    "torch": (
        "changed", "with a write counted by torch",
        "and torch has counted a write since then, which need not be the only one",
    ),
    "uncounted": (
        "changed", "unseen by autograd",
        "by a write that torch does not count, such as one by NumPy, .data or DLPack, or by batch norm, a fused "
        "optimizer, fake quantization, apply_, GradScaler's unscale or dist.scatter",
    ),
    "unknown": ("changed", "by an unknown write", "by an unknown write"),
    "moved": ("moved", "", "its elements lie elsewhere now"),
    "retyped": ("was", "", "so it has other elements now"),
    "may": (
        "written", "torch has counted a write; the sample is unchanged",
        "torch has counted a write, and the sample that was read is unchanged",
    ),
}  # fmt: skip
"""The verb of each cause, its words on a badge, and the end of its sentence."""


def change_text(change: Change) -> str:
    """Return a few words: "changed since the card in In[4] · row 0 of 64 · unseen by autograd"."""
    verb, words, _ = _CAUSES[change.cause]
    if change.cause == "retyped":
        return f"{verb} {change.was} at {change.since}"
    # A write that torch has counted needs no word if the rows are known.
    cause = "" if change.rows and change.cause == "torch" else words
    return " · ".join(filter(None, (f"{verb} since {change.since}", change.rows, cause, change.coverage)))


def change_sentence(change: Change) -> str:
    """Return the same with the cause and what was compared."""
    words = change_text(change).partition(" · ")[0]
    where = f" ({change.delta})" if change.delta else ""
    coverage = f" ({change.coverage})" if change.coverage else ""
    return f"{words[0].upper()}{words[1:]}{where}, {_CAUSES[change.cause][2]}{coverage}."


def change_parts(change: Change) -> tuple[str, ...]:
    """Return the changed rows, the size and cause of the change, and other changes."""
    _, cause, _ = _CAUSES[change.cause]
    told = f"{cause} ({change.coverage})" if change.cause == "may" else cause
    return tuple(filter(None, (change.rows, change.delta, told, *change.facts)))
