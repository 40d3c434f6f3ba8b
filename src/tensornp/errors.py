"""Define every error that tensornp raises on purpose.

Each message is one sentence: the argument, its problem, the cure.
"""

from __future__ import annotations

import os
import sys
from types import TracebackType

_OURS = os.path.dirname(__file__) + os.sep


class TensornpError(Exception):
    """The base of all errors raised on purpose by tensornp.

    Attributes
    ----------
    entry : str
        The place in a container, which begins the message: ``['layers.3.weight']``; or empty.
    """

    entry = ""

    def __str__(self) -> str:
        # A KeyError would put its text in quotes.
        message = BaseException.__str__(self)
        return f"{self.entry}: {message}" if self.entry else message

    def _render_traceback_(self) -> list[str]:
        """Return the traceback for IPython: the user's own lines; all lines under ``%xmode Verbose``."""
        shell = sys.modules["IPython"].get_ipython()
        last = _last_before_ours(self.__traceback__) if shell.InteractiveTB.mode != "Verbose" else None
        if last is not None:
            # The message repeats the cause.
            last.tb_next = self.__cause__ = None
        made: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, self.__traceback__, tb_offset=1)
        return made


class NotATensorError(TensornpError, TypeError):
    """The argument is not a tensor, nor a container of tensors."""


class UnsupportedTensorError(TensornpError, TypeError):
    """A kind of tensor that has no conversion to NumPy."""


class UnsupportedArrayError(TensornpError, TypeError):
    """An array whose dtype torch does not have."""


class NoDataError(TensornpError, ValueError):
    """The tensor has no values to give: meta, fake, uninitialized, freed, or wrapped by a tracer."""


class CopyRequiredError(TensornpError, ValueError):
    """`copy=False` was passed, but the memory cannot be shared."""


class TooLargeError(TensornpError, MemoryError):
    """The array would take more bytes than the budget allows.

    Attributes
    ----------
    nbytes : int
        The bytes of all arrays that are made together.
    """

    def __init__(self, message: str, nbytes: int = 0) -> None:
        super().__init__(message)
        self.nbytes = nbytes


class MissingLibraryError(TensornpError, ImportError):
    """An optional library (JAX, CuPy, gguf) is not installed, or cannot work on this machine."""


class BadRequestError(TensornpError, ValueError):
    """An argument has no meaning: an unknown mode or dtype."""


class NameTakenError(TensornpError, ValueError):
    """A name that cannot be bound: not an identifier, or already taken."""

    def __init__(self, message: str, *, can_overwrite: bool = False) -> None:
        super().__init__(message)
        self.can_overwrite = can_overwrite


class CheckpointError(TensornpError, ValueError):
    """A file that is malformed, or of a format that is not understood."""


class ChangedFileError(TensornpError, OSError):
    """A file that has changed since it was listed: shrunk, written to, replaced, or gone."""


class RanksError(TensornpError, RuntimeError):
    """A rank has failed or is missing."""


class NoSuchWeightError(TensornpError, KeyError):
    """An explorer has no weight of that name."""


class NoSuchCallError(TensornpError, KeyError):
    """No call of that name was followed."""


class NotReadError(NoDataError):
    """Values exist, but reading them now would cost too much or have side effects."""


def _last_before_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Return the line that calls tensornp; None without one, or if IPython's own is the only other."""
    lines: list[TracebackType] = []
    while traceback is not None and not traceback.tb_frame.f_code.co_filename.startswith(_OURS):
        lines.append(traceback)
        traceback = traceback.tb_next
    return lines[-1] if traceback is not None and len(lines) > 1 else None
