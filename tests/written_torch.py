"""Files of `torch.save`, written opcode by opcode: what no program of torch would write."""

from __future__ import annotations

import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def number(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1, "little")
    return b"\x8a" + bytes([len(data)]) + data


def tensor(*, numel: int = 1, shape: int = 1, stride: int = 1, kind: str = "Float") -> bytes:
    """Return the opcodes that push a tensor of one dimension."""
    storage = b"(" + text("storage") + f"ctorch\n{kind}Storage\n".encode() + text("0") + text("cpu") + number(numel)
    sizes = number(0) + number(shape) + b"\x85" + number(stride) + b"\x85"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"tQ" + sizes + b"\x89ccollections\nOrderedDict\n)RtR"


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
