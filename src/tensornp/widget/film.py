"""A slider over the frames of a picture, while a kernel is there; the picture itself is complete without."""

from __future__ import annotations

import dataclasses
from typing import Any

import traitlets

from tensornp.render.pictures.image import Image
from tensornp.render.pictures.png import data_uri
from tensornp.widget.dock import DockingWidget, module, stylesheet


class Film(DockingWidget):
    """The live part of the last film; it takes the frames out of the picture that the page has."""

    _esm = module("film")
    _css = stylesheet("film")

    frames: traitlets.List[Any] = traitlets.List(help="where each frame stands in the picture").tag(sync=True)
    size: traitlets.List[Any] = traitlets.List(help="width and height of the picture").tag(sync=True)
    src = traitlets.Unicode(help="the picture, where outputs are isolated from each other").tag(sync=True)

    def show(self, picture: Image, *, is_isolated: bool = False) -> None:
        """Move to the page's output of `picture`."""
        with self.hold_sync():
            self.frames, self.size = frames_data(picture), list(picture.size)
            self.src = data_uri(picture.png) if is_isolated else ""
            self.anchor = picture.anchor

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take nothing from the browser, which may send anything."""


def frames_data(picture: Image) -> list[dict[str, Any]]:
    """Return where each frame of a picture stands, as plain data; nothing of what is no film."""
    return [dataclasses.asdict(place) for place in picture.places] if picture.has_frames else []
