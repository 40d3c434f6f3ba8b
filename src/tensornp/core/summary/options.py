"""What a user can choose about the display: each option once, with its bounds and what it means."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any


def _one_of(*choices: str, help: str) -> Any:
    """Declare an option that is one of some words, the first by default."""
    return field(default=choices[0], metadata={"help": help, "choices": choices})


def _number(default: int, *, at_least: int = 0, at_most: int | None = None, help: str) -> Any:
    return field(default=default, metadata={"help": help, "min": at_least, "max": at_most})


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
    receipt: str = _one_of("folded", "open", "hidden", help="How a card shows its receipt: folded, open or hidden.")
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
    max_watch_nbytes: int = _number(
        2**28,
        help="Bytes of copies that %tensorwatch keeps to compare with; of what is larger, it tells the place only.",
    )
    max_watch_read_nbytes: int = _number(
        2**30,
        help="Bytes that %tensorwatch reads after each cell to find what has changed, of all that is watched together; "
        "of what is left then, it reads a sample or nothing, and says so.",
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

    def fingerprint_nbytes(self, device: object) -> int:
        """Return how many bytes of a tensor on `device` are read, so that a later change is noticed."""
        return self.max_fingerprint_nbytes if str(device) == "cpu" else self.max_device_fingerprint_nbytes
