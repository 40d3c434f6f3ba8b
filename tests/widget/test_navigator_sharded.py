"""The navigator in this rank's part of a tensor: each index that is said, or typed, is the one in the whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from child import in_fork
from lone_rank import LoneRank, needs_fsdp
from test_navigator import AtOnce, Page

import tensornp as tnp
from tensornp.core.summary.surroundings import Surroundings
from tensornp.widget.navigator import the_navigator
from tensornp.widget.toggle import TensorWidget
from tensornp.widget.weights import WeightsWidget


@needs_fsdp
@in_fork
def test_indices_are_those_of_the_whole_and_code_is_of_the_part():
    """Beside rows and columns, in the field, of what is looked for; the words say whose part it is."""
    rank = LoneRank()
    t = rank.tensors()["in two dimensions"]
    local = t.to_local()
    local[2, 3] = torch.nan
    page = Page(t, name="d", array_name="d_np")
    with rank.alone():
        answer = page.ask(seek="nan", size=[2, 3])
        assert answer["in_whole"] == {"places": [[1, 2], [5, 6, 7]], "origins": [0, 4]}
        assert (answer["corner"], answer["show"], answer["index"]) == ([1, 1], [2, 3], "1:3, 5:8")
        assert answer["torch"] == "d.to_local()[1:3, 1:4]"
        assert eval(answer["torch"], {"d": t}).isnan().any()
        assert answer["legend"].endswith(" · local shard of rank 1")
        assert page.ask(seek="inf")["text"] == "there is no infinity in the local shard of rank 1"
        answer = page.ask(index="2, 7", size=[2, 2])
        assert (answer["show"], answer["exact"][answer["texts"].index("nan")]) == ([2, 3], "nan")
        assert page.ask(index="3:, :", size=[9, 9])["show"] == [3, 0]
        assert page.ask(size=[9, 9])["index"] == "0:4, 4:8"
        text = page.ask(index="0, 3")["text"]
        assert text == ("[0, 3] is not on this rank: rank 1 of 4 holds rows 0–3 of 8, columns 4–7 of 8 (1/4)")
        assert "out of bounds for axis 0 of shape (8, 8)" in page.ask(index="8, 0")["text"]
        assert "-8 to 7" in page.ask(index="0, 8")["text"]


@needs_fsdp
@in_fork
def test_scattered_rows_are_each_called_what_they_are():
    """Of 16 rows in two pieces, this rank of four has two from each."""
    from torch.distributed.tensor import DTensor
    from torch.distributed.tensor.placement_types import _StridedShard

    rank = LoneRank()
    t = DTensor.from_local(torch.arange(8.0).view(4, 2), rank.mesh, [_StridedShard(0, split_factor=2)], run_check=False)
    assert tnp.inspect(t).shard.held[0] == ((2, 4), (10, 12))
    with rank.alone():
        answer = Page(t).ask(size=[3, 2])
        assert answer["in_whole"] == {"places": [[2, 3, 10], [0, 1]], "origins": [None, 0]}
        assert answer["index"] == "2…10, :"
        assert Page(t).ask(index="10", size=[1, 1])["exact"] == ["4.0"]
        assert "not on this rank" in Page(t).ask(index="5")["text"]


@needs_fsdp
@in_fork
def test_what_is_whole_here_has_no_other_indices_and_a_part_of_a_sum_no_values():
    """A replicated one, an empty part, and one that is pending."""
    rank = LoneRank()
    every = rank.tensors()
    with rank.alone():
        assert Page(every["replicated"]).ask()["in_whole"] is None
        assert "rank" not in Page(every["replicated"]).ask()["legend"]
        assert Page(every["empty here"]).ask()["texts"] == []
        answer = Page(every["partial"]).ask()
        assert answer["type"] == "error"
        assert "a part of a sum that is not reduced yet, and no value" in answer["text"]
        with pytest.raises(tnp.NoDataError):
            tnp.to_numpy(every["partial"])


@needs_fsdp
@in_fork
def test_a_card_leads_to_the_part_and_its_lines_take_that():
    """Where this rank has values; the line for NumPy is one that runs on this rank alone."""
    rank = LoneRank()
    every = rank.tensors()
    with rank.alone():
        for name, has_values in (("sharded", True), ("uneven", True), ("partial", False), ("empty here", False)):
            assert tnp.TensorWidget(every[name]).has_values is has_values, name
        card = TensorWidget(every["sharded"], look=lambda tensor, info: Surroundings(name="d"))
        card._receive(None, {"type": "values", "open": True}, [])
        looked_at = the_navigator()._looked_at
        page = Page(looked_at.held(), name=looked_at.name, array_name=looked_at.array_name)
        answer = page.ask(size=[2, 2])
        assert answer["in_whole"]["places"] == [[6, 7], [0, 1]]
        assert eval(answer["numpy"], {"d": every["sharded"], "tnp": tnp}).tolist() == [[0, 1], [4, 5]]


@needs_fsdp
@in_fork
def test_a_weight_of_a_sharded_model_shows_this_rank_s_part():
    """Its values, figures and findings, in the tree and as a card, with the words that tell whose they are."""
    rank = LoneRank()
    model = rank.model()
    explorer = tnp.weights(model, expression="w")
    answers = []
    bound: dict[str, np.ndarray] = {}
    widget = WeightsWidget(
        explorer.values(), opened="w", anchor="a", binder=lambda name, make, _: bound.update({name: make()})
    )
    widget.send = lambda content, buffers=None: answers.append(content)
    widget._worker = AtOnce()

    def ask(kind, **request):
        widget._receive(None, {"type": kind, "page": "p", "number": len(answers), **request}, [])
        return answers[-1]

    local = model[0].weight.to_local().detach().numpy()
    with rank.alone():
        card = str(tnp.card(explorer["0.weight"]))
        assert str(local) not in card
        assert repr(local) in card
        assert "(local shard of rank 1)" in card
        assert "no values" not in card
        opened = ask("open", weight=0)
        assert (opened["text"], opened["note"], opened["hasValues"]) == (repr(local), "local shard of rank 1", True)
        assert opened["numpy"] == 'tnp.to_numpy(w[0].weight, shard="local")'
        assert ask("stats", weight=0)["type"] == "stats"
        assert ask("values", weight=0, open=True)["open"] is True
        assert "bound" in ask("bind", weight=0, name="a")["text"]
        assert np.array_equal(bound["a"], local)
