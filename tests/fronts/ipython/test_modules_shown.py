"""A module at the prompt: a table of its parameters and buffers."""

from __future__ import annotations

import html

import pytest
import torch
from IPython.core.formatters import DisplayFormatter
from unchanged import unchanged


def shown(shell, module):
    """Return the text and the HTML of a module, and check that looking changed none of its tensors."""
    with unchanged(*module.parameters(), *module.buffers()):
        data = shell.show_within_modes(module)
    return data["text/plain"], html.unescape(data["text/html"])


def test_a_module_is_a_folded_table_of_its_weights(shell):
    """In the text too; layers that are alike are one line."""
    layers = [torch.nn.Linear(4, 4) for _ in range(100)]
    model = torch.nn.Sequential(*layers, torch.nn.BatchNorm1d(4))
    model[0].bias.requires_grad_(False)
    text, page = shown(shell, model)
    heading = (
        "Sequential · 205 weights · 2,008 parameters · 2,017 elements stored · 7.9 KiB · 2,004 trainable · all cpu"
    )
    assert text.splitlines()[0] == heading
    assert "{0..99}.weight" in text
    assert "{0..99}.bias" in text
    assert "100.num_batches_tracked" in text
    assert "some frozen" in text
    assert page.count("<tr>") < 10


def test_what_is_not_finite_in_a_small_module_is_said_first(shell):
    """In amber, with the weight that has it; of many bytes nothing is read unasked."""
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(3)])
    with torch.no_grad():
        model[1].weight[2, 2] = torch.nan
    text, page = shown(shell, model)
    assert text.splitlines()[1] == "1 weight has NaN: 1.weight"
    assert "{0..2}.weight · 1 NaN in 1.weight" in text
    assert ">1 weight has NaN</span>" in page
    with torch.no_grad():
        model[2].bias[0] = torch.inf
    assert shown(shell, model)[0].splitlines()[2] == "1 weight has infinities: 2.bias"
    shell.run("%config TensorDisplay.max_read_nbytes = 140")
    said = shown(shell, model)[0].splitlines()
    assert said[1] == "at least 1 weight has infinities: 2.bias"
    assert said[2] == "NaN was looked for in 4 of 6 weights of floats; Read values or %tensorstats looks in all"
    shell.run("%config TensorDisplay.max_read_nbytes = 0")
    assert "NaN" not in shown(shell, model)[0]


class Displayed(torch.nn.Linear):
    def _repr_html_(self):
        return "<b>mine</b>"


@pytest.mark.parametrize("module", [torch.nn.ReLU(), torch.nn.Sequential(), Displayed(2, 2)], ids=["a", "b", "own"])
def test_a_module_without_tensors_or_with_a_display_of_its_own_is_shown_as_before(shell, module):
    """The very bundle of IPython."""
    expected, _ = DisplayFormatter().format(module)
    assert shell.show(module) == expected
