"""`%tensorwatch`: after each cell, what that cell has changed. It keeps no tensor alive."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from IPython.display import display

from tensornp.errors import BadRequestError

if TYPE_CHECKING:
    from tensornp.core.watching import Sighting
    from tensornp.notebook.config import TensorDisplay

MAX_TENSORS = 2000
"""Tensors and arrays that one watched name may hold."""
MAX_LINES = 20
MAX_SECONDS = 1.0


class Watch:
    """What one shell watches; while that is nothing, no callback is registered."""

    def __init__(self, shell: Any, config: TensorDisplay) -> None:
        self._shell = shell
        self._config = config
        self._sightings: dict[str, dict[str, Sighting]] = {}
        self._partial: set[str] = set()

    @property
    def names(self) -> list[str]:
        """The expressions that are watched."""
        return list(self._sightings)

    def add(self, expressions: list[str]) -> int:
        """Watch what the expressions give from now on; returns how many tensors and arrays that is.

        Raises
        ------
        BadRequestError
            If one is no name of a tensor, an array, a module or a container of them.
        """
        import numpy as np

        found = {}
        for expression in expressions:
            found[expression] = self._objects(expression)
            if not found[expression]:
                raise BadRequestError(f"{expression} holds no tensor or array; name one that does")
            obj = found[expression].get(expression)
            if isinstance(obj, np.ndarray) and np.ndarray.dtype.__get__(obj).hasobject:
                # It holds addresses, which tell nothing of what lies there.
                raise BadRequestError(f"{expression} is an array of objects, which is not looked into; name its items")
        if not self._sightings:
            self._shell.events.register("post_run_cell", self._after_cell)
        for expression, objects in found.items():
            self._sightings[expression] = self._sight(objects)
        return sum(map(len, found.values()))

    def is_partial(self, expressions: list[str]) -> bool:
        """Return whether one of these holds more tensors than are watched."""
        return not self._partial.isdisjoint(expressions)

    def remove(self, expressions: list[str]) -> list[str]:
        """Watch these no longer, or nothing at all if none is named; returns what was watched and is no longer."""
        gone = [name for name in (expressions or self.names) if self._sightings.pop(name, None) is not None]
        if gone and not self._sightings:
            self._shell.events.unregister("post_run_cell", self._after_cell)
        return gone

    def _after_cell(self, *_: Any) -> None:
        """Report what the cell that has just ended has changed; a callback that raised would spoil the cell."""
        try:
            lines = [line for expression in self.names for line in self._report(expression)]
        except Exception as error:
            lines = [f"the watch failed ({type(error).__name__}: {error}); %tensorwatch --off ends it"]
        if lines:
            _show(f"In[{self._shell.displayhook.prompt_count}]", lines)

    def _report(self, expression: str) -> list[str]:
        """Return a line for each change below one watched name, and look at it anew."""
        from tensornp.core.watching import difference

        was_partial = expression in self._partial
        try:
            objects = self._objects(expression)
        except Exception:
            self.remove([expression])
            return [f"{expression}: it is gone, and is no longer watched"]
        before, lines = self._sightings[expression], []
        # A search that came less far than the last one has not found that anything is gone.
        is_partial = was_partial or expression in self._partial
        # Which of the tensors are new is asked before they are sighted again.
        after = self._sight(objects, before)
        for name, obj in objects.items():
            if name not in before:
                lines += [] if is_partial else [f"{name}: new"]
            elif not before[name].is_of(obj):
                lines.append(f"{name}: another object now, {_described(obj)}")
            else:
                text = difference(before[name], after[name]).text
                lines += [f"{name}: {text}"] if text else []
        gone = [name for name in before if name not in objects]
        if is_partial:
            after.update({name: before[name] for name in gone})
        else:
            lines += [f"{name}: gone" for name in gone]
        self._sightings[expression] = after
        return lines

    def _objects(self, expression: str) -> dict[str, Any]:
        """Return the tensors and arrays that an expression gives, by name: itself, or all that it holds."""
        import numpy as np
        import torch

        from tensornp.core.lookup import look_up
        from tensornp.core.paths import name_of
        from tensornp.core.search import Search
        from tensornp.core.torch_private import undisturbed

        value = look_up(expression, self._shell.user_ns)
        if isinstance(value, (torch.Tensor, np.ndarray)):
            return {expression: value}
        places: list[tuple[Any, Any]] = []
        keys: dict[int, Any] = {}
        search = Search({expression: value}, MAX_SECONDS)
        with undisturbed():
            for obj, kind, path in search:
                if kind == "parameter":
                    keys.setdefault(id(obj), path)
                if isinstance(obj, (torch.Tensor, np.ndarray)) and kind != "grad":
                    places.append((obj, path))
                if len(places) >= MAX_TENSORS:
                    break
        (self._partial.discard if search.is_complete else self._partial.add)(expression)
        found: dict[str, Any] = {}
        for obj, path in places:
            # Members of a set, and keys that are tensors, have one name for all of them.
            name = name_of(path, keys)
            found[name if name not in found else f"{name} ({len(found)})"] = obj
        return found

    def _sight(self, objects: dict[str, Any], before: dict[str, Sighting] | None = None) -> dict[str, Sighting]:
        """Return what the objects are now; the values of those that have changed are copied, while the budget lasts."""
        from tensornp.core.torch_private import undisturbed
        from tensornp.core.watching import sight

        sightings = {}
        left = self._config.max_watch_nbytes
        for name, obj in objects.items():
            last = before.get(name) if before is not None else None
            with undisturbed():
                sightings[name] = sight(obj, left, last if last is not None and last.is_of(obj) else None)
            left -= sightings[name].nbytes
        return sightings


def _described(obj: Any) -> str:
    import numpy as np

    from tensornp.core.arrays import extent_of_array
    from tensornp.core.dtypes import name_of
    from tensornp.core.info import inspect

    if isinstance(obj, np.ndarray):
        extent = extent_of_array(obj)
        return f"{extent.shape} {extent.meaning}"
    info = inspect(obj)
    return f"{info.shape} {name_of(info.dtype)}".replace("-1", "?")


def _show(cell: str, lines: list[str]) -> None:
    left_out = len(lines) - MAX_LINES
    lines = lines[:MAX_LINES] + ([f"… and {left_out:,} more"] if left_out > 0 else [])
    heading = f"{cell} changed"
    html = "".join(f"<div>{escape(line)}</div>" for line in lines)
    display(
        {
            "text/plain": "\n  ".join([f"{heading}:", *lines]),
            "text/html": f'<div class="tensornp" style="font-size:90%;line-height:1.6;padding:2px 0"><b>{heading}</b>'
            f"{html}</div>",
        },
        raw=True,
    )
