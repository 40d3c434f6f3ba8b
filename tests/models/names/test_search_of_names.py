"""Names: found by what is typed, matched between libraries, and shown."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, weight_norm

import tensornp as tnp
from tensornp.errors import BadRequestError
from tensornp.models.names.quoted import closest, cut_inside
from tensornp.models.names.search import fitting, none_fits
from tensornp.models.outline.columns import Asked
from tensornp.widget.weight_rows import found_in
from tensornp.widget.weight_tree import WeightTree

NAMES = [
    "encoder.layer.0.attention.query.weight", "encoder.layer.0.attention.query.bias", "encoder.layer.10.Norm.weight",
    "head.my weight", "head.a[0]",
]  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("query", [0, 1]),
        ("query weight", [0]),
        ("my weight", [3]),
        ("norm", [2]),
        ("Norm", [2]),
        ("NORM", []),
        ("layer.?.attention", [0, 1]),
        ("0 attn", [0, 1]),
        ("layer*weight", [0, 2]),
        ("*.bias", [1]),
        ("encoder*", [0, 1, 2]),
        ("*query", []),
        ("layer.1? weight", [2]),
        ("layer.[0 1].", [0, 1]),
        ("a[0]", []),
        ("a[[]0]", [4]),
        ("query nowhere", []),
        ("layer.{0..5} weight", [0]),
        ("layer.{1,10}", [2]),
        ("layer.{1}", []),
        ("encoder.layer.{0..10}.{Norm,attention}*", [0, 1, 2]),
        ("{ query, Norm } weight", [0, 2]),
        ("layer.{9..2}", []),
        ("{", []),
    ],
)
def test_what_is_typed_finds(typed, found):
    """All words of it, whatever their order."""
    explorer = tnp.weights({name: torch.ones(1) for name in NAMES})
    assert list(explorer.find(typed)) == [NAMES[i] for i in found]


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 9), (3, 27), (7, 1234), (90, 110), (0, 1999), (199, 200)])
def test_a_range_in_braces_is_of_its_numbers_and_no_others(first, last):
    """However many there are; a number is found whole."""
    names = [f"w.{i}" for i in range(2100)]
    assert fitting(f"{{{first}..{last}}}", names) == [*range(first, last + 1)]
    with pytest.raises(BadRequestError, match="a range must have at most 10,000 numbers"):
        fitting("w.{0..99999999999}", names)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("querry", "no name fits 'querry'; the closest is 'query'"),
        ("layer.0 wieght", "no name fits 'layer.0 wieght'; the closest is 'weight'"),
        ("*atention*", "no name fits '*atention*'; the closest is 'attention'"),
        ("zzz wieght", "no name fits 'zzz wieght'; the closest is 'weight'"),
        ("bias head", "no name fits 'bias head'"),
        ("zzz", "no name fits 'zzz'"),
    ],
)
def test_where_nothing_is_found_the_closest_is_named(typed, says):
    """Of the first word that no name has; none where each has been found by itself."""
    assert none_fits(typed, NAMES) == says


def test_a_text_between_slashes_is_a_regular_expression():
    """As in the search of a page; one that is none is refused."""
    explorer = tnp.weights({f"h.{i}.{name}": torch.ones(1) for i in range(3) for name in ("weight", "bias")})
    assert list(explorer.find(r"/h\.[12].*bias/")) == ["h.1.bias", "h.2.bias"]
    with pytest.raises(tnp.BadRequestError, match="is not a regular expression: missing"):
        explorer.find("/(/")


@pytest.mark.parametrize(
    ("words", "found"),
    [("frozen", ["0.weight"]), ("trained", ["0.bias"]), ("linear frozen", ["0.weight"]), ("tied", ["2.w", "3.w"]),
     ("buffer", ["1.running_mean", "1.running_var", "1.num_batches_tracked"]), ("grad", ["0.bias"])],
)  # fmt: skip
def test_words_of_no_name_find_kinds_and_states(words, found):
    """What the columns of a tree say is found as well."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3, affine=False))
    model[0].weight.requires_grad_(False)
    for name in ("2", "3"):
        model.add_module(name, torch.nn.Module())
        model[-1].w = torch.nn.Buffer(torch.ones(2)) if name == "2" else model[-2].w
    explorer = tnp.weights(model)
    assert [name for name in explorer.find(words) if words != "buffer" or name[0] == "1"] == found


