"""All that two bring, compared in tasks of a fixed size, so that threads change no bit of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import numpy as np

from tensornp.core.lowlevel import threads
from tensornp.core.lowlevel.workers import carried_out
from tensornp.core.memory.blocks import Block, batches
from tensornp.core.values.compare.aligned import Aligned, pairs_of, parts_alike
from tensornp.core.values.compare.pair_loop import MIN_NUMEL, SHORT, pair_loop
from tensornp.core.values.compare.pair_tally import PairTally
from tensornp.core.values.reading.supply import Supply

_PARALLEL_NUMEL, _TASK_BLOCKS = 2**21, 16
_MAX_THREADS, _MAX_PLAIN_THREADS = 8, 4
"""So many have buffers of less than 32 MiB in all: NumPy makes several numbers of each."""


def tallied(first: Supply, second: Supply, dtypes: tuple[str, str], *, num_threads: int | None = None) -> PairTally:
    """Return what differs between all that two bring, of these dtypes; keep `threads.GATE` closed meanwhile.

    In several threads, unless so many are asked for.
    """
    is_large = first.numel >= MIN_NUMEL
    loop = pair_loop(dtypes[0]) if is_large and {*dtypes, first.dtype, second.dtype} == {dtypes[0]} else None
    parts = parts_alike(first, second, as_stored=loop is not None and dtypes[0] in SHORT) if is_large else None
    tally = PairTally(*dtypes, loop if parts is not None else None)
    if parts is None:
        for pair in pairs_of(first, second):
            tally.add(*pair)
        return tally
    if num_threads is None:
        is_small = loop is not None and not loop.is_complex
        num_threads = min(threads.num_cores(), _MAX_THREADS if is_small else _MAX_PLAIN_THREADS)
        num_threads = num_threads if first.numel >= _PARALLEL_NUMEL else 1
    _take_all(tally, parts, num_threads)
    return tally


def _take_all(tally: PairTally, parts: Aligned, num_threads: int) -> None:
    in_place = [part.can_be_read_in_place() for part in parts]

    def take(blocks: Sequence[Block], into: PairTally) -> PairTally:
        # In whichever thread: a NaN or an overflow is what is counted here.
        with np.errstate(all="ignore"):
            both = [part.read_each(blocks, in_place=steady) for part, steady in zip(parts, in_place, strict=True)]
            for a, b in zip(*both, strict=True):
                into.add(a.reshape(-1), b.reshape(-1))
        return into

    left = parts[0].blocks()
    for block in left:
        take([block], tally)
        if tally.is_settled:
            break
    tasks = batches(left, _TASK_BLOCKS)
    with closing(carried_out(lambda blocks: take(blocks, tally.beside()), tasks, num_threads)) as tallies:
        for found in tallies:
            tally.take_in(found)
