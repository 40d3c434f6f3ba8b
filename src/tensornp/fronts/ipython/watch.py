"""`%tensorwatch`: after each cell, what that cell has changed. It keeps no tensor alive."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from IPython.display import display

if TYPE_CHECKING:
    from tensornp.core.values.differences import Sighting
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.session.watched import Look

MAX_LINES = 20
MAX_NAMED = 3
"""Names that are given of what was left out."""


class _State(NamedTuple):
    """What is watched, as it was when it was last looked at; replaced as a whole, so that an interrupt leaves it so.

    Attributes
    ----------
    sightings : dict
        By expression and name.
    partial : frozenset of str
        Expressions that hold more than is watched.
    left_out : str
        What was not read, as it was last told.
    """

    sightings: dict[str, dict[str, Sighting]]
    partial: frozenset[str]
    left_out: str


class Watch:
    """What one shell watches; while that is nothing, no callback is registered."""

    def __init__(self, shell: Any, config: TensorDisplay) -> None:
        self._shell = shell
        self._config = config
        self._state = _State({}, frozenset(), "")
        # The first cell of which no report was made.
        self._untold = ""

    @property
    def names(self) -> list[str]:
        """The expressions that are watched."""
        return list(self._state.sightings)

    @property
    def left_out(self) -> str:
        """What is not read of all that is watched, and why; empty if nothing is left out."""
        return self._state.left_out

    def add(self, expressions: list[str]) -> int:
        """Watch what the expressions name from now on; returns how many tensors and arrays that is.

        Raises
        ------
        BadRequestError
            If one is no name of a tensor, an array, a module or a container of them.
        """
        from tensornp.core.lowlevel.modes import undisturbed

        with undisturbed():
            look = self._look()
            for expression in dict.fromkeys([*self.names, *expressions]):
                if expression in expressions:
                    look.begin(expression)
                else:
                    look.keep(expression, self._state.sightings[expression], is_partial=self.is_partial([expression]))
        self._set(self._state_of(look))
        return sum(len(self._state.sightings[expression]) for expression in expressions)

    def is_partial(self, expressions: list[str]) -> bool:
        """Return whether one of these holds more tensors than are watched."""
        return not self._state.partial.isdisjoint(expressions)

    def remove(self, expressions: list[str]) -> list[str]:
        """Watch these no longer, or nothing at all if none is named; returns what was watched and is no longer."""
        gone = [name for name in (expressions or self.names) if name in self._state.sightings]
        kept = {name: found for name, found in self._state.sightings.items() if name not in gone}
        self._set(self._state._replace(sightings=kept))
        return gone

    def _look(self) -> Look:
        from tensornp.session.watched import Look

        return Look(self._shell.user_ns, self._config.max_watch_nbytes, self._config.max_watch_read_nbytes)

    def _state_of(self, look: Look) -> _State:
        left_out = _left_out_text(look, self._config.max_watch_read_nbytes)
        return _State(look.sightings, frozenset(look.partial), left_out)

    def _set(self, state: _State) -> None:
        """Remember `state`, and be called after a cell exactly while something is watched."""
        self._state = state
        events = self._shell.events
        is_called = self._after_cell in events.callbacks["post_run_cell"]
        if state.sightings and not is_called:
            events.register("post_run_cell", self._after_cell)
        elif is_called and not state.sightings:
            events.unregister("post_run_cell", self._after_cell)

    def _after_cell(self, result: Any) -> None:
        """Report what the cell that has just ended has changed; a callback that raised would spoil the cell."""
        from tensornp.core.lowlevel.attributes import error_text

        # Only a cell that is not stored has no number, and the shell still stands at the last one then.
        cell = f"In[{result.execution_count or self._shell.displayhook.prompt_count}]"
        try:
            self._report(cell)
        except KeyboardInterrupt:
            # It is looked at anew after the next cell, against what was there before this one.
            self._untold = self._untold or cell
            print(f"%tensorwatch was interrupted; the next report tells of {cell} too")
        except Exception as error:
            _show(f"{cell}: the watch failed", [f"{error_text(error)}; %tensorwatch --off ends it"])

    def _report(self, cell: str) -> None:
        """Show a line for each change, and for what was left out of the look where that has not been told yet."""
        from tensornp.core.lowlevel.modes import undisturbed

        with undisturbed():
            look = self._look()
            lines = [
                line
                for expression, before in self._state.sightings.items()
                for line in look.report(expression, before, was_partial=self.is_partial([expression]))
            ]
        state = self._state_of(look)
        heading = f"{self._untold} to {cell}" if self._untold else cell
        if state.left_out and (lines or state.left_out != self._state.left_out):
            heading += " changed" if lines else ": not all was compared"
            _show(heading, lines, state.left_out)
        elif lines:
            _show(f"{heading} changed", lines)
        self._set(state)
        self._untold = ""


def _left_out_text(look: Look, max_read_nbytes: int) -> str:
    from tensornp.render.badges import format_nbytes

    words = {"sampled": "only a sample was read of", "unread": "not read:", "pending": "waiting for a collective:"}
    texts = [f"{words[reason]} {_listed(list(names))}" for reason, names in look.left_out.items() if names]
    if look.left_out["sampled"] or look.left_out["unread"]:
        texts.append(f"%config TensorDisplay.max_watch_read_nbytes is {format_nbytes(max_read_nbytes)}")
    return "; ".join(texts)


def _listed(names: list[str]) -> str:
    left = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {left:,} more" if left > 0 else "")


def _show(heading: str, lines: list[str], left_out: str = "") -> None:
    num_more = len(lines) - MAX_LINES
    lines = lines[:MAX_LINES] + ([f"… and {num_more:,} more"] if num_more > 0 else [])
    lines += [left_out] if left_out else []
    html = "".join(f"<div>{escape(line)}</div>" for line in lines)
    display(
        {
            "text/plain": "\n  ".join([f"{heading}:", *lines]),
            "text/html": '<div class="tensornp" style="font-size:90%;line-height:1.6;padding:2px 0">'
            f"<b>{escape(heading)}</b>{html}</div>",
        },
        raw=True,
    )
