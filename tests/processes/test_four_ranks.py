"""Four ranks of a mesh, each a process that answers by itself while a collective would raise: their parts are one."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from forked import Forked
from lone_rank import NUM_RANKS, LoneRank, needs_fsdp

import tensornp as tnp

WHOLE = {
    "rows": (9, 4),
    "columns": (3, 8),
    "uneven": (7, 3),
    "few": (2,),
    "in two dimensions": (5, 6),
    "replicated in one": (6, 6),
    "replicated": (4, 4),
    "plain": (3, 5),
}


def whole_of(name: str) -> torch.Tensor:
    """Return a tensor of numbers that are all different, with a NaN in one."""
    shape = WHOLE[name]
    made = torch.arange(float(torch.Size(shape).numel())).reshape(shape) - 7
    if name == "in two dimensions":
        made[4, 5] = torch.nan
    return made


def answers_of(number: int) -> dict[str, Any]:
    from torch.distributed.tensor import DTensor, Replicate, Shard

    import __main__
    from tensornp.core.tensor.shards import box_held
    from tensornp.processes.answering import answer

    rank = LoneRank(number)
    of_line, of_square = (rank.mesh, (4,)), (rank.square, (2, 2))
    laid_out = {
        "rows": (*of_line, [Shard(0)]),
        "columns": (*of_line, [Shard(1)]),
        "uneven": (*of_line, [Shard(0)]),
        "few": (*of_line, [Shard(0)]),
        "in two dimensions": (*of_square, [Shard(0), Shard(1)]),
        "replicated in one": (*of_square, [Replicate(), Shard(0)]),
        "replicated": (*of_line, [Replicate()]),
    }
    state: dict[str, Any] = {"plain": whole_of("plain") + (number == 3)}
    for name, (mesh, sizes, placements) in laid_out.items():
        whole = whole_of(name)
        at = (number,) if sizes == (4,) else divmod(number, 2)
        first, shape = box_held(tuple(whole.shape), sizes, at, [getattr(one, "dim", None) for one in placements])
        box = tuple(slice(i, i + n) for i, n in zip(first, shape, strict=True))
        local = whole[box].clone()
        if name == "replicated in one" and number == 2:
            local[0, 0] = 50
        state[name] = DTensor.from_local(
            local, mesh, placements, run_check=False, shape=whole.shape, stride=whole.stride()
        )
    __main__.state = state  # type: ignore[attr-defined]
    asked: list[tuple[Any, ...]] = [("state",), ("state", "", 2**26)]
    asked += [("state", name, 2**36) for name in state]
    with rank.alone():
        return {str(one): answer(tnp.__version__, *one) for one in asked}


def replayed(answers: dict[int, dict[str, Any]]) -> Any:
    """Return a transport to ranks that have answered already."""

    def submit(id: int, function: Any, version: str, *question: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(answers[id][str(question)])
        return future

    return SimpleNamespace(ids=list(answers), submit=submit)


@pytest.fixture(scope="module")
def answers() -> dict[int, dict[str, Any]]:
    children = [Forked([answers_of], number) for number in range(NUM_RANKS)]
    found = {}
    for number, child in enumerate(children):
        ((how, what),) = child.endings()
        assert how == "returned", what
        found[number] = what
    return found


@pytest.mark.slow
@needs_fsdp
def test_the_parts_of_all_ranks_are_the_tensor(answers):
    """Count, extremes, mean and deviation, each element once, and the rank of the NaN."""
    found = tnp.ranks(replayed(answers)).weights("state")
    assert found.told == "4 ranks: the same 8 tensors"
    for name in WHOLE:
        stats, expected = found.stats(name), tnp.stats(whole_of(name), histogram=None)
        for figure in ("count", "nan", "zeros", "min", "max"):
            assert getattr(stats, figure) == getattr(expected, figure), (name, figure)
        told = {"replicated in one": ", without rank 2", "plain": ", without rank 3"}.get(name, "")
        assert stats.scope == expected.scope + told, name
        assert stats.mean == pytest.approx(expected.mean, rel=1e-14)
        assert stats.std == pytest.approx(expected.std, rel=1e-14)
    assert found.stats("in two dimensions").nonfinite == {3: "1 NaN"}


@needs_fsdp
def test_only_replicas_are_compared(answers):
    """Of a mesh of two by two, those of one column hold the same rows; a plain tensor should be the same on all."""
    found = tnp.ranks(replayed(answers)).weights("state")
    assert dict(found.drift()) == {
        "plain": "differs on rank 3",
        "replicated in one": "differs on rank 2",
    }
    assert found.stats("replicated in one").differing == (2,)
    assert found.stats("plain").differing == (3,)


@needs_fsdp
def test_what_is_missing_without_a_rank_is_told_by_tensor(answers):
    some = {number: answers[number] for number in (0, 1, 3)}
    found = tnp.ranks(replayed(some)).weights("state")
    assert found.told == "3 of 4 ranks: the same 8 tensors"
    scopes = {name: found.stats(name).scope.removesuffix(", of 3 of 4 ranks") for name in WHOLE}
    assert scopes["rows"] == "partial: 24 of 36 elements"
    assert scopes["in two dimensions"] == "partial: 24 of 30 elements"
    assert {scopes[name] for name in ("few", "replicated in one", "replicated")} == {"all elements"}
    assert scopes["plain"] == "all elements, without rank 3"
