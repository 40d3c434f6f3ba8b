"""The part of a tensor that a rank holds, in a sentence."""

from __future__ import annotations

from tensornp.core.tensor.shards import ShardFacts
from tensornp.render.layout.document import Document, Lines


def shard_document(facts: ShardFacts) -> Document:
    """Return the part of this rank; other ranks are not asked."""
    return Document((Lines((str(facts),)),))
