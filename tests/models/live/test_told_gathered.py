"""What FSDP2 has gathered for now is told as such on cards."""

from __future__ import annotations

import torch
from child import in_fork
from lone_rank import LoneRank, needs_fsdp

import tensornp as tnp


@needs_fsdp
@in_fork
def test_what_fsdp2_has_gathered_is_told_until_it_is_sharded_again():
    """Of each parameter by itself; what else there is says nothing of it."""
    rank = LoneRank()
    model, other = rank.model(), torch.nn.Linear(7, 6)
    model[0].unshard()
    with rank.alone():
        assert tnp.weights(model)["1.weight"].note.endswith("on this rank")
        assert " | gathered just now" in tnp.card(model[0].weight).text
        for one in (model[1].weight, other.weight, torch.ones(3)):
            assert "gathered" not in tnp.card(one).text.splitlines()[0]
    model[0].reshard()
    assert "gathered" not in tnp.card(model[0].weight).text
