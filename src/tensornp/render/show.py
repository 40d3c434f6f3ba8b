"""Show objects as text and as static HTML; nothing raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tensornp.core.lowlevel.attributes import refused
from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.core.lowlevel.torch_private import holds_states, is_module
from tensornp.core.lowlevel.uncompiled import never_compiled
from tensornp.core.summary.card import Look, TensorSummary
from tensornp.core.summary.container import Unshown, is_long, summary_of
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.tensor.containers import is_container
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.errors import BadRequestError, NotATensorError
from tensornp.render.layout.document import Document, bundle, displayed, page_of
from tensornp.render.renderers import renderer_of
from tensornp.render.tensor.card import tensor_html, tensor_text

_SUMMARIES = {
    "TensorStats": "tensornp.core.summary.stats:summary_of_figures",
    "Comparison": "tensornp.core.summary.stats:summary_of_comparison",
    "WeightEntry": "tensornp.models.module_view:summarize_entry",
}
"""Records that are summarized first, with the display options."""
_WITH_OPTIONS = (":array_document", ":entry_document")


def shown_of(
    obj: Any,
    options: DisplayOptions,
    look: Look | None = None,
    expression: str = "",
    names: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Return the summary of `obj`, or a record itself; None without a card.

    `expression` reaches a module or a container, and `names` may have the model of an optimizer.
    """
    name = type(obj).__name__

    def made() -> Any:
        if renderer_of(obj) is not None:
            path = _SUMMARIES.get(name)
            return obj if path is None else _named(path)(obj, options)
        if is_tensor_like(obj) or not (is_module(obj) or holds_states(obj) or is_long(obj)):
            return summary_of(obj, options, look)
        from tensornp.models.module_view import module_view

        return module_view(obj, options, expression, names)

    def metadata(reason: str) -> Any:
        is_one = is_tensor_like(obj)
        return TensorSummary(name, options.mode, inspect(obj), None, reason, None) if is_one else Unshown(name, reason)

    return first_that_works(f"the card of a {name}", made, metadata, lambda reason: Unshown(name, reason))


def summary_text(summary: Any, max_height: int = 0) -> str:
    """Return a card or a table as plain text, with so many lines of an array, or all for 0."""
    what = _name_of(summary)

    def text() -> str:
        return tensor_text(summary, max_height) if isinstance(summary, TensorSummary) else _document(summary).text()

    return first_that_works(f"the text of {what}", text, lambda reason: f"{what} (not shown: {reason})")


def summary_bundle(summary: Any, options: DisplayOptions, *, max_height: int = 0, anchor: str = "") -> dict[str, str]:
    """Return text and static HTML of a card or a table; `anchor` is a class for its live part."""
    if not isinstance(summary, TensorSummary):
        return displayed(_name_of(summary), lambda: _document(summary, options), anchor)
    html = partial(tensor_html, summary, options, anchor=anchor)
    return bundle(summary.type_name, lambda: tensor_text(summary, max_height), html)


def _name_of(summary: Any) -> str:
    return getattr(summary, "type_name", "") or type(summary).__name__


def _document(summary: Any, options: DisplayOptions | None = None) -> Document:
    path = renderer_of(summary)
    assert path is not None
    arguments = (options or DisplayOptions(),) if path.endswith(_WITH_OPTIONS) else ()
    document: Document = _named(path)(summary, *arguments)
    return document


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True, slots=True)
class Card:
    """A card, made once: later writes to the tensor do not change it, and it keeps no tensor alive.

    Attributes
    ----------
    text, html : str
        The card in each form; the HTML has inline styles alone, and needs no script.
    """

    text: str
    html: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.html

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return self._static_bundle()

    def _mime_(self) -> tuple[str, str]:
        return "text/html", self.html

    def save(self, path: str | PathLike[str]) -> None:
        """Write the card to a file in UTF-8: a page that stands alone, or by the ending ``.txt`` its text.

        Raises
        ------
        BadRequestError
            If the name ends in anything but ``.html``, ``.htm`` or ``.txt``.
        OSError
            If the file cannot be written.
        """
        ending = Path(path).suffix.lower()
        if ending not in {".html", ".htm", ".txt"}:
            raise BadRequestError(f"a card is saved as .html, .htm or .txt, not {Path(path).name!r}")
        said = f"{self.text}\n" if ending == ".txt" else page_of(self.html)
        Path(path).write_text(said, encoding="utf-8", errors="backslashreplace")

    def _static_bundle(self) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self.html}


@never_compiled
def card(obj: Any, **options: Any) -> Card:
    """Return the static card of a tensor, an array, a record, a module or a container.

    The card displays in any front end, prints as text, and saves itself with ``.save(path)``. Other names of the memory
    and changes since the last card are shown by the extension only.

    Parameters
    ----------
    obj : torch.Tensor, an object that stands for one, numpy.ndarray, torch.nn.Module, or a container
        Or what a function of tensornp returns: weights, statistics, a comparison, a plan, a followed pass, an image.
    **options
        Display options by name, as ``%config TensorDisplay`` has them: ``card(t, max_height=0, precision=3)``.

    Raises
    ------
    NotATensorError
        If `obj` has no card.
    BadRequestError
        If there is no such option, or it cannot have that value.

    Notes
    -----
    Reads the printed elements only, on the tensor's own device, and changes nothing.
    """
    chosen = DisplayOptions.of(**options)
    if _shows_itself(type(obj)):
        static = obj._static_bundle()
        return Card(static["text/plain"], static["text/html"])
    summary = shown_of(obj, chosen)
    if summary is None and is_container(obj):
        name = type(obj).__name__
        raise NotATensorError(
            f"a {name} may load or compute what it gives, and is not asked; pass a dict of its values"
        )
    if summary is None:
        raise NotATensorError(
            f"card takes a tensor, an array, a module, a container of tensors, or what a function of tensornp returns, "
            f"not {refused(obj, of_model='pass tnp.weights(...) of it')}"
        )
    static = summary_bundle(summary, chosen)
    return Card(static["text/plain"], static["text/html"])


def _shows_itself(cls: type) -> bool:
    ours = (one for one in cls.__mro__ if one.__module__.partition(".")[0] == "tensornp")
    return any("_static_bundle" in vars(one) for one in ours)
