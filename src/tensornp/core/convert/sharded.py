"""What becomes of a tensor that is spread over ranks, where one of its shards is asked for; no rank is asked."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensornp.core.convert import receipt
from tensornp.core.convert.plan import ConversionPlan, decide
from tensornp.core.convert.view_share_copy import check_shard
from tensornp.core.lowlevel.text import counted
from tensornp.core.tensor.kinds import LOCAL, Kind, Obstacle
from tensornp.core.tensor.steps import Step
from tensornp.errors import NoDataError

if TYPE_CHECKING:
    from tensornp.core.tensor.facts import TensorInfo
    from tensornp.core.tensor.shards import ShardFacts


_GATHERED = Kind(
    "gathered",
    step=Step.GATHER,
    obstacle=Obstacle("in parts on several ranks", "gathered from all ranks"),
)
"""What a plan of the whole is decided of; no tensor is held so."""


def decide_shard(info: TensorInfo, shard: str | None, **arguments: Any) -> ConversionPlan:
    """Return the plan for that `shard` of a tensor of which `info` is known; any other tensor is converted as ever."""
    check_shard(shard)
    facts = shard_of(info)
    if shard is None or facts is None:
        return decide(info, **arguments)
    if shard == "full":
        return _decide_whole(info, facts, **arguments)
    return said_of(decide(as_local(info), **arguments), facts)


def _decide_whole(info: TensorInfo, facts: ShardFacts, **arguments: Any) -> ConversionPlan:
    if info.data_state != "remote":
        # Each rank has all of it.
        return decide(info, **arguments)
    if facts.coordinate is None:
        raise NoDataError(f"{facts}; convert it on these")
    whole = replace(
        info, kind=_GATHERED, data_state="available", inner=None, storage=None, _access="t", is_conj=False, is_neg=False
    )
    plan = decide(whole, **arguments)
    if not info.numel:
        return plan
    ranks, taken = counted(math.prod(facts.mesh_shape), "rank"), counted(plan.nbytes_copied, "byte")
    return replace(plan, reason=f"copy: gathered from {ranks}, {taken} of new memory on each")


def is_spread(info: TensorInfo) -> bool:
    """Return whether a tensor is a DTensor of which other ranks have more."""
    return info.kind is LOCAL and info.data_state == "remote" and info.shard is not None


def has_part(info: TensorInfo) -> bool:
    """Return whether other ranks have more of a tensor, and this one a part with values."""
    if not is_spread(info) or info.shard is None or info.shard.pending or info.inner is None:
        return False
    return info.inner.data_state == "available" and info.inner.numel > 0 and not info._is_pending


def shard_of(info: TensorInfo) -> ShardFacts | None:
    """Return which part of a tensor this rank holds; None where it is not spread over ranks."""
    return info.shard or (shard_of(info.inner) if info.inner is not None else None)


def said_of(plan: ConversionPlan, facts: ShardFacts) -> ConversionPlan:
    """Return the plan of a part with the words that tell whose it is."""
    return replace(plan, reason=f"{plan.reason}; {facts.scope}")


def as_local(info: TensorInfo) -> TensorInfo:
    """Return the metadata of a tensor whose values are those that this rank holds; a part of a sum is no value."""
    facts = shard_of(info)
    if facts is not None and facts.pending:
        raise NoDataError(receipt.no_data_text(info))
    if info.data_state != "remote" or info.inner is None:
        return info
    inner = info.inner if info.kind is LOCAL else as_local(info.inner)
    return replace(info, data_state=inner.data_state, inner=inner)
