"""What a user can choose about the display, as one frozen record that is passed down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    """Display options; `%config TensorDisplay` shows and sets them for one shell.

    Attributes
    ----------
    mode : str
        What `%tonumpy` does and what a card shows: "view" (live, read-only), "share" (live, writeable) or "copy".
    widget : str
        Which cards have a live toggle: "auto" (the last one shown), "always" (each) or "never".
    max_elements : int
        Elements that a card prints at most, even where `numpy.printoptions` asks for more.
    max_rows : int
        Rows of the table that shows a container of tensors.
    max_nbytes : int
        Bytes that a new array may take at most; 0 is what main memory has free.
    max_search_ms : int
        Milliseconds that a card searches for other names of the memory; 0 turns that off.
    max_fingerprint_nbytes : int
        Bytes of a tensor that are read, so that a later change is noticed; of a larger one, a sample is; 0 turns it
        off.
    max_device_fingerprint_nbytes : int
        The same for a tensor on an accelerator, which then computes it; 0, the default, leaves the device alone.
    receipt : str
        How a card shows its receipt: "folded", "open" or "hidden".
    """

    mode: str = "view"
    widget: str = "auto"
    max_elements: int = 100_000
    max_rows: int = 40
    max_nbytes: int = 0
    max_search_ms: int = 20
    max_fingerprint_nbytes: int = 2**22
    max_device_fingerprint_nbytes: int = 0
    receipt: str = "folded"
