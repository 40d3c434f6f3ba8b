"""What a process says of its own part when it is asked: plain tuples and bytes. It communicates with no other rank."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

import tensornp
from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import error_text, is_array, is_tensor
from tensornp.core.lowlevel.text import counted
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.memory.digest import digest_of
from tensornp.core.memory.fingerprint import Fingerprint, fingerprint, fingerprint_of_array
from tensornp.core.memory.footprint import parts_under
from tensornp.core.namespace.lookup import NotLookedAtError, look_up
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.kinds import LOCAL, form_of
from tensornp.core.tensor.shards import ShardFacts
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.core.values.locate import locate
from tensornp.core.values.stats.compute import stats
from tensornp.core.values.stats.record import FIGURES
from tensornp.errors import BadRequestError, NoSuchWeightError, TensornpError
from tensornp.models.entries.entry import COMPUTED, WeightEntry
from tensornp.models.entries.repeated import not_counted
from tensornp.models.entries.tensor import kind_of, weight_of
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.in_memory import explorer_of
from tensornp.models.names.quoted import MAX_SHOWN, closest, cut, shown_name
from tensornp.processes.facts import packed

_MAX_NBYTES = 2**36
"""Bytes of which the bits are told whole: only what is expanded has more."""
_MAX_NAMED = 3
_TENSORS_OF_ONE = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})
"""Attributes by which a tensor makes another one of its memory."""


def answer(version: str, question: str, *details: Any) -> tuple[Any, ...]:
    """Return the version, the rank, how many there are, why there is no answer, and what was asked; nothing raises.

    A process calls it, which has imported it by its name. A client of another version is told that one alone.
    """
    rank, num_ranks, said, found = None, 0, "", None
    try:
        if version == tensornp.__version__:
            rank, num_ranks = _place()
            found = _QUESTIONS[question](*details)
    except TensornpError as error:
        said = str(error) if str(error).startswith("has ") else f"says: {error}"
    except Exception as error:
        said = f"raised {error_text(error)}"
    return tensornp.__version__, rank, num_ranks, said, found


def _place() -> tuple[int | None, int]:
    """Return the number of this process in its group and how many there are; None and 0 without a group."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None, 0
    return dist.get_rank(), dist.get_world_size()


def _names() -> dict[str, Any]:
    """Return the names that a cell sees here, or a script."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return {**vars(sys.modules["__main__"]), **getattr(shell, "user_ns", {})}


def _reached(expression: str) -> Any:
    """Return what names, attributes and constant keys reach; nothing of the user's runs."""
    names = _names()
    try:
        return look_up(expression, names)
    except NotLookedAtError:
        raise
    except BadRequestError:
        node: Any = ast.parse(expression, mode="eval").body
    while not isinstance(node, ast.Name):
        before, part = ast.unparse(node.value), ast.unparse(node)
        try:
            held = look_up(before, names)
        except BadRequestError:
            node = node.value
            continue
        part = part.removeprefix(before).removeprefix(".")
        if is_tensor_like(held) and (isinstance(node, ast.Subscript) or hasattr(torch.Tensor, part)):
            is_tensor_of_it = isinstance(node, ast.Subscript) or part in _TENSORS_OF_ONE
            why = f"of which {part} would be a new one" if is_tensor_of_it else f"whose {part} is no weight"
            raise NoSuchWeightError(f"has a tensor in {before}, {why}: ask for {before}")
        raise NoSuchWeightError(f"has no {shown_name(part)} in {before}{closest(part, _names_in(held))}")
    raise NoSuchWeightError(f"has no {shown_name(node.id)}{closest(node.id, names)}")


def _names_in(obj: Any) -> list[str]:
    """Return by what the weights are called that an object holds, each whole and by its first part."""
    try:
        names = list(_weights_of(obj, ""))
    except TensornpError:
        return []
    return list(dict.fromkeys([*(name.partition(".")[0] for name in names), *names]))


def _held(expression: str) -> Mapping[str, WeightEntry]:
    obj = _reached(expression)
    if obj is None:
        raise NoSuchWeightError(f"has {expression}, which is None")
    return _weights_of(obj, expression)


