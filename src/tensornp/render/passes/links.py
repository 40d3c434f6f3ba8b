"""The names of calls in the sentences of a card, marked so that a live tree can make them links to its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from tensornp.passes.records import ModuleCall
from tensornp.render.layout.table import Drawn

_FIRST = re.compile(r"[^\s,;:()]+")


class Links:
    """The calls of a pass, by the names that sentences have of them."""

    def __init__(self, calls: Sequence[ModuleCall]) -> None:
        self._calls = calls
        self._first: dict[str, int] = {}
        for call in calls:
            self._first.setdefault(call.title, call.index)

    def within(self, sentence: str, call: int | None = None, name: str = "") -> str:
        """Return a sentence in which a name is marked: of `call`, or `name` for it, else of a call that it begins with.

        Of a parameter, that is the call of its module.
        """
        if call is not None:
            names = filter(None, (self._calls[call].title, name))
            found = (re.search(rf"(?<![\w.]){re.escape(one)}(?![\w.]*\w)", sentence) for one in names)
            place = next(filter(None, found), None)
            return _marked(sentence, *place.span(), call) if place else sentence
        own = _FIRST.match(sentence)
        name = own[0] if own else ""
        # The last key of a parameter is that of no module.
        index = self._first.get(name, self._first.get(name.rpartition(".")[0]) if "." in name else None)
        return sentence if index is None or own is None else _marked(sentence, *own.span(), index)


def _marked(sentence: str, first: int, last: int, call: int) -> Drawn:
    before, name, after = (escape(part) for part in (sentence[:first], sentence[first:last], sentence[last:]))
    return Drawn(sentence, f'{before}<span class="tensornp-to-{call}">{name}</span>{after}')
