"""What a file seems to be that holds no weights which are read, by how it begins."""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection

NUM_LOOKED_AT = 512
"""Bytes that tell enough."""
_ZLIB = "packed by zlib, as joblib does; joblib.load opens what that wrote, and runs it: only if you trust it"
_JOBLIB = "a pickle of joblib; joblib.load opens it, and runs it: only if you trust it"
_MAGIC = {
    b"\x80": "a pickle, but none of torch.save",
    b"\x1f\x8b": "a gzip file; unpack it first",
    b"BZh": "a bzip2 file; unpack it first",
    b"\xfd7zXZ\0": "an xz file; unpack it first",
    b"\x28\xb5\x2f\xfd": "a zstd file; unpack it first",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it first",
    b"Rar!": "a RAR archive; unpack it first",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF document",
    b"\x89HDF": "an HDF5 file, as of Keras (.h5); h5py opens it, and weights takes a dictionary of its arrays",
    b"x\x01": _ZLIB,
    b"x\x5e": _ZLIB,
    b"x\x9c": _ZLIB,
    b"x\xda": _ZLIB,
    b"version https://git-lfs": "a Git LFS pointer in the place of the file; 'git lfs pull' brings that",
}
_TAR_MAGIC, _TAR_AT = b"ustar", 257
# What protocol 0 begins a dictionary, a list or an object with: lines of text.
_TEXT_PICKLE = re.compile(rb"\(?[dl]p\d+\r?\n|\([dl]p|c[\w.]+\r?\n\w+\r?\n")
_LENGTH_NBYTES = 8


def what_it_seems(begins: bytes) -> str:
    """Return in a few words what a file seems to be which begins so; empty if it may be of safetensors.

    The first eight bytes of those are a length, and a brace comes next.
    """
    if len(begins) < _LENGTH_NBYTES:
        return _kind_of_text(begins)
    if begins[4 : _LENGTH_NBYTES + 1] == b"\0\0\0\0{":
        return ""
    if begins.startswith(b"\x80") and b"joblib.numpy_pickle" in begins:
        return _JOBLIB
    for magic, words in _MAGIC.items():
        if begins.startswith(magic):
            return words
    if begins[_TAR_AT:].startswith(_TAR_MAGIC):
        return "a tar archive; unpack it first"
    if _TEXT_PICKLE.match(begins):
        return "a pickle, but none of torch.save"
    return _kind_of_text(begins)


def what_zip_it_seems(names: Collection[str]) -> str:
    """Return in a few words what a zip file of these members is that `torch.save` has not written; empty if unknown."""
    ends = {name.partition("/")[2] for name in names}
    if "archive_format" in ends or "serialized_exported_program.json" in names:
        return "an archive of torch.export (.pt2); give weights the state_dict of what torch.export.load returns"
    if ".data/extern_modules" in ends:
        return "a torch.package; torch.package.PackageImporter opens it, and runs its code: only if you trust it"
    if "config.json" in names and any(name.endswith(".weights.h5") for name in names):
        return "a model of Keras (.keras); keras.saving.load_model opens it, and h5py its model.weights.h5"
    return ""


def _kind_of_text(begins: bytes) -> str:
    try:
        # The last character may be cut off.
        text = codecs.getincrementaldecoder("utf-8")().decode(begins).lstrip("\ufeff \t\r\n")
    except UnicodeDecodeError:
        return ""
    if not text or any(not (char.isprintable() or char in "\t\r\n") for char in text):
        return ""
    if text[0] in "{[":
        return "JSON"
    if text[0] == "<":
        return "HTML or XML, such as a page that was saved in the place of the file"
    return "text"
