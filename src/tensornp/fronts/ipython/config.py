"""`%config TensorDisplay`: the display options of one shell, as traits."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any

from traitlets import All, Bool, Enum, Int, observe
from traitlets.config import Configurable

from tensornp.core.summary.options import DisplayOptions

_DEFAULT = DisplayOptions()


class TensorDisplay(Configurable):
    """How tensors are displayed in this shell."""

    mode = Enum(
        ("view", "share", "copy"),
        _DEFAULT.mode,
        help="What cards show and %tonumpy does: view (live, read-only), share (live, writeable) or copy.",
    ).tag(config=True)
    widget = Enum(
        ("auto", "always", "never"),
        _DEFAULT.widget,
        help="Which cards have a live toggle: auto (the last one shown), always (each one) or never.",
    ).tag(config=True)
    max_elements = Int(
        _DEFAULT.max_elements,
        min=1,
        help="Elements that a card prints at most, even where numpy.printoptions asks for more.",
    ).tag(config=True)
    max_rows = Int(_DEFAULT.max_rows, min=4, max=500, help="Rows of the table that shows a container of tensors.").tag(
        config=True
    )
    max_nbytes = Int(
        _DEFAULT.max_nbytes,
        min=0,
        help="Bytes that a new array may take at most, in cards and for %tonumpy; 0 is what main memory has free.",
    ).tag(config=True)
    max_search_ms = Int(
        _DEFAULT.max_search_ms,
        min=0,
        help="Milliseconds that a card searches for other names of the same memory; 0 turns that off.",
    ).tag(config=True)
    max_fingerprint_nbytes = Int(
        _DEFAULT.max_fingerprint_nbytes,
        min=0,
        help="Bytes of a tensor that are read so that a later change is noticed; of a larger one, a sample is read; "
        "0 turns that off.",
    ).tag(config=True)
    max_device_fingerprint_nbytes = Int(
        _DEFAULT.max_device_fingerprint_nbytes,
        min=0,
        help="The same for a tensor on an accelerator, which reads it there and needs some MiB of its memory for that; "
        "0 leaves the device alone.",
    ).tag(config=True)
    max_watch_nbytes = Int(
        2**28,
        min=0,
        help="Bytes of copies that %tensorwatch keeps to compare with; of what is larger, it tells the place only.",
    ).tag(config=True)
    raw_memory = Bool(
        os.environ.get("TENSORNP_RAW_MEMORY", "1") != "0",
        help="Whether memory is read by its address, in the whole process. Where it is not, torch's own operators read "
        "what is shown, and what only pointers tell (arrays made through DLPack, what has moved away) is not known.",
    ).tag(config=True)
    max_watch_read_nbytes = Int(
        2**30,
        min=0,
        help="Bytes that %tensorwatch reads after each cell to find what has changed, of all that is watched together; "
        "of what is left then, it reads a sample or nothing, and says so.",
    ).tag(config=True)
    receipt = Enum(
        ("folded", "open", "hidden"), _DEFAULT.receipt, help="How a card shows its receipt: folded, open or hidden."
    ).tag(config=True)

    _options: DisplayOptions | None = None

    @observe("raw_memory")
    def _switch_raw_memory(self, change: Any) -> None:
        from tensornp.core.lowlevel import raw_memory

        raw_memory.switch(change["new"])

    def fingerprint_nbytes(self, device: Any) -> int:
        """Return how many bytes of a tensor on `device` are read, so that a later change is noticed."""
        is_host = str(device) == "cpu"
        return int(self.max_fingerprint_nbytes if is_host else self.max_device_fingerprint_nbytes)

    @property
    def options(self) -> DisplayOptions:
        """The options as they are now, frozen."""
        if self._options is None:
            values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(DisplayOptions)}
            self._options = DisplayOptions(**values)
        return self._options

    @observe(All)
    def _forget(self, _: Any) -> None:
        self._options = None
