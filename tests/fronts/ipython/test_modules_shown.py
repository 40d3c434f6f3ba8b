"""A module at the prompt: a table of its parameters and buffers, and what it prints itself one fold away."""

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


def test_a_module_is_a_table_of_what_it_holds(shell):
    """Names that evaluate, whether each is trained, and the gradients; torch's own text is there."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    model[0].bias.requires_grad_(False)
    model(torch.ones(2, 4)).sum().backward()
    text, page = shown(shell, model)
    own, heading = text.rsplit("\n", 1)
    assert own == repr(model)
    assert heading == "Sequential of 7 tensors · 21 parameters · 116 bytes · each cpu, array shared"
    for name in ("[0].weight", "[0].bias", "[1].running_mean", "[1].num_batches_tracked"):
        assert f">{name}<" in page
        assert eval(f"model{name}") is not None
    assert "requires grad · has .grad" in page
    assert "frozen" in page
    assert repr(model) in page.partition("<summary>as torch prints it</summary>")[2]


def test_tied_parameters_are_counted_once(shell):
    """And a module that holds itself is listed once."""
    model = torch.nn.Module()
    model.one, model.other = torch.nn.Linear(4, 3, bias=False), torch.nn.Linear(4, 3, bias=False)
    model.other.weight = model.one.weight
    model.one.__dict__["_modules"]["above"] = model
    model.__class__ = type("Tied", (torch.nn.Module,), {"__repr__": lambda self: "Tied()"})
    assert shown(shell, model)[0] == "Tied()\nTied of 2 tensors · 12 parameters · 48 bytes · each float32, cpu, " + (
        "requires grad, array shared"
    )


def test_a_large_module_is_bounded_and_totals_count_all(shell):
    """No value is read of those that are left out."""
    model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(300)))
    page = shown(shell, model)[1]
    assert "560 more left out" in page
    assert "600 tensors · 1,800 parameters · 7 KiB" in page


class Raising(torch.nn.Linear):
    """Raises for its text."""

    def extra_repr(self):
        raise RuntimeError("no")


class Displayed(torch.nn.Linear):
    """Has a display of its own."""

    def _repr_html_(self):
        return "<b>mine</b>"


@pytest.mark.parametrize("module", [torch.nn.ReLU(), torch.nn.Sequential(), Displayed(2, 2)], ids=["a", "b", "own"])
def test_a_module_without_tensors_or_with_a_display_of_its_own_is_shown_as_before(shell, module):
    """The very bundle of IPython."""
    expected, _ = DisplayFormatter().format(module)
    assert shell.show(module) == expected


def test_odd_modules_are_shown_all_the_same(shell):
    """One that raises for its text, one without shapes, a scripted one, one inside something else."""
    assert shown(shell, Raising(2, 2))[0].startswith("Raising of 2 tensors · 6 parameters · ")
    lazy = shell.show(torch.nn.LazyLinear(3))
    assert "LazyLinear of 2 tensors · 0 parameters" in lazy["text/plain"]
    scripted = torch.jit.script(torch.nn.Linear(2, 3))
    assert "of 2 tensors · 9 parameters" in shell.show(scripted)["text/plain"]
    assert shell.show([torch.nn.Linear(2, 2)])["text/plain"] == "[Linear(in_features=2, out_features=2, bias=True)]"
    assert "<b>" not in shell.show(type("<b>", (torch.nn.Linear,), {})(2, 2))["text/html"]


def test_a_model_on_the_meta_device_and_in_several_dtypes(shell):
    """Nothing is claimed of all that holds of some."""
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2, device="meta"), "b": torch.nn.Linear(2, 2).bfloat16()})
    text, page = shown(shell, model)
    assert "each requires grad" in text
    assert "float32 copy" in page
    assert "a meta tensor has a shape" in page
    assert "no array" in page
