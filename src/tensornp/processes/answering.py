"""Answer for this process in plain tuples; communicate with no other rank."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import tensornp
from tensornp.core.lowlevel.attributes import error_text, is_array
from tensornp.core.lowlevel.text import counted
from tensornp.core.lowlevel.torch_private import is_of_torch
from tensornp.core.memory.changes import digest_of, fingerprint, fingerprint_of_array
from tensornp.core.namespace.lookup import NotLookedAtError, look_up
from tensornp.core.tensor.info import inspect
from tensornp.core.tensor.stand_ins import is_tensor_like
from tensornp.core.values.stats.record import FIGURES
from tensornp.errors import BadRequestError, NoSuchWeightError, TensornpError
from tensornp.models.explorer import WeightsExplorer
from tensornp.models.live.container import explorer_of
from tensornp.models.names.quoted import closest, shown_name


class Facts(NamedTuple):
    """The facts of a whole weight that should be equal on all ranks."""

    kind: str
    shape: tuple[int, ...] | None
    dtype: str
    nbytes: int
    requires_grad: bool | None
    device: str
    layout: str
    tied_to: str

    def unlike(self, other: Facts) -> str:
        """Return the facts that differ here, with their values on the other ranks."""
        names = [name for name in Facts._fields if getattr(self, name) != getattr(other, name)]
        names = [name for name in names if name != "nbytes" or len(names) == 1]
        return ", ".join(f"{name} {getattr(self, name)} instead of {getattr(other, name)}" for name in names)


def answer(version: str, *question: Any) -> tuple[Any, ...]:
    """Return version, rank, number of ranks, reason of no answer, and answer; never raises.

    A process imports it by its name and calls it. A client of another version learns that alone.
    """
    rank, num_ranks, said, found = None, 0, "", None
    try:
        if version == tensornp.__version__:
            rank, num_ranks = _place()
            found = _listed(*question)
    except TensornpError as error:
        said = str(error) if str(error).startswith("has ") else f"says: {error}"
    except Exception as error:
        said = f"raised {error_text(error)}"
    return tensornp.__version__, rank, num_ranks, said, found


def _place() -> tuple[int | None, int]:
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None, 0
    return dist.get_rank(), dist.get_world_size()


def _names() -> dict[str, Any]:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return {**vars(sys.modules["__main__"]), **getattr(shell, "user_ns", {})}


def _held(expression: str) -> WeightsExplorer:
    names = _names()
    try:
        obj = look_up(expression, names)
    except NotLookedAtError:
        raise
    except BadRequestError:
        raise NoSuchWeightError(f"has no {shown_name(expression)}{closest(expression, names)}") from None
    if is_tensor_like(obj):
        obj = {expression: obj}
    return obj if issubclass(type(obj), WeightsExplorer) else explorer_of(obj, expression, {})


def _listed(expression: str, name: str = "", max_nbytes: int = 0) -> tuple[Any, ...]:
    """Return a row for each weight, or for one with figures.

    A row has the name, the facts, the box of the part here, a digest of bits if `max_nbytes` is given, and figures.
    """
    held = _held(expression)
    if name and name not in held:
        cure = f"has {counted(len(held), 'weight')} in {shown_name(name)}; .weights(...) lists them"
        raise NoSuchWeightError(cure if name == expression else f"has no {shown_name(name)}{closest(name, held)}")
    rows = []
    for key in [name] if name else held:
        entry = held[key]
        if entry._is_nothing:
            continue
        tensor = entry.tensor
        shard = None if is_of_torch(tensor) or not is_tensor_like(tensor) else inspect(tensor).shard
        box = () if shard is None else (shard.offsets, shard.shape) if shard.offsets is not None else None
        layout = ", ".join(shard.placements) if shard is not None else ""
        facts = (
            entry.kind, entry.shape, entry.dtype, entry.nbytes + entry._nbytes_elsewhere, entry.requires_grad,
            entry.location.partition(":")[0], layout, min(entry.tied_to, default=""),
        )  # fmt: skip
        # Neither parts of a sum nor the codes of a quantized tensor tell its values.
        is_told = not (shard is not None and shard.pending) and not entry.dtype.startswith(("qint", "quint"))
        read = fingerprint_of_array if is_array(tensor) else fingerprint
        bits = read(tensor, max_nbytes) if max_nbytes and is_told else None
        digest = digest_of(bits.digest) if bits is not None else None
        stats = entry.stats() if name else None
        rows.append((key, facts, box, digest, tuple(getattr(stats, one) for one in FIGURES) if name else ()))
    return tuple(rows)
