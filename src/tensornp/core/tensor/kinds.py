"""The kinds of tensors: one row of facts for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tensornp.core.tensor.steps import Step


class Obstacle(NamedTuple):
    """The reason against sharing memory, in two grammatical forms."""

    detail: str
    """After "a float32 tensor": "with the conjugate bit set"; empty where dtype and device say it already."""
    clause: str
    """After "copy: ": "on cuda:0"."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A way to hold values.

    Attributes
    ----------
    name : str
        As it stands in a card's HTML, and in `reading.py`, which has the functions that read it.
    step : Step or None
        What leads to the values; a step of the tensor in which they are held comes after it, unless it is MASK.
    label, sentence : str
        The badge, and what it means; with an empty label, the layout is the badge.
    obstacle : Obstacle or None
        What stands against sharing, for all tensors of the kind; ``{layout}``, ``{dtype}`` and ``{type_name}`` are
        filled in.
    access : str
        The expression by which a program reaches the tensor in which the values are held; empty where there is none.
    code : str
        The code of the whole conversion, around the one of that tensor, ``{inner}``. ``{host}`` and ``{dense}`` take
        a mask to the CPU, and out of a sparse layout.
    values_dtype : str
        The dtype of the values, where the dtype of the tensor is only that of codes.
    has_strides : bool
        Whether its elements lie by strides in a storage of its own.
    is_out_of_reach : bool
        Whether its memory is torch's own, so that no program can change or free it.
    is_computed : bool
        Whether the values are not there before somebody asks for them.
    is_awaited : bool
        Whether a collective may still be writing the values.
    has_other_meaning : bool
        Whether the bytes of the tensors inside mean something else than its values.
    gives_several : bool
        Whether it is several tensors in one, so that a list of arrays comes out.
    is_masked : bool
        Whether some elements are hidden, so that a masked array comes out.
    indexed_by : str
        What makes a tensor whose elements are taken by an index, where one cannot be indexed as it is: ``.to_dense()``.
    axis_cure : str
        What to take in the place of one whose statistics are not told by axis.
    """

    name: str
    step: Step | None = None
    label: str = ""
    sentence: str = ""
    obstacle: Obstacle | None = None
    access: str = ""
    code: str = "{inner}"
    values_dtype: str = ""
    has_strides: bool = False
    is_out_of_reach: bool = False
    is_computed: bool = False
    is_awaited: bool = False
    has_other_meaning: bool = False
    gives_several: bool = False
    is_masked: bool = False
    indexed_by: str = ""
    axis_cure: str = "make a real one of it"

    def __str__(self) -> str:
        return self.name

    @property
    def gives_one_array(self) -> bool:
        """Whether one plain array comes out."""
        return not (self.gives_several or self.is_masked)


STRIDED = Kind("strided", has_strides=True)
SPARSE = Kind(
    "sparse",
    step=Step.TO_DENSE,
    sentence="Only some elements are stored; the array has them all.",
    obstacle=Obstacle("of layout {layout}", "the layout is {layout}, so the values are laid out densely"),
    indexed_by=".to_dense()",
    axis_cure="take t.to_dense()",
)
MKLDNN = Kind(
    "mkldnn",
    step=Step.TO_DENSE,
    label="mkldnn",
    sentence="An opaque layout that only oneDNN reads; the array has the values in row order.",
    obstacle=Obstacle("of the opaque layout mkldnn", "the layout is opaque, so the values are laid out densely"),
    is_out_of_reach=True,
    indexed_by=".to_dense()",
)
QUANTIZED = Kind(
    "quantized",
    step=Step.DEQUANTIZE,
    label="quantized",
    sentence="The elements are integer codes with a scale; the array has the values that they mean.",
    obstacle=Obstacle("of codes with a scale", "{dtype} codes dequantized, so that each is the value it means"),
    values_dtype="float32",
    has_strides=True,
    indexed_by=".dequantize()",
)
DEQUANTIZED = Kind(
    "dequantized",
    step=Step.DEQUANTIZE,
    label="quantized",
    sentence="The class stores codes with a scale; the array has the values that they mean.",
    obstacle=Obstacle("of class {type_name}", "{type_name} dequantized, so that each element is the value it means"),
    has_other_meaning=True,
    indexed_by=".dequantize()",
)
"""Of a class that says itself how: `dequantize` of its own."""
ZERO = Kind(
    "zero",
    step=Step.COPY,
    label="symbolic zero",
    sentence="Autograd's zero, which has no memory.",
    obstacle=Obstacle("with no memory, a symbolic zero of autograd,", "a symbolic zero of autograd has no memory"),
    is_out_of_reach=True,
)
LAZY = Kind(
    "lazy",
    label="lazy",
    sentence="The values are computed when they are asked for.",
    obstacle=Obstacle("not computed yet", "computed and transferred, so it is new memory"),
    is_computed=True,
)
NESTED = Kind(
    "nested",
    step=Step.UNBIND,
    label="nested",
    sentence="Several tensors in one; each becomes an array of its own.",
    access="part",
    code="[{inner} for part in t.unbind()]",
    gives_several=True,
    axis_cure="take one of its parts",
)
MASKED = Kind(
    "masked",
    step=Step.MASK,
    label="masked",
    sentence="Some elements are hidden; the array is a numpy.ma.MaskedArray.",
    obstacle=Obstacle("with a mask", "data and mask become a masked array, so both are new memory"),
    access="t.get_data()",
    code="np.ma.array({inner}, mask=~t.get_mask(){host}{dense}.numpy())",
    is_masked=True,
    indexed_by=".get_data()",
)
LOCAL = Kind(
    "local",
    step=Step.TO_LOCAL,
    label="DTensor",
    sentence="Spread over ranks, or replicated on each.",
    access="t.to_local()",
)
PENDING = Kind(
    "pending",
    step=Step.WAIT,
    label="collective",
    sentence="The result of an asynchronous collective.",
    access="t.wait()",
    is_awaited=True,
)
STAND_IN = Kind(
    "stand-in",
    step=Step.STAND_IN,
    label="stand-in",
    sentence="Of a class that stands for a tensor, as it says itself or as was registered; the array is of that one.",
    access="t.__tensornp__()",
)
"""Of a class of the user's own; with a label and an access of its own where it was registered."""
WRITING = "pending"
"""The detail of what a collective is still writing."""
_EVERY = (
    STRIDED, SPARSE, MKLDNN, QUANTIZED, DEQUANTIZED, ZERO, LAZY, NESTED, MASKED, LOCAL, PENDING, STAND_IN,
)  # fmt: skip
KINDS = {kind.name: kind for kind in _EVERY}
"""All of them, by name."""
