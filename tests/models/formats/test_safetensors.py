"""The header of a safetensors file: what the library refuses is refused, in one sentence, and nothing is allocated."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save

import tensornp as tnp
from tensornp.models.files.source_file import SourceFile
from tensornp.models.formats.safetensors import DTYPES, read_safetensors

GOOD = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(4, dtype=torch.bfloat16), "c": torch.tensor(True)}


def made(header: Any, data: bytes = b"") -> bytes:
    """Return a file of this header, which may be text."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def one(**facts: Any) -> bytes:
    return made({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **facts}}, bytes(8))


REFUSED = {
    "empty": (b"", "is empty"),
    "seven bytes": (bytes(7), "the header says"),
    "a header of 2**63 bytes": (struct.pack("<Q", 2**63) + b"{}", "100,000,000"),
    "a header past the end": (struct.pack("<Q", 99) + b"{}", "says 99 bytes"),
    "no brace": (made(b"[]"), "does not begin with a brace"),
    "no JSON": (made(b'{"x":'), "is not JSON"),
    "no UTF-8": (made(b'{"\xff":1}'), "is not JSON in UTF-8"),
    "nested": (made(b'{"a":' + b"[" * 100_000), "is not JSON"),
    "a constant": (made(b'{"x":NaN}'), "no sound dtype"),
    "no mapping": (made({"x": 3}), "'x' has no sound dtype, shape and data_offsets"),
    "metadata": (made({"__metadata__": {"a": 1}}), "__metadata__ is not a mapping from text to text"),
    "a negative size": (one(shape=[-2]), "no sound dtype"),
    "a size of half": (one(shape=[2.0]), "no sound dtype"),
    "a size of true": (one(shape=[True, 2]), "no sound dtype"),
    "three offsets": (one(data_offsets=[0, 4, 8]), "no sound dtype"),
    "too few bytes": (one(shape=[3]), "of shape (3,) and dtype F32 needs 96 bits, and has 64"),
    "an odd number of half bytes": (one(shape=[3], dtype="F4", data_offsets=[0, 2]), "needs 12 bits, and has 16"),
    "an endless shape": (one(shape=[2**40, 2**40]), "is too large for any memory"),
    "a hole": (one(data_offsets=[4, 12]), "leave a hole before"),
    "backwards": (one(data_offsets=[8, 0]), "leave a hole before"),
    "cut off": (one()[:-1], "bytes, and has"),
    "a rest": (one() + b"x", "1 byte at its end can belong to no tensor"),
    "overlap": (
        made({n: {"dtype": "U8", "shape": [4], "data_offsets": [i, i + 4]} for i, n in enumerate("xy")}, bytes(5)),
        "overlap with those before",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_sound_is_refused(tmp_path, name):
    """With what is wrong; the library refuses it too."""
    data, says = REFUSED[name]
    path = tmp_path / "x.safetensors"
    path.write_bytes(data)
    with pytest.raises(tnp.CheckpointError) as raised:
        tnp.weights(path)
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)
    with pytest.raises(Exception):  # noqa: B017  # whichever it is
        safetensors.deserialize(data)


def test_good_files_say_what_the_library_says(tmp_path):
    """Every dtype that both know, with metadata, empty tensors and numbers alone."""
    tensors = dict(GOOD)
    for name, (dtype, bits) in DTYPES.items():
        if hasattr(torch, dtype) and bits >= 8 and dtype != "float4_e2m1fn_x2":
            tensors[name] = torch.arange(12, dtype=torch.uint8).view(4, 3).float().to(getattr(torch, dtype))
    tensors |= {"empty": torch.zeros(0, 3), "number": torch.tensor(2.5)}
    path = tmp_path / "good.safetensors"
    path.write_bytes(save(tensors, metadata={"made by": "a test"}))
    explorer = tnp.weights(path)
    assert explorer.metadata == {"made by": "a test"}
    assert explorer.problems == []
    with safetensors.safe_open(path, "pt") as library:
        assert set(explorer) == set(library.keys())
        for name, entry in explorer.items():
            expected = library.get_tensor(name)
            assert (entry.shape, entry.dtype) == (tuple(expected.shape), str(expected.dtype).removeprefix("torch."))
            assert np.array_equal(entry.to_numpy(), tnp.to_numpy(expected), equal_nan=True)
            assert entry.to_numpy().dtype == tnp.to_numpy(expected).dtype
            with open(path, "rb") as file:
                (extent,) = entry.extents
                file.seek(extent.offset)
                assert file.read(extent.nbytes) == bytes(expected.contiguous().reshape(-1).view(torch.uint8).tolist())


@pytest.mark.parametrize("shape", [(3, 4), (5, 6), (0, 2), (2, 0, 4)])
def test_float4_has_two_values_in_a_byte(tmp_path, shape):
    codes = np.arange(math.prod(shape), dtype=np.uint8).reshape(shape) % 16
    data = (codes[..., ::2] | codes[..., 1::2] << 4).tobytes()
    header = {"x": {"dtype": "F4", "shape": shape, "data_offsets": [0, len(data)]}}
    (tmp_path / "x.safetensors").write_bytes(made(header, data))
    found = tnp.weights(tmp_path / "x.safetensors")["x"].to_numpy()
    np.testing.assert_array_equal(found, codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32), strict=True)


def test_an_unknown_dtype_hides_its_own_tensor_alone(tmp_path):
    """Said up front, and when its values are asked for."""
    path = tmp_path / "x.safetensors"
    header = {
        "new": {"dtype": "Q4_K", "shape": [5], "data_offsets": [0, 3]},
        "odd": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [3, 6]},
        "good": {"dtype": "I8", "shape": [2], "data_offsets": [6, 8]},
    }
    path.write_bytes(made(header, bytes([0, 0, 0, 0, 0, 0, 7, 249])))
    explorer = tnp.weights(path)
    assert explorer.problems == [
        "'new': its dtype 'Q4_K' is not known", "'odd': torch has no dtype for F6_E2M3",
    ]  # fmt: skip
    assert explorer["good"].to_numpy().tolist() == [7, -7]
    with pytest.raises(tnp.NoDataError, match="'new' has no values to read: its dtype 'Q4_K' is not known"):
        explorer["new"].to_numpy()


@given(st.binary(max_size=6), st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_in_the_file_ends_in_a_sentence(tmp_path, put, at, cut):
    """Bytes are put in, and others are cut out: ours refuses what the library refuses, and never fails otherwise."""
    data = save(GOOD)
    changed = data[:at] + put + data[at + cut % 7 :]
    path = tmp_path / "x.safetensors"
    path.write_bytes(changed)
    try:
        entries = read_safetensors(SourceFile.at(path)).entries
    except tnp.CheckpointError:
        return
    if any(entry.problem for entry in entries):
        # The one exception: an unknown dtype.
        return
    library = dict(safetensors.deserialize(changed))
    for entry in entries:
        ((_, offset, nbytes),) = entry.extents
        assert entry.shape == tuple(library[entry.name]["shape"])
        assert changed[offset : offset + nbytes] == bytes(library[entry.name]["data"])
