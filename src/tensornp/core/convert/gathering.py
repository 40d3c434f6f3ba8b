"""The whole of what is spread over ranks, brought together on each: the only module of tensornp that communicates.

The ranks of the mesh do so in a gloo group of their own, which is made for one call once all of them have come, and has
timeouts of its own. The groups of the job are not used, so that they are as they were, whatever happens.
"""

from __future__ import annotations

import datetime
import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, NamedTuple

import torch

from tensornp.core.convert.meeting import below, meet
from tensornp.core.lowlevel import torch_private
from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.modes import apart
from tensornp.core.lowlevel.quiet import quietly
from tensornp.core.tensor.dtypes import name_of
from tensornp.core.tensor.facts import TensorInfo
from tensornp.core.tensor.form import plain
from tensornp.core.tensor.kinds import PENDING
from tensornp.core.tensor.reading import held_tensor
from tensornp.core.tensor.shards import Runs, ShardFacts, indices_held, num_of
from tensornp.errors import MissingLibraryError, RanksError

TIMEOUT_S = 60.0
"""How long a rank waits for one message of another, once all have come."""
_MESSAGE_NBYTES = 2**26
_MAX_TOLD = 3
"""Tensors that are told where ranks differ in what they gather."""
_OF_TWO: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "sum": torch.add, "avg": torch.add, "product": torch.mul, "max": torch.maximum, "min": torch.minimum,
}  # fmt: skip
"""How two parts are put together that are still to be reduced."""


class Spread(NamedTuple):
    """A DTensor of which this rank holds a part, and what is known of it."""

    dtensor: Any
    info: TensorInfo

    @property
    def facts(self) -> ShardFacts:
        """Which part that is."""
        assert self.info.shard is not None
        return self.info.shard

    def __str__(self) -> str:
        placed = ", ".join(map(str, self.facts.placements))
        order = torch_private.shard_order_of(self.dtensor)
        said = f"{name_of(self.info.dtype)} {self.facts.whole}, placed {placed} on {self.facts.mesh_shape}"
        return said if order is None else f"{said}, cut in the order {order}"


_ONE_AT_A_TIME = Lock()
"""Of two threads, nobody on another rank could tell which has come."""


def gathered(every: Sequence[Spread], problem: BaseException | None = None) -> list[torch.Tensor]:
    """Return the whole of each in main memory, without autograd; all ranks of their meshes call it together.

    A `problem` that this rank has had before is told to the others, and raised here.

    Raises
    ------
    RanksError
        If another rank does not come, has a problem, or gathers what has another shape, dtype or placement, and if
        another thread of this process gathers just now.
    """
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise RanksError("another thread of this process gathers just now; gather one after the other")
    try:
        return _gathered(every, problem)
    finally:
        _ONE_AT_A_TIME.release()


def _gathered(every: Sequence[Spread], problem: BaseException | None) -> list[torch.Tensor]:
    rank = every[0].facts.rank if every else None
    if rank is None:
        if every or problem is not None:
            raise problem or RanksError("there is no group of processes, or it was destroyed: no rank can be reached")
        return []
    meshes: dict[tuple[int, ...], list[int]] = {}
    for number, one in enumerate(every):
        meshes.setdefault(_ranks_of(one.dtensor), []).append(number)
    said = error_text(problem) if problem is not None else ""
    rooms: dict[tuple[int, ...], Any] = {}
    for ranks, numbers in meshes.items():
        # A rank that holds none is not waited for.
        if problem is None or rank in ranks:
            try:
                rooms[ranks] = meet(ranks, rank, _described([every[number] for number in numbers]), said)
            except RanksError:
                if problem is None:
                    raise
                break
    if problem is not None:
        raise problem
    wholes: dict[int, torch.Tensor] = {}
    for ranks, numbers in meshes.items():
        own = ranks.index(rank)
        room = rooms[ranks]
        # What fails is told before the group closes, by which others learn of it.
        with _told(room, rank), _Group(room, len(ranks), own) as group, _told(room, rank):
            for number in numbers:
                wholes[number] = _whole(every[number], group, own)
    return [wholes[number] for number in range(len(every))]


@apart
def _ranks_of(dtensor: Any) -> tuple[int, ...]:
    return tuple(int(rank) for rank in dtensor.device_mesh.mesh.flatten().tolist())