def _weights_of(obj: Any, expression: str) -> Mapping[str, WeightEntry]:
    """Return what an object holds by name, or a tensor by the expression itself; a path is not opened."""
    if issubclass(type(obj), WeightsExplorer):
        return obj  # type: ignore[no-any-return]
    if not is_tensor_like(obj):
        return explorer_of(obj, expression, None, {})
    kind = "parameter" if is_tensor(obj) and inspect(obj).is_parameter else kind_of(obj)
    return {expression: weight_of(expression, kind, obj, expression)}


def _weight(expression: str, name: str) -> WeightEntry:
    held = _held(expression)
    if name not in held and name == expression:
        raise NoSuchWeightError(f"has {counted(len(held), 'weight')} in {shown_name(name)}; .weights(...) lists them")
    if name not in held:
        raise NoSuchWeightError(f"has no {shown_name(name)}{closest(name, held)}")
    return held[name]


def _shard_of(entry: WeightEntry) -> ShardFacts | None:
    tensor = entry.tensor
    return None if is_of_torch(tensor) or not is_tensor_like(tensor) else inspect(tensor).shard


def _layout_of(tensor: Any) -> str:
    """Return how a tensor is spread over ranks, as `Facts` tells it: at a tenth of what all facts of it take."""
    if is_of_torch(tensor) or not is_tensor(tensor) or form_of(tensor).kind is not LOCAL:
        return ""
    spread: Any = tensor
    mesh = spread.device_mesh
    names = mesh.mesh_dim_names or ("",) * len(mesh.shape)
    over = " × ".join(f"{name} {n}".strip() for name, n in zip(names, mesh.shape, strict=True))
    return f"{', '.join(map(str, spread.placements))} on {over}"


def _rows(held: Mapping[str, WeightEntry]) -> Iterator[tuple[Any, ...]]:
    """Yield of each weight its name and its `Facts`."""
    return ((name, *_row(entry)) for name, entry in held.items() if not entry._is_nothing)


def _row(entry: WeightEntry) -> tuple[Any, ...]:
    return (
        entry.kind, entry.shape, entry.dtype, entry.nbytes + entry._nbytes_elsewhere, entry.requires_grad,
        entry.location.partition(":")[0], _layout_of(entry.tensor), min(entry.tied_to, default=""),
    )  # fmt: skip


def _facts(expression: str) -> tuple[Any, ...]:
    """Return what tells equal facts, the number of weights, of elements in all and of bytes here, of tied ones once."""
    held = _held(expression)
    rows = sorted(map(repr, _rows(held)))
    again = not_counted(list(held.values()))
    each = [entry for name, entry in held.items() if name not in again]
    numel, nbytes = sum(entry._num_parameters or 0 for entry in each), sum(entry.nbytes for entry in each)
    return digest_of("\n".join(rows).encode()), len(rows), numel, nbytes


def _listing(expression: str) -> bytes:
    return packed(_rows(_held(expression)))


def _part(expression: str, name: str) -> tuple[Any, ...]:
    """Return of a weight its `Facts`, which box of it is here, the figures of that, and what tells its bits."""
    entry = _weight(expression, name)
    shard = _shard_of(entry)
    if shard is not None and (shard.coordinate is None or 0 in shard.shape):
        return _row(entry), (), (), b""
    found = stats(_readable(entry), histogram=None)
    figures = tuple(
        tuple(getattr(one, name) for name in FIGURES) for one in (found, found.real, found.imag) if one is not None
    )
    return _row(entry), _box_of(shard), figures, _mark_of(_fingerprint(entry, shard, _MAX_NBYTES), _form_of(entry))


def _readable(entry: WeightEntry) -> Any:
    """Return what the values here are read from; raises where they are codes, or a part of a sum."""
    shard = _shard_of(entry)
    if shard is not None and shard.pending:
        entry._check_readable()
    if entry._packed is not None:
        # It says why they mean nothing.
        entry.stats()
    return entry._values_here()


def _box_of(shard: ShardFacts | None) -> tuple[Any, ...] | None:
    """Return which indices of each dimension are here, of what is not spread (); None where nothing tells."""
    return shard.held if shard is not None else ()


def _fingerprint(entry: WeightEntry, shard: ShardFacts | None, max_nbytes: int) -> Fingerprint | None:
    """Return the fingerprint of what this rank holds, block by block; None where there is none."""
    tensor = entry.tensor
    if tensor is None or is_array(tensor):
        return fingerprint_of_array(tensor, max_nbytes) if tensor is not None else None
    return fingerprint(tensor if shard is None else parts_under(tensor)[0], max_nbytes)


