"""What the results show where nobody has registered a printer: their static card, as text and as HTML."""

from __future__ import annotations

from typing import Any

from tensornp.core.lowlevel.shown_in_marimo import mime_of
from tensornp.core.lowlevel.spelled import spelled


class Shown:
    """A result that is a card of its own; the renderers are above it."""

    __slots__ = ()
    _mime_ = mime_of

    def _card(self) -> Any:
        import tensornp

        return tensornp.card(self)

    @spelled
    def __str__(self) -> str:
        return str(self._card().text)

    def _repr_html_(self) -> str:
        return str(self._card().html)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        card = self._card()
        return {"text/plain": str(card), "text/html": card.html}
