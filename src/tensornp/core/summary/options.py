"""Define the display options, each once with its bounds and meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tensornp.core.lowlevel.text import quoted
from tensornp.errors import BadRequestError


def _one_of(*choices: Any, help: str) -> Any:
    """Declare an option with a few values to choose from; the first is the default."""
    return field(default=choices[0], metadata={"help": help, "choices": choices})


def _number(default: Any, *, at_least: int = 0, at_most: int | None = None, help: str, **more: Any) -> Any:
    return field(default=default, metadata={"help": help, "min": at_least, "max": at_most, **more})


def _expected(metadata: Mapping[str, Any]) -> str:
    choices = ", ".join(map(str, metadata.get("choices", ())))
    if "min" not in metadata:
        return f"one of {choices}"
    least, most = metadata["min"], metadata["max"]
    number = f"an integer from {least:,} to {most:,}" if most is not None else f"an integer, {least:,} or more"
    return f"{choices} or {number}" if choices else number


def is_allowed(value: Any, metadata: Mapping[str, Any]) -> bool:
    if any(value is choice or (type(value) is str and value == choice) for choice in metadata.get("choices", ())):
        return True
    if "min" not in metadata or not isinstance(value, int) or isinstance(value, bool):
        return False
    return bool(value >= metadata["min"] and (metadata["max"] is None or value <= metadata["max"]))


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """Hold the display options, frozen; `%config TensorDisplay` shows and sets them for one shell."""

    mode: str = _one_of(
        "view", "share", "copy",
        help="Mode of cards and %tonumpy: view (live, read-only), share (live, writeable) or copy.",
    )  # fmt: skip
    widget: str = _one_of(
        "auto", "always", "never",
        help="Cards with a live toggle: auto (the last one shown), always (each one) or never.",
    )  # fmt: skip
    style: str = _one_of(
        "auto", "card", "line",
        help="Layout of a tensor: card (badges and statistics above the array), line (everything in one row) or auto "
        "(a card; a short array stands in its row of badges).",
    )  # fmt: skip
    receipt: str = _one_of(
        "folded", "open", "hidden",
        help="Receipt of a card: folded, open or hidden. Plain text has none; %tonumpy prints it.",
    )  # fmt: skip
    max_height: int = _number(
        10, help="Lines of an array that is shown whole; a longer one shows 7 of 10 and a fold. 0 shows all."
    )
    precision: str | int = _number(
        "auto", choices=("auto", "numpy"),
        help="Digits after the decimal point: a number, numpy for numpy.set_printoptions, or auto (4 digits, "
        "more below 0.1, in lines of 100 characters, unless you changed numpy.set_printoptions).",
    )  # fmt: skip
    max_rows: int = _number(40, at_least=4, at_most=500, help="Rows of the table of a container.")
    max_nbytes: int = _number(0, help="Largest new array in bytes, in cards and for %tonumpy; 0 is the free memory.")
    stats: str = _one_of(
        "line", "text", "off",
        help="Statistics of a card: line (with small pictures), text (without pictures) or off.",
    )  # fmt: skip
    max_read_nbytes: int = _number(
        2**22,
        help="Bytes of a tensor in main memory that are read unasked, for statistics and to notice later changes. "
        "Larger tensors have no automatic statistics, and changes are noticed by a sample. %tensorwatch has the same "
        "limit. 0 reads nothing. Other devices are never read unasked.",
    )

    @classmethod
    def of(cls, **options: Any) -> DisplayOptions:
        known = {option.name: option.metadata for option in fields(cls)}
        for name, value in options.items():
            if name not in known:
                raise BadRequestError(f"there is no display option {quoted(name)}; choose from {', '.join(known)}")
            if not is_allowed(value, known[name]):
                raise BadRequestError(f"{name} must be {_expected(known[name])}, got {quoted(value)}")
        return cls(**options)

    @property
    def has_pictures(self) -> bool:
        return self.stats == "line"

    @property
    def stats_nbytes(self) -> int:
        return self.max_read_nbytes if self.stats != "off" else 0

    @property
    def printoptions(self) -> dict[str, Any]:
        """The card's own print options; precision "auto" chooses them from the printed values."""
        return {} if self.precision == "numpy" else {"precision": self.precision}

    def fingerprint_nbytes(self, device: object) -> int:
        return self.max_read_nbytes if str(device) == "cpu" else 0
