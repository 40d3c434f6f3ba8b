"""`tnp.image`: the decoded pixels are those that NumPy computes, and nothing is guessed silently."""

from __future__ import annotations

import gc
import io
import weakref

import ml_dtypes
import numpy as np
import pytest
import torch
from accelerator import needs_card, register
from child import in_fork
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from PIL import Image as Pillow

import tensornp as tnp
from tensornp.render.pictures import palette


def whole(image: tnp.Image) -> np.ndarray:
    """Return all pixels of the picture on its page."""
    pixels = np.array(Pillow.open(io.BytesIO(image.png)))
    assert pixels.shape[1::-1] == image.size
    return pixels


def decoded(image: tnp.Image) -> np.ndarray:
    """Return the pixels of a single picture, each of which is drawn as a square of one colour."""
    large = whole(image)
    times = next(n for n in range(16, 0, -1) if not any(size % n for size in image.size) and is_magnified(large, n))
    return large[::times, ::times]


def is_magnified(large: np.ndarray, times: int) -> bool:
    pixels = large[::times, ::times]
    return bool((np.repeat(np.repeat(pixels, times, 0), times, 1) == large).all())


def rgb(height=20, width=30):
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize("layout", [None, "named"])
@pytest.mark.parametrize(
    ("name", "order", "channels"),
    [("HWC", (0, 1, 2), 3), ("CHW", (2, 0, 1), 3), ("HWC", (0, 1, 2), 4), ("CHW", (2, 0, 1), 4), ("CHW", (2, 0, 1), 1)],
)
def test_each_layout_gives_the_same_picture(name, order, channels, layout):
    """Of a tensor and of an array; the caption names it, and says where it was found and not named."""
    expected = np.random.default_rng(0).integers(0, 256, (20, 30, channels), np.uint8)
    array = np.ascontiguousarray(expected.transpose(order))
    for obj in (array, torch.from_numpy(array)):
        image = tnp.image(obj, layout=layout and name)
        np.testing.assert_array_equal(decoded(image), expected[..., 0] if channels == 1 else expected)
        assert image.caption.startswith(
            f"{name} · " if layout else f"{name}, the only layout with 1, 3 or 4 channels · "
        )
        assert f"20 × 30 {dict(zip((1, 3, 4), ('grey', 'RGB', 'RGBA'), strict=True))[channels]}" in image.caption
        assert "0 … 255 as they are" in image.caption


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(5, 9), st.integers(5, 9), st.sampled_from([1, 3, 4]), st.booleans())
def test_a_batch_is_a_grid_with_an_index_under_each(count, height, width, channels, is_last):
    """Each picture is in it once, in order, row by row; between them there is nothing but the letters."""
    batch = np.random.default_rng(count).integers(0, 256, (count, height, width, channels), np.uint8)
    obj = torch.from_numpy(batch if is_last else np.ascontiguousarray(batch.transpose(0, 3, 1, 2)))
    image = tnp.image(obj, layout="NHWC" if is_last else "NCHW", size=max(height, width))
    page = whole(image)
    if count == 1:
        np.testing.assert_array_equal(page, batch[0, ..., 0] if channels == 1 else batch[0])
        return
    corners, rest = [], page.copy()
    for one in batch:
        opaque = one if channels == 4 else np.concatenate([one, np.full((height, width, 1), 255, np.uint8)], axis=-1)
        ((top, left),) = np.argwhere((windows(page, height, width) == opaque).all((2, 3, 4)))
        corners.append((top, left))
        rest[top : top + height, left : left + width] = 0
        assert rest[top + height :, left : left + width][:14].any(), "an index"
    assert corners == sorted(set(corners))
    written = rest[rest[..., -1] > 0]
    assert (written == (*palette.LABEL, 255)[-written.shape[-1] :]).all()


