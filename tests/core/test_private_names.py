"""Without private names of torch, nothing but speed is lost; what cannot be told is said."""

from __future__ import annotations

import importlib
import sys

import gallery_child
import pytest
from forked import run
from gallery import KINDS, made

import tensornp as tnp
from tensornp.core import private_names
from tensornp.core.private_names import PRIVATE_NAMES

SAMPLE = (
    "int64", "uint16", "bfloat16, all bit patterns", "complex32, conjugated", "quint8 transposed and large",
    "qint8 per channel", "transposed", "expanded", "negative bit", "conjugate bit", "scalar", "empty", "copy on write",
    "symbolic zero of autograd", "view of a freed storage", "sparse_coo, large", "sparse_csr, large", "mkldnn",
    "sparse_coo, uncoalesced, bfloat16", "sparse_csr with wild indices", "nested, transposed", "inference", "parameter",
    "dual of forward mode", "meta", "fake", "escaped from vmap", "escaped from grad", "functional", "plain subclass",
    "raising subclass", "wrapper of two tensors", "masked tensor", "wrapper that dequantizes",
)  # fmt: skip


def take_away(missing):
    """Leave tensornp without these names of torch, in this process and for good."""
    find = private_names.find

    def find_others(path):
        return None if any(path == name or path.startswith(f"{name}.") for name in missing) else find(path)

    private_names.find = find_others
    for module in [m for n, m in sys.modules.items() if n.startswith("tensornp.") and getattr(m, "find", None) is find]:
        if module is not private_names:
            importlib.reload(module)


def check_without(missing, kinds):
    """Show and convert kinds of the gallery without some names: each is right, or is refused as ever."""
    take_away(missing)
    for name in kinds:
        case = made(name)
        if isinstance(case, str):
            continue
        text = gallery_child.shell().display_formatter.format(case.tensor)[0]["text/plain"]
        try:
            array = tnp.to_numpy(case.tensor, copy=True)
        except tnp.TensornpError as error:
            assert type(error) is case.error, f"{name}: {error!r}"
            assert case.says in text, f"{name}: {text}"
        else:
            assert gallery_child._equal(array, case.expected), f"{name}: {array}"
            gallery_child._check_text(case, text.partition("\n")[2])


@pytest.mark.parametrize("missing", PRIVATE_NAMES)
def test_without_one_of_the_names_all_is_shown_and_converted(missing):
    """Each stands for itself: whatever torch takes away next."""
    how, what = run(check_without, (missing,), SAMPLE)
    assert how == "returned", what


def test_without_any_of_the_names_all_is_shown_and_converted():
    """Every kind of the gallery."""
    how, what = run(check_without, PRIVATE_NAMES, list(KINDS))
    assert how == "returned", what
