"""Name the kind of a file that holds no weights this package reads."""

from __future__ import annotations

NUM_LOOKED_AT = 512
"""Bytes that are enough."""
_MAGIC = {
    b"\x80": "a pickle, but none of torch.save",
    b"\x1f\x8b": "a gzip file; unpack it first",
    b"\x28\xb5\x2f\xfd": "a zstd file; unpack it first",
    b"\x89HDF": "an HDF5 file, as of Keras (.h5); h5py opens it, and weights takes a dictionary of its arrays",
    b"version https://git-lfs": "a Git LFS pointer in the place of the file; 'git lfs pull' brings that",
    b"<": "HTML or XML, such as a page that was saved in the place of the file",
    b"{": "JSON",
}


def what_it_seems(begins: bytes) -> str:
    """Return the kind of a file by its first bytes; empty if it may be safetensors."""
    if begins[4:9] == b"\0\0\0\0{":
        return ""
    text = begins.lstrip()
    return next((words for magic, words in _MAGIC.items() if text.startswith(magic)), "")
