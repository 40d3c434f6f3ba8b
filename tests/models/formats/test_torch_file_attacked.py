"""Files of `torch.save` that are unusual, old, or made to deceive: right values, or a sentence, and soon."""

from __future__ import annotations

import collections
import struct
import zipfile
from typing import Any

import pytest
import torch
from written_torch import named, number, tensor, text, written

import tensornp as tnp

FORMATS = {
    "zip": {}, "protocol 4": {"pickle_protocol": 4}, "legacy": {"_use_new_zipfile_serialization": False},
}  # fmt: skip
Point = collections.namedtuple("Point", "x y")


def test_lazy_views_are_not_taken_for_their_elements(tmp_path):
    """torch saves the elements as they lie, and says besides that they are conjugated or negated."""
    numbers = torch.tensor([1 + 2j, 3 - 4j])
    torch.save({"conj": numbers.conj(), "neg": torch._neg_view(torch.ones(2)), "good": numbers}, tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    assert [bool(explorer[name].problem) for name in ("conj", "neg", "good")] == [True, True, False]
    with pytest.raises(tnp.NoDataError, match="resolve_conj"):
        explorer["conj"].to_numpy()


def test_what_writes_into_a_tensor_is_refused(tmp_path):
    """torch would carry it out: the elements are other ones then than those that are stored."""
    written(tmp_path / "x.pt", named(tensor() + number(0) + b"G" + struct.pack(">d", 5) + b"s"))
    assert torch.load(tmp_path / "x.pt", weights_only=False)["w"].tolist() == [5]
    with pytest.raises(tnp.CheckpointError):
        tnp.weights(tmp_path / "x.pt")
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(1) + b"tQ"
    sizes = number(0) + number(1) + b"\x85" + number(1) + b"\x85"
    written(tmp_path / "x.pt", named(tensor(shape=0) + b"(" + storage + sizes + b"tb"))
    assert torch.load(tmp_path / "x.pt", weights_only=False)["w"].tolist() == [1]
    with pytest.raises(tnp.CheckpointError):
        tnp.weights(tmp_path / "x.pt")


@pytest.mark.parametrize("kind", FORMATS)
def test_tensors_in_tuples_are_listed(tmp_path, kind):
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
    torch.save({None: torch.tensor(3), "deep": {None: [torch.tensor(4)]}}, tmp_path / "y.pt")
    explorer = tnp.weights(tmp_path / "y.pt")
    assert list(explorer) == ["None", "deep.None.0"]
    for name in explorer:
        assert eval(explorer[name].code, {"tnp": tnp, "torch": torch}) == explorer[name].to_numpy()


class Made:
    """Something that a function makes of tensors."""

    def __init__(self, *tensors: torch.Tensor) -> None:
        self.tensors = tensors

    def __reduce__(self) -> Any:
        return Made, self.tensors


def test_tensors_in_unknown_objects_are_listed(tmp_path):
    """By the places of their arguments; a value that lies too deep is a problem."""
    deep: Any = torch.ones(1)
    for _ in range(150):
        deep = [deep]
    torch.save({"made": Made(torch.ones(1), torch.ones(2)), "deep": deep, "w": torch.ones(1)}, tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    assert list(explorer) == ["made.0", "made.1", "w"]
    assert "deeper than 100" in explorer.problems[-1]


def test_a_byte_order_that_is_not_told_is_not_guessed(tmp_path):
    """Nothing is read."""
    stored, packed = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
    for order in ((b"big", stored), (b"little", packed), (b"little and so on", stored)):
        entry = tnp.weights(written(tmp_path / "x.pt", named(tensor()), order=order))["w"]
        assert entry.problem == "its storage is not little-endian"


def test_a_tensor_expanded_without_end_is_refused(tmp_path):
    """Other tensors are counted."""
    pickled = named(tensor(shape=2**59, stride=0))[:-1] + text("good") + tensor() + b"s."
    explorer = tnp.weights(written(tmp_path / "x.pt", pickled))
    with pytest.raises(tnp.NoDataError, match="it repeats 1 stored elements"):
        explorer["w"].to_numpy()
    table = explorer.scan()
    assert (table["good"].count, list(table.failed)) == (1, ["w"])


UNSOUND = {
    "several values": b"\x80\x02K\x01K\x02.",
    "no value": b"\x80\x02.",
    "no mark": b"\x80\x02t.",
    "an empty stack": b"\x80\x02R.",
    "a tuple of too few": b"\x80\x02N\x87.",
    "an object of nothing": b"\x80\x02(o.",
    "no memo": b"\x80\x02h\x05.",
    "a cut argument": b"\x80\x02G\0\0",
    "half a letter": b"\x80\x02X\x01\0\0\0\xff.",
    "no number": b"\x80\x02Ix\n.",
    "items of a number": b"\x80\x02K\x01K\x02K\x03s.",
    "a call of a number": b"\x80\x02K\x01)R.",
    "an extension": b"\x80\x02\x82\x01.",
    "an array to come": b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"abc",
    "an integer without end": b"\x80\x02\x8b" + struct.pack("<i", 4000) + b"\x01" * 4000 + b".",
}  # fmt: skip


@pytest.mark.parametrize("name", UNSOUND)
def test_a_pickle_that_is_not_sound_is_refused(tmp_path, name):
    """With the place, and without a word of Python."""
    with pytest.raises(tnp.CheckpointError, match=r"its pickle is damaged or cut off before byte [\d,]+$"):
        tnp.weights(written(tmp_path / "x.pt", UNSOUND[name]))


DEEP = {
    "a cycle": b"\x80\x02]q\x00(h\x00Ne.",
    "nested": b"\x80\x02)" + b"\x85" * 50_000 + b".",
    "nested keys": b"\x80\x02})" + b"\x85" * 50_000 + b"Ns.",
    "calls of calls": b"\x80\x02cos\nsystem\n" + b")R" * 50_000 + b".",
    "lists twice in each other": b"\x80\x02]q\x000"
    + b"".join(b"](h%ch%ceq%c0" % (i, i, i + 1) for i in range(60)) + b"h\x3c.",
}  # fmt: skip


@pytest.mark.parametrize("name", DEEP)
def test_what_is_deep_or_endless_is_listed_soon(tmp_path, name):
    """And Python does not crash, which hashes and frees by recursion."""
    assert len(tnp.weights(written(tmp_path / "x.pt", DEEP[name]))) == 0


@pytest.mark.parametrize("args", [b")", b"(" + b"N" * 12 + b"t", b"(K\x01K\x02t", b"(NK\x00))t"])
@pytest.mark.parametrize("name", ["_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter", "_rebuild_qtensor"])
def test_a_broken_tensor_hides_no_other(tmp_path, name, args):
    """It is listed with its problem."""
    broken = f"ctorch._utils\n{name}\n".encode() + args + b"R"
    explorer = tnp.weights(written(tmp_path / "x.pt", named(tensor())[:-1] + text("broken") + broken + b"s."))
    assert explorer["w"].to_numpy().tolist() == [1]
    assert explorer["broken"].problem


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
