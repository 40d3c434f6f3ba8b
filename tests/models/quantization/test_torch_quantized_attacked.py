"""Files that say of quantized tensors what is not so: a sentence for each, and the others are read."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from test_torch_file_attacked import number, text, written
from test_torch_quantized import dequantized, per_channel, same_bits

import tensornp as tnp
from tensornp.render.models.weights import weights_document

pytestmark = pytest.mark.filterwarnings("ignore")


def storage(kind: str, key: str, numel: int) -> bytes:
    """Return the opcodes that push a storage."""
    return (
        b"(" + text("storage") + f"ctorch\n{kind}Storage\n".encode() + text(key) + text("cpu") + number(numel) + b"tQ"
    )


def plain(kind: str, key: str, numel: int, shape: bytes = b"", strides: bytes = b"") -> bytes:
    """Return the opcodes that push a tensor of one dimension."""
    sizes = (shape or number(numel) + b"\x85") + (strides or number(1) + b"\x85")
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(kind, key, numel) + number(0) + sizes + b"\x89}tR"


def floating(value: float) -> bytes:
    return b"G" + struct.pack(">d", value)


def coded(*told: bytes, scheme: str = "per_tensor_affine", kind: str = "QInt8", shape: tuple[int, ...] = (2, 3),
          strides: tuple[int, ...] = (3, 1)) -> bytes:  # fmt: skip
    """Return the opcodes that push a quantized tensor of six codes."""
    sizes, steps = (b"(" + b"".join(map(number, some)) + b"t" for some in (shape, strides))
    quantizer = b"(" + f"ctorch\n{scheme}\n".encode() + b"".join(told) + b"t"
    return (
        b"ctorch._utils\n_rebuild_qtensor\n("
        + storage(kind, "0", 6)
        + number(0)
        + sizes
        + steps
        + quantizer
        + b"\x89}tR"
    )


def listed(*values: bytes) -> bytes:
    return b"](" + b"".join(values) + b"e"


NEGATIVE = b"J" + struct.pack("<i", -1)
CODES = np.arange(24, dtype=np.int8)
BY_CHANNEL = {"scheme": "per_channel_affine"}
ROWS = plain("Double", "0", 2), plain("Long", "0", 2), number(0)
TWO_SIZES = number(1) + number(2) + b"\x86"
HUGE = number(2**40) + b"\x85"
HOSTILE = {
    "no number": (coded(text("a"), number(0)), "its scale is no finite number"),
    "a truth value": (coded(b"\x88", number(0)), "its scale is no finite number"),
    "nan": (coded(floating(float("nan")), number(0)), "its scale is no finite number"),
    "infinite": (coded(floating(float("inf")), number(0)), "its scale is no finite number"),
    "beyond floats": (coded(floating(1e300), number(0)), "its scale is no finite number"),
    "a huge number": (coded(number(2**2000), number(0)), "its scale is no finite number"),
    "a huge zero point": (coded(floating(1), number(2**40)), "its zero point is none of qint8"),
    "a zero point of the other sign": (
        coded(floating(1), NEGATIVE, kind="QUInt8"), "its zero point is none of quint8",
    ),
    "a zero point that is a float": (coded(floating(1), floating(1)), "its zero point is none of qint8"),
    "no zero point": (coded(floating(1)), "its scheme of quantization per_tensor_affine is not known"),
    "another scheme": (
        coded(floating(1), number(0), scheme="per_row\x1b[2J"),
        "its scheme of quantization per_row\\x1b[2J is not known",
    ),
    "an axis too far": (
        coded(*ROWS[:2], number(2), **BY_CHANNEL), "its channels lie along no axis of shape (2, 3)",
    ),
    "an axis from the end": (
        coded(*ROWS[:2], NEGATIVE, **BY_CHANNEL), "its channels lie along no axis of shape (2, 3)",
    ),
    "an axis that is a text": (
        coded(*ROWS[:2], text("0"), **BY_CHANNEL), "its channels lie along no axis of shape (2, 3)",
    ),
    "too few scales": (
        coded(*ROWS[:2], number(1), **BY_CHANNEL), "its scales are of shape (2,), and axis 1 has 3 indices",
    ),
    "too many zero points": (
        coded(ROWS[0], plain("Long", "0", 3), number(0), **BY_CHANNEL),
        "its zero points are of shape (3,), and axis 0 has 2 indices",
    ),
    "scales of two dimensions": (
        coded(plain("Double", "0", 2, TWO_SIZES, number(1) * 2 + b"\x86"), *ROWS[1:], **BY_CHANNEL),
        "its scales are of shape (1, 2), and axis 0 has 2 indices",
    ),
    "integers as scales": (coded(plain("Long", "0", 2), *ROWS[1:], **BY_CHANNEL), "its scales are int64"),
    "complex scales": (coded(plain("ComplexFloat", "0", 2), *ROWS[1:], **BY_CHANNEL), "its scales are complex64"),
    "scales beyond their storage": (
        coded(plain("Double", "0", 1, number(2) + b"\x85"), *ROWS[1:], **BY_CHANNEL),
        "its scales cannot be read: it reaches beyond its storage",
    ),
    "scales beyond the file": (
        coded(plain("Double", "0", 2000, number(2) + b"\x85"), *ROWS[1:], **BY_CHANNEL),
        "its scales cannot be read: its storage has 24 bytes, and 16,000 are declared",
    ),
    "scales of no storage": (
        coded(plain("Double", "7", 2), *ROWS[1:], **BY_CHANNEL),
        "its scales cannot be read: its storage is not in the file",
    ),
    "huge scales": (
        coded(plain("Double", "0", 2, HUGE, number(0) + b"\x85"), *ROWS[1:], **BY_CHANNEL),
        f"its scales are of shape ({2**40},), and axis 0 has 2 indices",
    ),
    "scales that are quantized": (
        coded(coded(floating(1), number(0)), *ROWS[1:], **BY_CHANNEL), "its scales cannot be read: they are no tensor",
    ),
    "scales that a call would make": (
        coded(b"cos\nmkdir\n" + text("made") + b"\x85R", *ROWS[1:], **BY_CHANNEL),
        "its scales cannot be read: they are no tensor",
    ),
    "a list of texts": (
        coded(listed(text("a"), text("b")), listed(number(0), number(0)), number(0), **BY_CHANNEL),
        "its scales cannot be read: they are no finite numbers",
    ),
    "a list with nan": (
        coded(listed(floating(1), floating(float("nan"))), listed(number(0), number(0)), number(0), **BY_CHANNEL),
        "its scales cannot be read: they are no finite numbers",
    ),
    "a list of huge zero points": (
        coded(listed(floating(1), floating(2)), listed(number(0), number(128)), number(0), **BY_CHANNEL),
        "its zero points are none of qint8",
    ),
    "a list of half zero points": (
        coded(listed(floating(1), floating(2)), listed(number(0), floating(0.5)), number(0), **BY_CHANNEL),
        "its zero points are none of qint8",
    ),
    "float zero points of wide codes": (
        coded(plain("Float", "0", 2), plain("Float", "0", 2), number(0), kind="QInt32", shape=(2, 3), **BY_CHANNEL),
        "its zero points are floats, of which torch makes no values of qint32",
    ),
    "codes beyond their storage": (coded(floating(1), number(0), shape=(3, 3)), "it reaches beyond its storage"),
    "codes of a plain storage": (coded(floating(1), number(0), kind="Char"), "its storage is not told"),
    "codes of two bits": (
        coded(floating(1), number(0), kind="QUInt2x4"),
        "its codes are quint2x4, several in a byte, which is not read yet",
    ),
    "no quantizer": (
        coded(floating(1), number(0)).replace(b"(ctorch\nper_tensor_affine\n", b"N0("),
        "its scheme of quantization is not known",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_file_says_of_codes_is_not_believed(tmp_path, name, monkeypatch):
    """A sentence, on this entry only; nothing is made, read or run."""
    monkeypatch.chdir(tmp_path)
    pushed, says = HOSTILE[name]
    pickled = b"\x80\x02}" + text("w") + pushed + b"s" + text("good") + coded(floating(0.5), number(1)) + b"s."
    explorer = tnp.weights(written(tmp_path / "x.pt", pickled, CODES.tobytes()))
    entry = explorer["w"]
    assert entry.problem == says
    assert (entry.extents, repr(entry).isprintable()) == ((), True)
    for use in (entry.to_numpy, entry.stats, entry.plan, entry._values):
        with pytest.raises(tnp.NoDataError, match="'w' has no values to read"):
            use()
    assert explorer["good"].to_numpy().tolist() == [[-0.5, 0, 0.5], [1, 1.5, 2]]
    assert list(explorer.scan().failed) == ["w"]
    assert not (tmp_path / "made").exists()
    assert weights_document(explorer).text().replace("\n", "").isprintable()


def test_lists_of_scales_are_read(tmp_path):
    """As torch wrote them before 1.4, and still reads them."""
    scales, zeros = listed(floating(0.1), floating(1 / 3)), listed(number(1), NEGATIVE)
    halves = listed(floating(0.5), floating(-0.25))
    made = {"a": coded(scales, zeros, number(0), **BY_CHANNEL)}
    made["b"] = coded(scales, halves, number(0), scheme="per_channel_affine_float_qparams", kind="QUInt8")
    pickled = b"\x80\x02}" + b"".join(text(name) + pushed + b"s" for name, pushed in made.items()) + b"."
    path = written(tmp_path / "x.pt", pickled, CODES[:6].tobytes())
    explorer = tnp.weights(path)
    for name in made:
        expected = dequantized(path, name)
        assert same_bits(explorer[name].to_numpy(), expected)
        assert same_bits(explorer[name].to_numpy((1, slice(None, None, -1))), expected[1, ::-1])
        assert explorer[name].stats() == tnp.stats(expected)
    with ThreadPoolExecutor(1) as pool:
        assert explorer.scan(pool)["a"].max == dequantized(path, "a").max()


@pytest.mark.parametrize(
    ("what", "values", "says"),
    [
        ("scale", [0.5, float("nan"), 1.0], "its scale of index 1 is nan, and none of qint8"),
        ("scale", [0.5, 1.0, float("inf")], "its scale of index 2 is inf, and none of qint8"),
        ("scale", [1e200, 1.0, 1.0], "its scale of index 0 is 1e+200, and none of qint8"),
        ("zero point", [0, 0, 2**40], f"its zero point of index 2 is {2**40}, and none of qint8"),
    ],
)
def test_scales_that_are_none_are_told_when_values_are_asked_for(tmp_path, what, values, says):
    """They lie in the file, and are not read before; parts without them are read."""
    codes = per_channel((3, 4), 0)
    scales, zeros = codes.q_per_channel_scales().clone(), codes.q_per_channel_zero_points().clone()
    told = scales if what == "scale" else zeros
    told.copy_(torch.tensor(values, dtype=told.dtype))
    beside = {"scales": scales, "zero_points": zeros, "axis": 0, "dtype": torch.qint8}
    made = torch._empty_per_channel_affine_quantized((3, 4), **beside)
    torch.save({"w": made, "good": torch.ones(1)}, tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    bad = next(i for i in range(3) if f"index {i} " in says)
    assert explorer["w"].problem == ""
    for use in (explorer["w"].to_numpy, explorer["w"].stats):
        with pytest.raises(tnp.NoDataError, match="'w' has no values to read: ") as raised:
            use()
        assert says in str(raised.value)
    assert explorer["w"].to_numpy((bad + 1) % 3).shape == (4,)
    assert "none of qint8" in explorer.scan().failed["w"]
    assert explorer.scan()["good"].count == 1


def test_channels_without_end_are_refused_or_counted(tmp_path):
    """A petabyte of values in two bytes: a part is read, and no more scales than it has."""
    many, still = number(2**40) + b"\x85", number(0) + b"\x85"
    scales, zeros = plain("Double", "0", 2, many, still), plain("Long", "0", 2, many, still)
    pushed = coded(scales, zeros, number(0), shape=(2**40,), strides=(0,), **BY_CHANNEL)
    path = written(tmp_path / "x.pt", b"\x80\x02}" + text("w") + pushed + b"s.", bytes(24))
    entry = tnp.weights(path)["w"]
    with pytest.raises(tnp.TooLargeError):
        entry.to_numpy()
    with pytest.raises(tnp.TooLargeError, match="take its values by an index"):
        entry.stats()
    assert entry.to_numpy(slice(0, 2**40, 2**38)).tolist() == [0, 0, 0, 0]
    assert entry.to_numpy(slice(-7, -5)).tolist() == [0, 0]


def test_many_tensors_of_one_list_take_no_time(tmp_path):
    """A list of scales that each tensor of a file has is looked at once."""
    rows = listed(*[floating(1.0)] * 20_000)
    zeros = listed(*[number(0)] * 20_000)
    one = coded(b"h\x01", b"h\x02", number(0), shape=(20_000,), strides=(0,), **BY_CHANNEL)
    entries = b"".join(text(str(i)) + one for i in range(4000))
    pickled = b"\x80\x02" + rows + b"q\x010" + zeros + b"q\x020}(" + entries + b"u."
    explorer = tnp.weights(written(tmp_path / "x.pt", pickled, CODES.tobytes()))
    assert len(explorer) == 4000
    assert explorer["3999"].to_numpy(slice(2)).tolist() == [0, 0]


def test_what_no_module_unpacks_is_named_and_never_equal():
    """The submodule that keeps the packed object alone, and such an object that is an attribute of another module."""

    class Holder(torch.nn.Module):
        def __init__(self, packed):
            super().__init__()
            self.fc = torch.nn.Linear(2, 2)
            self.packed = packed

    nn = torch.ao.nn
    layer, other = nn.quantized.Linear(3, 2), nn.quantized.Linear(3, 2)
    other.set_weight_bias(torch.quantize_per_tensor(torch.ones(2, 3), 0.1, 0, torch.qint8), None)
    one, two = (Holder(each._packed_params._packed_params) for each in (layer, other))
    two.fc = one.fc
    assert not tnp.compare(layer._packed_params, other._packed_params).equal
    assert not tnp.compare(one, two).equal
    assert not tnp.compare({"m": one}, {"m": two}).equal
    [problem] = tnp.weights(one).problems
    assert problem == "'packed' is an object of torch that may hold packed weights; nothing of it is listed"
    beside = torch.nn.ModuleList([layer, layer._packed_params, nn.quantized.dynamic.LSTM(2, 3)])
    assert all("packed bias" in one for one in tnp.weights(beside).problems)
