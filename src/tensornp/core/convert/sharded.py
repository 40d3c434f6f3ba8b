"""Plan the conversion of a DTensor: of the part on this rank, or of its full tensor."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tensornp.core.convert import receipt
from tensornp.core.convert.plan import ConversionPlan, decide
from tensornp.core.tensor.form import Kind
from tensornp.core.tensor.kinds import LOCAL
from tensornp.core.tensor.steps import Obstacle, Step, check_shard
from tensornp.errors import NoDataError

if TYPE_CHECKING:
    from tensornp.core.tensor.facts import TensorInfo
    from tensornp.core.tensor.shards import ShardFacts


class _Full(Kind):
    name = "full"
    step = Step.GATHER
    obstacle = Obstacle("in parts on several ranks", "gathered from all ranks")


def decide_shard(info: TensorInfo, shard: str | None, **arguments: Any) -> ConversionPlan:
    """Return the plan of `shard`; "local" and "full" change nothing for other tensors than DTensors."""
    check_shard(shard)
    facts = shard_of(info)
    if facts is not None and shard == "local":
        return with_scope(decide(as_local(info), **arguments), facts)
    if facts is not None and shard == "full" and info.data_state == "remote":
        if facts.coordinate is None:
            raise NoDataError(f"{facts}; convert it on these")
        info = replace(
            info, kind=_Full(), data_state="available", inner=None, storage=None, _access="t", is_conj=False,
            is_neg=False,
        )  # fmt: skip
    return decide(info, **arguments)


def has_part(info: TensorInfo) -> bool:
    """Return whether a DTensor has a part with values here, and other parts on other ranks."""
    if info.kind is not LOCAL or info.data_state != "remote" or info.shard is None or info.shard.pending:
        return False
    inner = info.inner
    return inner is not None and inner.data_state == "available" and inner.numel > 0 and not info._is_pending


def shard_of(info: TensorInfo) -> ShardFacts | None:
    return info.shard or (shard_of(info.inner) if info.inner is not None else None)


def with_scope(plan: ConversionPlan, facts: ShardFacts) -> ConversionPlan:
    return replace(plan, reason=f"{plan.reason}; {facts.scope}")


def as_local(info: TensorInfo) -> TensorInfo:
    """Return the metadata of a DTensor as if its part on this rank were all of it."""
    facts = shard_of(info)
    if facts is not None and facts.pending:
        raise NoDataError(receipt.no_data_text(info))
    if info.data_state != "remote" or info.inner is None:
        return info
    inner = info.inner if info.kind is LOCAL else as_local(info.inner)
    return replace(info, data_state=inner.data_state, inner=inner)
