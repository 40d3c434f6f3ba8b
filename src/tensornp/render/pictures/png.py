"""Pictures as small PNGs: heat maps and histograms over a palette, and photographs as they are."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from html import escape
from typing import Any

import numpy as np

from tensornp.core.values.pictures.heatmap import FINITE, NAN, NEGINF, POSINF, Heatmap
from tensornp.core.values.stats.distribution import Histogram
from tensornp.render.pictures import palette

MAX_MAGNIFICATION = 16
_MAGNIFIED_SIDE = 256
"""Pixels of a page that a small picture is magnified to at most."""
_MIN_SIDE = 16
"""Pixels of a page that even one row takes."""
_NAN, _POSINF, _NEGINF, _BELOW, _ABOVE, _FIRST = range(1, 7)
"""Places in the palette of a heat map."""
_MARKS = {NAN: _NAN, POSINF: _POSINF, NEGINF: _NEGINF}
Pixels = np.ndarray[Any, np.dtype[np.uint8]]


def histogram_png(histogram: Histogram, width: int = 64, height: int = 16) -> bytes:
    """Return the density over the axis of values, on a base line, as a PNG of about 160 bytes."""
    cells = histogram.cells(width)
    return bars_png(cells / (cells.max() or 1), height)


def bars_png(shares: np.ndarray[Any, Any], height: int, num_odd: int = 0) -> bytes:
    """Return a bar for each share from 0 to 1, a pixel wide, on a base line; the last `num_odd` are amber."""
    bars = (np.arange(height)[::-1, None] <= np.ceil(shares * (height - 1))).astype(np.uint8)
    bars[:, len(shares) - num_odd :] *= 2
    return palette_png(bars, [(0, 0, 0), palette.BARS, palette.ODD_BARS][: 3 if num_odd else 2])


def heatmap_png(heatmap: Heatmap) -> bytes:
    """Return a heat map in colours, as a PNG of `size_of` the heat map."""
    tall, wide = magnification(heatmap.flags.shape)
    steps = np.repeat(np.repeat(steps_of(heatmap), tall, axis=0), wide, axis=1)
    return palette_png(steps, colours_of(heatmap))


def colours_of(heatmap: Heatmap) -> list[palette.Colour]:
    is_signed = heatmap.is_signed
    return [
        (0, 0, 0),
        *(palette.NAN, palette.POSINF, palette.NEGINF),
        *(palette.BEYOND_DIVERGING if is_signed else palette.BEYOND_SEQUENTIAL),
        *palette.scale(palette.DIVERGING if is_signed else palette.SEQUENTIAL),
    ]


def steps_of(heatmap: Heatmap) -> Pixels:
    """Return the place of each pixel in the palette."""
    limits, values = heatmap.limits, np.where(heatmap.flags == FINITE, heatmap.values, 0.0)
    last = palette.NUM_STEPS - 1
    steps = _FIRST + np.clip(limits.shares(values) * last + 0.5, 0, last).astype(np.uint8)
    steps[values < limits.low], steps[values > limits.high] = _BELOW, _ABOVE
    for flag, mark in _MARKS.items():
        steps[heatmap.flags == flag] = mark
    return steps


def magnification(shape: tuple[int, int]) -> tuple[int, int]:
    """Return the magnification of a picture of `shape`, vertical and horizontal."""
    height, width = shape
    both = max(1, min(MAX_MAGNIFICATION, _MAGNIFIED_SIDE // max(height, width, 1)))
    return max(both, -(-_MIN_SIDE // max(1, height))), max(both, -(-_MIN_SIDE // max(1, width)))


def size_of(heatmap: Heatmap) -> tuple[int, int]:
    tall, wide = magnification(heatmap.flags.shape)
    height, width = heatmap.flags.shape
    return max(1, width * wide), max(1, height * tall)


def picture_png(pixels: Pixels) -> bytes:
    """Return grey values (two dimensions), or a third dimension of grey and alpha, RGB, or RGBA, as a PNG."""
    file = io.BytesIO()
    pil_image(pixels).save(file, "PNG")
    return file.getvalue()


def pil_image(pixels: Pixels) -> Any:
    from PIL import Image

    return Image.fromarray(np.ascontiguousarray(pixels))


def letters(text: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return ASCII as pixels, in Pillow's own font."""
    from PIL import ImageFont

    # Since Pillow 10.1, the other name stands for outlines, which depend on how it was built.
    font: Any = getattr(ImageFont, "load_default_imagefont", ImageFont.load_default)()
    mask = font.getmask(text, "1")
    return np.asarray(list(mask), bool).reshape(mask.size[::-1])


def palette_png(steps: Pixels, colours: list[palette.Colour]) -> bytes:
    """Return a palette PNG whose first colour is transparent, without the slow import of Pillow."""
    steps = steps if steps.size else np.zeros((1, 1), np.uint8)
    height, width = steps.shape
    depth, rows = (1, np.packbits(steps, axis=1)) if len(colours) == 2 else (8, steps)
    # Before each row stands the number of its filter, 0 for none (PNG, third edition, sections 4.5 and 11).
    data = np.concatenate((np.zeros((height, 1), np.uint8), rows), axis=1).tobytes()
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, depth, 3, 0, 0, 0)),
        (b"PLTE", bytes([part for colour in colours for part in colour])),
        (b"tRNS", b"\0"),
        (b"IDAT", zlib.compress(data)),
        (b"IEND", b""),
    )
    said = [len(part).to_bytes(4) + kind + part + zlib.crc32(kind + part).to_bytes(4) for kind, part in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(said)


def data_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def img_html(png: bytes, alt: str, width_px: int, height_px: int) -> str:
    """Return a PNG as HTML, `alt` escaped; a narrow page makes it smaller."""
    return (
        f'<img src="{data_uri(png)}" alt="{escape(alt)}" width="{width_px}" height="{height_px}" '
        f'style="display:inline;image-rendering:pixelated;vertical-align:middle;max-width:100%;height:auto">'
    )
