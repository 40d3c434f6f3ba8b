"""The tree of calls: repeats are one line, trouble stands alone, and every call is counted."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import torch
from built_passes import NAN, Built, transformer, value

import tensornp as tnp
from tensornp.models.outline.fold import Branch
from tensornp.passes.records import LEFT, RAISED, PassRecord
from tensornp.passes.tree import MAX_LINES, CallTree, state_of


def lines_of(record: PassRecord, told: tuple[int, ...] = ()) -> list[tuple[str, int, int]]:
    """Return label, level and number of calls of each line of a card."""
    return [(line.label, line.level, len(line.calls) or line.num_hidden) for line in CallTree(record, told).lines()]


def random_record(seed: int) -> PassRecord:
    """Return a pass of random nested calls, some of them odd, with operators inside."""
    rng, built = random.Random(seed), Built()

    def grow(name: str, depth: int) -> None:
        facts = {"outputs": value((rng.randint(1, 2),), figures=NAN if rng.random() < 0.03 else None)}
        with built.call(name, rng.choice("AB"), status=rng.choice(["returned"] * 20 + [RAISED, LEFT]), **facts):
            for i in range(rng.randint(0, 4) if depth < 3 else 0):
                if rng.random() < 0.3:
                    built.operator(rng.choice(["add", "_softmax"]), outputs=value((2,)))
                else:
                    grow(f"{name}.{rng.choice([str(i), 'x', 'attn'])}", depth + 1)

    for i in range(rng.randint(1, 50)):
        grow(f"m{i % 7}", 0)
    return built.record()


def test_layers_are_one_line_with_one_layer_inside():
    lines = lines_of(transformer())
    assert [label for label, _, _ in lines] == [
        "model", "embed", "layers.{0..11}", "norm1", "attn", "qkv", "drop", "out", "drop", "norm2", "mlp", "up", "act",
        "down", "norm", "head",
    ]  # fmt: skip
    assert lines[2] == ("layers.{0..11}", 1, 12)


def test_a_layer_whose_input_the_model_makes_itself_folds_with_the_others():
    """The first layer gets a sum, the others the output of the one before, with a gradient."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + 1
            for layer in self.layers:
                x = layer(x)
            return x

    net = Net()
    with tnp.follow(net) as run:
        net(torch.ones(2, 4)).sum().backward()
    assert [line.split()[0] for line in tnp.card(run).text.splitlines()[-2:]] == ["net", "layers.{0..4}"]


def test_the_way_to_a_finding_is_open_however_many_calls_are_around_it():
    """Operators of a backward take the room of a card."""
    built = Built()
    with built.call("model", "Net"):
        with built.call("model.attn", "Attention"):
            for name in [*"abcdefghijklmnopqrstuvwxyz", "softmax"]:
                built.operator(name, outputs=value((2,), figures=NAN if name == "softmax" else None))
        for i in range(60):
            built.operator(f"op{i}", outputs=value((i + 1,)))
    record = built.record()
    told = next(call.index for call in record.calls if call.name == "softmax")
    assert "softmax" in [label for label, _, _ in lines_of(record, (told,))]


def test_a_told_call_stands_alone_and_the_way_to_it_is_open():
    record = transformer(nan_in="layers.3.attn.drop")
    told = next(call.index for call in record.calls if call.name == "layers.3.attn.drop")
    labels = [label for label, _, _ in lines_of(record, (told,))]
    assert labels[:8] == ["model", "embed", "layers.{0..2}", "layers.3", "norm1", "attn", "qkv", "drop"]
    assert "layers.{4..11}" in labels


@pytest.mark.parametrize("seed", range(40))
def test_every_call_has_a_line_or_is_counted(seed):
    record = random_record(seed)
    tree = CallTree(record)
    lines = tree.lines()
    shown = {call.index for line in lines for call in line.calls}
    assert len(lines) <= MAX_LINES + 1 + sum(not line.calls for line in lines)
    assert all(call.parent in shown | {0} for line in lines for call in line.calls)
    hidden = [call for call in record.modules() if call.index not in shown]
    assert sum(line.num_hidden for line in lines if line.calls) <= len(hidden)
    if not any(not line.calls for line in lines):
        assert sum(line.num_hidden for line in lines) == len(hidden)


def seen(tree: CallTree, opened: frozenset[int], parent: int = -1) -> Iterator[Branch]:
    """Yield the branches that are seen with these open."""
    for branch in tree.below(parent):
        yield branch
        if tree.id_of(branch) in opened:
            yield from seen(tree, opened, tree.id_of(branch))


@pytest.mark.parametrize("seed", range(20))
def test_a_live_tree_reveals_every_call(seed):
    record = random_record(seed)
    tree = CallTree(record)
    first = list(seen(tree, tree.opened(has_open_repeats=False)))
    assert len({tree.id_of(one) for one in first}) == len(first)
    for call in record.calls[1:]:
        assert sum(one.entries == (call,) for one in seen(tree, tree.around(call.index))) == 1


def test_operators_of_one_line_are_folded_and_near_trouble_they_are_shown():
    built = Built()
    with built.call("", "Net"):
        for _ in range(100):
            built.operator("add", outputs=value((2,)))
        for i in range(100):
            built.operator("mul", outputs=value((i + 1,), is_nan=i == 70))
    lines = CallTree(built.record(), (172,)).lines()
    shown = [call.index for line in lines for call in line.calls]
    assert set(range(168, 177)) <= set(shown)
    assert len(shown) + lines[-1].num_hidden == 201 and not lines[-1].calls
    assert ("add", 1, 100) in lines_of(PassRecord(built.calls[:120]), (1,))


def test_states():
    built = Built()
    nan, fine = value(is_nan=True), value()
    assert state_of(built.leaf("a", "A", inputs=fine, outputs=nan)) == "trouble"
    assert state_of(built.leaf("b", "A", inputs=nan, outputs=nan)) == "passed on"
    assert state_of(built.leaf("c", "A", inputs=nan, outputs=fine)) == "fine"
    assert state_of(built.leaf("d", "A", outputs=fine, params={"weight": nan})) == "trouble"
    assert state_of(built.operator("full", outputs=nan, asked_for="NaN")) == "fine"
    assert state_of(built.leaf("e", "A", status=RAISED)) == "trouble"
