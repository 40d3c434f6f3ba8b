"""What the results show where nobody has registered a printer: their static card, as text and as HTML."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from tensornp.core.lowlevel.own_display import mime_of


class Shown:
    """A result that is a card of its own; the renderers are above it."""

    _mime_ = mime_of

    @cached_property
    def _card(self) -> Any:
        import tensornp

        return tensornp.card(self)

    def __str__(self) -> str:
        return str(self._card.text)

    def _repr_html_(self) -> str:
        return str(self._card.html)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}
