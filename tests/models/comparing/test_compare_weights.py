"""Two models side by side, in memory and on disk: what is missing, and what moved most."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from unchanged import unchanged

import tensornp as tnp
from tensornp.models.names.matching import matched
from tensornp.render.models.comparison import weights_comparison_document


def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(40, 40), torch.nn.Linear(40, 40), torch.nn.BatchNorm1d(40))


def tuned(model: torch.nn.Module) -> torch.nn.Module:
    """A fine-tune of `model`: a change of low rank, a NaN, a scaled and a cast weight."""
    torch.manual_seed(1)
    made = copy.deepcopy(model)
    with torch.no_grad():
        made[0].weight += torch.randn(40, 4) @ torch.randn(4, 40) * 1e-3
        made[1].bias[3] = torch.nan
        made[2].weight *= 0.5
    made[1].weight = torch.nn.Parameter(made[1].weight.bfloat16())
    return made


def test_what_moved_is_told_by_name_and_comes_first():
    """Each as of two tensors; what is the same comes last."""
    first = net()
    second = tuned(first)
    with unchanged(first[0].weight):
        found = tnp.compare(first, second)
    verdicts = {name: found[name].verdict for name in found}
    assert verdicts["1.bias"] == "1 of 40 differs, first at [3]"
    assert verdicts["2.weight"] == "nearly all elements differ"
    assert verdicts["0.weight"] == "nearly all elements differ"
    assert verdicts["1.weight"] == "cast from float32"
    assert next(iter(found)) == "1.bias"
    assert found.changed() == list(found)[:4]
    assert found.retyped == ("1.weight",)
    assert found.verdict == verdicts
    expected = (second[0].weight - first[0].weight).double().norm() / first[0].weight.double().norm()
    assert found.relative["0.weight"] == pytest.approx(expected.item(), rel=1e-6)
    assert not found.equal
    assert tnp.compare(first, net()).same_bits
    assert "4 of 9 weights differ" in repr(found)


def test_files_are_compared_with_what_is_in_memory(tmp_path):
    """In any mix, with the prefix of one side taken off, and what only one has named."""
    first = net()
    second = tuned(first)
    save_file(first.state_dict(), tmp_path / "base.safetensors")
    kept = {f"module.{name}": value for name, value in second.state_dict().items() if name != "2.bias"}
    torch.save({"model": {**kept, "module.extra": torch.ones(1)}}, tmp_path / "tuned.pt")
    assert tnp.compare(tmp_path / "base.safetensors", first).same_bits
    assert tnp.compare(first.state_dict(), str(tmp_path / "base.safetensors")).same_bits
    found = tnp.compare(tnp.weights(tmp_path / "base.safetensors"), tmp_path / "tuned.pt")
    assert found.missing == ("2.bias",)
    assert found.unexpected == ("model.module.extra",)
    assert found._pairs["0.weight"] == "model.module.0.weight"
    assert found.verdict == {name: one for name, one in tnp.compare(first, second).verdict.items() if name != "2.bias"}
    text = weights_comparison_document(found).text()
    assert "tuned.pt has 'model.module.' before its names: a weight is found by either" in text
    assert "1 only in base.safetensors: 2.bias" in text
    assert found["module.0.weight".removeprefix("module.")] is found["model.module.0.weight"]
    with pytest.raises(KeyError, match=r"2\.bias"):
        found["2.bias"]


def test_shapes_are_told():
    """What cannot be compared is no error."""
    found = tnp.compare({"x": torch.ones(3), "y": torch.ones(2)}, {"x": torch.ones(4), "y": torch.ones(2)})
    assert found.reshaped == ("x",)
    assert found["x"].verdict == "shapes differ: (3,) and (4,)"
    found = tnp.compare(
        {"x": torch.ones(3, device="meta"), "y": torch.ones(2)}, {"x": torch.ones(3), "y": torch.ones(2)}
    )
    assert "x" in found.failed
    assert not found.equal
    assert "x was not compared: " in weights_comparison_document(found).text()


@pytest.mark.parametrize(
    ("first", "second", "prefixes"),
    [
        (["a.w", "b.w"], ["a.w", "b.w"], ("", "")),
        (["a.w", "b.w"], ["module.a.w", "module.b.w"], ("", "module.")),
        (["model.a.w"], ["_orig_mod.a.w"], ("", "")),
        (["model.a.w", "ema.a.w"], ["a.w"], ("model.", "")),
        (["a.w"], ["_orig_mod.module.a.w"], ("", "_orig_mod.module.")),
        (["model.a.w", "model.b.w", "head"], ["model.a.w", "model.b.w", "head"], ("", "")),
        ([], ["module.a"], ("", "")),
        (["module.w", "w"], ["module.module.w", "module.w"], ("", "module.")),
    ],
)
def test_common_prefixes_are_taken_off_where_more_names_are_equal_then(first, second, prefixes):
    """Of either side, or both; and never where names are equal as they are."""
    found = matched(first, second)
    assert found.prefixes == prefixes
    assert len(found.pairs) == min(len(first), len(second))


def test_what_is_shown_is_escaped():
    """Names come from files."""
    hostile = "<script>\x1b[2J"
    found = tnp.compare({hostile: torch.ones(1)}, {hostile: torch.zeros(1)})
    assert "<script>" not in weights_comparison_document(found).html()
    assert "\x1b" not in weights_comparison_document(found).text() + repr(found)


def test_what_moved_most_beside_the_others_comes_first():
    """What was zero has not moved infinitely, integers count, and repeated layers stand in one line."""
    torch.manual_seed(0)
    layers = {f"layers.{i}.weight": torch.randn(8, 8) for i in range(4)}
    before = {
        "bias": torch.zeros(8), "steps": torch.tensor(3), **layers, "head": torch.randn(8, 8), "still": torch.ones(8)
    }  # fmt: skip
    after = {name: one.clone() for name, one in before.items()}
    after["bias"] += 0.01
    after["steps"] += 1
    for i in range(4):
        after[f"layers.{i}.weight"] *= 1.01 + 0.01 * i
    after["head"] += 1
    found = tnp.compare(before, after)
    norms = [one.norm().item() for name, one in before.items() if name not in ("bias", "steps")]
    assert found._median_norms[""] == pytest.approx(np.median(norms), rel=1e-6)
    assert found.relative["bias"] == math.inf
    assert found.moved["bias"] == pytest.approx(0.01 * 8**0.5 / found._median_norms[""], rel=1e-4)
    for name in ("head", "layers.3.weight"):
        delta, norm = (after[name] - before[name]).norm().item(), before[name].norm().item()
        assert (found[name]._norm, found[name]._norm_of_difference) == pytest.approx((norm, delta), rel=1e-5)
        assert found.moved[name] == pytest.approx(delta / max(norm, found._median_norms[""]), rel=1e-5)
    assert found.changed()[:2] == ["head", "layers.3.weight"]
    assert found.changed()[-1] == "steps"
    text = weights_comparison_document(found).text()
    rows = [line.split()[0] for line in text[text.index("name ") :].splitlines()[1:]]
    assert rows[:4] == ["head", "layers.{0..3}.weight", "bias", "steps"]
    assert "from 0" in next(line for line in text.splitlines() if line.startswith("bias"))
    assert "3 to 4" in next(line for line in text.splitlines() if line.startswith("steps"))
    after["layers.1.weight"] += 1
    after["layers.2.weight"][0, 0] = math.nan
    text = weights_comparison_document(tnp.compare(before, after)).text()
    assert "layers.{0..3}.weight × 4 · 1 NaN or infinite now in layers.2.weight" in text
    assert "inf" not in text.replace("infinite", "")


def test_a_model_is_found_in_a_container_under_whatever_key():
    """If one name alone ends so; which of several layers is meant nobody knows."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    optimizer = torch.optim.SGD(model.parameters())
    before = copy.deepcopy(model.state_dict())
    for key in ("net", "a.b"):
        assert tnp.compare(before, {key: model, "opt": optimizer}).same_bits
        assert tnp.compare({key: before}, model)._prefixes == (f"{key}.", "")
    assert len(tnp.compare(model[0].state_dict(), model)) == 0


