"""TAB after our magics: their options, and the names that they take."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from tensornp.core.convert.view_share_copy import SHARDS
from tensornp.core.summary.options import STYLES
from tensornp.fronts.ipython import guide, magics, memory_magics, pass_magics, value_magics, weight_magics
from tensornp.models.formats.table import weight_suffixes

OPTIONS = {
    **magics.OPTIONS,
    **memory_magics.OPTIONS,
    **value_magics.OPTIONS,
    **weight_magics.OPTIONS,
    **pass_magics.OPTIONS,
    **guide.OPTIONS,
}
# Texts, which are compiled when they are asked for: not to load the extension.
_LINE = rf"(?s)^[^#]*%{{1,2}}({'|'.join(OPTIONS)})\b(.*)$"
_EXTENSION = r"^\s*%?(?:load|reload|unload)_ext\s+(\w*)$"
"""IPython completes no extension; ours only once it is loaded, in a profile for one."""
_SORTS = ("bytes", "name", "shape", "dtype", "device")
_DTYPES = (
    "float16 float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool "
    "bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
).split()


def make_matcher(shell: Any) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """Return a matcher for `shell` that IPython asks before its own; outside our magics it stays out of the way."""

    @context_matcher(identifier="tensornp", priority=200)
    def match(context: CompletionContext) -> SimpleMatcherResult:
        line = context.line_with_cursor[: context.cursor_position]
        extension, found = re.match(_EXTENSION, line), re.match(_LINE, line)
        if extension is not None and "tensornp".startswith(extension[1]):
            own = [SimpleCompletion(text="tensornp", type="module")]
            return {"completions": own, "suppress": True, "matched_fragment": extension[1]}
        if found is None:
            return {"completions": []}
        magic, typed = found.groups()
        before, _, fragment = typed.rpartition(" ")
        words = before.split()
        texts = _candidates(shell, magic, words[-1] if words else "", fragment)
        if texts is None:
            return {"completions": []}
        completions = [SimpleCompletion(text=text, type=kind) for text, kind in texts if text.startswith(fragment)]
        return {"completions": completions, "suppress": True, "matched_fragment": fragment}

    matcher: Callable[[CompletionContext], SimpleMatcherResult] = match
    return matcher


def _candidates(shell: Any, magic: str, previous: str, fragment: str) -> list[tuple[str, str]] | None:
    """Return what may stand here, each with its kind; None leaves an expression to IPython's own completion."""
    if previous in ("-d", "--dtype"):
        return [(name, "class") for name in _DTYPES]
    if magic == "tonumpy" and previous == "--shard":
        return [(shard, "param") for shard in SHARDS]
    if magic == "tensors" and previous in ("-s", "--sort"):
        return [(key, "param") for key in _SORTS]
    if magic == "tensornp" and previous == "--style":
        return [(style, "param") for style in STYLES]
    if fragment.startswith("-"):
        return [(flag, "param") for option in OPTIONS[magic] for flag in option.flags]
    is_client = previous == "--ranks"
    paths = _paths(fragment) if magic in ("weights", "tensordiff") and not is_client else []
    if not re.fullmatch(r"\w*", fragment):
        return paths or None
    kinds = [object] if is_client else _kinds(magic)
    return paths + [
        (name, "instance")
        for name, value in list(shell.user_ns.items())
        # What IPython hides, and what begins with _, is offered to whoever has begun to type it.
        if type(name) is str and (fragment or not (name.startswith("_") or name in shell.user_ns_hidden))
        # By its type: an object may run code when it is asked for its class.
        if any(type.__subclasscheck__(kind, type(value)) for kind in kinds)
        or (magic in ("tonumpy", "tensorstats", "tensordiff") and _stands_for_a_tensor(value))
    ]


def _paths(fragment: str) -> list[tuple[str, str]]:
    """Return the folders and the files of weights whose path begins so; none where nothing was typed."""
    folder, name = os.path.split(fragment)
    try:
        found = sorted(os.scandir(os.path.expanduser(folder) or "."), key=lambda entry: entry.name) if fragment else []
    except OSError:
        return []
    fitting = [entry for entry in found if entry.name.startswith(name) and (name or not entry.name.startswith("."))]
    joined = [(os.path.join(folder, entry.name), entry) for entry in fitting if " " not in entry.name]
    return [(path + "/", "path") for path, entry in joined if entry.is_dir()] + [
        (path, "path") for path, entry in joined if entry.name.endswith(weight_suffixes())
    ]


def _stands_for_a_tensor(value: object) -> bool:
    """Return whether `value` is of a class that stands for a tensor; nothing does where torch was not imported."""
    if "torch" not in sys.modules:
        return False
    from tensornp.core.tensor.stand_ins import stand_in_of

    return stand_in_of(value) is not None


def _kinds(magic: str) -> list[type]:
    """Return the classes of what an expression after `magic` may begin with, as far as they have been imported."""
    places = (path.rpartition(".") for path in _FITTING[magic])
    found = (getattr(sys.modules.get(module), name, None) for module, _, name in places)
    return [kind for kind in found if isinstance(kind, type)]


_WATCHABLE = ("torch.Tensor", "numpy.ndarray", "torch.nn.Module")
_OPTIMIZER = "torch.optim.Optimizer"
_TREES = ("torch.nn.Module", "types.ModuleType", "builtins.dict", "builtins.list", "builtins.tuple")
_FITTING = {
    "tonumpy": ("torch.Tensor", *_TREES, "collections.abc.Mapping", "collections.deque"),
    "totensor": ("numpy.ndarray",),
    "tensors": _WATCHABLE,
    "tensorwatch": _WATCHABLE,
    "tensorstats": ("torch.Tensor", "numpy.ndarray", *_TREES),
    "tensordiff": ("torch.Tensor", "numpy.ndarray", _OPTIMIZER, *_TREES),
    "weights": ("torch.nn.Module", _OPTIMIZER, "builtins.dict"),
    "follow": ("torch.nn.Module",),
    "tensornp": (),
}
"""What the names that a magic takes stand for."""
