"""Files of `torch.save` that are unusual, old, or made to deceive: right values, or a sentence, and soon."""

from __future__ import annotations

import collections
import io
import pickle
import struct
import sys
import tarfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from child import in_child, in_fork
from memory_limit import limit_memory, on_linux

import tensornp as tnp

FORMATS = {
    "zip": {}, "protocol 4": {"pickle_protocol": 4}, "legacy": {"_use_new_zipfile_serialization": False},
}  # fmt: skip
Point = collections.namedtuple("Point", "x y")


def text(value: str) -> bytes:
    """Return the opcode that pushes a text."""
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def number(value: int) -> bytes:
    """Return the opcode that pushes an integer."""
    data = value.to_bytes(value.bit_length() // 8 + 1, "little")
    return b"\x8a" + bytes([len(data)]) + data


def tensor(
    *, key: bytes = text("0"), numel: int = 1, shape: int = 1, stride: int = 1, kind: str = "Float", more: bytes = b"",
    rebuild: str = "_rebuild_tensor_v2",
) -> bytes:  # fmt: skip
    """Return the opcodes that push a tensor of one dimension."""
    storage = b"(" + text("storage") + f"ctorch\n{kind}Storage\n".encode() + key + text("cpu") + number(numel) + more
    sizes = number(0) + number(shape) + b"\x85" + number(stride) + b"\x85"
    return f"ctorch._utils\n{rebuild}\n(".encode() + storage + b"tQ" + sizes + b"\x89ccollections\nOrderedDict\n)RtR"


def doubled(count: int) -> bytes:
    """Return opcodes that make a pair of what lies on top and itself, over and over."""
    return b"q\x00h\x00\x86" * count


def named(value: bytes) -> bytes:
    """Return a pickle of a dictionary with a tensor."""
    return b"\x80\x02}" + text("w") + value + b"s."


ONE = np.ones(1, "<f4").tobytes()


def written(path: Path, pickled: bytes, data: bytes = ONE, order: tuple[bytes, int] = (b"little", 0)) -> Path:
    """Write a zip as `torch.save` does, with one storage."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", pickled)
        archive.writestr("x/byteorder", *order)
        archive.writestr("x/version", b"3\n")
        archive.writestr("x/data/0", data)
    return path


def written_legacy(path: Path, pickled: bytes, keys: bytes, data: bytes = ONE) -> Path:
    """Write a file of the format before the zip, with one storage."""
    heads = [pickle.dumps(one, 2) for one in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
    path.write_bytes(b"".join([*heads, pickled, keys, struct.pack("<Q", len(data) // 4), data]))
    return path


@pytest.mark.parametrize("kind", FORMATS)
def test_signs_that_torch_has_not_applied_are_applied(tmp_path, kind):
    """It saves the elements as they lie, and says besides that they are conjugated or negated."""
    numbers = torch.tensor([[1 + 2j, 3 - 4j], [5j, -6]])
    made = {
        "conj": numbers.conj(), "both": torch._neg_view(numbers.conj().T), "imag": numbers.clone().conj().imag,
        "neg": torch._neg_view(torch.tensor([1.0, -2.0, float("nan")])), "neg of int": torch._neg_view(torch.arange(3)),
        "double": numbers.to(torch.complex128).conj(), "brain": torch._neg_view(torch.arange(3.0).bfloat16()),
    }  # fmt: skip
    torch.save(made, tmp_path / "x.pt", **FORMATS[kind])
    explorer = tnp.weights(tmp_path / "x.pt")
    table = explorer.scan()
    for name, one in made.items():
        entry = explorer[name]
        expected = tnp.to_numpy(one.resolve_conj().resolve_neg())
        assert np.array_equal(entry.to_numpy(), expected, equal_nan=True), name
        assert np.array_equal(entry.to_numpy(slice(1, 2)), expected[1:2], equal_nan=True)
        assert entry.stats() == table[name] == tnp.stats(one)
        assert tnp.stats(entry._values()).sum == tnp.stats(one).sum
    torch.save({"w": torch._neg_view(torch.ones(2).to(torch.float8_e4m3fnuz))}, tmp_path / "x.pt")
    assert tnp.weights(tmp_path / "x.pt")["w"].problem == (
        "its float8_e4m3fnuz elements are meant negated, which is not read"
    )


@pytest.mark.parametrize("value", [b"\x89", b"\x88", number(1), b"N"])
@pytest.mark.parametrize("into", [b"}", b"ccollections\nOrderedDict\n)R"])
def test_signs_are_told_by_a_key_whatever_its_value(tmp_path, into, value):
    """As torch takes them: of a file that says `{"conj": False}`, too."""
    for name, kind in (("conj", "ComplexFloat"), ("neg", "ComplexFloat"), ("neg", "Float")):
        told = into + text(name) + value + b"s"
        data = np.arange(1, 3, dtype="<f4").tobytes()[: 8 if kind == "ComplexFloat" else 4]
        made = tensor(kind=kind).removesuffix(b"tR") + told + b"tR"
        path = written(tmp_path / "x.pt", named(made), data)
        expected = tnp.to_numpy(torch.load(path, weights_only=True)["w"].resolve_conj().resolve_neg())
        assert np.array_equal(tnp.weights(path)["w"].to_numpy(), expected), (name, kind)
    made = tensor().removesuffix(b"tR") + text("conj") + b"\x85tR"
    entry = tnp.weights(written(tmp_path / "x.pt", named(made)))["w"]
    assert entry.problem == "it is not told whether its elements are meant otherwise"


OLD_SIZES = number(0) + number(1) + b"\x85" + number(1) + b"\x85"
LATER = {
    "its shape": (OLD_SIZES, number(0) + b"]q\x05]q\x06", b"h\x05" + number(1) + b"a0h\x06" + number(1) + b"a0"),
    "its torch.Size": (
        OLD_SIZES, number(0) + b"ctorch\nSize\n]q\x05\x85R" + number(1) + b"\x85", b"h\x05" + number(1) + b"a0",
    ),
    "its signs": (b")RtR", b")R}q\x05tR", b"h\x05" + text("neg") + b"\x88s0"),
    "its signs in order": (
        b")RtR", b")Rccollections\nOrderedDict\n)Rq\x05tR", b"h\x05" + text("neg") + b"\x88s0",
    ),
    "signs of a subclass": (
        b")RtR", b")R}q\x05t}tR", b"h\x05" + text("neg") + b"\x88s0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", LATER)
def test_what_is_changed_after_a_tensor_is_made_of_it_is_refused(tmp_path, what):
    """torch reads it when it makes the tensor, and never again."""
    old, new, later = LATER[what]
    made = tensor().replace(old, new)
    if what == "signs of a subclass":
        made = made.replace(
            b"ctorch._utils\n_rebuild_tensor_v2\n",
            b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\nctorch\nTensor\n",
        )
    path = written(tmp_path / "x.pt", named(made)[:-1] + later + b".")
    with pytest.raises(tnp.CheckpointError, match="it changes what a call has read before"):
        tnp.weights(path)


def test_what_writes_into_a_tensor_is_refused(tmp_path):
    """torch would carry it out: the elements are other ones then than those that are stored."""
    written(tmp_path / "x.pt", named(tensor() + number(0) + b"G" + struct.pack(">d", 5) + b"s"))
    assert torch.load(tmp_path / "x.pt", weights_only=False)["w"].tolist() == [5]
    with pytest.raises(tnp.CheckpointError, match="it writes into a tensor"):
        tnp.weights(tmp_path / "x.pt")
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(1) + b"tQ"
    state = b"(" + storage + OLD_SIZES + b"tb"
    written(tmp_path / "x.pt", named(tensor(shape=0) + state))
    assert torch.load(tmp_path / "x.pt", weights_only=False)["w"].tolist() == [1]
    assert tnp.weights(tmp_path / "x.pt")["w"].problem == "it is set to something else after it is made"


def test_each_key_is_one_weight_and_equal_keys_are_one(tmp_path):
    """Also of those whose hash is not asked for; a key can be spelled as anything."""
    large, dtype = number(2**72), b"ctorch\nfloat32\n"
    exact = b"G" + struct.pack(">d", 2**72)
    pairs = [
        (large, 4), (text("<key 0>"), 1), (large, 2), (dtype, 1), (text(str(2**72)), 3), (dtype, 4), (exact, 4),
        (number(1) + large + b"\x86" + dtype + b"\x86", 1), (number(1) + large + b"\x86" + dtype + b"\x86", 2),
        (text("torch") + text("float32") + b"\x86", 3),
    ]  # fmt: skip
    items = b"".join(key + tensor(numel=4, shape=shape) + b"s" for key, shape in pairs)
    path = written(tmp_path / "x.pt", b"\x80\x02}" + items + b".", bytes(16))
    explorer, expected = tnp.weights(path), torch.load(path, weights_only=True)
    assert [entry.shape for entry in explorer.values()] == [tuple(one.shape) for one in expected.values()]
    assert {f"[{2**72}]", f"['{2**72}']", "<key 0>", "torch.float32", f"((1, {2**72}), torch.float32)"} < set(explorer)
    for name in explorer:
        assert len(eval(explorer[name].code, {"tnp": tnp, "torch": torch})) == explorer[name].shape[0]


def test_signs_are_applied_to_chunks_of_a_distributed_checkpoint(tmp_path):
    """Each of which is a file of `torch.save` inside."""
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    made = {"conj": torch.tensor([1 + 2j, 3 - 4j]).conj(), "plain": torch.ones(2)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dcp.save(made, checkpoint_id=str(tmp_path / "x"))
    explorer = tnp.weights(tmp_path / "x")
    assert explorer["conj"].to_numpy().tolist() == [1 - 2j, 3 + 4j]
    assert explorer["conj"].stats() == tnp.stats(made["conj"])


def test_a_dtype_that_numpy_cannot_hold_is_a_problem(tmp_path):
    """Its bytes are not taken for those of another one."""
    torch.save({"a": torch.arange(8, dtype=torch.uint8).view(torch.bits16), "b": torch.ones(1)}, tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    assert (explorer["a"].dtype, explorer["a"].shape) == ("bits16", (4,))
    assert explorer["a"].problem == "its dtype bits16 is not known"
    assert explorer["b"].to_numpy().tolist() == [1]


def test_each_tensor_keeps_a_name_of_its_own(tmp_path):
    """Whatever its keys are spelled like."""
    long = "x" * 2000
    made = {
        "a": {"b": torch.tensor(0)}, "a.b": torch.tensor(1), "['a']['b']": torch.tensor(2), (0, 1): torch.tensor(3),
        (0, 2): torch.tensor(4), f"{long}1": torch.tensor(5), f"{long}2": torch.tensor(6), 1: torch.tensor(7),
        "1": torch.tensor(8),
    }  # fmt: skip
    torch.save(made, tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    assert [int(entry.to_numpy()) for entry in explorer.values()] == list(range(9))
    assert {"['a.b']", "['a']['b']", "(0, 1)", "(0, 2)", "[1]", "['1']"} < set(explorer)
    assert eval(explorer["(0, 2)"].code) == 4


@pytest.mark.parametrize("kind", FORMATS)
def test_tensors_in_tuples_and_sets_are_listed(tmp_path, kind):
    """Those of a class by the places of its fields, whose names only the class knows."""
    made = {
        "point": Point(torch.tensor(0), torch.tensor(1)), "set": {torch.tensor(2)},
        "frozen": frozenset([torch.tensor(3)]), "max": torch.tensor([[4]]).max(0), "last": torch.tensor(6),
    }  # fmt: skip
    torch.save(made, tmp_path / "x.pt", **FORMATS[kind])
    explorer = tnp.weights(tmp_path / "x.pt")
    assert list(explorer) == ["point.0", "point.1", "set.0", "frozen.0", "max.0", "max.1", "last"]
    assert [explorer[name].to_numpy().item() for name in explorer] == [0, 1, 2, 3, 4, 0, 6]
    assert all("imported" in one for one in explorer.problems)
    torch.save({"set": {torch.tensor(2)}, None: torch.tensor(3), "deep": {None: [torch.tensor(4)]}}, tmp_path / "y.pt")
    explorer = tnp.weights(tmp_path / "y.pt")
    assert list(explorer) == ["set.0", "None", "deep.None.0"]
    for name in explorer:
        assert eval(explorer[name].code, {"tnp": tnp, "torch": torch}) == explorer[name].to_numpy()


class WithLists(torch.nn.Module):
    """A module whose attributes are lists and dictionaries."""

    def __init__(self) -> None:
        super().__init__()
        self.named = torch.jit.Attribute({"a": torch.ones(2)}, dict[str, torch.Tensor])
        self.listed = torch.jit.Attribute([torch.zeros(1), torch.ones(1)], list[torch.Tensor])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the same."""
        return x


def test_lists_and_dictionaries_of_torchscript_are_listed(tmp_path):
    """They stand in calls that say their type."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(WithLists()).save(tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    assert list(explorer) == ["named.a", "listed.0", "listed.1"]
    assert explorer["listed.1"].to_numpy().tolist() == [1]


class Made:
    """Something that a function makes of tensors."""

    def __init__(self, *tensors: torch.Tensor) -> None:
        self.tensors = tensors

    def __reduce__(self) -> Any:
        return Made, self.tensors


def test_what_is_not_listed_is_counted(tmp_path):
    """What a function would make of tensors is not told by the file; nor what lies deeper than any name."""
    deep: Any = torch.ones(1)
    for _ in range(150):
        deep = [deep]
    torch.save({"made": Made(torch.ones(1), torch.ones(2)), "deep": deep, "w": torch.ones(1)}, tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    assert list(explorer) == ["w"]
    assert explorer.problems[1:] == [
        f"2 tensors given to '{__name__}.Made' are not listed",
        "a tensor nested more than 100 deep is not listed",
    ]


def test_a_storage_by_itself_is_told_and_a_dtype_is_its_text(tmp_path):
    """The one has values, and no shape; the other is what a pickle would import, and as good as a plain value."""
    made = {"storage": torch.ones(2).untyped_storage(), "dtype": torch.float32, "w": torch.ones(1)}
    torch.save(made, tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    assert (list(explorer), explorer.metadata) == (["w"], {"dtype": "torch.float32"})
    assert explorer.problems == ["storages that stand for themselves are not listed; it has 1"]


def test_a_storage_of_which_no_tensor_is_listed_hides_no_other(tmp_path):
    """In the format before the zip, each lies behind the one before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantized = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    made = {
        "before": torch.full((2,), 7.0),
        "made": Made(torch.ones(5)),
        "coded": quantized,
        "z": torch.full((3,), 9.0),
    }
    torch.save(made, tmp_path / "x.pt", **FORMATS["legacy"])
    explorer = tnp.weights(tmp_path / "x.pt")
    assert explorer["before"].to_numpy().tolist() == [7, 7]
    assert explorer["z"].to_numpy().tolist() == [9, 9, 9]


def test_a_dictionary_of_python_2_has_its_names(tmp_path):
    """Its items are a list of pairs that its class is given."""
    pairs = b"](](" + text("conv.weight") + tensor() + b"e](" + text("conv.bias") + tensor() + b"ee"
    path = written(tmp_path / "x.pt", b"\x80\x02ccollections\nOrderedDict\n" + pairs + b"\x85R.")
    assert list(tnp.weights(path)) == list(torch.load(path)) == ["conv.weight", "conv.bias"]


def test_an_item_that_is_set_again_is_the_last_one(tmp_path):
    """Of a dictionary that has been given others before; in a module, too."""
    pairs = b"](" + text("w") + tensor(numel=2) + b"\x86" + text("v") + tensor(numel=2) + b"\x86e"
    made = b"ccollections\nOrderedDict\n" + pairs + b"\x85R" + text("w") + tensor(numel=2, shape=2) + b"s"
    path = written(tmp_path / "x.pt", b"\x80\x02" + made + b".", bytes(8))
    expected = {name: tuple(one.shape) for name, one in torch.load(path, weights_only=True).items()}
    assert {name: entry.shape for name, entry in tnp.weights(path).items()} == expected == {"w": (2,), "v": (1,)}
    module = b"ctorch.nn\nLinear\n)\x81}" + text("_parameters") + made + b"sb"
    written(tmp_path / "x.pt", b"\x80\x02" + module + b".", bytes(8))
    assert {name: entry.shape for name, entry in tnp.weights(path).items()} == expected


def test_a_view_of_a_storage_begins_where_it_says(tmp_path):
    """As torch 0.3 wrote it: key, offset and size, in elements."""
    view = b"(" + text("1") + number(2) + number(2) + b"t"
    pickled = named(tensor(numel=4, shape=2, more=view))
    data = np.arange(4, dtype="<f4").tobytes()
    path = written_legacy(tmp_path / "x.pt", pickled, pickle.dumps(["0"], 2), data)
    assert tnp.weights(path)["w"].to_numpy().tolist() == [2, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.load(path, weights_only=False)["w"].tolist() == [2, 3]


@pytest.mark.parametrize(
    ("order", "says"),
    [
        ((b"big", zipfile.ZIP_DEFLATED), "may have its bytes in any order, since what tells it is compressed"),
        ((b"middle", zipfile.ZIP_STORED), "has its bytes in an order that is not known"),
        ((b"little and so on", zipfile.ZIP_STORED), "has its bytes in an order that is not known"),
    ],
)
def test_a_byte_order_that_is_not_told_is_not_guessed(tmp_path, order, says):
    """Nothing is read."""
    entry = tnp.weights(written(tmp_path / "x.pt", named(tensor()), ONE, order))["w"]
    assert entry.problem == f"its storage {says}"


def test_any_byte_but_zero_is_true(tmp_path):
    """For statistics as for values."""
    written(tmp_path / "x.pt", named(tensor(kind="Bool", numel=4, shape=4)), b"\0\1\2\xff")
    entry = tnp.weights(tmp_path / "x.pt")["w"]
    assert entry.to_numpy().tolist() == [False, True, True, True]
    assert entry.to_numpy(dtype="uint8").tolist() == [0, 1, 1, 1]
    assert entry.stats() == tnp.stats(np.array([False, True, True, True]))
    assert tnp.stats(entry._values()) == entry.stats()


def test_statistics_of_a_tensor_with_gaps_are_those_in_memory(tmp_path):
    """To the last bit: each element that is stored is read once, in the same blocks."""
    generator = torch.Generator().manual_seed(0)
    large = torch.randn(700, 800, generator=generator)
    made = {
        "gaps": large[:, ::2], "turned": large.T[::3], "expanded": large[:, :1].expand(700, 900),
        "middle": large[:, None, ::2].expand(700, 3, 400), "one": large[0, 0].expand(10, 10), "none": large[:0, ::2],
    }  # fmt: skip
    torch.save(made, tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    for name, one in made.items():
        assert explorer[name].stats() == tnp.stats(one), name


def test_a_tensor_expanded_without_end_is_refused_or_counted(tmp_path):
    """Statistics read its one element; the array is larger than any memory."""
    pickled = named(tensor(shape=2**59, stride=0))[:-1] + text("good") + tensor() + b"s."
    explorer = tnp.weights(written(tmp_path / "x.pt", pickled))
    entry = explorer["w"]
    with pytest.raises(tnp.TooLargeError, match=r"are free; take fewer indices$"):
        entry.to_numpy()
    assert entry.to_numpy(slice(5, 7)).tolist() == [1, 1]
    assert (entry.stats().count, entry.stats().mean) == (2**59, 1)
    table = explorer.scan()
    assert (table["w"].count, table["good"].count, table.failed) == (2**59, 1, {})


def test_elements_that_overlap_are_not_read_for_hours(tmp_path):
    """Windows of windows: 2**40 elements of which two millions are stored."""
    sizes, steps = number(2**20) * 2 + b"\x86", number(1) * 2 + b"\x86"
    old = number(1) + b"\x85" + number(1) + b"\x85"
    pickled = named(tensor(numel=2**21).replace(old, sizes + steps))
    explorer = tnp.weights(written(tmp_path / "x.pt", pickled, bytes(2**23)))
    with pytest.raises(tnp.TooLargeError, match="elements of which 2,097,151 are stored"):
        explorer["w"].stats()
    assert list(explorer.scan().failed) == ["w"]


def test_less_memory_than_the_machine_has_is_told_in_a_sentence(tmp_path, monkeypatch):
    """As where a process is limited."""
    torch.save({"w": torch.ones(10)}, tmp_path / "x.pt")
    entry = tnp.weights(tmp_path / "x.pt")["w"]

    def no_memory(*_: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("tensornp.models.reading.selection.np.empty", no_memory)
    with pytest.raises(tnp.TooLargeError, match=r"there is no memory for 'w' at shape \(10,\); take fewer indices"):
        entry.to_numpy()


def test_a_refused_tensor_lies_nowhere(tmp_path):
    """What is said of its shape is not believed, nor counted."""
    explorer = tnp.weights(written(tmp_path / "x.pt", named(tensor(shape=2**40, stride=2**40))))
    entry = explorer["w"]
    assert (entry.problem, entry.extents, entry.nbytes) == ("it reaches beyond its storage", (), 0)
    pickled = named(tensor().replace(number(1) + b"\x85" + number(1) + b"\x85", number(1) + b"\x85)"))
    assert tnp.weights(written(tmp_path / "x.pt", pickled))["w"].problem == "its strides are not those of its shape"


def test_names_in_problems_are_legible(tmp_path):
    """They could clear a terminal."""
    path = written(tmp_path / "x.pt", named(tensor(rebuild="_rebuild_\x1b[2J")))
    entry = tnp.weights(path)["w"]
    assert entry.problem == "it is made by _rebuild_\\x1b[2J, which is not read yet"
    assert repr(entry).isprintable()


def test_pickles_of_a_large_old_file_are_read_in_pieces(tmp_path, monkeypatch):
    """Nobody tells how long they are; most of the file are values."""
    from tensornp.models.files import source_file

    numbers = {str(i): torch.full((1,), float(i)) for i in range(5000)}
    torch.save({**numbers, "large": torch.zeros(10_000_000)}, tmp_path / "x.pt", **FORMATS["legacy"])
    read: list[int] = []
    read_into = source_file.OpenFile.read_into
    monkeypatch.setattr(
        source_file.OpenFile, "read_into", lambda *args: (read.append(args[1].nbytes), read_into(*args))[1]
    )
    explorer = tnp.weights(tmp_path / "x.pt")
    assert sum(read) < 5_000_000
    assert explorer["4999"].to_numpy().tolist() == [4999]


GROUPS = [{"params": [*range(1000)]}] * 20_000
HOSTILE = {
    "a key of endless text": named(tensor(key=b"N" + doubled(40))),
    "a deep key": named(tensor(key=b")" + b"\x85" * 100_000)),
    "parameters of parameters": named(
        b"ctorch._utils\n_rebuild_parameter\n(" * 100_000 + tensor() + b"\x88NtR" * 100_000
    ),
    "values in endless ways": b"\x80\x02N" + doubled(60) + b".",
    "tensors in endless ways": b"\x80\x02" + tensor() + doubled(60) + b".",
    "tensors of a call in endless ways": b"\x80\x02" + tensor() + doubled(60) + b"ca\nb\n" + b"h\x00\x85R.",
    "a large key": b"\x80\x02}" + text("k" * 1_000_000) + b"](" + b"J\0\0\0\1" * 3000 + b"es.",
    "a large key of tensors": b"\x80\x02" + tensor() + b"q\x010}" + text("k" * 1_000_000)
    + b"](" + b"h\x01" * 9999 + b"es.",
    "lists of one list": b"\x80\x02](Nq\x00" + b"h\x00" * 20_000 + b"e"
    + (b"q\x000](" + b"h\x00" * 20_000 + b"e") * 98 + b".",
    "dictionaries": b"\x80\x02(" + b"}" * 4_000_000 + b"l.",
    "memos": b"\x80\x04N" + b"\x94" * 4_000_000 + b".",
    "long keys of one hash": b"\x80\x02}(" + b"".join(number(i * (2**61 - 1)) + b"N" for i in range(100_000)) + b"u.",
    "tuples as keys": b"\x80\x02}q\x00(" + b"K\0" * 500_000 + b"tq\x01" + b"0h\x00" + b"h\x01Ns" * 500_000 + b".",
    "keys that read alike": b"\x80\x02" + tensor() + b"q\x010}("
    + b"".join(b"(K\0\x85t" + b"h\x01" for _ in range(30_000)) + b"u.",
    "optimizers of one list of groups": pickle.dumps([{"state": {}, "param_groups": GROUPS} for _ in range(9000)], 2),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="counts kilobytes as Linux does")
@in_child
def test_small_files_take_neither_time_nor_memory():
    """Each of a few MB at most."""
    import resource
    import signal
    import tempfile

    path = Path(tempfile.mkdtemp()) / "x.pt"
    tnp.weights(written(path, named(tensor())))
    for number_of_case, (name, pickled) in enumerate(HOSTILE.items()):
        if number_of_case % 2:
            written_legacy(path, pickled, pickle.dumps(["0"], 2))
        else:
            written(path, pickled)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        # Of the processor; some seconds are enough.
        signal.setitimer(signal.ITIMER_PROF, 60)
        try:
            len(tnp.weights(path))
        except tnp.CheckpointError as error:
            assert str(error).isprintable()
        signal.setitimer(signal.ITIMER_PROF, 0)
        took = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert took < 100_000, f"{name}: {took:,} kB"


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_no_checkpoint_has_as_much_in_a_pickle_as_is_refused(tmp_path, monkeypatch, protocol):
    """Neither of many small tensors, nor of small tuples: they are far from what a pickle may make for its size."""
    monkeypatch.setattr("tensornp.models.pickles.look_through.FREE_RECORDS", 0)
    monkeypatch.setattr("tensornp.models.pickles.machine.MAX_MADE", 50_000)
    state = {i: {"exp_avg": torch.ones(1), "step": torch.tensor(1.0)} for i in range(1000)}
    torch.save({"state": state, "pairs": [(i, (i,)) for i in range(1000)]}, tmp_path / "x.pt", pickle_protocol=protocol)
    assert len(tnp.weights(tmp_path / "x.pt")) == 2000


HEAVY = {
    "dictionaries": b"}", "dictionaries of an item": b"}K\x01K\x02s", "lists": b"]", "texts": b"\x8c\x02ab",
    "calls": b"h\x00)R", "memos": b"N\x94",
}  # fmt: skip
"""What takes many times the bytes that ask for it."""


@pytest.mark.parametrize("name", HEAVY)
def test_what_a_pickle_makes_has_a_bound_that_does_not_grow_with_the_file(monkeypatch, name):
    """So many of a kind as are far too few for its size."""
    from tensornp.models.pickles.look_through import xray

    monkeypatch.setattr("tensornp.models.pickles.machine.MAX_MADE", 1000)
    head = b"\x80\x04ca\nb\n\x940("
    assert xray(head + HEAVY[name] * 300 + b"t.")
    # Memos are a tenth as heavy.
    with pytest.raises(tnp.CheckpointError, match=r"has more (than 1,000 containers and texts|memos)"):
        xray(head + HEAVY[name] * (10_002 if name == "memos" else 1001) + b"t.")


@pytest.mark.slow
@on_linux
@in_fork
def test_a_pickle_of_empty_dictionaries_is_refused_before_it_takes_half_a_gigabyte():
    """Thirty million of them, in a file of thirty megabytes."""
    from tensornp.models.pickles.look_through import xray

    data = b"\x80\x02" + b"}" * 30_000_000 + b"."
    limit_memory(500_000_000)
    with pytest.raises(tnp.CheckpointError, match="the pickle has more than 6,000,000 containers and texts"):
        xray(data)


UNSOUND = {
    "several values": (b"\x80\x02K\x01K\x02.", "before byte 7: it makes 2 values, and not one"),
    "no value": (b"\x80\x02.", "it makes 0 values, and not one"),
    "no mark": (b"\x80\x02t.", "there is no mark"),
    "an empty stack": (b"\x80\x02R.", "it takes what is not there"),
    "a tuple of too few": (b"\x80\x02N\x87.", "it takes what is not there"),
    "an object of nothing": (b"\x80\x02(o.", "it takes what is not there"),
    "no memo": (b"\x80\x02h\x05.", "it takes what it has not remembered"),
    "a cut argument": (b"\x80\x02G\0\0", "an argument is malformed, or cut off"),
    "half a letter": (b"\x80\x02X\x01\0\0\0\xff.", "an argument is malformed, or cut off"),
    "no number": (b"\x80\x02Ix\n.", "an argument is malformed, or cut off"),
    "a text that opens": (b"\x80\x02Sx\n.", "an argument is malformed, or cut off"),
    "items of a number": (b"\x80\x02K\x01K\x02K\x03s.", "items are put into what is no mapping"),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_what_is_wrong_with_a_pickle_is_told_in_own_words(tmp_path, name):
    """And where, and none of Python's words for it."""
    pickled, says = UNSOUND[name]
    with pytest.raises(tnp.CheckpointError) as raised:
        tnp.weights(written(tmp_path / "x.pt", pickled))
    assert "the pickle is not sound before byte" in str(raised.value) and str(raised.value).endswith(says)


def test_keys_of_storages_are_texts(tmp_path):
    """In the list at the end too, where a key of endless text stands."""
    path = written_legacy(tmp_path / "x.pt", named(tensor()), b"\x80\x02]N" + doubled(40) + b"a.")
    assert tnp.weights(path)["w"].problem == "its storage is not in the file"


@pytest.mark.parametrize("at", range(5))
def test_what_any_pickle_of_the_format_before_the_zip_would_call_is_said(tmp_path, at):
    """It has five, and torch runs each: also that of the system which wrote it, and that of the keys."""
    pickles = [pickle.dumps(one, 2) for one in (0x1950A86A20F9469CFC6C, 1001, {})]
    pickles += [named(tensor()), pickle.dumps(["0"], 2)]
    # What a call returns is dropped again.
    pickles[at] = pickles[at][:2] + b"cos\nsystem\n" + text("true") + b"\x85R0" + pickles[at][2:]
    (tmp_path / "x.pt").write_bytes(b"".join([*pickles, struct.pack("<Q", 1), ONE]))
    explorer = tnp.weights(tmp_path / "x.pt")
    assert explorer["w"].to_numpy().tolist() == [1]
    assert explorer["w"].wanted_imports == ("os.system",)
    assert [(one, one.is_called) for one in explorer.problems] == [
        ("it wants to import 'os.system', and nothing was imported", True)
    ]


def members_of(value: Any) -> dict[str, bytes]:
    """Return the members of the zip that torch writes of a value."""
    made = io.BytesIO()
    torch.save(value, made)
    with zipfile.ZipFile(made) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    """Write a zip of these members."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_members_are_found_whatever_their_case(tmp_path):
    """As torch finds them: of two pickles, or two storages, it may take either; npz are case-sensitive."""
    good = members_of({"w": torch.ones(3)})
    path = zipped(tmp_path / "x.pt", {**good, "archive/DATA.pkl": named(text("other"))})
    with pytest.raises(tnp.CheckpointError, match=r"its data\.pkl is there more than once"):
        tnp.weights(path)
    zipped(path, {**good, "Archive/Data/0": bytes(12)})
    assert tnp.weights(path)["w"].problem == "its storage is there more than once"
    other = {name.upper(): data for name, data in good.items() if name != "archive/byteorder"}
    zipped(path, {**other, "ARCHIVE/ByteOrder": b"big"})
    assert np.array_equal(tnp.weights(path)["w"].to_numpy(), torch.load(path)["w"].numpy())
    np.savez(tmp_path / "x.npz", a=np.zeros(1), A=np.ones(1))
    assert [one.to_numpy().tolist() for one in tnp.weights(tmp_path / "x.npz").values()] == [[0], [1]]


def two_directories(tmp_path: Path) -> Path:
    """Write a zip in which Python finds one directory, before the end record, and torch another, where that says."""
    made = {}
    for kind, value in (("first", 6.0), ("second", 1.0)):
        torch.save({"w": torch.full((3,), value)}, tmp_path / "x.pt")
        made[kind] = (tmp_path / "x.pt").read_bytes()
    first, second = made.values()
    at = first.rfind(b"PK\5\6")
    nbytes, begin = struct.unpack("<2I", first[at + 12 : at + 20])
    (tmp_path / "x.pt").write_bytes(first[: begin + nbytes] + second[: begin + nbytes] + first[at:])
    return tmp_path / "x.pt"


def fewer_members(tmp_path: Path) -> Path:
    """Write a zip whose end record tells of one member less than its directory has."""
    path = zipped(tmp_path / "x.pt", members_of({"w": torch.ones(3)}))
    data = bytearray(path.read_bytes())
    data[-14:-10] = struct.pack("<2H", *[data[-12] - 1] * 2)
    path.write_bytes(data)
    return path


def moved_locator(tmp_path: Path) -> Path:
    """Write a zip whose locator leads to another record of its end than the one before it."""
    path = zipped(tmp_path / "x.pt", members_of({"w": torch.ones(3)}))
    data = path.read_bytes()
    num, nbytes, first = struct.unpack("<H2I", data[-12:-2])

    def ending(begin: int, place: int) -> tuple[bytes, bytes]:
        record = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, num, num, nbytes, begin)
        return record, struct.pack("<4sIQI", b"PK\6\7", 0, place, 1)

    path.write_bytes(b"".join([data[:-22], *ending(first, first + nbytes), data[-22:]]))
    assert tnp.weights(path)["w"].to_numpy().tolist() == torch.load(path)["w"].tolist() == [1, 1, 1]
    other, _ = ending(0, 0)
    path.write_bytes(b"".join([data[:first], other, data[first:-22], *ending(first + len(other), first), data[-22:]]))
    return path


@pytest.mark.parametrize("made", [two_directories, fewer_members, moved_locator])
def test_a_zip_in_which_others_find_another_directory_is_refused(tmp_path, made):
    """Python's reader looks before the records at the end, and torch's where those lead."""
    with pytest.raises(tnp.CheckpointError, match="no sound zip file; the list of its members does not lie where its"):
        tnp.weights(made(tmp_path))


def test_what_torch_would_open_as_a_tar_is_refused(tmp_path):
    """It tries the tar of torch 0.1 first, of whose pickles the others say nothing."""
    path = written_legacy(tmp_path / "x.pt", named(tensor()), pickle.dumps(["0"], 2))
    legacy = path.read_bytes()
    end = legacy.find(b".") + 1
    # A number behind the magic one that holds the header's other fields as a text, and drops it.
    header = bytearray(tarfile.TarInfo("x").tobuf())
    begin = legacy[:end] + b"\x80\x02T" + struct.pack("<I", 512 - end - 7)
    header[: len(begin)] = begin
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    path.write_bytes(bytes(header) + b"0" + legacy[end + 2 :])
    with pytest.raises(tnp.CheckpointError, match=r"is a tar archive besides, of which torch\.load would run other"):
        tnp.weights(path)
    with pytest.raises(Exception, match="storages"):
        torch.load(path, weights_only=False)
    made = members_of({"w": torch.ones(3)})
    zipped(path, made)
    data = path.read_bytes()
    path.write_bytes(b"PK\5\6" + data[4:])
    with pytest.raises(tnp.CheckpointError, match=r"is a zip file, but does not begin as those of torch\.save do"):
        tnp.weights(path)


@pytest.mark.parametrize("kinds", [("Float", "Int"), ("Int", "Float"), ("Float", "QInt32")])
@pytest.mark.parametrize("kind", ["zip", "legacy"])
def test_a_storage_of_which_two_dtypes_are_told_has_the_first(tmp_path, kinds, kind):
    """Which torch gives to both; the tensor that says otherwise is not read."""
    dtypes = [{"Float": "float32", "Int": "int32"}.get(one, "") for one in kinds]
    first, second = (tensor(kind=one, more=b"N" if kind == "legacy" else b"") for one in kinds)
    pickled, path = named(first)[:-1] + text("i") + second + b"s.", tmp_path / "x.pt"
    if kind == "zip":
        written(path, pickled)
    else:
        written_legacy(path, pickled, pickle.dumps(["0"], 2))
    explorer = tnp.weights(path)
    assert (explorer["w"].dtype, explorer["w"].problem) == (dtypes[0], "")
    says = f"its storage is told as {dtypes[0]} before, which torch keeps"
    assert explorer["i"].problem == (says if dtypes[1] else "its storage is not told")
    for is_safe in (True, False):
        loaded = torch.load(path, weights_only=is_safe)
        assert [str(one.dtype) for one in loaded.values()] == [f"torch.{dtypes[0]}"] * 2
        assert np.array_equal(loaded["w"].numpy(), explorer["w"].to_numpy())


def test_a_storage_may_have_views_of_dtypes_without_a_class(tmp_path):
    """Which tell their dtype themselves; and empty tensors may have one key."""
    made = {"a": torch.ones(0), "b": torch.ones(0, dtype=torch.int8), "bytes": torch.arange(4, dtype=torch.uint8)}
    made["shorts"] = made["bytes"].view(torch.uint16)
    torch.save(made, tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    assert explorer.problems == []
    assert explorer["shorts"].to_numpy().tolist() == made["shorts"].tolist()
    empty = named(tensor(numel=0, shape=0))[:-1] + text("i") + tensor(kind="Int", numel=1) + b"s."
    explorer = tnp.weights(written(tmp_path / "y.pt", empty))
    assert [entry.problem for entry in explorer.values()] == ["", ""]
