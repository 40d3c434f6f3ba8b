"""What `plan`, `inspect` and `aliases` return, and a module's generators, as the result of a cell."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp


@pytest.fixture
def tensors(shell):
    base = torch.arange(12.0).view(3, 4)
    shell.ip.push({"base": base, "row": base[1], "array": base.numpy()})
    return base


def test_a_plan_is_a_card(shell, tensors):
    """Badges, code of a person's, reason and steps; the text is what `print` writes."""
    shown = shell.show(tnp.plan(tensors[1]))
    assert shown["text/plain"] == str(tnp.plan(tensors[1]))
    assert "a = t.numpy(); a.flags.writeable = False" in shown["text/html"]
    assert "as NumPy: live, read-only" in shown["text/html"]
    assert (
        "as NumPy: copy, 16 bytes" in shell.show(tnp.plan(tensors[1].half(), copy=True, dtype="float32"))["text/html"]
    )


def test_metadata_are_badges_over_what_is_not_as_usual(shell, tensors):
    """A fact is in the table or behind the fold, never in neither."""
    info = tnp.inspect(tensors[1])
    shown = shell.show(info)
    assert shown["text/plain"].splitlines()[0] == "(4,) | float32 | cpu | no grad"
    assert "storage_offset  4" in shown["text/plain"]
    assert "is_conj" not in shown["text/plain"]
    table, folded = shown["text/html"].split("<details")
    for line in str(info).splitlines():
        name = line.partition(":")[0]
        assert (f">{name}</td>" in table) != (f"<div>{name}:" in folded), name
    assert "is_conj: False" in folded


ODD = {
    "sparse": torch.eye(2).to_sparse(),
    "meta": torch.empty(2, device="meta"),
    "zeros": torch._efficientzerotensor(2),
}


@pytest.mark.parametrize("tensor", ODD.values(), ids=ODD)
def test_metadata_of_odd_tensors_are_shown(shell, tensor):
    """Without strides, without memory."""
    assert "fact" in shell.show(tnp.inspect(tensor))["text/plain"]


def test_aliases_are_a_table(shell, tensors):
    """Names, what they are and how they relate; that there are none is said too."""
    shown = shell.show(tnp.aliases(tensors, shell.ip.user_ns))
    assert shown["text/plain"].splitlines() == [
        "name   what         relation       shared bytes",
        "base   tensor       same object",
        "array  NumPy array  same elements  0 to 48",
        "row    tensor       overlapping    16 to 32",
    ]
    assert "<td" in shown["text/html"]
    assert "overlapping" in shown["text/html"]
    none = shell.show(tnp.aliases(torch.ones(3), {}))
    assert none["text/plain"] == "nothing else sees these bytes"


def test_names_in_a_table_of_aliases_are_escaped(shell):
    """A key may be anything."""
    t = torch.ones(3)
    html = shell.show(tnp.aliases(t, {"d": {"<b>": t}}))["text/html"]
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_what_a_module_will_yield_is_a_table_and_nothing_is_taken_out(shell):
    """Parameters and buffers, named or not; tied ones once, as the generator has them."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3))
    model[2].weight = model[0].weight
    for generator in (model.parameters(), model.named_parameters()):
        text = shell.show(generator)["text/plain"]
        assert text.startswith("generator of 5 tensors · 21 parameters · 84 bytes")
        assert [line.split()[0] for line in text.splitlines()[2:]] == [
            "0.weight", "0.bias", "1.weight", "1.bias", "2.bias",
        ]  # fmt: skip
        assert len(list(generator)) == 5, "showing it took nothing"
    assert shell.show(model.buffers())["text/plain"].startswith("generator of 3 tensors")
    own = torch.nn.Linear(3, 3)
    own.inner = torch.nn.Linear(3, 3)
    assert shell.show(own.parameters(recurse=False))["text/plain"].startswith("generator of 2 tensors")
    assert "<table" in shell.show(model.named_buffers())["text/html"]


def test_a_generator_s_table_has_the_names_that_it_yields(shell):
    """With a prefix, without recursion, with what is tied once or each time; of what is only kept there, nothing."""
    shared = torch.nn.Linear(2, 2)
    tied = torch.nn.ModuleList([shared, shared, torch.nn.Linear(2, 2)])
    object.__setattr__(tied, "teacher", torch.nn.Linear(100, 100))
    deep = torch.nn.Linear(1, 1)
    for _ in range(150):
        deep = torch.nn.Sequential(deep)
    for make in (
        lambda: tied.named_parameters(prefix="net"),
        lambda: tied.named_parameters(prefix="net", remove_duplicate=False),
        lambda: tied.named_parameters(recurse=False),
        lambda: torch.nn.Sequential(torch.nn.BatchNorm1d(2), tied).named_buffers(),
        deep.named_parameters,
    ):
        wanted = [name for name, _ in make()]
        lines = shell.show(make())["text/plain"].splitlines()[2:] if wanted else []
        assert [line.split()[0] for line in lines] == wanted
    assert "\nModuleList of 6 tensors · 12 parameters · 48 bytes" in shell.show(tied)["text/plain"]


def test_totals_of_what_was_not_counted_to_its_end_are_lower_bounds(shell):
    """Tensors, parameters and bytes alike."""
    many = torch.nn.ModuleList([torch.nn.Linear(1, 1) for _ in range(10_001)])
    bound = "at least 20,000 tensors · at least 20,000 parameters · at least 78.1 KiB"
    assert bound in shell.show_within_modes(many.parameters())["text/plain"]
    assert bound in shell.show_within_modes(many)["text/html"]


def test_where_a_storage_ends_is_told_as_it_is(shell):
    """Of a slice at the end, and of one that was freed."""
    assert (
        "400 bytes; the last element ends at byte 400"
        in shell.show(tnp.inspect(torch.arange(100.0)[90:]))["text/plain"]
    )
    freed = torch.ones(4)
    freed.untyped_storage().resize_(0)
    assert "0 bytes; the last element ends at byte 16" in shell.show(tnp.inspect(freed))["text/plain"]


def test_a_list_of_aliases_that_is_another_now_is_a_list(shell):
    """Looking never fails."""
    t = torch.ones(3)
    found = tnp.aliases(t, {"t": t})
    found.append(5)
    assert shell.show(found)["text/plain"].endswith("5]")


def test_other_generators_are_left_to_the_shell(shell):
    """One that has begun or is through, of another's, of an empty module, of a class that decides itself."""

    class Filtered(torch.nn.Linear):
        def named_parameters(self, *args, **kwargs):
            yield from (item for item in super().named_parameters(*args, **kwargs) if item[0] == "bias")

    model = torch.nn.Linear(2, 2)
    begun, through = model.parameters(), model.parameters()
    next(begun)
    list(through)
    for generator in (begun, through, (p for p in model.parameters()), torch.nn.ReLU().parameters(),
                      Filtered(2, 2).parameters()):  # fmt: skip
        shown = shell.show(generator)
        assert shown["text/plain"].startswith("<generator object")
        assert "text/html" not in shown
