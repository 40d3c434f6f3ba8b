"""What DeepSpeed and Megatron note on a parameter is told as it is; neither is there, and nothing of it is run."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

import numpy as np
import pytest
import torch
from child import in_fork
from torch import nn

import tensornp as tnp


class ZeroParamStatus(Enum):
    """As DeepSpeed's."""

    AVAILABLE = 1
    NOT_AVAILABLE = 2
    INFLIGHT = 3


def partitioned(parameter: nn.Parameter, rank: int = 1, num_ranks: int = 4) -> nn.Parameter:
    """Have one rank of ZeRO-3 partition a parameter, as `deepspeed.zero.Init` does."""
    size = math.ceil(parameter.numel() / num_ranks)
    part = torch.zeros(size, dtype=parameter.dtype)
    part.ds_numel = size
    noted: dict[str, Any] = {
        "ds_status": ZeroParamStatus.NOT_AVAILABLE,
        "ds_shape": parameter.shape,
        "ds_numel": parameter.numel(),
        "ds_tensor": part,
        "ds_zero_partition_rank": rank,
        "ds_zero_partition_world_size": num_ranks,
        "ds_id": 0,
    }
    for name, value in noted.items():
        setattr(parameter, name, value)
    parameter.data = torch.empty(0, dtype=parameter.dtype)
    return parameter


def partitioned_model(rank: int = 1) -> nn.Module:
    """Return a layer of 15 parameters."""
    layer = nn.Linear(4, 3)
    for parameter in layer.parameters():
        partitioned(parameter, rank)
    return layer


SAID = (
    "partitioned by DeepSpeed: (3, 4) in all, nothing of it is here but this rank's flat part of 3 elements, "
    "t.ds_tensor; take it within deepspeed.zero.GatheredParameters(t), on all ranks together"
)


REFUSED = (tnp.plan, tnp.to_numpy, tnp.stats, tnp.locate, tnp.plot, lambda t: tnp.compare(t, t))


def test_a_partitioned_parameter_is_of_its_whole_shape_and_has_no_array():
    """Its card, its plan and its facts say so, with what gathers it."""
    weight = partitioned(nn.Parameter(torch.ones(3, 4)))
    info = tnp.inspect(weight)
    assert (info.shape, info.numel, info.data_state, info._form) == ((3, 4), 12, "remote", "partitioned")
    assert (info._numel_elsewhere, info._nbytes_elsewhere, info.storage, info.stride) == (9, 36, None, None)
    card = tnp.card(weight)
    assert SAID in card.text
    assert "(3, 4)" in card.text.splitlines()[0]
    assert "DeepSpeed" in card.text.splitlines()[0]
    assert "Shape: 12 elements in 48 bytes, 12 bytes on this rank." in card._repr_html_()
    assert "remote" in str(info)
    for refused in REFUSED:
        with pytest.raises(tnp.NoDataError) as told:
            refused(weight)
        assert str(told.value).rstrip(".") == SAID
    for shard in ("local", "full"):
        with pytest.raises(tnp.NoDataError, match="GatheredParameters"):
            tnp.to_numpy(weight, shard=shard)


@pytest.mark.parametrize("rank, here", [(0, 2), (2, 1), (3, 0)])
def test_what_fills_up_the_last_parts_is_not_counted(rank, here):
    """Each rank has as many elements, of which those of the last ones are none of the parameter's."""
    bias = partitioned(nn.Parameter(torch.ones(5)), rank)
    assert (tnp.inspect(bias)._numel_here, tnp.inspect(bias)._numel_elsewhere) == (here, 5 - here)
    bias.ds_tensor.data = torch.empty(1)
    assert tnp.inspect(bias)._numel_here == 0, "what is swapped out to a disk is not here"
    bias.ds_tensor = None
    assert "nothing of it is here;" in str(tnp.card(bias))


