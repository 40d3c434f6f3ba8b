"""What is typed to find weights: forgiving where a word is meant, exact where a star, a capital or slashes say so."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp
from tensornp.errors import BadRequestError
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
     ("buffer", ["1.running_mean", "1.running_var", "1.num_batches_tracked"])],
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
    """In a tree, and but for the findings with `find`; names come first."""
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.LayerNorm(3, dtype=torch.float64))
    with torch.no_grad():
        model[1].bias[0] = torch.nan
    explorer = tnp.weights(model)
    assert list(explorer.find("linear")) == list(explorer.find("Linear 3")) == ["0.weight", "0.bias"]
    assert list(explorer.find("float64 weight")) == ["1.weight"]
    assert list(explorer.find("*.weight")) == ["0.weight", "1.weight"]
    tree = WeightTree(list(explorer.values()), explorer.classes)
    tree.learn(found_in(tree.weights, lambda *_: True)[0])
    for search, names in (("nan", ["1.bias"]), ("Linear weight", ["0.weight"]), ("zzz", [])):
        assert [one.name for one in tree.listed(Asked(search))] == names
