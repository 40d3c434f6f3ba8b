"""`Codec`: a function from stored elements to their meaning."""

from __future__ import annotations

from typing import Any

from tensornp.models.reading.take import Array, Ranges

VALUES = "float32"
"""The dtype of decoded codes."""


class Codec:
    """A function from stored elements to their meaning, for any box; equal ones decode equal bits alike.

    Attributes
    ----------
    dtype : str
        The dtype of the result.
    quantized : str
        The quantized dtype of torch for such codes, if there is one.
    is_elementwise : bool
        Whether equal elements mean the same at every index.
    packing : tuple of int or None
        Elements and bytes of each block, if the last dimension is packed into blocks.
    """

    __slots__ = ()
    dtype: Any = VALUES
    quantized: Any = ""
    is_elementwise: Any = False
    packing: Any = None

    def beside(self, ranges: Ranges) -> list[tuple[Any, Any]]:
        """Return the values in files that elements in `ranges` also need, each with an index."""
        return []

    def __call__(self, stored: Array, ranges: Ranges, *numbers: Array) -> Array:
        """Return the meaning of the elements in `ranges`, by the `numbers` of `beside`.

        NoDataError, in words that follow a name, if they mean nothing.
        """
        raise NotImplementedError