def test_the_weights_of_a_partitioned_model_are_counted_as_those_of_any_sharded_one():
    """In the explorer, the card of the module, and that of its parameters; none is read."""
    model = partitioned_model()
    explorer = tnp.weights(model)
    assert explorer.totals.parameters == 15
    assert explorer.spread == (4, 60)
    weight = explorer["weight"]
    assert (weight.shape, weight.numel, weight.nbytes, weight._nbytes_elsewhere) == ((3, 4), 12, 12, 36)
    assert weight.note == "3 of 12 elements, 12 of 48 bytes on this rank"
    assert "GatheredParameters" in weight.problem
    for refused in (weight.to_numpy, weight.plan, weight.stats, weight.values, lambda: weight.to_numpy(shard="full")):
        with pytest.raises(tnp.NoDataError) as told:
            refused()
        assert "GatheredParameters" in str(told.value)
        assert "to_local" not in str(told.value)
    table = explorer.scan()
    assert (len(table), set(table.failed)) == (0, {"weight", "bias"})
    assert "15 parameters, 4 on this rank" in str(tnp.card(model))
    assert "15 parameters" in str(tnp.card(model.parameters()))
    assert "60 bytes, 16 bytes on this rank" in str(tnp.card([*model.parameters()]))
    assert "weight" in tnp.compare(model, partitioned_model()).failed
    assert (explorer.totals.nbytes, explorer.nbytes_here) == (16, 16)
    assert repr(explorer).endswith("15 parameters, 60 bytes, on this rank 4 and 16 bytes>")


@in_fork
def test_the_table_of_memory_has_the_bytes_of_this_rank_s_flat_part():
    """That of the placeholder are these."""
    from gallery_child import shell
    from IPython.utils.capture import capture_output

    ip = shell()
    ip.user_ns["w"] = partitioned(nn.Parameter(torch.ones(3, 4)))
    with capture_output() as captured:
        ip.run_line_magic("tensors", "w")
    (output,) = captured.outputs
    assert "48 bytes, 12 bytes on this rank" in output.data["text/plain"]


def test_what_is_gathered_is_an_ordinary_parameter_again_and_what_is_on_its_way_is_not_read():
    """By the status that DeepSpeed keeps; its memory is written while it is in flight."""
    weight = partitioned(nn.Parameter(torch.ones(3, 4)))
    weight.data = torch.ones(3, 4)
    weight.ds_status = ZeroParamStatus.INFLIGHT
    for refused in (*REFUSED, lambda t: tnp.TensorWidget(t).array):
        with pytest.raises(tnp.NoDataError, match=r"being gathered by DeepSpeed: \(3, 4\) in all, and not all of it"):
            refused(weight)
    assert "no array" in tnp.card(weight).text
    assert not tnp.weights({"w": weight})["w"]._can_be_read
    weight.ds_status = ZeroParamStatus.AVAILABLE
    assert np.array_equal(tnp.to_numpy(weight), np.ones((3, 4)))
    assert tnp.inspect(weight).data_state == "available"
    assert tnp.weights({"w": weight}).spread is None


def test_what_only_looks_like_such_an_attribute_is_none():
    """Of another class, of another shape; nothing of the user's is compared or called."""

    class Loud:
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = None

    for status, shape in ((Loud(), (3, 4)), (ZeroParamStatus.NOT_AVAILABLE, Loud()), (2, torch.Size([3, 4]))):
        weight = nn.Parameter(torch.ones(3))
        weight.ds_status, weight.ds_shape, weight.tensor_model_parallel, weight.partition_dim = status, shape, shape, 0
        assert tnp.inspect(weight).data_state == "available"
        assert tnp.to_numpy(weight).shape == (3,)


@pytest.mark.parametrize(
    "dim, stride, said",
    [(0, 1, "tensor parallel along dimension 0"), (1, 2, "tensor parallel along dimension 1, stride 2")],
)
def test_what_megatron_has_cut_is_told_and_converted_as_ever(dim, stride, said):
    """Its part is an ordinary tensor; on the card, in the facts and in the notes of a weight."""
    layer = nn.Linear(4, 3)
    layer.weight.tensor_model_parallel, layer.weight.partition_dim, layer.weight.partition_stride = True, dim, stride
    # As Megatron notes on what each rank has whole.
    layer.bias.tensor_model_parallel, layer.bias.partition_dim, layer.bias.partition_stride = False, -1, 1
    assert tnp.inspect(layer.weight)._spread == (said,)
    assert tnp.inspect(layer.bias)._spread == ()
    assert f" | {said}" in tnp.card(layer.weight).text
    assert np.shares_memory(tnp.to_numpy(layer.weight), layer.weight.detach().numpy())
    explorer = tnp.weights(layer)
    assert (explorer["weight"].note, explorer["bias"].note) == (said, "")
    assert said in str(tnp.card(explorer))
