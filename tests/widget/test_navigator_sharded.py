"""The navigator in this rank's part of a tensor: each index that is said, or typed, is the one in the whole."""

from __future__ import annotations

import pytest
import torch
from child import in_fork
from lone_rank import LoneRank, needs_fsdp
from test_navigator import Page

import tensornp as tnp


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
