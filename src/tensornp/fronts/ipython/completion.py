"""TAB after the magics: options and variables; attributes and paths are left to IPython."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher

from tensornp.fronts.ipython import magics, memory_magics, value_magics
from tensornp.fronts.ipython.arguments import flags_of

OPTIONS = magics.OPTIONS | memory_magics.OPTIONS | value_magics.OPTIONS
# A text, which is compiled when it is first used: not to load the extension.
_LINE = rf"(?s)^[^#]*%{{1,2}}({'|'.join(OPTIONS)})\b.* (\S*)$"


def make_matcher(shell: Any) -> Callable[[CompletionContext], SimpleMatcherResult]:
    """Return a matcher that IPython asks before its own."""

    @context_matcher(identifier="tensornp", priority=200)
    def match(context: CompletionContext) -> SimpleMatcherResult:
        found = re.match(_LINE, context.line_with_cursor[: context.cursor_position])
        if found is None:
            return {"completions": []}
        magic, fragment = found.groups()
        is_option = fragment.startswith("-")
        texts = flags_of(OPTIONS[magic]) if is_option else shell.user_ns.keys() - shell.user_ns_hidden.keys()
        fitting = sorted(text for text in texts if type(text) is str and text.startswith(fragment))
        completions = [SimpleCompletion(text=text, type="param") for text in fitting]
        is_alone = bool(completions) and (is_option or magic not in ("weights", "tensordiff"))
        return {"completions": completions, "suppress": is_alone, "matched_fragment": fragment}

    matcher: Callable[[CompletionContext], SimpleMatcherResult] = match
    return matcher