def test_a_merged_adapter_is_seen_by_its_directions():
    """And looking moves no random state; a dense change of full rank is in many."""
    first = net()
    second = tuned(first)
    found = tnp.compare(first, second)
    state = torch.random.get_rng_state()
    assert found.directions("0.weight") > 0.999
    assert torch.equal(torch.random.get_rng_state(), state)
    difference = (second[0].weight - first[0].weight).detach().double()
    sizes = torch.linalg.svdvals(difference).square()
    assert found.directions("0.weight", 2) == pytest.approx((sizes[:2].sum() / sizes.sum()).item(), rel=1e-3)
    with torch.no_grad():
        second[0].weight += torch.randn(40, 40)
    assert tnp.compare(first, second).directions("0.weight") < 0.7
    assert tnp.compare({"w": torch.zeros(4, 4)}, {"w": torch.eye(4) * 1e38}).directions("w", 1) == pytest.approx(0.25)
    turned = torch.diag(torch.tensor([1, 1j, 1j, 1j]))
    assert tnp.compare({"w": torch.zeros_like(turned)}, {"w": turned}).directions("w", 1) == pytest.approx(0.25)
    for odd in (-1, 2.5, None):
        with pytest.raises(tnp.BadRequestError, match="num_directions must be a number"):
            found.directions("0.weight", odd)
    for name, says in (("2.bias", "is no matrix"), ("1.weight.x", "there is no comparison")):
        with pytest.raises(tnp.TensornpError, match=says):
            found.directions(name)