def _mark_of(found: Fingerprint | None, form: tuple[str, ...] = ()) -> bytes:
    """Return a few bytes that tell equal fingerprints of equal forms; none where there is none."""
    return b"" if found is None else digest_of(repr((form, found.one_in, found.blocks)).encode())


def _form_of(entry: WeightEntry) -> tuple[str, str, str]:
    """Return in words what is alike where bits may be compared: the shape, the dtype, and how values are stored.

    What follows a ``#`` tells equal scales, and is not shown.
    """
    tensor, stored = entry.tensor, ""
    if is_of_torch(tensor):
        with modes.outside_modes():
            stored = str(tensor.layout).removeprefix("torch.")
            if tensor.is_quantized:
                stored = _scheme_text(tensor)
    return str(entry.shape), entry.dtype, stored


def _scheme_text(tensor: Any) -> str:
    if "channel" not in str(tensor.qscheme()):
        scale = tensor.q_scale()
        return f"scale {scale:.6g}, zero point {tensor.q_zero_point()} #{scale!r}"
    scales = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    marks = [_mark_of(fingerprint(one, _MAX_NBYTES)).hex() for one in scales]
    return f"scales per channel of axis {tensor.q_per_channel_axis()} #{' '.join(marks)}"


def _places(expression: str, name: str, what: str) -> tuple[Any, ...]:
    """Return where elements of a weight are, by their indices in the whole tensor."""
    found = locate(_readable(_weight(expression, name)), what)
    return found.count, found.indices, found.axes, found.value


class _Alike(NamedTuple):
    """What is compared of a weight, whose fingerprint is None where its bits cannot be read.

    What is `own` of one kind and laid out in one way is a class: the ranks that hold the same boxes of it are replicas.
    """

    own: str
    name: str
    box: str
    form: tuple[str, str, str]
    mark: Fingerprint | None


def _alike(expression: str, max_nbytes: int) -> Iterator[_Alike]:
    """Yield what should be the same on several ranks: not what is computed, not there yet, a summand, or cut."""
    for name, entry in _held(expression).items():
        shard = _shard_of(entry)
        if entry._is_nothing or entry._is_pending or entry.kind == COMPUTED or (shard is not None and shard.pending):
            continue
        # Of no element: it is named, so that ranks that hold none of it have the names of the others.
        is_empty = 0 in (shard.shape if shard is not None else entry.shape or ())
        mark = Fingerprint(()) if is_empty else _fingerprint(entry, shard, max_nbytes)
        own = f"{entry.kind} {_layout_of(entry.tensor)}"
        yield _Alike(own, name, repr(_box_of(shard)), _form_of(entry), mark)


def _marks(expression: str, max_nbytes: int) -> tuple[Any, ...]:
    """Return for each class what tells its names, its boxes, its bits, how many weights, if all was read, and what not.

    The last are names in a few words.
    """
    classes: dict[str, list[_Alike]] = {}
    for one in _alike(expression, max_nbytes):
        classes.setdefault(one.own, []).append(one)
    found = []
    for own, some in classes.items():
        # Whichever order a rank has them in.
        read = sorted([one for one in some if one.mark is not None], key=lambda one: one.name)
        told = (
            repr([one.name for one in read]).encode(), repr([one.box for one in read]).encode(),
            b"".join(_mark_of(one.mark, one.form) for one in read),
        )  # fmt: skip
        is_whole = all(one.mark.one_in == 1 for one in read if one.mark is not None)
        unread = [cut(one.name, MAX_SHOWN) for one in some if one.mark is None]
        more = f" and {len(unread) - _MAX_NAMED:,} more" if len(unread) > _MAX_NAMED else ""
        found.append((own, *map(digest_of, told), len(read), is_whole, ", ".join(unread[:_MAX_NAMED]) + more))
    return tuple(found)


def _blocks(expression: str, max_nbytes: int, wanted: str) -> bytes:
    """Return of one class the name, the box, the form and the fingerprint of each weight, block by block."""
    return packed(
        (one.name, one.box, one.form, one.mark.one_in, one.mark.blocks)
        for one in _alike(expression, max_nbytes) if one.own == wanted and one.mark is not None
    )  # fmt: skip


_QUESTIONS: dict[str, Callable[..., Any]] = {
    "facts": _facts, "listing": _listing, "part": _part, "places": _places, "marks": _marks, "blocks": _blocks,
}  # fmt: skip
