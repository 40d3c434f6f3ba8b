"""TAB after the magics: options, variables and paths; attributes are left to IPython."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from tensornp.fronts.ipython import magics, memory_magics, value_magics
from tensornp.fronts.ipython.arguments import flags_of

OPTIONS = magics.OPTIONS | memory_magics.OPTIONS | value_magics.OPTIONS
# A text, which is compiled when it is first used: not to load the extension.
_LINE = rf"(?s)^[^#]*%{{1,2}}({'|'.join(OPTIONS)})\b(.*)$"
_DTYPES = (
    "float16 float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool "
    "bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
).split()


def make_matcher(shell: Any) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """Return a matcher that IPython asks before its own."""

    @context_matcher(identifier="tensornp", priority=200)
    def match(context: CompletionContext) -> SimpleMatcherResult:
        found = re.match(_LINE, context.line_with_cursor[: context.cursor_position])
        before, _, fragment = found[2].rpartition(" ") if found is not None else ("", "", "")
        words = before.split()
        if found is None:
            texts: list[str] = []
        elif words and words[-1] in ("-d", "--dtype"):
            texts = _DTYPES
        elif fragment.startswith("-"):
            texts = list(flags_of(OPTIONS[found[1]]))
        else:
            names = [name for name in shell.user_ns if type(name) is str and name not in shell.user_ns_hidden]
            texts = names + (_paths(fragment) if found[1] in ("weights", "tensordiff") else [])
        completions = [SimpleCompletion(text=text, type="param") for text in texts if text.startswith(fragment)]
        if not completions:
            return {"completions": []}
        return {"completions": completions, "suppress": True, "matched_fragment": fragment}

    matcher: Callable[[CompletionContext], SimpleMatcherResult] = match
    return matcher


def _paths(fragment: str) -> list[str]:
    """Return the files and folders that begin with the fragment; none before anything is typed."""
    found = glob.glob(glob.escape(fragment) + "*") if fragment else []
    return [path + "/" * os.path.isdir(path) for path in sorted(found)]
