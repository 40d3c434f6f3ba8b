"""The calls of a pass as a tree: who called, who was called, and what was given by whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensornp.passes.records import RECOMPUTED, RETURNED, ModuleCall, PassRecord


def end_of(call: ModuleCall) -> tuple[bool, int]:
    """Return what puts calls into the order in which they ended, those that never did behind all others."""
    return call.order < 0, call.order


class CallTree:
    """Calls, each with those around it.

    Attributes
    ----------
    ended : list of ModuleCall
        Those of the forward, in the order in which they ended; `again` are those that a checkpoint has recomputed.
    """

    def __init__(self, record: PassRecord) -> None:
        self.record = record
        self._by_index = {call.index: call for call in record.calls}
        self._below: dict[int | None, list[ModuleCall]] = defaultdict(list)
        self.ended: list[ModuleCall] = []
        self.again: list[ModuleCall] = []
        for call in sorted(record.calls, key=end_of):
            self._below[call.parent].append(call)
            (self.again if call.phase == RECOMPUTED else self.ended).append(call)

    def at(self, index: int | None) -> ModuleCall | None:
        """Return a call by its index; None of none, or of one that is not known."""
        return self._by_index.get(index) if index is not None else None

    def above(self, call: ModuleCall) -> Iterator[ModuleCall]:
        """Yield the calls inside which a call came, the innermost first."""
        above = self.at(call.parent)
        while above is not None:
            yield above
            above = self.at(above.parent)

    def below(self, call: ModuleCall | None) -> list[ModuleCall]:
        """Return what a call has called itself, or the block, in the order in which that ended."""
        return self._below.get(call.index if call is not None else None, [])

    def inside(self, call: ModuleCall) -> Iterator[ModuleCall]:
        """Yield all that came inside a call."""
        waiting = list(self.below(call))
        while waiting:
            one = waiting.pop()
            yield one
            waiting += self.below(one)

    def before(self, call: ModuleCall) -> ModuleCall | None:
        """Return what returned last before a call, inside the same call; None where nothing did."""
        earlier = (one for one in self._below[call.parent] if one.index < call.index and one.status == RETURNED)
        return max(earlier, key=end_of, default=None)

    def innermost(self, calls: list[ModuleCall]) -> list[ModuleCall]:
        """Return those of some calls inside which no other of them came."""
        around = {above.index for call in calls for above in self.above(call)}
        return [call for call in calls if call.index not in around]
