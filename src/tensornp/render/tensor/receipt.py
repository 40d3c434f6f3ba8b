"""The receipt of a conversion, as text and as static HTML."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape

from tensornp.core.convert.plan import ConversionPlan
from tensornp.core.lowlevel.text import counted, format_nbytes
from tensornp.core.summary.card import TensorSummary
from tensornp.render.layout.document import Document, small_print
from tensornp.render.layout.style import CARD, CODE, FIGURES, FOLD, HEAD, POINTER, SMALL_TEXT
from tensornp.render.layout.words import in_parentheses, listed, parsed
from tensornp.render.tensor.aliases import folded_lines
from tensornp.render.tensor.badges import Badge

_CODE_WORD = f'<u style="{FOLD};{FIGURES}">code</u>'
_USUAL = ("shape", "dtype", "device", "memory")
_READ_ONLY = "np.broadcast_to("
_TENSOR = re.compile(r"(?<![\w.'\"])t(?![\w'\"=])")
"""The tensor in the code of a plan."""
_MAX_NAME = 60
"""Characters of an expression that a sentence repeats."""
MAX_NAMES = 6
"""Names of tensors that are converted alike which are listed."""


def card_receipt(summary: TensorSummary, badges: Iterable[Badge], head: str, *, is_open: bool) -> str:
    """Return the fold behind the `head` of a card: code, reasons, and the sentences of unusual badges."""
    plan, around = summary.plan, summary.surroundings
    assert plan is not None
    # Sentences of the reason and the notes are not repeated.
    told = [warning.casefold() for warning in plan.warnings]
    sentences = [
        f"{badge.text} – {badge.title}"
        for badge in badges
        if badge.kind not in _USUAL and badge.title.removesuffix(".").casefold() not in told
    ]
    code = statements(plan.code, around.expression)
    return _fold(plan, code, f"{head}{_CODE_WORD}", [*folded_lines(around), *sentences], HEAD, is_open=is_open)


def _fold(
    plan: ConversionPlan, code: str, head: str, more: Sequence[str] = (), style: str = SMALL_TEXT, *, is_open: bool
) -> str:
    """Return the code over the steps and reasons of a plan, folded behind `head`, which does not move."""
    texts = [f"{plan.dtype} · {'exact' if plan.exact else 'lossy'} · {plan.nbytes_copied:,} bytes copied", plan.reason]
    texts += [f"steps: {', '.join(plan.steps)}"] if plan.steps else []
    texts += [f"note: {warning}" for warning in plan.warnings]
    lines = "<br>".join([f'<code style="{CODE}">{escape(code)}</code>', *map(escape, texts), *map(escape, more)])
    # The effects of a write are not folded away.
    has_hazard = plan.shares_memory and plan.writeable and plan.warnings
    opened = " open" if is_open or has_hazard else ""
    below = f'<div style="{SMALL_TEXT}">{lines}</div>'
    return f'<details{opened}><summary style="{style};{POINTER}">{head}</summary>{below}</details>'


@functools.lru_cache(maxsize=256)
def statements(code: str, tensor: str = "", array: str = "") -> str:
    """Return the `code` of a plan, written with the expression `tensor` if known.

    It is bound to `array`, by default ``a``, and made read-only by its flag.
    """
    expression = ast.parse(code, mode="eval").body
    is_frozen = code.startswith(_READ_ONLY) and isinstance(expression, ast.Call)
    source = ast.get_source_segment(code, expression.args[0]) or "" if is_frozen else code  # type: ignore[attr-defined]
    spelled, taken = _spelled(tensor, len(_TENSOR.findall(source)))
    array = array or next((name for name in "abcdefgh" if name not in taken), "array")
    written = f"{array} = {_TENSOR.sub(lambda _: spelled, source)}"
    return f"{written}; {array}.flags.writeable = False" if is_frozen else written


def _spelled(tensor: str, num_uses: int) -> tuple[str, set[str]]:
    """Return the code of a tensor within a longer expression, and the names in it.

    It is ``t`` where that is not known, would run twice, or takes several lines.
    """
    expression, source = parsed(tensor)
    nodes = list(ast.walk(expression)) if expression is not None else []
    runs_twice = num_uses > 1 and any(isinstance(node, ast.Call) for node in nodes)
    if expression is None or "\n" in source or runs_twice:
        return "t", {"t"}
    return in_parentheses(expression, source), {node.id for node in nodes if isinstance(node, ast.Name)}


def receipt_line(plan: ConversionPlan, tensor: str = "", array: str = "", dtype: str = "") -> str:
    """Describe a finished conversion: ``shares memory with w, read-only (--share to write)``.

    `dtype` is that of the tensor: ``copied 512 KiB: bfloat16 → float32``.
    """
    # The result of a call has no name.
    name = tensor if 0 < len(tensor) <= _MAX_NAME and not {"(", "\n"} & set(tensor) else "the tensor"
    if plan.shares_memory and not plan.writeable:
        return f"shares memory with {name}, read-only (--share to write)"
    if plan.shares_memory:
        return f"shares memory with {name}, writeable: a write to {array or 'the array'} changes {name}"
    if not plan.nbytes_copied:
        return plan.reason
    why = plan.reason.removeprefix("copy: ")
    if dtype and dtype != str(plan.dtype):
        why = f"{dtype} → {plan.dtype}"
    return f"copied {format_nbytes(plan.nbytes_copied)}: {why}" + ("" if plan.exact else ", lossy")


def receipt_text(plan: ConversionPlan, tensor: str = "", array: str = "", dtype: str = "") -> str:
    """Return the line of a receipt above the plain code of the same conversion."""
    notes = (f"note: {warning}" for warning in plan.warnings)
    return "\n  ".join([receipt_line(plan, tensor, array, dtype), statements(plan.code, tensor, array), *notes])


def explained_text(plans: Iterable[tuple[str, ConversionPlan]], tensor: str = "") -> str:
    """Return the plans of a container's tensors under their names, those that are alike told once.

    A tensor itself has the code of the expression `tensor`.
    """
    alike: dict[str, list[str]] = {}
    for name, plan in plans:
        told = replace(plan, code=statements(plan.code, "" if name else tensor))
        alike.setdefault(str(told), []).append(name)
    return "\n\n".join("\n".join(filter(None, [listed(names, MAX_NAMES), told])) for told, names in alike.items())


def receipts_text(plans: list[ConversionPlan]) -> str:
    """Return one line that says what the conversion of a whole container did."""
    copied = [plan for plan in plans if not plan.shares_memory]
    nbytes = sum(plan.nbytes_copied for plan in copied)
    lossy = sum(not plan.exact for plan in plans)
    num_shared = len(plans) - len(copied)
    parts = [f"{num_shared} share{'s' if num_shared == 1 else ''} memory", f"{len(copied)} copied ({nbytes:,} bytes)"]
    parts += [f"{lossy} lossy"] if lossy else []
    return f"{counted(len(plans), 'tensor')}: {', '.join(parts)}"


def way_back_document(why_copied: str, nbytes: int) -> Document:
    """Return whether a tensor shares the memory of its array, or why it is a copy."""
    text = "shares memory: a write to the array is seen in the tensor, and the other way round"
    if why_copied:
        text = f"copied {format_nbytes(nbytes)}: {why_copied.removesuffix(',')} cannot share memory with a tensor"
    return Document((small_print(text),))


def receipt_html(plan: ConversionPlan, tensor: str = "", array: str = "", dtype: str = "") -> str:
    """Return the receipt of a conversion that was done: a line, and the code in a fold below it."""
    line = f"{escape(receipt_line(plan, tensor, array, dtype))}&ensp;<u>code</u>"
    fold = _fold(plan, statements(plan.code, tensor, array), line, is_open=False)
    return f'<div class="tensornp" dir="ltr" style="{CARD}">{fold}</div>'
