"""The product of containers and kinds: whatever lies in whatever, each view keeps the promises of what it is made of.

A kind of tensor by itself is in `test_gallery.py`, a container of plain tensors where containers are tested.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import tensordict
import torch
from child import in_fork
from gallery import KINDS, Case, made
from gallery_child import equal, shell
from IPython.utils.capture import capture_output
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.tensor.containers import _KEPT_IN, BUILT_IN

MOST = 50
"""Leaves of one of them."""


@dataclasses.dataclass
class Batch:
    """A dataclass with a field for whatever comes."""

    items: Any
    label: str = "<b>&"


Pair = collections.namedtuple("Pair", "first second")


class BatchEncoding(collections.UserDict):  # type: ignore[type-arg]
    """As a tokenizer gives them, by the class that tells where its items are."""

    __module__ = "transformers.tokenization_utils_base"


class BatchFeature(BatchEncoding):
    """As a processor of pictures gives them."""

    __module__ = "transformers.feature_extraction_utils"


class Odd:
    """Nothing but its text can be asked of it."""

    def _refuse(self, *_: Any) -> Any:
        raise RuntimeError("asked")

    __eq__ = __len__ = __bool__ = __iter__ = __array__ = __getattr__ = _refuse  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "<Odd>"


class Refusing:
    """Stands for a tensor, and gives none."""

    def __tensornp__(self) -> None:
        raise ValueError("no <values>")


ODD_KEYS = [None, 1, (2, "a"), "é\u202e", b"x", 1.5, *range(7, MOST + 7)]
CLASSES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "dict": lambda leaves: {f"<k>{i}": leaf for i, leaf in enumerate(leaves)},
    "dict of odd keys": lambda leaves: dict(zip(ODD_KEYS, leaves, strict=False)),
    "namedtuple": lambda leaves: Pair(leaves[:1], tuple(leaves[1:])),
    "deque": lambda leaves: collections.deque(leaves, MOST),
    "OrderedDict": lambda leaves: collections.OrderedDict(enumerate(leaves)),
    "defaultdict": lambda leaves: collections.defaultdict(list, enumerate(leaves)),
    "UserDict": lambda leaves: collections.UserDict(enumerate(leaves)),
    "BatchEncoding": lambda leaves: BatchEncoding(enumerate(leaves)),
    "BatchFeature": lambda leaves: BatchFeature(enumerate(leaves)),
    "dataclass": Batch,
    "TensorDict": lambda leaves: tensordict.TensorDict(
        {f"k{i}": {"in": one} if i % 2 else one for i, one in enumerate(leaves) if isinstance(one, torch.Tensor)}, []
    ),
    "nested": lambda leaves: {"a": leaves[::2], "b": [tuple(leaves[1::2]), {"c": {}}]},
    "holds itself": lambda leaves: (leaves, leaves.append(leaves))[0],
}


def test_every_class_of_containers_is_among_them():
    """What the walk of containers knows by itself."""
    built = {base for make in CLASSES.values() for base in type(make([])).__mro__}
    assert set(BUILT_IN) <= built and Batch in built
    assert set(_KEPT_IN) <= {(cls.__module__.partition(".")[0], cls.__name__) for cls in built}


def cases() -> dict[str, Case]:
    """Return one of each kind that there can be beside the others in one process."""
    found: dict[str, Case] = {}
    for name in KINDS:
        try:
            case = made(name)
        except (ValueError, RuntimeError):
            # A process group, or a level of differentiation, that there is only once.
            continue
        if not isinstance(case, str):
            found[name] = case
    return found


class Balanced(HTMLParser):
    """Checks that each tag is closed in its turn, and that none is there that a sanitizer would drop."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "b>", "k", "values", "svg"), tag
        assert not any(name.startswith("on") for name, _ in attrs), attrs
        if tag not in ("img", "br", "input", "wbr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_html(html: str) -> None:
    """Hold static HTML to what every front end can show."""
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert not parser.open


def check_looks(obj: Any, tensors: list[torch.Tensor]) -> None:
    """Card, table, `%tensors` and `%weights`: something is shown, it is sound, and nothing is changed or printed."""
    ip = shell()
    ip.user_ns["obj"] = obj
    with unchanged(*tensors), capture_output() as captured:
        data, _ = ip.display_formatter.format(obj)
        if any(isinstance(leaf, torch.Tensor) for leaf in tensors):
            shown = tnp.card(obj)
            assert shown.text and shown.html
            check_html(shown.html)
    assert not captured.stdout and not captured.stderr, captured.stdout + captured.stderr
    assert data["text/plain"]
    if "text/html" in data:
        check_html(data["text/html"])
    for line in ("%tensors", "%weights obj", "%tensordiff obj obj"):
        with unchanged(*tensors), capture_output() as captured:
            result = ip.run_cell(line, store_history=False)
        error = result.error_in_exec
        assert result.success or type(error).__name__ == "UsageError", (line, error)
        assert "Traceback" not in captured.stdout + captured.stderr, captured.stdout
        for output in captured.outputs:
            check_html(output.data.get("text/html", ""))


def check_compared(obj: Any, *, must_be_equal: bool = False) -> None:
    """With itself, it ends in a view; or one sentence says that there is nothing to compare."""
    try:
        found = tnp.compare(obj, obj)
    except tnp.TensornpError as error:
        assert "\n" not in str(error)
        assert not any(isinstance(one, torch.Tensor) for one in held_by(obj)), error
        return
    assert found.equal or not must_be_equal, found
    check_html(tnp.card(found).html)


def check_values(obj: Any, expected: dict[int, Any], *, may_refuse: bool = True) -> None:
    """Converted as a whole, each tensor is the array that it is by itself; or one sentence says where it stops."""
    try:
        arrays = tnp.to_numpy(obj, copy=True)
    except tnp.TensornpError as error:
        assert may_refuse, error
        assert "\n" not in str(error)
        return
    found = [one for one in held_by(arrays) if isinstance(one, (np.ndarray, np.generic, list))]
    for leaf in held_by(obj):
        if id(leaf) in expected:
            assert any(equal(array, expected[id(leaf)]) for array in found), (found, expected[id(leaf)])


def held_by(obj: Any) -> Iterator[Any]:
    """Yield all that lies in a container, those within it too: what becomes of a nested tensor is a list."""
    if isinstance(obj, collections.abc.Mapping):
        children = list(obj.values())
    elif isinstance(obj, (list, tuple, collections.deque)):
        children = list(obj)
    else:
        children = [obj.items] if isinstance(obj, Batch) else []
    for child in children:
        yield child
        yield from held_by(child)


def pool_of_leaves() -> tuple[dict[str, Case], dict[str, Any]]:
    """Return the kinds that can be made, and all leaves by name: torch's own repr of some ends the process."""
    pool = cases()
    assert len(pool) > len(KINDS) * 0.8
    plain: list[Any] = [1, "<i>", None, 2.5, np.arange(3.0), np.float32(1), b"x", Odd(), Refusing(), [], {}]
    leaves = {name: case.tensor for name, case in pool.items()}
    return pool, leaves | {f"plain {i}": one for i, one in enumerate(plain)}


def check(container: str, pool: dict[str, Case], leaves: dict[str, Any]) -> None:
    """Hold a container of these leaves to all promises."""
    print(container, *leaves, sep=", ")
    expected = {id(case.tensor): case.expected for case in pool.values() if case.error is None}
    tensors = [case.tensor for name, case in pool.items() if name in leaves]
    sound = [leaf for leaf in leaves.values() if id(leaf) in expected]
    obj = CLASSES[container](list(leaves.values()))
    check_looks(obj, tensors)
    if container != "holds itself":
        check_compared(obj)
        check_values(obj, expected)
        check_compared(CLASSES[container](sound), must_be_equal=True)
        check_values(CLASSES[container](sound), expected, may_refuse=False)


@pytest.mark.slow
@in_fork
def test_every_kind_in_a_nested_container_keeps_the_promises():
    """Up to 50 leaves a container: all kinds of the gallery, arrays and plain objects."""
    pool, leaves = pool_of_leaves()
    names = list(leaves)
    for first in range(0, len(names), MOST):
        check("nested", pool, {name: leaves[name] for name in names[first : first + MOST]})


@pytest.mark.slow
@in_fork
def test_every_container_of_some_kinds_keeps_the_promises():
    """Each with leaves that are chosen by its place in the list, so that all containers share out most kinds."""
    pool, leaves = pool_of_leaves()
    names = list(leaves)
    for i, container in enumerate(CLASSES):
        check(container, pool, {name: leaves[name] for name in names[i :: len(CLASSES)]})
        check(container, pool, {})
