"""Plain facts of a record whose renderer has failed."""

from __future__ import annotations

from typing import Any

from tensornp.core.summary.card import TensorSummary
from tensornp.core.summary.view import Unshown
from tensornp.render.layout.document import Document, printed
from tensornp.render.tensor.card import tensor_line


def unshown_document(record: Unshown) -> Document:
    """Return the class of an object, and why no more is said of it."""
    return printed(f"{record.type_name} (not shown: {record.reason})")


def simple_text(record: Any, reason: str) -> str:
    """Return what a record holds in plain lines, and why it is not shown as usual."""
    return "\n".join([*_lines(record), f"(shown in short: {reason})"])


def _lines(record: Any) -> list[str]:
    if isinstance(record, TensorSummary):
        return [tensor_line(record), record.preview.text if record.preview is not None else record.refusal]
    from tensornp.core.summary.container import ContainerSummary

    if isinstance(record, ContainerSummary):
        rows = (f"{row.name}: {tensor_line(row.tensor) if row.tensor is not None else row.text}" for row in record.rows)
        left_out = [f"… {record.num_left_out:,} more left out"] if record.num_left_out else []
        return [f"{record.type_name} of {record.length:,}", *rows, *left_out]
    return [type(record).__name__]
