"""What is watched, and after each cell what that cell has changed; no tensor is kept alive."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from tensornp.core.summary.report import Report, ReportLine
from tensornp.session.names import Session

if TYPE_CHECKING:
    from tensornp.core.memory.changes import Snapshot
    from tensornp.core.summary.options import DisplayOptions
    from tensornp.session.watch_pass import WatchPass

MAX_NAMED = 3
"""Names that are given of what was left out."""


class _State(NamedTuple):
    """What is watched, as it was when it was last looked at; replaced as a whole, so that an interrupt leaves it so.

    Attributes
    ----------
    snapshots : dict
        By expression and name.
    partial : frozenset of str
        Expressions that hold more than is watched.
    left_out : str
        What was not read, as it was last told.
    """

    snapshots: dict[str, dict[str, Snapshot]]
    partial: frozenset[str]
    left_out: str


class Watch:
    """What one session watches."""

    def __init__(self, session: Session, options: Callable[[], DisplayOptions]) -> None:
        self._session = session
        self._options = options
        self._state = self._next = _State({}, frozenset(), "")
        # The first cell of which no report was made.
        self._untold = ""

    @property
    def names(self) -> list[str]:
        """The expressions that are watched."""
        return list(self._state.snapshots)

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
                    look.keep(expression, self._state.snapshots[expression], is_partial=self.is_partial([expression]))
        self._state = self._state_of(look)
        return _num_objects(self._state.snapshots[expression] for expression in expressions)

    def is_partial(self, expressions: list[str]) -> bool:
        """Return whether one of these holds more tensors than are watched."""
        return not self._state.partial.isdisjoint(expressions)

    def remove(self, expressions: list[str]) -> list[str]:
        """Watch these no longer, or nothing at all if none is named; returns what was watched and is no longer."""
        gone = [name for name in (expressions or self.names) if name in self._state.snapshots]
        kept = {name: found for name, found in self._state.snapshots.items() if name not in gone}
        self._state = self._state._replace(snapshots=kept)
        return gone

    def _look(self) -> WatchPass:
        from tensornp.session.watch_pass import WatchPass

        options = self._options()
        return WatchPass(self._session.names, options.max_watch_nbytes, options.max_watch_read_nbytes)

    def _state_of(self, look: WatchPass) -> _State:
        left_out = _left_out_text(look, self._options().max_watch_read_nbytes)
        return _State(look.snapshots, frozenset(look.partial), left_out)

    def report(self, cell: str) -> Report | None:
        """Return what `cell` has changed, and what was left out where that has not been told; None for nothing.

        Call `told` once that is shown; until then, the next report tells of this cell too.
        """
        from tensornp.core.lowlevel.modes import undisturbed

        with undisturbed():
            look = self._look()
            lines = tuple(
                # What is gone from below two watched names is told once.
                dict.fromkeys(
                    line
                    for expression, before in self._state.snapshots.items()
                    for line in look.report(expression, before, was_partial=self.is_partial([expression]))
                )
            )
        self._next = state = self._state_of(look)
        heading = f"{self._untold} to {cell}" if self._untold not in ("", cell) else cell
        num_watched = _num_objects(self._state.snapshots.values())
        if state.left_out and (lines or state.left_out != self._state.left_out):
            heading += " changed" if lines else ": not all was compared"
            return Report(heading, lines, state.left_out, num_watched, self._unchanged(look, lines))
        unchanged = self._unchanged(look, lines)
        return Report(f"{heading} changed", lines, num_watched=num_watched, unchanged=unchanged) if lines else None

    def _unchanged(self, look: WatchPass, lines: Iterable[ReportLine]) -> tuple[str, ...]:
        """Return the first names of what was compared as a whole, and has no line by any of its names."""
        told = {line.name for line in lines}
        left_out = set().union(*look.left_out.values())
        names: dict[int, list[str]] = {}
        for expression, snapshots in self._state.snapshots.items():
            for name, snapshot in snapshots.items():
                if name in look.snapshots.get(expression, ()):
                    names.setdefault(snapshot.object_id, []).append(name)
        return tuple(some[0] for some in names.values() if told.isdisjoint(some) and left_out.isdisjoint(some))

    def told(self) -> None:
        """Compare with what there was at the last report from now on."""
        self._state, self._untold = self._next, ""

    def postpone(self, cell: str) -> None:
        """Have the next report tell of `cell` too, of which none was shown."""
        self._untold = self._untold or cell


def _num_objects(looks: Iterable[dict[str, Snapshot]]) -> int:
    """Return how many tensors and arrays these are, each once under whatever names."""
    return len({snapshot.object_id for snapshots in looks for snapshot in snapshots.values()})


def _left_out_text(look: WatchPass, max_read_nbytes: int) -> str:
    from tensornp.core.lowlevel.units import format_nbytes
    from tensornp.render.layout.words import listed

    words = {"sampled": "only a sample was read of", "unread": "not read:", "pending": "waiting for a collective:"}
    texts = [f"{words[reason]} {listed(list(names), MAX_NAMED)}" for reason, names in look.left_out.items() if names]
    if look.left_out["sampled"] or look.left_out["unread"]:
        texts.append(f"%config TensorDisplay.max_watch_read_nbytes is {format_nbytes(max_read_nbytes)}")
    return "; ".join(texts)
