"""`%weights` in a real shell, and an explorer as the value of a cell."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from safetensors.torch import save_file


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A model on disk, in the folder where the notebook runs."""
    save_file({f"layers.{i}.w": torch.full((2, 3), float(i)) for i in range(3)}, tmp_path / "model.safetensors")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_path_or_an_expression(shell, folder):
    """With and without quotes; in a home; what is both is the path."""
    for line in ("%weights model.safetensors", "%weights './model.safetensors'", f"%weights {folder};"):
        text, html = shell.shown(line)
        assert "3 weights · 18 elements · 72 bytes" in text
        assert "layers.{0..2}.w" in text
        assert "layers.{0..2}.w" in html
    shell.run("import torch; model = torch.nn.Linear(3, 4)")
    text, _ = shell.shown("%weights model")
    assert text.startswith("model · Linear · 2 weights · 16 parameters · 64 bytes · all parameters, float32, cpu, grad")


def test_a_model_in_memory_is_searched_for_nan(shell):
    """As the card of the model is; the name of the weight and its number stand in the table."""
    shell.run("import torch; model = torch.nn.Linear(3, 4); model.weight.data[1, 2] = torch.nan")
    text, _ = shell.shown("%weights model")
    assert "1 weight has NaN: weight" in text
    assert "weight · 1 NaN" in text


def test_the_explorer_is_bound_and_shown(shell, folder):
    """As the value of a cell it is the same table."""
    text, _ = shell.shown("%weights -o w model.safetensors")
    shell.run("w['layers.1.w'].to_numpy(0).tolist()")
    assert shell.namespace["_"] == [1.0, 1.0, 1.0]
    output = shell.show_within_modes(shell.namespace["w"])
    assert output["text/plain"] == text
    assert "<table" in output["text/html"]


def test_a_scan_as_the_value_of_a_cell_is_a_table(shell):
    """As text and HTML; its repr is a line, and inside a list it is that."""
    shell.run("import tensornp as tnp; w = tnp.weights({'a': torch.tensor([float('nan')]), 'b': torch.ones(3)})")
    table = shell.run("t = w.scan(); t")
    output = shell.show_within_modes(table)
    heading = "2 weights · 1 finding, 1 remark"
    assert output["text/plain"].startswith(f"{heading}\n1 weight has NaN: a\nname\na · NaN\n1 all ones or all zeros: b")
    assert heading in output["text/html"]
    assert "<table" in output["text/html"]
    assert repr(table) == "<ScanTable of 2 weights, 1 finding, 1 remark>"
    assert shell.show_within_modes([table])["text/plain"] == f"[{table!r}]"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%weights", "there is no expression; usage: %weights"),
        ("%weights nothing", "name 'nothing' is not defined; define it first"),
        ("%weights modle.safetensors", "there is no 'modle.safetensors'; the closest is 'model.safetensors'"),
        (
            "%weights modle.safetensorz",
            "name 'modle' is not defined; define it first; the closest is 'model.safetensors'",
        ),
        (
            "folder = {}\n%weights folder.safetensors",
            "'dict' object has no attribute 'safetensors'; the closest is 'model.safetensors'",
        ),
        (
            "models = 1\n%weights modle.safetensorz",
            "name 'modle' is not defined; define it first; the closest is 'model.safetensors'",
        ),
        ("%weights ./empty", "there is no 'empty'"),
        (
            "%weights [1][0]",
            "weights takes a module, an optimizer, a dictionary or list of tensors, or a path, not an int",
        ),
        ("%weights missing.pt", "there is no 'missing.pt'"),
        ("%weights modle.gguf;", "there is no 'modle.gguf'"),
        ("%weights ~/nowhere.pt", "nowhere.pt'"),
        ("%weights ''", "the path is empty"),
        ("%weights " + "+".join(["'a'"] * 12_000), "is not an expression ("),
        ("%weights -o print model.safetensors", "print already names something of Python"),
    ],
)
def test_bad_input_gets_a_sentence(shell, folder, line, says):
    """What, where, the cure; no traceback."""
    assert says in shell.fail(line)


def test_models_and_files_are_compared_by_the_magic(shell, folder):
    """A path, an expression, in any mix."""
    shell.run("import torch; model = torch.nn.Linear(3, 2); torch.save(model.state_dict(), 'a.pt')")
    shell.run("with torch.no_grad(): model.weight[0, 0] += 1")
    text, _ = shell.shown("%tensordiff a.pt model")
    assert "a.pt and model: 1 of 2 weights differ" in text
    assert "1 of 6 differs, first at [0, 0]" in text
    assert "same bits" in shell.shown("%tensordiff 'a.pt' a.pt")[0]


def test_the_largest_change_is_told_by_the_norm_that_it_is_measured_by(shell):
    """That of the weight, or the median where that is larger, as of a small bias."""
    shell.run("import copy, torch; net = torch.nn.Sequential(torch.nn.Linear(9, 9), torch.nn.Linear(9, 9))")
    shell.run(
        "wide, low = copy.deepcopy(net), copy.deepcopy(net); low[1].bias.data *= 1.02; wide[1].weight.data *= 1.02"
    )
    assert "they changed by up to 2% of their size" in shell.shown("%tensordiff net wide")[0]
    text, _ = shell.shown("%tensordiff net low")
    said = re.search("they changed by up to (.*)% of the median norm of weights", text)
    median = re.search(r"the median norm of weights \((.*)\) if that is larger", text)
    changed = 0.02 * shell.run("net[1].bias.norm().item()")
    assert float(said[1]) == pytest.approx(100 * changed / float(median[1]), rel=0.05)
    shell.run("low[0].weight.data *= 1.03")
    assert "by up to 3% of their size or the median norm of weights" in shell.shown("%tensordiff net low")[0]


def test_optimizers_are_compared_by_the_magic(shell):
    """By the names that the notebook has for their parameters."""
    shell.run("import copy; net = torch.nn.Linear(2, 3); net2 = copy.deepcopy(net)")
    shell.run("opt, opt2 = (torch.optim.SGD(n.parameters(), lr=1, momentum=0.5) for n in (net, net2))")
    shell.run(
        "net(torch.ones(2)).sum().backward(); opt.step(); (2 * net2(torch.ones(2)).sum()).backward(); opt2.step()"
    )
    text, html = shell.shown("%tensordiff opt opt2")
    assert text.startswith("opt and opt2: 2 of 2 states differ")
    assert "state.weight.momentum_buffer" in text
    assert "state.weight.momentum_buffer" in html.replace("<wbr>", "")
    assert shell.shown("%tensordiff opt opt")[0].startswith("opt (first) and opt (second): same bits")


def test_magics_take_a_weight(shell, folder):
    """As they take its array; what tells of a conversion says what has told it."""
    shell.run("import tensornp as tnp; e = tnp.weights('model.safetensors')['layers.0.w']")
    assert np.array_equal(shell.run("%tonumpy e"), shell.namespace["e"].to_numpy())
    shell.run("%tonumpy -c -o a e")
    assert shell.namespace["a"].flags.writeable
    shell.run("%tensorstats e")
    assert "mean" in shell.displayed[0]["text/plain"]
    assert shell.fail("%tonumpy --explain e").startswith("there is no tensor in this ")
