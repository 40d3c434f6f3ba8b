"""TAB after the magics: their options; everything else is left to IPython."""

from __future__ import annotations

import re
from collections.abc import Callable

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from tensornp.fronts.ipython import magics, memory_magics, pass_magics, value_magics, weight_magics

OPTIONS = {
    **magics.OPTIONS,
    **memory_magics.OPTIONS,
    **value_magics.OPTIONS,
    **weight_magics.OPTIONS,
    **pass_magics.OPTIONS,
}
# A text, which is compiled when it is first used: not to load the extension.
_LINE = rf"(?s)^[^#]*%{{1,2}}({'|'.join(OPTIONS)})\b(.*)$"
_DTYPES = (
    "float16 float32 float64 complex64 complex128 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool "
    "bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
).split()


def make_matcher() -> Callable[[CompletionContext], SimpleMatcherResult]:
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
        else:
            texts = [flag for option in OPTIONS[found[1]] for flag in option.flags] if fragment[:1] == "-" else []
        completions = [SimpleCompletion(text=text, type="param") for text in texts if text.startswith(fragment)]
        if not completions:
            return {"completions": []}
        return {"completions": completions, "suppress": True, "matched_fragment": fragment}

    matcher: Callable[[CompletionContext], SimpleMatcherResult] = match
    return matcher
