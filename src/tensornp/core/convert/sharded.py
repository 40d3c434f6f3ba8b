"""What becomes of a tensor that is spread over ranks, where one of its shards is asked for; no rank is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensornp.core.convert import receipt
from tensornp.core.convert.plan import ConversionPlan, decide
from tensornp.core.convert.view_share_copy import check_shard
from tensornp.core.tensor.kinds import LOCAL
from tensornp.errors import NoDataError

if TYPE_CHECKING:
    from tensornp.core.tensor.facts import TensorInfo
    from tensornp.core.tensor.shards import ShardFacts


def decide_shard(info: TensorInfo, shard: str | None, **arguments: Any) -> ConversionPlan:
    """Return the plan for that `shard` of a tensor of which `info` is known; any other tensor is converted as ever."""
    check_shard(shard)
    facts = shard_of(info)
    if shard is None or facts is None:
        return decide(info, **arguments)
    return said_of(decide(as_local(info), **arguments), facts)


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