def test_words_of_no_name_find_classes_dtypes_and_findings():
    """In a tree, and but for the findings with `find`; names come first, and a class may be further out."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.LayerNorm(3, dtype=torch.float64))
    assert list(tnp.weights({"net": model}).find("Sequential weight")) == ["net.0.weight", "net.1.weight"]
    with torch.no_grad():
        model[1].bias[0] = torch.nan
    explorer = tnp.weights(model)
    assert list(explorer.find("linear")) == list(explorer.find("Linear 3")) == ["0.weight", "0.bias"]
    assert list(explorer.find("float64 weight")) == ["1.weight"]
    assert list(explorer.find("*.weight")) == ["0.weight", "1.weight"]
    tree = WeightTree(list(explorer.values()), explorer.classes)
    tree.found |= found_in(tree.weights, lambda *_: True)[0]
    for search, names in (("nan", ["1.bias"]), ("Linear weight", ["0.weight"]), ("zzz", [])):
        assert [one.name for one in tree.listed(Asked(search))] == names


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("encoder.0.weight", "encoder.0.weight"),
        ("encoder.layer.3.attention.weight", "encoder.la…ion.weight"),
        ("encoder.layer.3.attention.bias", "encoder.la…ntion.bias"),
        ("a" * 10**7 + "b", "a" * 10 + "…" + "a" * 9 + "b"),
        ("\n" * 1000, "\\n\\n\\n\\n\\n…\\n\\n\\n\\n\\n"),
    ],
)
def test_a_long_name_keeps_both_of_its_ends(name, shown):
    """In so many characters."""
    assert cut_inside(name, 21) == shown
    assert len(shown) <= 21


@pytest.mark.slow
@pytest.mark.parametrize("number", [10, 1500])
@pytest.mark.parametrize("wrong", ["layer.{}.v", "lyer.{}.w", "layer{}.w", "layer.{}"])
def test_the_closest_of_very_many_is_told(number, wrong):
    """Those that begin and end alike are compared by all of their characters."""
    names = [f"layer.{i}.w" for i in range(number)]
    last = number - 1
    assert closest(wrong.format(last), names) == f"; the closest is 'layer.{last}.w'"
    assert closest("something else", names) == ""


SAME = {
    "LoRA, saved by PEFT": ("base_model.model.q.lora_A.default.weight", "base_model.model.q.lora_A.weight"),
    "LoRA of another name": ("q.lora_B.style.weight", "q.lora_B.weight"),
    "LoRA of an embedding": ("wte.lora_embedding_A.default", "wte.lora_embedding_A"),
    "DoRA": ("q.lora_magnitude_vector.default.weight", "q.lora_magnitude_vector"),
    "modules that are saved whole": ("score.modules_to_save.default.weight", "score.weight"),
    "a layer below an adapter": ("q.base_layer.weight", "q.weight"),
    "DistributedDataParallel": ("a.module.weight", "a.weight"),
    "torch.compile below FSDP": ("a._fsdp_wrapped_module._orig_mod.weight", "a.weight"),
    "torch.compile": ("a._orig_mod.weight", "a.weight"),
    "weight_norm's magnitude": ("a.parametrizations.weight.original0", "a.weight_g"),
    "weight_norm's direction": ("a.parametrizations.weight.original1", "a.weight_v"),
}


@pytest.mark.parametrize("writers", SAME)
def test_one_weight_by_the_names_of_two_writers(writers):
    """Beside another weight, whichever of the two is first."""
    one, other = SAME[writers]
    w, b = torch.randn(3, 2), torch.randn(2)
    first, second = {one: w, "other.bias": b}, {other: w.clone(), "other.bias": b.clone()}
    assert tnp.compare(first, second).equal
    assert tnp.compare(second, first).equal


def test_two_adapters_are_not_taken_for_one():
    """Each is found by its own name alone."""
    live = {f"q.lora_A.{name}.weight": torch.randn(2, 2) for name in ("default", "style")}
    found = tnp.compare(live, {"q.lora_A.weight": live["q.lora_A.default.weight"]})
    assert set(found.missing) == set(live)


def test_both_kinds_of_weight_norm_are_the_same_weights():
    """A layer of the old function, loaded into one of the new, as torch itself does it."""
    with pytest.warns(FutureWarning, match="weight_norm"):
        old = weight_norm(nn.Linear(4, 3))
    new = parametrizations.weight_norm(nn.Linear(4, 3))
    new.load_state_dict(old.state_dict())
    assert tnp.compare(old.state_dict(), new.state_dict()).equal
