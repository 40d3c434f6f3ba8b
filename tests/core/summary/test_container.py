"""What a container's view says of it as a whole."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensornp as tnp
from tensornp.core.summary.container import summarize_container
from tensornp.core.summary.options import DisplayOptions

VIEWS = {
    "parts that overlap": lambda x: [x[:750], x[250:]],
    "one within another": lambda x: [x, x[10:20], x.view(20, 50)[:, 3]],
    "columns side by side": lambda x: x.view(20, 50).split([30, 10, 10], 1),
    "all columns but the last, and that": lambda x: (x.view(100, 10)[:, :-1], x.view(100, 10)[:, -1]),
    "every other element": lambda x: [x[::2], x[1::2]],
    "twice": lambda x: {"a": x, "b": x, "c": x.view(10, 100).T},
    "channels": lambda x: [x.view(10, 25, 4)[..., :3], x.view(10, 25, 4)[..., 3]],
    "arrays": lambda x: [x[:750].numpy(), x[250:], x.numpy()[::3]],
}


@pytest.mark.parametrize("name", VIEWS)
def test_each_byte_is_counted_once(name):
    """Whatever part of it each tensor and array has: those of the elements that any of them reaches."""
    numbers = torch.arange(1000, dtype=torch.int32)
    views = VIEWS[name](numbers)
    every = views.values() if isinstance(views, dict) else views
    reached = {int(one) for view in every for one in view.flatten()}
    assert summarize_container(views, DisplayOptions()).nbytes == 4 * len(reached)


def test_of_a_sparse_tensor_what_it_stores_is_counted():
    """Not the array that it would become, in the whole and in its row; once, beside its own values."""
    t = torch.sparse_coo_tensor([[5, 99_999], [7, 0]], torch.ones(2), (10**5, 10**5)).coalesce()
    nbytes = t.indices().nbytes + t.values().nbytes
    for container in ([t], {"t": t, "values": t.values()}, [t, t.indices(), t]):
        assert summarize_container(container, DisplayOptions()).nbytes == nbytes
    shown = tnp.card([t, torch.ones(1)]).text
    assert f"{nbytes} bytes" in shown
    assert "GiB" not in shown
    info = tnp.inspect(t)
    assert (info.nbytes, info._held_nbytes) == (4 * 10**10, nbytes)
    assert "2 stored, in 40 bytes" in tnp.card(t)._repr_html_()


def test_a_row_shows_the_first_values_along_the_last_dimension():
    """Of a number it shows that, and of nothing, nothing."""
    grid = torch.arange(24.0).view(2, 3, 4)
    lines = tnp.card([grid, torch.tensor(2.5), torch.empty(0, 3), grid.to_sparse()]).text.splitlines()[-4:]
    for line, ending in zip(lines, ("0., 1., 2., …", "2.5", "empty", "0., 1., 2., …"), strict=True):
        assert line.endswith(ending), line


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("values", "hidden", "says"),
    [
        ([0.0, 1.0, 2.0], [0, 1, 0], "0., --, 2."),
        ([True, False], [1, 0], "--, False"),
        ([1j, 2j], [0, 1], "0.+1.j, --"),
        ([3, 4, 5], [0, 1, 0], "3, --, 5"),
    ],
)
def test_the_hidden_elements_of_a_masked_array_are_not_numbers(values, hidden, says):
    """In a row of a table, as in that of a masked tensor."""
    masked = np.ma.masked_array(values, mask=hidden)
    assert f"  {says}" in str(tnp.card({"m": masked, "t": torch.ones(2)}))
