"""Remember displayed and converted tensors without keeping them alive."""

from __future__ import annotations

import ast
import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tensornp.render.layout.words import parsed

if TYPE_CHECKING:
    from tensornp.core.memory.aliases import SeenAliases
    from tensornp.core.memory.changes import Change, Snapshot
    from tensornp.core.summary.card import Surroundings
    from tensornp.core.summary.options import DisplayOptions
    from tensornp.core.tensor.facts import TensorInfo

MAX_RECORDS = 256
"""Entries that are kept, the last ones: two for each tensor."""
MAX_SEARCH_SECONDS = 0.05
"""For other names of the same memory."""
MAX_COPY_NBYTES = 2**19
"""Bytes of a tensor that is copied, to tell which elements change: 64 MiB in all at most."""


class _Record(NamedTuple):
    """The snapshot of a tensor at its last display or conversion, and former aliases."""

    snapshot: Snapshot
    former: SeenAliases


class Ledger:
    """Snapshots by tensor and by place in a storage, which aliases find too.

    `session` has the `names` of the user, the running `cell` (such as ``In[4]``) and its `source`.
    """

    def __init__(self, session: Any, options: Callable[[], DisplayOptions]) -> None:
        self._session = session
        self._options = options
        self._records: OrderedDict[Any, _Record] = OrderedDict()

    def look(self, tensor: Any, info: TensorInfo) -> Surroundings:
        """Return the surroundings of a tensor for its card, and store a snapshot."""
        record = self._record_of(tensor, info)
        now = self._snapshot(tensor, info, "the card")
        former = _former(record)
        around, change = self._search(tensor, info, former), _change(record, now)
        self._keep(tensor, info, now, former)
        return around._replace(change=change) if change is not None else around

    def surroundings_of(self, tensor: Any, info: TensorInfo) -> Surroundings:
        """Return the surroundings and change of a tensor without a new snapshot."""
        record = self._record_of(tensor, info)
        return self._search(tensor, info, _former(record))._replace(change=self.change_of(tensor, info))

    def note_conversion(self, tensor: Any, array: Any) -> None:
        """Store a snapshot at a conversion to `array`."""
        import numpy as np

        from tensornp.core.memory.aliases import WRITTEN, Target
        from tensornp.core.tensor.info import inspect

        info = inspect(tensor)
        former = _former(self._record_of(tensor, info))
        self._keep(tensor, info, self._snapshot(tensor, info, "the conversion"), former)
        # A copy has never shared, so it must not be said to share no longer.
        if isinstance(array, np.ndarray) and Target(tensor).compare(array) in WRITTEN:
            former.note(array)

    def change_of(self, tensor: Any, info: TensorInfo) -> Change | None:
        """Return the change since a tensor was last displayed or converted here.

        It reads the tensor under the budget of the last snapshot.
        """
        record = self._record_of(tensor, info)
        if record is None or not self._options().fingerprint_nbytes(info.device):
            return None
        return _change(record, _snapshot(tensor, info, "now", record.snapshot.max_nbytes))

    def forget(self) -> None:
        """Forget everything."""
        self._records.clear()

    def _snapshot(self, tensor: Any, info: TensorInfo, event: str) -> Snapshot:
        where = f"{event} in {self._session.cell}"
        return _snapshot(tensor, info, where, self._options().fingerprint_nbytes(info.device))

    def _search(self, tensor: Any, info: TensorInfo, former: SeenAliases) -> Surroundings:
        from tensornp.core.summary.card import find_surroundings

        names, shown_as = self._session.names, _shown_by(self._session.source)
        return find_surroundings(tensor, info, names, MAX_SEARCH_SECONDS, seen=former, shown_as=shown_as)

    def _record_of(self, tensor: Any, info: TensorInfo) -> _Record | None:
        record = self._records.get(id(tensor))
        if record is not None and record.snapshot.reference.is_of(tensor):
            return record
        record = self._records.get(_place(info))
        # A storage that lives on may have moved, and left its place to another one.
        is_same = record is not None and info.storage and record.snapshot.reference.shares_storage(tensor)
        return record if is_same else None

    def _keep(self, tensor: Any, info: TensorInfo, snapshot: Snapshot, former: SeenAliases) -> None:
        kept = _Record(snapshot, former)
        for key in (id(tensor), _place(info)):
            self._records.pop(key, None)
            self._records[key] = kept
        while len(self._records) > MAX_RECORDS:
            self._records.popitem(last=False)


@functools.lru_cache(maxsize=1)
def _shown_by(cell: str) -> str:
    """Return the expression in the last line of a cell, written as the names of tensors are here."""
    expression, _ = parsed(cell.rstrip().rpartition("\n")[2])
    return ast.unparse(expression) if expression is not None else ""


def _snapshot(tensor: Any, info: TensorInfo, where: str, max_nbytes: int) -> Snapshot:
    from tensornp.core.memory.changes import take_snapshot
    from tensornp.core.values.compare.snapshots import with_copy

    return with_copy(take_snapshot(tensor, info, where, max_nbytes), tensor, MAX_COPY_NBYTES)


def _change(record: _Record | None, now: Snapshot) -> Change | None:
    from tensornp.core.memory.changes import change_between
    from tensornp.core.values.compare.snapshots import with_rows

    if record is None or record.snapshot.max_nbytes != now.max_nbytes:
        return None
    change = change_between(record.snapshot, now)
    if change is None or change.cause not in ("torch", "uncounted", "unknown"):
        return change
    return with_rows(change, record.snapshot.values, now.values)


def _former(record: _Record | None) -> SeenAliases:
    from tensornp.core.memory.aliases import SeenAliases

    return record.former.living() if record is not None else SeenAliases()


def _place(info: TensorInfo) -> Any:
    """Return a key that is equal for aliases of the same elements."""
    address = info.storage.address if info.storage else 0
    return (str(info.device), address, info.shape, info.stride, info.dtype, info.is_conj, info.is_neg)
