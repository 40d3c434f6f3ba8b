"""What is said of a name that tensornp does not have: what other libraries call so, or the closest."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_CALLED = {
    **dict.fromkeys(("show", "display", "lovely"), "card(t) shows anywhere, tensornp.view(t) is a live card"),
    **dict.fromkeys(("array", "asarray", "numpy", "as_numpy", "convert"), "to_numpy(t)"),
    **dict.fromkeys(("tensor", "as_tensor", "from_numpy"), "to_tensor(a)"),
    **dict.fromkeys(("diff", "equal", "allclose", "assert_close"), "compare(a, b)"),
    **dict.fromkeys(("hist", "histogram", "heatmap"), "plot(t)"),
    **dict.fromkeys(("imshow", "rgb", "images"), "image(t)"),
    **dict.fromkeys(("describe", "summary", "mean", "std", "norm"), "stats(t)"),
    **dict.fromkeys(("load", "open", "read", "load_file", "state_dict"), "weights(path)"),
    **dict.fromkeys(("find", "where", "isnan", "argmax"), 'locate(t, "nan")'),
    **dict.fromkeys(("explain", "receipt"), "plan(t)"),
    **dict.fromkeys(("info", "shape", "dtype"), "inspect(t)"),
}  # fmt: skip
"""What is called otherwise here."""


def no_such_name(name: str, known: Iterable[str]) -> str:
    """Return a sentence on a name that is not among those that are known."""
    said = f"tensornp has no {name!r}"
    if name.startswith("_"):
        return said
    if name in _CALLED:
        return f"{said}; tensornp.{_CALLED[name]}"
    closest = difflib.get_close_matches(name, list(known), 1)
    return f"{said}; did you mean {closest[0]!r}?" if closest else f"{said}; dir(tensornp) lists what there is"
