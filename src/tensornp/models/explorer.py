"""Map names to the weights of a model; no value is read unasked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.core.lowlevel.own_display import html_of, mime_of
from tensornp.core.lowlevel.text import counted, format_nbytes, legible
from tensornp.errors import NoSuchWeightError
from tensornp.models.entries.entry import COMPUTED, META, NotListed, WeightEntry
from tensornp.models.entries.relations import each_once, held_by, stored_in_files, stored_in_memory
from tensornp.models.names.quoted import closest, names_above, shown_name
from tensornp.models.names.search import fitting
from tensornp.models.optimizers import number_told
from tensornp.models.outline.columns import facts_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tensornp.models.scan.run import Progress
    from tensornp.models.scan.table import ScanTable

_CLOSED = " (closed)"
_COLUMNS = "kind shape dtype nbytes location requires_grad tied_to note problem code".split()


class Totals(NamedTuple):
    """Three numbers that are easily confused.

    Attributes
    ----------
    parameters : int
        Elements of parameters, or of the tensors of a file; those of one object with several names once, packed ones
        as many as they are, where that is told, and sharded ones as many as all ranks have together.
    elements_stored : int
        Elements that lie in the memory of this process or in the file, each once, whatever refers to them.
    nbytes : int
        Bytes of the storages that are held, or of the file that the tensors take; each once.
    """

    parameters: int
    elements_stored: int
    nbytes: int


class WeightsExplorer(Mapping[str, WeightEntry]):
    """A mapping from name to `WeightEntry`; ``[prefix]`` and `find` give explorers of some of them.

    Attributes
    ----------
    source : str
        Its expression or path.
    metadata : mapping
        Metadata of a file, and values of a checkpoint that are no tensors.
    problems : list of str
        Problems, a sentence each.
    is_of_module : bool
        Whether it lists a module, of which the parameters alone count as such.
    classes : mapping
        Class and settings of each module by name, ``Linear 784 → 256``; empty for files.
    """

    def __init__(
        self,
        entries: Iterable[WeightEntry],
        source: str,
        *,
        metadata: Mapping[str, Any] | None = None,
        problems: Iterable[str] = (),
        is_of_module: bool = False,
        classes: Mapping[str, str] | None = None,
    ) -> None:
        self._entries = {entry.name: entry for entry in entries}
        # Not copied: some values are read only when one asks for them.
        self.source, self.metadata = source, metadata if metadata is not None else {}
        self.problems = list(problems)
        self.is_of_module, self.classes = is_of_module, classes if classes is not None else {}

    def __getitem__(self, name: str) -> Any:
        """Return the weight of that name, or an explorer of the weights below it.

        Raises
        ------
        NoSuchWeightError
            If no weight has the name or begins with it.
        """
        if not isinstance(name, str):
            raise NoSuchWeightError(f"weights are indexed by name, got {an_instance(name)}; list(w) shows the names")
        found = self.get(name)
        if found is None:
            raise NoSuchWeightError(
                f"there is no weight {shown_name(name)} in {legible(self.source)}{closest(name, self)}"
            )
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """Return the weight or the explorer of a name, or `default`."""
        if not isinstance(name, str) or name in self._entries:
            return self._entries.get(name, default)
        below = [entry for entry in self._entries.values() if entry.name.startswith(f"{name.removesuffix('.')}.")]
        return self._some(below, name) if below else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._entries

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._entries)

    def find(self, pattern: str | re.Pattern[str]) -> WeightsExplorer:
        """Return an explorer of the weights with a matching name.

        A text matches if all its words do: parts of the name, or globs; or, for words of no name, the class of its
        module, the dtype, the kind, the file, "trained", "frozen" or "tied". A glob without a star at either end
        matches anywhere. Capitals only matter if the text has some. A compiled regular expression is searched.
        """
        entries = list(self._entries.values())
        names = [entry.name for entry in entries]
        places = fitting(pattern, names, lambda: [facts_of(one, self.classes) for one in entries])
        return self._some([entries[i] for i in places], pattern if isinstance(pattern, str) else pattern.pattern)

    def _some(self, entries: list[WeightEntry], said: str) -> WeightsExplorer:
        # Comparisons ignore the values of a plain dict.
        metadata = dict(self.metadata) if isinstance(self.metadata, dict) else self.metadata
        above = {name for one in entries for name in names_above(one.name)}
        classes = {name: text for name, text in self.classes.items() if name in above}
        source = f"{self.source}, {shown_name(said)}"
        return WeightsExplorer(entries, source, metadata=metadata, is_of_module=self.is_of_module, classes=classes)

    @cached_property
    def totals(self) -> Totals:
        """Return the parameters, stored elements and bytes; files count once."""
        every = list(self._entries.values())
        in_memory = [held for one in every if (held := held_by(one)) is not None]
        elements, nbytes = stored_in_memory(in_memory)
        others, of_files = stored_in_files([one for one in every if held_by(one) is None])
        own = each_once(one for one in every if self._is_counted(one))
        parameters = sum(one._num_parameters or 0 for one in own)
        return Totals(parameters, elements + others, nbytes + of_files)

    def _is_counted(self, entry: WeightEntry) -> bool:
        return entry.kind == "parameter" or (not self.is_of_module and entry.kind in ("tensor", "array"))

    def told_nbytes(self, nbytes: int) -> str:
        """Return a size in words, with the size of weights on the meta device."""
        every = each_once(self._entries.values())
        on_meta = sum(one.nbytes for one in every if one.location == META and one.kind != COMPUTED)
        is_sharded = any(one._nbytes_elsewhere for one in every)
        told = [format_nbytes(nbytes) + " on this rank" * is_sharded] if nbytes or not on_meta else []
        return ", ".join([*told, f"would take {format_nbytes(on_meta)} on the meta device"] if on_meta else told)

    def told_parameters(self, number: int) -> str:
        """Return a number of parameters in words, or of elements for other tensors."""
        kinds = {one.kind for one in self._entries.values() if self._is_counted(one)}
        if kinds <= {"parameter"}:
            return counted(number, "parameter")
        has_states = any(one.kind == "state" for one in self._entries.values())
        return counted(number, "element") + (" besides states" if has_states else "")

    def scan(self, executor: Executor | None = None, *, progress: Progress | Literal[False] | None = None) -> ScanTable:
        """Return the statistics of all weights by name, the worst finding first.

        Parameters
        ----------
        executor : concurrent.futures.Executor, optional
            Reads files in other processes, which see them at the same paths: processes, ipyparallel, dask. The result
            has the same bits. None uses a thread for each core.
        progress : callable or False, optional
            Called with the bytes read and all bytes. The scan ends as by Ctrl-C if it returns False. None shows a bar
            after a second.

        Raises
        ------
        BadRequestError
            If `executor` is not an executor, or would read weights in the memory of this process.

        Notes
        -----
        - Ctrl-C returns the finished statistics.
        - Names registered as None and computed weights are left out.
        """
        from tensornp.models.scan.run import progress_of, scan_entries

        stored = [one for one in self.values() if one.kind != COMPUTED]
        with progress_of(progress, "scan") as told:
            table = scan_entries(stored, executor=executor, progress=told)
        table.not_listed = self.not_listed
        return table

    @property
    def not_listed(self) -> tuple[str, ...]:
        """Return the problems that hide weights from the list."""
        return tuple(one for one in self.problems if isinstance(one, NotListed))

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each weight; MissingLibraryError without pandas."""
        from tensornp.models.scan.table import frame_of

        rows = ([getattr(entry, column) for column in _COLUMNS] for entry in self._entries.values())
        return frame_of(self, _COLUMNS, rows)

    def close(self) -> None:
        """Let go of the tensors; files are not held open."""
        self.source = self.source if self.source.endswith(_CLOSED) else f"{self.source}{_CLOSED}"
        self._entries = {}
        self.__dict__.pop("totals", None)

    _mime_, _repr_html_ = mime_of, html_of

    def __repr__(self) -> str:
        said = [
            number_told(self.values()), self.told_parameters(self.totals.parameters),
            self.told_nbytes(self.totals.nbytes),
            counted(len(self.problems), "problem") if self.problems else "",
        ]  # fmt: skip
        return f"<WeightsExplorer of {legible(self.source)}: {', '.join(filter(None, said))}>"
