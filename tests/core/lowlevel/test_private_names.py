"""Without private names of torch, nothing but speed is lost; what cannot be told is said."""

from __future__ import annotations

import importlib
import logging
import sys
from functools import partial

import gallery_child
import pytest
import torch
from child import in_fork
from forked import run, run_each
from gallery import KINDS, made

import tensornp as tnp
from tensornp.core.lowlevel import private_names
from tensornp.core.lowlevel.private_names import PRIVATE_NAMES, missing_names

SAMPLE = (
    "int64", "uint16", "bfloat16, all bit patterns", "complex32, conjugated", "quint8 transposed and large",
    "qint8 per channel", "transposed", "expanded", "negative bit", "conjugate bit", "scalar", "empty", "copy on write",
    "symbolic zero of autograd", "view of a freed storage", "sparse_coo, large", "sparse_csr, large", "mkldnn",
    "sparse_coo, uncoalesced, bfloat16", "sparse_csr with wild indices", "nested, transposed", "inference", "parameter",
    "meta", "fake", "escaped from vmap", "escaped from grad", "functional", "plain subclass", "wrapper of two tensors",
    "masked tensor", "wrapper that dequantizes", "dual of forward mode",
)  # fmt: skip
AT_THE_MERCY = {"raising subclass", "lying subclass", "uninitialized buffer", "causal bias"}
"""Kinds whose class answers for torch itself, where `_C.DisableTorchFunction` does not keep it from that."""
REFUSED = {"symbolic zero of autograd", "tangent that is a symbolic zero"}
"""Kinds that are refused without any of the names: nothing tells them from memory that is gone."""


def take_away(missing):
    """Leave tensornp without these names of torch, in this process and for good."""
    find = private_names.find
    if find.__module__ == __name__:
        return

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
        if isinstance(case, str) or ("_C.DisableTorchFunction" in missing and name in AT_THE_MERCY):
            continue
        text = gallery_child.shell().display_formatter.format(case.tensor)[0]["text/plain"]
        try:
            array = tnp.to_numpy(case.tensor, copy=True)
        except tnp.TensornpError as error:
            assert type(error) is case.error or (len(missing) > 1 and name in REFUSED), f"{name}: {error!r}"
            assert case.says in text, f"{name}: {text}"
            continue
        assert gallery_child.equal(array, case.expected), f"{name}: {array}"
        gallery_child.check_text(case, text)


@pytest.mark.slow
@pytest.mark.parametrize("missing", PRIVATE_NAMES)
def test_without_one_of_the_names_all_is_shown_and_converted(missing):
    """Each stands for itself: whatever torch takes away next."""
    how, what = run(check_without, (missing,), SAMPLE)
    assert how == "returned", what


@pytest.mark.slow
def test_without_any_of_the_names_all_is_shown_and_converted():
    """Every kind of the gallery, by as few processes as can tell."""
    endings = run_each([partial(check_without, PRIVATE_NAMES, [name]) for name in KINDS])
    wrong = {name: what for name, (how, what) in zip(KINDS, endings, strict=True) if how != "returned"}
    assert not wrong, "\n".join(map(str, wrong.values()))


@pytest.mark.slow
@in_fork
def test_without_the_names_compiled_code_may_convert():
    """In place of the compiler's own words, `torch.compiler.disable` keeps it from our frames."""
    hidden = tuple(name for name in PRIVATE_NAMES if "eval_frame" in name)
    take_away(hidden)
    importlib.reload(importlib.import_module("tensornp.core.convert.to_numpy"))
    from tensornp.core.convert.to_numpy import to_numpy

    arrays = []

    @torch.compile(backend="eager")
    def function(x):
        y = x * 2
        arrays.append(to_numpy(y, copy=True))
        return y + 1

    assert function(torch.arange(3.0)).tolist() == [1, 3, 5]
    assert arrays[0].tolist() == [0, 2, 4]


@pytest.mark.slow
@in_fork
def test_what_this_torch_does_not_tell_is_said():
    """Where a graph has saved something and torch does not tell what, the card says so, and so does a receipt."""
    take_away(("_C._autograd.SavedTensor.data",))
    weight = torch.ones(3, requires_grad=True)
    text = f"this torch ({torch.__version__}) does not tell what backward has saved"

    def card(tensor):
        bundle, _ = gallery_child.shell().display_formatter.format(tensor)
        return bundle["text/plain"], bundle["text/html"]

    assert text not in "".join(card(weight))
    kept = weight.exp()
    assert all(text in shown for shown in card(kept))
    gallery_child.shell().user_ns.update(kept=kept, plain=torch.ones(3))
    assert text in card(gallery_child.shell().user_ns["plain"])[0]


def test_private_names_of_torch_are_all_there():
    """In the torch that is pinned; of another one it is told which are not, and tensornp works without them."""
    if torch.__version__.startswith("2.13."):
        assert missing_names() == []
    elif missing_names():
        pytest.skip(f"this torch lacks private names: {', '.join(missing_names())}")


def test_a_torch_newer_than_all_that_were_tried_is_one_line_of_the_log(monkeypatch, caplog):
    """Loading goes on."""
    with caplog.at_level(logging.WARNING, "tensornp"):
        private_names.warn_of_untried_torch()
        assert not caplog.records or torch.__version__.startswith(("2.16", "2.17", "3."))
        caplog.clear()
        monkeypatch.setattr(torch, "__version__", "9.1.0a0+git1234")
        private_names.warn_of_untried_torch()
    (record,) = caplog.records
    assert "torch 9.1.0a0+git1234 is newer than the 2." in record.getMessage()
