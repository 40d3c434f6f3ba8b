"""Serve the table of a comparison of two models, whose rows open the navigator on both sides and Δ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from tensornp.core.lowlevel.attributes import is_tensor
from tensornp.core.lowlevel.modes import outside_modes
from tensornp.core.lowlevel.text import legible
from tensornp.core.values.pictures.planes import difference_of
from tensornp.core.values.shown.window import Subject, subject_of
from tensornp.models.comparing.comparison import WeightsComparison
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.live.refind import reached, released_rows
from tensornp.models.names.quoted import MAX_SHOWN, cut_inside, shown_name
from tensornp.models.outline.columns import searched
from tensornp.render.models.comparison import live_rows
from tensornp.widget.page import Answer, Request, item_of
from tensornp.widget.part import module, stylesheet
from tensornp.widget.table import LiveTable
from tensornp.widget.values import LookedAt

MAX_COMPARED = 2000
"""Weights of a comparison that a page can filter, sort and open."""
_WRITTEN = "written to since the comparison: these are the values of now"
_Pair = tuple[WeightEntry, WeightEntry]
"""A weight of both models without its tensors."""


class ComparisonTable(LiveTable):
    """The live part of a comparison, which finds weights in memory again in `namespace` and holds none."""

    _esm = module("comparison")
    _css = stylesheet("table", "navigator", "comparison")

    printed: traitlets.List[Any] = traitlets.List(help="the weight that each printed row opens").tag(sync=True)

    def __init__(self, found: WeightsComparison, namespace: Mapping[str, Any], **traits: Any) -> None:
        live = live_rows(found, MAX_COMPARED)
        first, second = (
            {row.name: row for row in released_rows(side, namespace, "")} for side in (found._first, found._second)
        )
        self._pairs = [(first[name], second[found._pairs[name]]) for name in live.names]
        self._versions = [_versions_of((found._first[name], found._second[found._pairs[name]])) for name in live.names]
        every = [found[name] for name in live.names]
        # An element that is finite on one side alone exceeds any difference.
        self._goals = ["nan" if one._is_odd else one._largest_difference or "" for one in every]
        names = [legible(name) for name in live.names]
        super().__init__(live.html, names, printed=live.printed, num_left_out=len(found) - len(names), **traits)
        self._handlers["values"] = self._open

    def close(self) -> None:
        self._pairs = []
        super().close()

    def _found(self, text: str) -> list[int]:
        both = (searched(text, [legible(pair[side].name) for pair in self._pairs]) for side in (0, 1))
        return sorted({i for found in both for i in found})

    def _open(self, request: Request) -> Answer:
        pair, number = item_of(self._pairs, request.get("row")), request["row"]
        name = pair[0].name
        # The shapes of both are compared before anything is shown.
        difference_of(*_subjects_of(pair))
        is_old = self._versions[number] != _versions_of((reached(pair[0]), reached(pair[1])))
        return {
            **self._values.show(_faces_of(pair), self._goals[number]),
            "text": _WRITTEN if is_old else "",
            "label": cut_inside(name, MAX_SHOWN),
            "title": legible(name),
        }


@outside_modes
def _versions_of(pair: _Pair) -> list[int | None]:
    """Return the number of writes that torch has counted for each; None for files and arrays."""
    tensors = [one.tensor if is_tensor(one.tensor) else None for one in pair]
    return [None if one is None or one.is_inference() else one._version for one in tensors]


def _faces_of(pair: _Pair) -> LookedAt:
    """Return both sides of a weight and their difference, found again whenever they are read."""

    def side(row: WeightEntry) -> LookedAt:
        return LookedAt(lambda: reached(row)._values(), name=row.code)

    change = LookedAt(lambda: difference_of(*_subjects_of(pair)))
    faces = (("before", side(pair[0])), ("after", side(pair[1])), ("Δ", change))
    return LookedAt(name=shown_name(pair[0].name), faces=faces)


def _subjects_of(pair: _Pair) -> tuple[Subject, Subject]:
    entries = reached(pair[0]), reached(pair[1])
    for entry in entries:
        entry._check_readable()
    first, second = (subject_of(entry._values()) for entry in entries)
    return first, second
