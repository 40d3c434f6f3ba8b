"""The slider over the film that a cell has returned: one for the life of the extension, which moves on to the next."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tensornp.core.lowlevel.fallback import first_that_works
from tensornp.fronts.ipython.live import IsolatedOutput, can_show_live

if TYPE_CHECKING:
    from tensornp.fronts.ipython.config import TensorDisplay
    from tensornp.render.pictures.image import Image
    from tensornp.widget.film import Film


class LiveFilm:
    """Docks the slider, after each cell whose value is a picture of frames, into that."""

    def __init__(self, shell: Any, config: TensorDisplay) -> None:
        self._shell = shell
        self._config = config
        self._film: Film | None = None
        self._output = IsolatedOutput(shell)

    def after_cell(self, result: Any = None) -> None:
        """Take the slider to the film that the cell which has just ended has returned."""
        value: Any = getattr(result, "result", None)
        # Another shell of the kernel may be in the middle of its import.
        image = getattr(sys.modules.get("tensornp.render.pictures.image"), "Image", None)
        if image is None or type(value) is not image or not value.has_frames:
            return
        if can_show_live(self._shell, self._config):
            # The picture is complete by itself, and a callback that raises prints a traceback under the cell.
            first_that_works("the slider of a film", lambda: self._move(value), lambda _: None)

    def _move(self, picture: Image) -> None:
        from tensornp.widget.film import Film

        self._film = self._film or Film()
        self._film.show(picture, is_isolated=self._output.is_needed)
        self._output.show(self._film)

    def close(self) -> None:
        """Take the slider's output back, and the slider out of the page."""
        self._output.clear()
        film, self._film = self._film, None
        if film is not None:
            film.close()
