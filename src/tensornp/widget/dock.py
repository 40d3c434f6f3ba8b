"""The kernel's side of a live part that docks into a static card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakSet

import anywidget
import ipywidgets
import traitlets
from IPython import get_ipython

from tensornp.widget.es_modules import joined
from tensornp.widget.page import runs_without_page

STATIC = Path(__file__).parent / "static"
"""ES modules and style sheets: what all share in ``page``, and a folder for each widget."""


def module(name: str) -> str:
    """Return the source of a widget's ES module, with those that it imports."""
    return joined(STATIC / name / f"{name}.js")


def stylesheet(*names: str) -> str:
    """Return the source of the style sheets of widgets, with that of the controls that several have."""
    paths = STATIC / "page" / "controls.css", *(STATIC / name / f"{name}.css" for name in names)
    return "".join(path.read_text(encoding="utf-8") for path in paths)


class DockingWidget(anywidget.AnyWidget):
    """A widget that docks into the static card of class `anchor`, if not empty.

    One widget lives as long as the extension and moves from card to card. JupyterLab 4.6 closes its subshell of comms
    with the last comm, and loses messages that the page sends at that moment.
    """

    anchor = traitlets.Unicode().tag(sync=True)
    parting = traitlets.Unicode(help="what is said in the card that it leaves").tag(sync=True)
    answers = traitlets.Int(0, help="counts what the kernel has answered").tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        self.on_docked: Callable[[], None] = lambda: None
        super().__init__(layout=_shared_layout(), **traits)
        self.on_msg(self._receive)
        _living.add(self)

    def __del__(self) -> None:
        # One that was interrupted while it was made has nothing to close, and not all that closing asks for.
        if self.comm is not None:
            super().__del__()

    def open(self) -> None:
        """Open the comm, which also answers while a cell runs, if there is a page."""
        if not runs_without_page(get_ipython()):
            super().open()
            self._let_page_choose()

    def _send(self, msg: Any, buffers: Any = None) -> None:
        super()._send(msg, buffers)
        self._let_page_choose()

    def _let_page_choose(self) -> None:
        """Let the page choose the shell that answers while a cell runs.

        ipykernel 7.4 passes messages of a comm to the shell that last sent over it. For a widget made by a cell this is
        the main shell, which only answers after all cells have ended.
        """
        if self.comm is not None:
            getattr(self.comm, "__dict__", {}).pop("_reply_subshell_id", None)

    def _handle_msg(self, msg: Any) -> None:
        """Handle a message of the comm, and ignore nonsense."""
        try:
            data, buffers = msg["content"]["data"], msg.get("buffers")
            method, state, content = (data.get(name) for name in ("method", "state", "content"))
        except (AttributeError, KeyError, TypeError):
            return
        if method == "update":
            self.set_state(state)
        elif method == "request_state":
            self.send_state()
        elif method == "custom":
            self._handle_custom_msg(content, buffers)

    def view_bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the view by MIME type, and the metadata that Colab needs."""
        shown = anywidget.AnyWidget._repr_mimebundle_(self)
        return shown if isinstance(shown, tuple) else (shown or {}, {})

    def companions(self) -> tuple[DockingWidget, ...]:
        """Return new widgets that may dock here later.

        They are made now, as a front end may only make widgets that a cell has displayed.
        """
        return ()

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        """Handle a message of the page, which may be anything."""
        if isinstance(content, dict) and content.get("type") == "docks":
            self.on_docked()
            self._answer()

    def _answer(self) -> None:
        self.answers += 1


class _Layout(ipywidgets.Layout):
    """A layout that has a comm if the widgets have one."""

    def open(self) -> None:
        if not runs_without_page(get_ipython()):
            super().open()


_living: WeakSet[DockingWidget] = WeakSet()
_layouts: list[_Layout] = []


def _shared_layout() -> _Layout:
    """Return one empty layout for all widgets, as each layout has its own comm."""
    if not _layouts:
        _layouts.append(_Layout())
    _layouts[0].open()
    return _layouts[0]


def close_all() -> None:
    """Take every live part out of the page, with its comm."""
    for widget in list(_living):
        widget.close()
    while _layouts:
        _layouts.pop().close()
