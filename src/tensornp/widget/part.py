"""Live parts: widgets that dock into a static output and answer numbered requests of the page.

A page sends ``{"type": ..., "page": ..., "number": ...}``, and the answer has the same page and number. Text for the
user comes as plain text; what comes as ``html`` is escaped here, and the page places it.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import anywidget
import ipywidgets
import traitlets
from IPython import get_ipython

from tensornp.core.lowlevel.attributes import error_text
from tensornp.errors import TensornpError
from tensornp.widget.page import Answer, Handler, Request, runs_without_page

if TYPE_CHECKING:
    from tensornp.widget.values import Values

STATIC = Path(__file__).parent / "static"
"""ES modules and style sheets: what all share in ``page``, and a folder for each widget."""
_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]*\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |class |const )", re.MULTILINE)


def module(name: str) -> str:
    """Return the source of a widget's ES module after those that it imports, each once.

    anywidget hands a module to the page as a blob, and no relative address leads from there to another file. So
    `import` and `export` are taken out. eslint checks the names.
    """
    texts: dict[Path, str] = {}
    _collect((STATIC / name / f"{name}.js").resolve(), texts)
    return "".join(texts.values())


def _collect(path: Path, texts: dict[Path, str]) -> None:
    if path in texts:
        return
    source = path.read_text(encoding="utf-8")
    for relative in _IMPORT.findall(source):
        _collect((path.parent / relative).resolve(), texts)
    texts[path] = _EXPORT.sub("", _IMPORT.sub("", source))


def stylesheet(*names: str) -> str:
    """Return the style sheets of widgets, and the one that all share."""
    paths = STATIC / "page" / "controls.css", *(STATIC / name / f"{name}.css" for name in names)
    return "".join(path.read_text(encoding="utf-8") for path in paths)


class LivePart(anywidget.AnyWidget):
    """A widget that docks into the static output of class `anchor`; without one it stands alone.

    `handlers` answer requests by type, one at a time. A thread answers those of the types `slow`, and only the latest
    of a page.
    """

    anchor = traitlets.Unicode().tag(sync=True)

    def __init__(self, handlers: Mapping[str, Handler], slow: tuple[str, ...] = (), **traits: Any) -> None:
        self.on_docked: Callable[[], None] = lambda: None
        of_values = dict.fromkeys(("move", "overview", "bind window"), self._answer_values)
        self._handlers: dict[str, Handler] = {"docks": self._docks, **handlers, **of_values}
        self._slow = {*slow, "overview"}
        self._latest: dict[Hashable, Request] = {}
        # A request may come in a subshell of the kernel while a cell runs.
        self._lock, self._slow_lock = threading.RLock(), threading.Lock()
        super().__init__(layout=_shared_layout(), **traits)
        self.on_msg(self._receive)
        _living.add(self)

    @cached_property
    def _values(self) -> Values:
        """The window on values, for which torch is imported: the weights of a file are listed without it."""
        from tensornp.widget.values import Values

        return Values(self.is_latest)

    def _answer_values(self, request: Request) -> Any:
        values = self._values
        return {"move": values.move, "overview": values.draw, "bind window": values.bind}[request["type"]](request)

    def open(self) -> None:
        """Open the comm, if there is a page."""
        if not runs_without_page(get_ipython()):
            super().open()
            self._let_page_choose()

    def close(self) -> None:
        """Take it out of the page, and stop slow handlers."""
        self._latest.clear()
        super().close()

    def view_bundle(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the view by MIME type, and the metadata that Colab needs."""
        shown = anywidget.AnyWidget._repr_mimebundle_(self)
        return shown if isinstance(shown, tuple) else (shown or {}, {})

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take no state from the page, which sends requests only."""

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
        """Handle a message of the comm, which has no buffers in marimo."""
        super()._handle_msg({"buffers": [], **msg})

    def _docks(self, _: Request) -> Answer:
        self.on_docked()
        return {}

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        if not isinstance(content, dict):
            return
        kind, page, number = (content.get(key) for key in ("type", "page", "number"))
        if not isinstance(kind, str) or kind not in self._handlers or not isinstance(page, str):
            return
        if type(number) is not int:
            return
        if kind not in self._slow:
            with self._lock:
                self._answer(kind, content)
            return
        self._latest[_queue_of(content)] = content
        # A kernel that ends does not wait for a daemon.
        threading.Thread(target=self._answer_slowly, args=(kind, content), name="tensornp part", daemon=True).start()

    def _answer_slowly(self, kind: str, request: Request) -> None:
        with self._slow_lock:
            if self.is_latest(request):
                self._answer(kind, request)

    def is_latest(self, request: Request) -> bool:
        """Return whether the page still waits for a slow answer."""
        return self._latest.get(_queue_of(request)) is request

    def _answer(self, kind: str, request: Request) -> None:
        sent: list[bytes] = []
        try:
            with _outside_modes():
                answered = self._handlers[kind](request)
            answer, sent = answered if isinstance(answered, tuple) else (answered, [])
        except Exception as error:
            text = str(error) if isinstance(error, TensornpError) else error_text(error)
            answer = {"type": "error", "text": text, "canOverwrite": getattr(error, "can_overwrite", False)}
        self.send({**answer, "page": request["page"], "number": request["number"]}, sent)


def _outside_modes() -> AbstractContextManager[None]:
    if "torch" not in sys.modules:
        return nullcontext()
    from tensornp.core.lowlevel.modes import outside_modes

    return outside_modes()


def _queue_of(request: Request) -> Hashable:
    return request["type"], request["page"], str(request.get("name", ""))


class _Layout(ipywidgets.Layout):
    """A layout that has a comm if the widgets have one."""

    def open(self) -> None:
        if not runs_without_page(get_ipython()):
            super().open()


_living: WeakSet[LivePart] = WeakSet()
_layouts: list[_Layout] = []


def _shared_layout() -> _Layout:
    """Return one empty layout for all widgets, as each layout has its own comm.

    It stays open, because JupyterLab 4.6 closes its subshell of comms with the last comm and loses messages then.
    """
    if not _layouts:
        _layouts.append(_Layout())
    _layouts[0].open()
    return _layouts[0]


def look_again() -> None:
    """Make pages request their values again, as a cell may have changed them."""
    for part in list(_living):
        if "_values" in vars(part) and part._values.is_shown and part.comm is not None:
            part.send({"type": "again"})


def close_all() -> None:
    for part in list(_living):
        part.close()
    while _layouts:
        _layouts.pop().close()
