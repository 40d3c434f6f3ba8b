"""The card of a sharded tensor shows what this rank holds, says whose it is, and its badges are true of that."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from child import in_fork
from lone_rank import LoneRank, needs_fsdp

import tensornp as tnp
from tensornp.core.summary.card import summarize, summarize_line
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.summary.surroundings import Surroundings
from tensornp.render.tensor.card import tensor_html, tensor_text
from tensornp.widget.toggle import TensorWidget


@needs_fsdp
@in_fork
def test_the_local_array_is_shown_and_whose_it_is():
    """As NumPy prints it, in each style, with the figures of this part and the shape of the whole."""
    rank = LoneRank()
    every = rank.tensors()
    with rank.alone():
        for name in ("sharded", "by columns", "in two dimensions", "bfloat16", "parameter", "result"):
            t = every[name if name in every else "sharded by columns"]
            card = tnp.card(t).text
            local = tnp.to_numpy(t, shard="local")
            assert repr(local) in card, name
            assert f"(local shard of rank 1; {tnp.inspect(t).shard})" in card
            assert str(tuple(t.shape)) in card.splitlines()[0]
            for style in ("card", "tiny", "line"):
                summary = summarize(t, DisplayOptions(style=style))
                assert "local shard of rank 1" in tensor_text(summary)
                assert "local shard of rank 1" in tensor_html(summary, DisplayOptions())
        assert "(local shard of rank 1)" in summarize_line(every["sharded"], DisplayOptions()).preview.text
        assert "local shard" not in tnp.card(every["replicated"]).text
        assert "no array" in tnp.card(every["partial"]).text
        assert "empty on this rank" in tnp.card(every["empty here"]).text


@needs_fsdp
@in_fork
def test_its_badge_and_its_modes_are_those_of_the_part():
    """Shared where a write to one is seen in the other, by the very array that the live card gives."""
    rank = LoneRank()
    t = rank.tensors()["sharded"]
    local = t.to_local()
    names: dict[str, np.ndarray] = {}
    with rank.alone():
        assert "array: shared, read-only" in tnp.card(t).text
        card = TensorWidget(
            t, binder=lambda name, make, _: names.update({name: make()}), look=lambda *_: Surroundings(name="d")
        )
        for mode, shares, writeable in (("view", True, False), ("share", True, True), ("copy", False, True)):
            card.set_state({"mode": mode})
            assert card.mode == mode
            assert (np.shares_memory(card.array, local.numpy()), card.array.flags.writeable) == (shares, writeable)
        assert card.bind("a") == 'a = tnp.to_numpy(d, shard="local")'
        assert np.array_equal(names["a"], local.numpy())
        summary = summarize(t, DisplayOptions())
        assert summary.plan is not None
        made = eval(summary.plan.code, {"t": t, "np": np, "torch": torch})
        assert np.array_equal(made, local.numpy())
        with pytest.raises(tnp.NoDataError):
            tnp.to_numpy(t)
