"""The live trees under `%weights`: one for each that was shown, which goes when its cell runs again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ipython.anchors import cell_id
from tensornp.fronts.ipython.live import IsolatedOutput, can_show_live

if TYPE_CHECKING:
    from tensornp.core.memory.weak_view import WeakView
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.models.entries.entry import WeightEntry
    from tensornp.models.entries.listed import Listed
    from tensornp.models.explorer import WeightsExplorer
    from tensornp.models.live.made import Recipe
    from tensornp.widget.weights import WeightsWidget


_KEPT_HERE = "kept by this tree alone; for code that reaches it, bind it to a name first, and run %weights on that"


class _Resident(NamedTuple):
    """A tree that stays with the table that it docks into, under the cell `cell_id`."""

    widget: WeightsWidget
    cell_id: str | None


class LiveWeights:
    """Makes tables of weights live; what lies in memory is found by its name when it is asked for, and held by none.

    What nobody else holds, since it was typed into the magic alone, is kept as long as its tree.
    """

    def __init__(self, shell: Any, config: TensorDisplay, bind: Callable[[str, Callable[[], Any], bool], None]) -> None:
        self._shell, self._config, self._bind = shell, config, bind
        self._residents: list[_Resident] = []
        self._kept: list[WeakView] = []

    def show(self, explorer: WeightsExplorer, anchor: str, opened: str) -> None:
        """Put a tree into the table of class `anchor`; `opened` is the expression of the explorer."""
        # The table is complete by itself.
        first_that_works("the live weights", lambda: self._show(explorer, anchor, opened), lambda _: None)

    def _show(self, explorer: WeightsExplorer, anchor: str, opened: str) -> None:
        if not explorer or not can_show_live(self._shell, self._config):
            return
        from tensornp.models.entries.listed import listed
        from tensornp.widget.weights import WeightsWidget

        output = IsolatedOutput(self._shell)
        views = self._views_of(explorer)
        self._kept = list(views.values())
        for view in self._kept:
            view.keep()
        widget = WeightsWidget(
            listed(explorer.values()), self.reach_of(explorer, opened, views), opened=opened, anchor=anchor,
            options=self._config.options, binder=self._bind, has_values=not output.is_needed,
        )  # fmt: skip
        self._residents.append(_Resident(widget, cell_id(self._shell)))
        output.show(widget)

    def settle(self) -> None:
        """Keep of the weights that were shown last only what nobody else has: called when the magic has let go of them.

        No code reaches those any more: what was typed would make others.
        """
        for view in self._kept:
            view.share()
        if any(view.is_kept for view in self._kept):
            self._residents[-1].widget.opened = ""
        self._kept = []

    def reach_of(
        self, explorer: WeightsExplorer, opened: str = "", views: dict[str, WeakView] | None = None
    ) -> Callable[[Listed], WeightEntry]:
        """Return what gives a weight of `explorer` by what is listed of it, and holds nothing that lies in memory.

        A variable `opened` that holds the explorer gives what its expression reaches no more.
        """
        from tensornp.errors import NoDataError
        from tensornp.models.live.accelerate import is_in_memory
        from tensornp.models.live.made import MadeSource

        every = list(explorer.values())
        recipes = {entry.name: entry.source.recipe for entry in every if isinstance(entry.source, MadeSource)}
        # These hold nothing.
        stored = {entry.name: entry for entry in every if entry.tensor is None and entry.name not in recipes}
        shelved = {entry.name for entry in every if is_in_memory(entry)}
        views = self._views_of(explorer) if views is None else views

        def reach(one: Listed) -> WeightEntry:
            if one.name in stored:
                return stored[one.name]
            if one.name in recipes:
                return self._made(one, recipes[one.name])
            try:
                return self._live(one, views.get(one.name), is_shelved=one.name in shelved)
            except NoDataError:
                if (held := self._held_in(opened, one)) is None:
                    raise
                return held

        return reach

    def _held_in(self, name: str, one: Listed) -> WeightEntry | None:
        """Return the weight that the explorer in a variable holds; None where there is none of that code."""
        from tensornp.models.explorer import WeightsExplorer

        explorer = self._shell.user_ns.get(name)
        found = explorer[one.name] if isinstance(explorer, WeightsExplorer) and one.name in explorer else None
        return found if found is not None and found.code == one.code else None

    def _views_of(self, explorer: WeightsExplorer) -> dict[str, WeakView]:
        """Return what gives the weights of an expression that is not looked up, since it calls something."""
        from tensornp.core.memory.weak_view import WeakView
        from tensornp.errors import NoDataError
        from tensornp.models.entries.tensor import TensorSource

        live = [entry for entry in explorer.values() if isinstance(entry.source, TensorSource)]
        try:
            if live:
                self._reached(live[0].code)
            return {}
        except NoDataError:
            return {entry.name: WeakView(entry.tensor) for entry in live}

    def _made(self, one: Listed, recipe: Recipe) -> WeightEntry:
        """Return a weight that the module makes which is reached now."""
        from tensornp.errors import NoDataError

        found = recipe.of(self._reached(recipe.holder))
        if found is None:
            raise NoDataError(f"{one.code or one.name} reaches no weight any more; run %weights again")
        return self._checked(found.with_(name=one.name), one)

    def _live(self, one: Listed, view: WeakView | None, *, is_shelved: bool) -> WeightEntry:
        """Return a weight that its expression reaches now, or whose memory is there still."""
        from tensornp.core.lowlevel.attributes import is_array
        from tensornp.errors import NoDataError
        from tensornp.models.entries.array import array_weight
        from tensornp.models.entries.entry import noted
        from tensornp.models.entries.tensor import weight_of
        from tensornp.models.live.accelerate import in_memory

        tensor = view.tensor() if view is not None else self._reached(one.code)
        if tensor is None:
            is_none = "is None by now; run %weights again"
            is_gone = "is kept by nobody; bind it to a name first, and run %weights on that"
            raise NoDataError(f"{one.code or one.name} {is_none if view is None else is_gone}")
        if is_shelved:
            return self._checked(in_memory(one.name, one.kind, tensor, one.code, one.requires_grad), one)
        if is_array(tensor):
            return self._checked(array_weight(one.name, tensor, one.code), one)
        told = one.requires_grad if view is not None else None
        found = self._checked(weight_of(one.name, one.kind, tensor, one.code, told), one)
        if view is not None and view.is_kept:
            return noted(found.with_(code=""), _KEPT_HERE, first=False)
        return found

    def _reached(self, expression: str) -> Any:
        from tensornp.core.namespace.lookup import look_up
        from tensornp.errors import BadRequestError, NoDataError

        try:
            return look_up(expression, self._shell.user_ns)
        except BadRequestError:
            raise NoDataError(f"{expression} reaches no weight any more; run %weights again") from None

    def _checked(self, found: WeightEntry, one: Listed) -> WeightEntry:
        from tensornp.errors import NoDataError

        if (found.shape, found.dtype) != (one.shape, one.dtype):
            changed = f"{one.code or one.name} is {found.dtype} of shape {found.shape} by now"
            raise NoDataError(f"{changed}; run %weights again")
        return found.with_(tied_to=one.tied_to, related=one.related)

    def before_cell(self, *_: Any) -> None:
        """Close what the cell, which runs again, has left on the page."""
        own = cell_id(self._shell)
        for resident in list(self._residents):
            if own is not None and resident.cell_id == own:
                self._residents.remove(resident)
                resident.widget.close()

    def close(self) -> None:
        """Take all out of the page."""
        while self._residents:
            self._residents.pop().widget.close()