def windows(page: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return all parts of a page of one size, of shape (top, left, height, width, channels)."""
    return np.moveaxis(np.lib.stride_tricks.sliding_window_view(page, (height, width), axis=(0, 1)), 2, -1)


def test_no_more_pictures_than_a_page_holds_are_shown():
    """It says how many there are."""
    batch = torch.zeros(1000, 28, 28, dtype=torch.uint8)
    image = tnp.image(batch, layout="NHW")
    assert "NHW · 28 × 28 grey · the first 64 of 1,000 pictures" in image.caption
    assert image.arrays.shape == (1000, 28, 28, 1)


@pytest.mark.parametrize(
    ("values", "expected", "said"),
    [
        (np.array([[0.0, 0.25, 1.0]]), [0, 64, 255], "0 … 1 as they are"),
        (np.array([[-1.0, 0.0, 1.0]]), [0, 128, 255], "-1 … 1, the least and the greatest shown, as black … white"),
        (np.array([[0, 0, 1]]), [0, 0, 255], "0 … 1, the least and the greatest shown"),
        (np.array([[-1.7e308, 0, 1.7e308]]), [0, 128, 255], "-1.7e+308 … 1.7e+308"),
        (np.array([[-5e-324, 0, 5e-324]]), [0, 128, 255], "the least and the greatest shown, as black … white"),
        (np.array([[7.0, 7.0]]), [128, 128], "all 7, shown as grey"),
        (np.array([[False, True]]), [0, 255], "False black, True white"),
        (np.array([[0, 255]], np.uint8), [0, 255], "0 … 255 as they are"),
        (np.array([[0, 1]], ml_dtypes.bfloat16), [0, 255], "0 … 1 as they are"),
    ],
)
def test_the_range_of_values_is_stated(values, expected, said):
    """What is black and what is white, for each dtype; nothing is stretched without a word."""
    image = tnp.image(values)
    assert decoded(image)[0].tolist() == expected
    assert said in image.caption


def test_a_range_that_is_named_holds_and_what_lies_beyond_is_counted():
    """Also for uint8."""
    image = tnp.image(np.array([[-3.0, 0.0, 0.5, 1.0, 9.0]]), value_range=(0, 0.5))
    assert decoded(image)[0].tolist() == [0, 0, 255, 255, 255]
    assert "0 … 0.5 shown as black … white, as asked · 3 values beyond, shown as the nearest" in image.caption
    assert decoded(tnp.image(np.array([[10, 20]], np.uint8), value_range=(10, 20))).tolist() == [[0, 255]]


def test_a_normalization_is_undone():
    """As torchvision's ``Normalize`` has done it, channel by channel, to the very bytes."""
    expected = rgb()
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    normalized = ((torch.from_numpy(expected) / 255 - torch.tensor(mean)) / torch.tensor(std)).permute(2, 0, 1)
    for stds in (std, np.array(std), torch.tensor(std)):
        image = tnp.image(normalized, mean=mean, std=stds)
        np.testing.assert_array_equal(decoded(image), expected)
        np.testing.assert_array_equal(image.arrays[0], expected)
        assert "mean 0.485, 0.456, 0.406 and std 0.229, 0.224, 0.225 undone · 0 … 1 as they are" in image.caption
    halved = tnp.image(torch.tensor([[-1.0, 1.0]]), mean=0.5, std=0.5)
    assert decoded(halved).tolist() == [[0, 255]]


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_marked_and_counted(odd):
    """In a grey picture and in a coloured one; the others keep their range."""
    grey = np.array([[0.0, odd], [1.0, 2.0]])
    image = tnp.image(grey)
    assert decoded(image).tolist() == [[[0] * 3, list(palette.NAN)], [[128] * 3, [255] * 3]]
    assert "0 … 2," in image.caption
    assert "1 pixel with NaN or infinite (violet)" in image.caption
    coloured = np.zeros((3, 9, 9))
    coloured[1, 4, 5] = odd
    pixels = decoded(tnp.image(coloured))
    assert np.argwhere((pixels == palette.NAN).all(axis=-1)).tolist() == [[4, 5]]
    assert "no finite value" in tnp.image(np.full((2, 2), odd)).caption


@pytest.mark.parametrize(
    ("shape", "options", "said"),
    [
        ((5,), {}, "pass two to four dimensions"),
        ((0, 3, 9, 9), {}, "has no pixels"),
        ((9, 9), {"layout": "CHW"}, r"is no CHW, which has 3 dimensions; pass layout='HW'"),
        ((5,), {"layout": "HW"}, r"is no HW, which has 2 dimensions; pass two to four dimensions"),
        ((9, 9), {"size": 9.5}, "must be an integer from 1 to 2,048"),
        ((64, 9, 9), {"size": 1024}, "must be an integer from 1 to 512 for 64 pictures"),
        ((16, 9, 9), {"mean": (1, 2)}, "pass a number$"),
        ((9, 9), {"layout": "WH"}, "one of HW, CHW, HWC"),
        ((3, 9, 9), {"mean": (1, 2)}, "pass a number, or one for each of 3 channels"),
        ((3, 9, 9), {"mean": "bright"}, "pass a number"),
        ((3, 9, 9), {"std": [1, np.nan, 1]}, "pass a number"),
        ((3, 9, 9), {"std": 0}, "divided by 0"),
        ((9, 9), {"value_range": (1, 0)}, "pass two numbers, black and white"),
        ((9, 9), {"value_range": (0, np.inf)}, "pass two numbers, black and white"),
    ],
)
def test_what_makes_no_picture_is_refused_with_the_cure(shape, options, said):
    """One sentence, before anything is read."""
    with pytest.raises(tnp.BadRequestError, match=said):
        tnp.image(torch.zeros(shape), **options)


def test_it_is_what_it_was_and_keeps_nothing_alive():
    """Made once."""
    t = torch.zeros(5, 5)
    gone = weakref.ref(t)
    image = tnp.image(t)
    t += 1
    assert (decoded(image) == 0).all()
    del t
    gc.collect()
    assert gone() is None


def test_it_shows_wherever_something_asks_for_html_a_png_or_text():
    """In IPython without the extension, in marimo, in print; with the caption as its text."""
    image = tnp.image(torch.rand(3, 400, 300))
    bundle, _ = DisplayFormatter().format(image)
    assert bundle["text/html"] == image._mime_()[1] == image._repr_html_()
    assert bundle["image/png"] == image.png
    assert bundle["text/plain"] == repr(image) == f"<Image 300 × 400: {image.caption}>"
    assert 'width="300" height="400"' in bundle["text/html"]
    small = tnp.image(torch.rand(8, 8))
    assert small.size == (128, 128)
    assert 'width="128" height="128"' in small._repr_html_()


@pytest.mark.slow
@needs_card
@in_fork
def test_only_the_pixels_that_are_shown_leave_a_device():
    """Sixteen million elements on it, one million to the host."""
    ledger = register()
    t = torch.zeros(4096, 4096, dtype=torch.uint8).to("card")
    ledger.clear()
    assert tnp.image(t).size == (1024, 1024)
    assert ledger.to_host == 2**20


@pytest.mark.parametrize("is_last", [False, True])
def test_arrays_and_pil_have_all_pictures_at_full_size(is_last):
    """As NumPy and PIL take them: a batch larger than a page, channels first or last, grey and RGB."""
    pixels = np.random.default_rng(0).integers(0, 256, (70, 90, 160, 3), dtype=np.uint8)
    t = torch.from_numpy(pixels if is_last else pixels.transpose(0, 3, 1, 2)).contiguous()
    assert np.array_equal(tnp.image(t).arrays, pixels)
    assert all(np.array_equal(one, expected) for one, expected in zip(tnp.image(t).pil(), pixels, strict=True))
    grey = torch.rand(5, 7, generator=torch.Generator().manual_seed(0))
    expected = (grey.double().numpy() * 255 + 0.5).astype(np.uint8)
    assert np.array_equal(tnp.image(grey).arrays, expected[None, :, :, None])
    assert np.array_equal(tnp.image(grey).pil()[0], expected)


def test_too_many_pictures_make_no_array():
    """They are not converted behind a display."""
    with pytest.raises(tnp.errors.TooLargeError, match="pass fewer"):
        tnp.image(torch.rand(1025, 2, 2), layout="NHW").pil()
