"""A weight of a file whose class computes its values from others, as those of torchao and a sharded DTensor do."""

from __future__ import annotations

from tensornp.models.entries.absent import NothingEntry
from tensornp.models.entries.entry import inner_text
from tensornp.models.entries.file import FileEntry
from tensornp.models.pickles.tensors import PickledTensor


class WrapperEntry(NothingEntry):
    """A tensor without values, whose class is not imported; `parts` are the tensors of the file that it consists of."""

    __slots__ = ("_number", "parts")

    def __init__(self, name: str, tensor: PickledTensor, code: str, parts: tuple[FileEntry, ...], path: str) -> None:
        super().__init__(name, "tensor", code, tensor.problem, path)
        self.shape, self.dtype, self.parts = tensor.shape, tensor.dtype, parts
        self._number = tensor.number
        # Two attributes can be one tensor.
        self.nbytes = sum({part.extents: part.nbytes for part in parts}.values())
        inner = [(name, one.dtype, one.shape) for name, one in tensor.inner]
        self.note = inner_text(tensor.class_name, inner) if tensor.is_computed else tensor.class_name

    @property
    def identity(self) -> object:
        """The object of the pickle."""
        return self.location, self._number
