"""A scan of the weights on a page, in a thread of its own, which the page may end."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tensornp.core.lowlevel.attributes import error_text
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry
from tensornp.models.entries.released import reached
from tensornp.models.scan.findings import QUIET_RANK, UNRANKED
from tensornp.models.scan.run import scan_entries
from tensornp.render.pictures.stats_line import line_of
from tensornp.widget.weight_data import Found


class WeightsScan:
    """Reads weights, as they are by now, and tells how far it is, and in the end what was found."""

    def __init__(
        self,
        weights: list[WeightEntry],
        note_progress: Callable[[WeightsScan, float], None],
        note_found: Callable[[WeightsScan, dict[str, Found], str], None],
    ) -> None:
        self.is_wanted = True
        self._weights, self._note_progress, self._note_found = weights, note_progress, note_found
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        found: dict[str, Found] = {}
        try:
            there, gone = self._reached()
            table = scan_entries(there, progress=self._told)
            for name, stats in table.items():
                findings = table.findings(name)
                texts = tuple(one.text for one in findings)
                rank = min((one.rank for one in findings), default=UNRANKED)
                found[name] = Found(rank, texts, *line_of(stats))
            table.failed |= gone
            found |= {name: Found(QUIET_RANK, (f"not read: {why}",)) for name, why in table.failed.items()}
            said = " · ".join(table.told())
        except Exception as error:
            said = str(error) if isinstance(error, TensornpError) else error_text(error)
        self._note_found(self, found, said)

    def _reached(self) -> tuple[list[WeightEntry], dict[str, str]]:
        """Return the weights that are there, and why others are not."""
        there: list[WeightEntry] = []
        gone: dict[str, str] = {}
        # Of what is known to have no values, that is said beside it.
        for one in (one for one in self._weights if not one.problem):
            try:
                there.append(reached(one))
            except TensornpError as error:
                gone[one.name] = str(error)
        return there, gone

    def _told(self, done: int, total: int) -> bool:
        self._note_progress(self, done / max(total, 1))
        return self.is_wanted
