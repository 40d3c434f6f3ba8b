"""The other displays that tensornp is measured against, each by the statement that shows a tensor `t`."""

from __future__ import annotations

from importlib.util import find_spec

SHOWN_BY = {
    "lovely_tensors": "repr(lovely_tensors.lovely(t))",
    # treescope 0.1.10 fails on torch 2.13, which has no `Tensor.names`; of an array it shows the same.
    "treescope": "treescope.render_to_html(t.numpy())",
}


def installed() -> dict[str, str]:
    """Return those of `SHOWN_BY` that can be imported."""
    return {name: statement for name, statement in SHOWN_BY.items() if find_spec(name)}


def missing_note() -> str:
    """Return a sentence that names those that cannot be imported; empty where all can."""
    missing = ", ".join(SHOWN_BY.keys() - installed().keys())
    return f"Left out, since not installed: {missing}." if missing else ""
