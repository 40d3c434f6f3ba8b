"""What the quantized types of GGML mean, by the library `gguf` (the extra ``gguf``)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensornp.errors import MissingLibraryError, NoDataError
from tensornp.models.reading.selection import Array


@dataclass(frozen=True, slots=True)
class GgmlType:
    """A type by its name: so many values in so many bytes."""

    name: str
    block_numel: int
    block_nbytes: int

    @np.errstate(all="ignore")
    def decode(self, codes: Array) -> Array:
        """Return the values of the bytes of some blocks, flat, as float32.

        Raises
        ------
        MissingLibraryError
            If the library is not installed.
        NoDataError
            If it has no values of this type.
        """
        try:
            from gguf.constants import GGMLQuantizationType
            from gguf.quants import dequantize
        except ImportError:
            raise MissingLibraryError(
                f"the values of {self.name} need the library gguf; pip install 'tensornp[gguf]' brings it"
            ) from None
        if not codes.size:
            return np.empty(0, np.float32)
        try:
            return np.asarray(dequantize(codes, GGMLQuantizationType[self.name]), np.float32)
        except (NotImplementedError, KeyError):
            raise NoDataError(f"the library gguf has no values of {self.name}; a newer one may have") from None
