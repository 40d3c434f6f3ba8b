"""Containers of every class at the prompt: a table where a tensor is inside, and IPython's own text where none is."""

from __future__ import annotations

import pytest

MAKE = """
import collections, dataclasses, types
import torch, tensordict
t = torch.ones(2)
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
"""
TABLES = {
    "Batch(t)": "Batch of 2 | 1 tensor",
    "{t, 3}": "set of 2 | 1 tensor",
    "frozenset([t])": "frozenset of 1 | 1 tensor",
    "collections.deque([t, t], 5)": "deque of 2 | 2 tensors",
    "collections.UserDict(a=t)": "UserDict of 1 | 1 tensor",
    "collections.defaultdict(list, a=[t])": "defaultdict of 1 | 1 tensor",
    "collections.OrderedDict(a=t)": "OrderedDict of 1 | 1 tensor",
    "tensordict.TensorDict({'a': torch.ones(5, 2)}, [5])": "TensorDict of 1 | 1 tensor",
}
AS_BEFORE = [
    "Batch(3)", "Displayed(t)", "set()", "{1, 2}", "frozenset([1])", "collections.deque([1, 2])", "Net()",
    "collections.defaultdict(list, a=[1])", "collections.OrderedDict((f'{i}' * 9, [i]) for i in range(20))",
    "collections.Counter('aab')", "collections.UserDict(a=1)", "collections.UserList([1])",
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


def test_a_printer_that_someone_has_registered_is_not_replaced(shell):
    """A choice of the user's, of another library's too."""
    shell.run(MAKE)
    batch = shell.run("Batch(t)")
    shell.namespace["_own"] = lambda obj: "<i>own</i>"
    shell.run("get_ipython().display_formatter.formatters['text/html'].for_type(Batch, _own)")
    assert shell.show(batch)["text/html"] == "<i>own</i>"
    assert "Batch at 0x" in shell.show(batch)["text/plain"]
