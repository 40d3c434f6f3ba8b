"""Containers of every class at the prompt: a table where a tensor is inside, and IPython's own text where none is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensornp as tnp

MAKE = """
import collections, dataclasses, types, weakref
from unittest import mock
import torch, tensordict
t = torch.ones(2)
kept = type("D", (dict,), {})(a=1)
@dataclasses.dataclass(repr=False)
class Batch:
    x: torch.Tensor
    y: int = 3
@dataclasses.dataclass(repr=False)
class Displayed(Batch):
    def _repr_html_(self):
        return "<b>mine</b>"
class Net(torch.nn.Module):
    pass
class Bundled(list):
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": f"{include} {exclude}", "text/html": "bundle"}
    def _repr_html_(self):
        return "own"
class Owned(collections.UserDict):
    __repr__ = _repr_html_ = lambda self: "own"
class Asked:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": f"{include} {exclude}"}
class Raising:
    def _repr_mimebundle_(self, include=None, exclude=None):
        raise ValueError("x")
class Unnamed(list):
    __repr__ = None
"""
TABLES = {
    "Batch(t)": "Batch of 2 · 1 tensor · 8 bytes",
    "collections.deque([t, t], 5)": "deque of 2 tensors · ",
    "collections.UserDict(a=t)": "UserDict of 1 tensor · ",
    "collections.defaultdict(list, a=[t])": "defaultdict of 1 tensor · ",
    "collections.OrderedDict(a=t)": "OrderedDict of 1 tensor · ",
    "tensordict.TensorDict({'a': torch.ones(5, 2)}, [5])": "TensorDict of 1 tensor · ",
}
AS_BEFORE = [
    "Batch(3)", "Displayed(t)", "set()", "{1, 2}", "frozenset([1])", "collections.deque([1, 2])", "Net()",
    "collections.defaultdict(list, a=[1])", "collections.OrderedDict((f'{i}' * 9, [i]) for i in range(20))",
    "collections.Counter('aab')", "collections.UserDict(a=1)", "collections.UserList([1])",
    "Bundled([1])", "Owned(a=t)", "Unnamed([1])", "weakref.proxy(kept)", "mock.MagicMock(spec=dict)",
    "types.MappingProxyType({})", "__import__('os').environ",
]  # fmt: skip


@pytest.mark.parametrize("expression", TABLES)
def test_a_container_with_a_tensor_is_a_table(shell, expression):
    """Also after IPython has shown another of its class, for which it then has a printer of its own."""
    shell.run(MAKE)
    for _ in range(2):
        data = shell.show(shell.run(expression))
        assert data["text/plain"].startswith(TABLES[expression]), data["text/plain"]
        assert TABLES[expression] in data["text/html"]
        shell.show(type(shell.run(expression))() if "Batch" not in expression else 3)


@pytest.mark.parametrize("expression", AS_BEFORE)
def test_other_containers_are_shown_as_without_us(shell, expression):
    """The very bundle that IPython makes, line breaks included; twice, since it remembers what it has shown."""
    shell.run(MAKE)
    obj = shell.run(expression)
    ours = [shell.show(obj) for _ in range(2)]
    shell.run("%unload_ext tensornp")
    assert [shell.show(obj) for _ in range(2)] == ours


@pytest.mark.parametrize("kind", ["for_type(Batch, ", "for_type_by_name('__main__', 'Batch', "])
def test_a_printer_that_someone_has_registered_is_not_replaced(shell, kind):
    """A choice of the user's, of another library's too."""
    shell.run(MAKE)
    batch = shell.run("Batch(t)")
    shell.namespace["_own"] = lambda obj: "<i>own</i>"
    shell.run(f"get_ipython().display_formatter.formatters['text/html'].{kind}_own)")
    assert shell.show(batch)["text/html"] == "<i>own</i>"
    assert "Batch at 0x" in shell.show(batch)["text/plain"]


def test_memory_that_several_leaves_share_is_counted_once():
    """A tensor, its array, its transpose and a row of it; two columns side by side are two."""
    x = torch.ones(4, 5)
    array = np.ones(1000)
    for obj, nbytes in (
        ({"t": x, "n": x.numpy()}, "80 bytes"), ([x, x.T, x[0]], "80 bytes"), ([x[:, 0], x[:, 1]], "32 bytes"),
        ([x, {"a": array, "b": array[:], "c": array.view()}], "7.9 KiB"), ([x, x.clone()], "160 bytes"),
    ):  # fmt: skip
        assert f" · {nbytes}" in tnp.card(obj).text.splitlines()[0]
