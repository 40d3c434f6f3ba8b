"""The table of all tensors and arrays of a namespace: what it says of each, and in few words."""

from __future__ import annotations

import numpy as np
import torch

from tensornp.core.memory.storages import Survey
from tensornp.core.summary.census import census_of
from tensornp.render.collections.census import census_document


def history_of(tensor):
    """Return the names by which IPython keeps a tensor that a hundred cells have shown."""
    outputs = {i: tensor for i in range(100)}
    return {"Out": outputs, "_oh": outputs}


def census_in(namespace, **arguments):
    return census_of(Survey(namespace, 600), **{"max_rows": 40, **arguments})


def test_the_table_does_not_say_that_a_lazy_copy_has_the_same_elements():
    """As the card: a write to one is not seen in the other, although both lie at one address until then."""
    tensor = torch.zeros(4)
    copy = torch.ops.aten._lazy_clone(tensor)
    (group,) = census_in({"tensor": tensor, "copy": copy}).groups
    assert group.rows[1].shared_with == "tensor: same storage"
    copy[0] = 1
    assert tensor[0] == 0


def test_what_is_shown_often_does_not_hide_the_other_tensors():
    """Each display adds an entry of `Out`, which is no row of its own; a hundred views leave a row to each other."""
    big = torch.zeros(1000)
    views = {f"view{i}": big[i:] for i in range(100)}
    namespace = {"big": big, **history_of(big), **views, "small": torch.zeros(3), "one": np.ones(1)}
    census = census_in(namespace)
    assert [group.rows[0].name for group in census.groups] == ["big", "small", "one"]
    assert sum(len(group.rows) for group in census.groups) == 40
    assert census.num_left_out == 101 + 2 - 40
    assert not any(row.name.startswith("Out[") for group in census.groups for row in group.rows)


def test_the_list_of_an_optimizer_is_no_name_of_a_parameter():
    """As little as the history is; what only an optimizer has is named by it."""
    model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(3)])
    census = census_in(
        {"model": model, "opt": torch.optim.SGD([*model.parameters(), torch.nn.Parameter(torch.ones(7))])}
    )
    names = [row.name for group in census.groups for row in group.rows]
    assert names == [
        "opt.param_groups[0]['params'][6]",
        *(f"model[{i}].weight" for i in range(3)),
        *(f"model[{i}].bias" for i in range(3)),
    ]


def test_a_sparse_tensor_joins_the_names_of_its_parts():
    """Also if they come first, and whatever shares one of them."""
    sparse = torch.eye(3).to_sparse()
    names = {"values": sparse._values(), "indices": sparse._indices(), "row": sparse._indices()[0], "sparse": sparse}
    (group,) = census_in({**names, "again": sparse}).groups
    assert {row.name for row in group.rows} == {*names, "again"}
    assert group.nbytes == 3 * 4 + 2 * 3 * 8
    first, second = census_in({"a": torch.ones(9), **names, "b": torch.ones(1)}).groups[:2]
    assert (len(first.rows), len(second.rows)) == (4, 1)


def test_weights_and_their_gradients_belong_to_the_model():
    """Not to the optimizer, nor to another name of one weight."""
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(9)])
    model(torch.ones(1, 4)).sum().backward()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer.step()
    census = census_in({"optimizer": optimizer, "model": model, "w": model[0].weight})
    assert {one.name: one.what for one in census.variables} == {
        "model": "Sequential, 18 parameters and 18 gradients", "optimizer": "SGD, 18 states",
    }  # fmt: skip


def test_many_tensors_are_a_line_for_each_variable():
    """With class, number and bytes, the largest first; all names are in a fold below, and few need no such lines."""
    model = torch.nn.Sequential(*[torch.nn.Linear(4, i + 1) for i in range(9)])
    x = torch.zeros(50, 50)
    namespace = {"model": model, "x": x, "few": {"x": x, "a": torch.zeros(3)}}
    census = census_in(namespace)
    names = [(one.name, one.what, one.nbytes) for one in census.variables]
    assert names[0] == ("x", "(50, 50) float32", 10_000)
    assert names[1] == ("model", "Sequential, 18 parameters", 4 * 5 * sum(range(1, 10)))
    assert names[2] == ("few", "dict, 1 tensor of its own, 1 shared", 12)
    text, page = census_document(census).text(), census_document(census).html()
    assert "model[8].weight" not in text
    assert "model[8].weight" in page.partition("<summary>all 21 names</summary>")[2]
    assert "model[1].weight" in census_document(census_in({"model": model[:3]})).text()