def _described(every: Sequence[Spread]) -> str:
    """Return what is gathered, in words that are the same on all ranks where it is the same."""
    told = list(map(str, every))
    if len(told) <= _MAX_TOLD:
        return "; ".join(told)
    digest = hashlib.blake2b(repr(told).encode(), digest_size=4).hexdigest()
    return f"{'; '.join(told[:_MAX_TOLD])} and {len(told) - _MAX_TOLD:,} more ({digest})"


@contextmanager
def _told(room: Any, rank: int | None) -> Iterator[None]:
    """Tell the other ranks of the first error, and say here which it was."""
    try:
        yield
    except BaseException as error:
        said = f"rank {rank} has failed with {error_text(error)}"
        with suppress(RuntimeError):
            said = room.compare_set("failed", "", said).decode()
        if not isinstance(error, RuntimeError):
            raise
        raise RanksError(f"{said}; nothing was gathered on rank {rank}") from None


class _Group:
    """A group of these ranks alone, of which torch's own table of groups does not know; it ends with its block."""

    def __init__(self, room: Any, num: int, number: int) -> None:
        dist: Any = torch.distributed
        if not dist.is_gloo_available():
            raise MissingLibraryError("this torch was built without gloo, by which ranks gather; take t.full_tensor()")
        limit = datetime.timedelta(seconds=TIMEOUT_S)
        self._group: Any = dist.ProcessGroupGloo(below(room, "gloo"), number, num, limit)

    def __enter__(self) -> _Group:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            if kind is None:
                # Whoever goes first would close what another one still reads.
                self._group.barrier().wait()
        finally:
            # Python keeps the frames of the last error: the others would wait for one that has failed.
            self._group = None

    def broadcast(self, part: torch.Tensor, sender: int) -> None:
        """Send the bytes of a part to all ranks, or receive them, some at a time."""
        for some in part.view(-1).view(torch.uint8).split(_MESSAGE_NBYTES):
            self._group.broadcast(some, sender).wait()


@apart
def _whole(one: Spread, group: _Group, number: int) -> torch.Tensor:
    """Return the whole of one tensor, to which each rank that counts sends its part."""
    facts, local = one.facts, _part_here(one)
    order = torch_private.shard_order_of(one.dtensor)
    whole = torch.empty(facts.whole, dtype=local.dtype)
    for sender, place in enumerate(itertools.product(*map(range, facts.mesh_shape))):
        held = indices_held(facts.whole, facts.mesh_shape, place, facts.placements, order)
        assert held is not None
        shape = tuple(map(num_of, held))
        pairs = list(zip(place, facts.placements, strict=True))
        if not math.prod(shape) or any(at and p.dim is None and not p.is_pending for at, p in pairs):
            # Another rank has sent the same.
            continue
        is_first, boxes = not any(at for at, p in pairs if p.is_pending), list(_boxes(held))
        target = whole[boxes[0][0]]
        if is_first and len(boxes) == 1 and target.is_contiguous() and sender != number:
            group.broadcast(target, sender)
            continue
        part = local if sender == number else torch.empty(shape, dtype=local.dtype)
        group.broadcast(part, sender)
        for there, here in boxes:
            whole[there] = part[here] if is_first else _OF_TWO[_reduction(facts)](whole[there], part[here])
    if _reduction(facts) == "avg":
        num = math.prod(n for n, p in zip(facts.mesh_shape, facts.placements, strict=True) if p.is_pending)
        whole = (whole / num).to(whole.dtype)
    return whole


def _part_here(one: Spread) -> torch.Tensor:
    """Return the part of this rank in main memory, one element after another."""
    held: Any = held_tensor(one.dtensor, one.info.kind)
    if one.info.inner is not None and one.info.inner.kind is PENDING:
        held = held.trigger_wait()
    part = quietly(plain(held).cpu)
    return quietly(quietly(part.resolve_conj).resolve_neg).contiguous()


def _reduction(facts: ShardFacts) -> str:
    return next((p.reduction for p in facts.placements if p.is_pending), "")


def _boxes(held: tuple[Runs, ...]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Yield the boxes of which a part consists: where each lies in the whole, and where in the part."""
    there = [[slice(low, end) for low, end in runs] for runs in held]
    ends = [list(itertools.accumulate(end - low for low, end in runs)) for runs in held]
    here = [[slice(a, b) for a, b in itertools.pairwise([0, *each])] for each in ends]
    yield from zip(itertools.product(*there), itertools.product(*here), strict=True)
