"""What a user can choose about the display: each option once, with its bounds and what it means."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tensornp.core.lowlevel.quoted import quoted
from tensornp.errors import BadRequestError

STYLES = ("auto", "card", "line")
COMPACT: Mapping[str, Any] = {"precision": 4, "suppress": True}
"""Print options in which an array is read at a glance."""


def _one_of(*choices: str, help: str) -> Any:
    """Declare an option that is one of some words, the first by default."""
    return field(default=choices[0], metadata={"help": help, "choices": choices})


def _numpys(*, at_least: int | None = None, help: str) -> Any:
    """Declare one of NumPy's print options, None by default: what `numpy.set_printoptions` says."""
    bounds = {"min": at_least, "max": None} if at_least is not None else {}
    said = f"{help}; None is what numpy.printoptions says."
    return field(default=None, metadata={"help": said, "numpy": True, **bounds})


def _number(default: int, *, at_least: int = 0, at_most: int | None = None, help: str) -> Any:
    return field(default=default, metadata={"help": help, "min": at_least, "max": at_most})


def _refusal(value: Any, metadata: Mapping[str, Any]) -> str:
    """Return what an option must be where `value` is something else; empty where it can be that."""
    if value is None and "numpy" in metadata:
        return ""
    if "choices" in metadata:
        choices = metadata["choices"]
        return "" if isinstance(value, str) and value in choices else f"one of {', '.join(choices)}"
    if "min" not in metadata:
        return "" if isinstance(value, bool) else "True or False"
    least, most = metadata["min"], metadata["max"]
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if is_number and value >= least and (most is None or value <= most):
        return ""
    return f"a number from {least:,}{f' to {most:,}' if most is not None else ' on'}"


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """Display options, frozen; `%config TensorDisplay` shows and sets them for one shell.

    The metadata of each field have its ``help``, its ``choices`` or its bounds, ``min`` and ``max``, and the variable
    of the environment that sets its default: the traits and the README's table are made of them.
    """

    mode: str = _one_of(
        "view", "share", "copy",
        help="What cards show and %tonumpy does: view (live, read-only), share (live, writeable) or copy.",
    )  # fmt: skip
    widget: str = _one_of(
        "auto", "always", "never",
        help="Which cards have a live toggle: auto (the last one shown), always (each one) or never.",
    )  # fmt: skip
    receipt: str = _one_of(
        "folded", "open", "hidden",
        help="How a card shows its receipt: folded, open or hidden; as text it has none, and %tonumpy says it.",
    )  # fmt: skip
    style: str = _one_of(
        *STYLES,
        help="How a tensor is shown: card (badges and figures over the array), line (badges and figures in one row) or "
        "auto (a card, whose array stands in the row where NumPy prints it in one short line).",
    )  # fmt: skip
    max_height: int = _number(10, help="Lines of an array that a card shows, over a fold; 0 shows them all.")
    precision: int | None = _numpys(at_least=0, help="Digits after the point")
    suppress: bool | None = _numpys(help="Whether small numbers are printed as zero, and none with an exponent")
    linewidth: int | None = _numpys(at_least=1, help="Characters of a line")
    edgeitems: int | None = _numpys(at_least=1, help="Elements shown at each end of a dimension that is abridged")
    threshold: int | None = _numpys(at_least=0, help="Elements from which on an array is abridged")
    max_elements: int = _number(
        100_000, at_least=1, help="Elements that a card prints at most, even where numpy.printoptions asks for more."
    )
    max_rows: int = _number(40, at_least=4, at_most=500, help="Rows of the table that shows a container of tensors.")
    max_nbytes: int = _number(
        0, help="Bytes that a new array may take at most, in cards and for %tonumpy; 0 is what main memory has free."
    )
    max_search_ms: int = _number(
        20, help="Milliseconds that a card searches for other names of the same memory; 0 turns that off."
    )
    max_fingerprint_nbytes: int = _number(
        2**22,
        help="Bytes of a tensor that are read so that a later change is noticed; of a larger one, a sample is read; "
        "0 turns that off.",
    )
    max_device_fingerprint_nbytes: int = _number(
        0,
        help="The same for a tensor on an accelerator, which reads it there and needs some MiB of its memory for that; "
        "0 leaves the device alone.",
    )
    stats: str = _one_of(
        "line", "off",
        help="What a card says of the values as a whole: a line of figures with a small histogram, or nothing (off).",
    )  # fmt: skip
    max_stats_nbytes: int = _number(
        2**22,
        help="Bytes of a tensor in main memory that are read for that line, unasked, and of all tensors of a table for "
        "NaN and infinities; of a larger one, or of one on an accelerator, the toggle offers it, and %tensorstats "
        "tells.",
    )
    pictures: str = _one_of(
        "small",
        "off",
        help="Whether cards have small pictures, such as the histogram: small or off; text keeps its bars.",
    )
    max_watch_nbytes: int = _number(
        2**28,
        help="Bytes of copies that %tensorwatch keeps to compare with; of what is larger, it tells the place only.",
    )
    max_watch_read_nbytes: int = _number(
        2**30,
        help="Bytes that %tensorwatch reads after each cell to find what has changed, of all that is watched together; "
        "of what is left then, it reads a sample or nothing, and says so.",
    )
    greeting: bool = field(
        default=True, metadata={"help": "Whether the first %load_ext of a session tells in a line what there is."}
    )
    raw_memory: bool = field(
        default=os.environ.get("TENSORNP_RAW_MEMORY", "1") != "0",
        metadata={
            "environment": "TENSORNP_RAW_MEMORY",
            "help": "Whether memory is read by its address, in the whole process. Where it is not, torch's own "
            "operators read what is shown, and what only pointers tell (arrays made through DLPack, what has moved "
            "away) is not known.",
        },
    )

    @classmethod
    def of(cls, **options: Any) -> DisplayOptions:
        """Return the defaults but for `options`; BadRequestError for what there is not, or what it cannot be."""
        known = {option.name: option.metadata for option in fields(cls)}
        for name, value in options.items():
            if name not in known:
                raise BadRequestError(f"there is no display option {quoted(name)}; choose from {', '.join(known)}")
            wanted = _refusal(value, known[name])
            if wanted:
                raise BadRequestError(f"{name} is {wanted}, not {quoted(value)}")
        return cls(**options)

    @property
    def unasked_nbytes(self) -> int:
        """How many bytes are read for figures that nobody asked for, of one tensor or of all rows of a table."""
        return self.max_stats_nbytes if self.stats != "off" else 0

    @property
    def printoptions(self) -> dict[str, Any]:
        """The print options of the card's own, as `numpy.printoptions` takes them."""
        return {name: value for name in _NUMPYS if (value := getattr(self, name)) is not None}

    def fingerprint_nbytes(self, device: object) -> int:
        """Return how many bytes of a tensor on `device` are read, so that a later change is noticed."""
        return self.max_fingerprint_nbytes if str(device) == "cpu" else self.max_device_fingerprint_nbytes


_NUMPYS = [option.name for option in fields(DisplayOptions) if "numpy" in option.metadata]
"""The options that are NumPy's."""
