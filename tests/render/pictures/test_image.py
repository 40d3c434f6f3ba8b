"""`tnp.image`: the decoded pixels are those that NumPy computes, and nothing is guessed silently."""

from __future__ import annotations

import gc
import io
import weakref
from html import escape

import ml_dtypes
import numpy as np
import pytest
import torch
from accelerator import needs_card, register
from child import in_child
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from PIL import Image as Pillow
from unchanged import unchanged

import tensornp as tnp
from tensornp.render.pictures import palette


def decoded(image: tnp.Image) -> np.ndarray:
    """Return the pixels of the picture itself, one for each of its own."""
    large = np.array(Pillow.open(io.BytesIO(image.png)))
    pixels = large[:: image.magnification, :: image.magnification]
    assert pixels.shape[1::-1] == image.size
    times = image.magnification
    assert (np.repeat(np.repeat(pixels, times, 0), times, 1) == large).all(), "each is drawn as a square of one colour"
    return pixels


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
        assert image.caption.startswith(f"{name} · " if layout else f"{name}, the only layout that fits · ")
        assert f"20 × 30 {dict(zip((1, 3, 4), ('grey', 'RGB', 'RGBA'), strict=True))[channels]}" in image.caption
        assert "0 … 255 as they are" in image.caption


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 12), st.integers(5, 9), st.integers(5, 9), st.sampled_from([1, 3, 4]), st.booleans())
def test_a_batch_is_a_grid_with_clear_gaps(count, height, width, channels, is_last):
    """Each picture is in it once, in order, row by row."""
    batch = np.random.default_rng(count).integers(0, 256, (count, height, width, channels), np.uint8)
    obj = torch.from_numpy(batch if is_last else np.ascontiguousarray(batch.transpose(0, 3, 1, 2)))
    image = tnp.image(obj, layout="NHWC" if is_last else "NCHW")
    pixels = decoded(image)
    if count == 1:
        np.testing.assert_array_equal(pixels, batch[0, ..., 0] if channels == 1 else batch[0])
        return
    columns = (pixels.shape[1] + 2) // (width + 2)
    for i, one in enumerate(batch):
        top, left = i // columns * (height + 2), i % columns * (width + 2)
        there = pixels[top : top + height, left : left + width]
        np.testing.assert_array_equal(there[..., :channels], one)
        assert channels == 4 or (there[..., -1] == 255).all()
        pixels[top : top + height, left : left + width] = 0
    assert (pixels == 0).all()


def test_no_more_pictures_than_a_page_holds_are_shown():
    """It says how many there are; grey ones without channels have to be named."""
    batch = torch.zeros(1000, 28, 28, dtype=torch.uint8)
    image = tnp.image(batch, layout="NHW")
    assert "NHW · 28 × 28 grey · the first 64 of 1,000 pictures" in image.caption
    assert image.size == (8 * 30 - 2, 8 * 30 - 2)
    with pytest.raises(tnp.BadRequestError, match=r"pass layout='NHW' for a batch of grey pictures"):
        tnp.image(batch)


def test_of_large_pictures_every_few_rows_and_columns_are_shown():
    """The very elements of these, in at most a million pixels, with no more of any other read."""
    array = np.arange(3000 * 2000, dtype=np.uint32).reshape(3000, 2000) % 251
    image = tnp.image(torch.from_numpy(array.astype(np.uint8)))
    assert "every 3rd row and column" in image.caption
    np.testing.assert_array_equal(decoded(image), array[::3, ::3])
    endless = tnp.image(torch.zeros(1).expand(3, 2**40, 5), layout="CHW")
    assert max(endless.size) <= 2048


@pytest.mark.parametrize(
    ("values", "expected", "said"),
    [
        (np.array([[0.0, 0.25, 1.0]]), [0, 64, 255], "0 … 1 as they are"),
        (np.array([[-1.0, 0.0, 1.0]]), [0, 128, 255], "−1 … 1, the least and the greatest shown, as black … white"),
        (np.array([[-2.1, 0.25, 2.6]]), [0, 128, 255], "−2.1 … 2.6, the least and the greatest shown"),
        (np.array([[10, 20, 30]]), [0, 128, 255], "10 … 30, the least and the greatest shown"),
        (np.array([[0, 0, 1]]), [0, 0, 255], "0 … 1, the least and the greatest shown"),
        (np.array([[-1.7e308, 0, 1.7e308]]), [0, 128, 255], "−1.7e+308 … 1.7e+308"),
        (np.array([[-5e-324, 0, 5e-324]]), [0, 128, 255], "the least and the greatest shown, as black … white"),
        (np.array([[7.0, 7.0]]), [128, 128], "all 7, shown as grey"),
        (np.array([[False, True]]), [0, 255], "False black, True white"),
        (np.array([[0, 255]], np.uint8), [0, 255], "0 … 255 as they are"),
        (np.array([[0, 1]], ml_dtypes.bfloat16), [0, 255], "0 … 1 as they are"),
        (np.array([[-5, 5]], np.float16), [0, 255], "−5 … 5"),
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
        assert "mean 0.485, 0.456, 0.406 and std 0.229, 0.224, 0.225 undone · 0 … 1 as they are" in image.caption
    halved = tnp.image(torch.tensor([[-1.0, 1.0]]), mean=0.5, std=0.5)
    assert decoded(halved).tolist() == [[0, 255]]


def test_alpha_is_neither_stretched_nor_normalized():
    """From 0 to 1 in floats, to 255 in integers."""
    pixels = np.array([[[-4.0, 0.0, 4.0, 0.5]]])
    image = tnp.image(pixels, layout="HWC")
    assert decoded(image)[0, 0].tolist() == [0, 128, 255, 128]
    assert "−4 … 4" in image.caption and "alpha 0 … 1" in image.caption
    image = tnp.image((pixels * 100).astype(np.int32) + 14, layout="HWC", mean=0, std=1)
    assert decoded(image)[0, 0, 3] == 64


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_marked_and_counted(odd):
    """In a grey picture and in a coloured one; the others keep their range."""
    grey = np.array([[0.0, odd], [1.0, 2.0]])
    image = tnp.image(grey)
    assert decoded(image).tolist() == [[[0] * 3, list(palette.NAN)], [[128] * 3, [255] * 3]]
    assert "0 … 2," in image.caption
    assert "1 pixel with NaN, infinite or hidden (violet)" in image.caption
    coloured = np.zeros((3, 9, 9))
    coloured[1, 4, 5] = odd
    pixels = decoded(tnp.image(coloured))
    assert np.argwhere((pixels == palette.NAN).all(axis=-1)).tolist() == [[4, 5]]
    assert "no finite value" in tnp.image(np.full((2, 2), odd)).caption


def test_what_a_mask_hides_is_marked():
    """Of a masked array and of a MaskedTensor."""
    values, hidden = np.array([[0.0, 1.0]]), np.array([[True, False]])
    masked = torch.masked.masked_tensor(torch.from_numpy(values), torch.from_numpy(~hidden))
    for obj in (np.ma.MaskedArray(values, hidden), masked):
        assert decoded(tnp.image(obj)).tolist() == [[list(palette.NAN), [255] * 3]]


@pytest.mark.parametrize("shape", [(3, 4, 3), (1, 5, 4), (3, 3, 3), (2, 3, 9, 4), (1, 1, 1, 1)])
def test_a_shape_with_two_readings_has_to_be_named(shape):
    """Both are in the message, and either works."""
    names = ("CHW", "HWC") if len(shape) == 3 else ("NCHW", "NHWC")
    with pytest.raises(tnp.BadRequestError, match=f"may be {names[0]} or {names[1]}; pass layout='{names[0]}' or"):
        tnp.image(torch.zeros(shape))
    for name in names:
        assert tnp.image(torch.zeros(shape), layout=name).caption.startswith(f"{name} · ")


@pytest.mark.parametrize(
    ("shape", "options", "said"),
    [
        ((5,), {}, "pass two to four dimensions"),
        ((), {}, "pass two to four dimensions"),
        ((2, 9, 9), {}, "slice it to 1, 3 or 4 channels"),
        ((9, 2, 8, 8), {}, "slice it to 1, 3 or 4 channels"),
        ((0, 5), {}, "has no pixels"),
        ((3, 9, 9), {"layout": "HWC"}, r"is no HWC, which has 3 dimensions, .*; pass layout='CHW' or layout='NHW'"),
        ((9, 9), {"layout": "WH"}, "choose from HW, CHW, HWC"),
        ((9, 9), {"layout": 3}, "choose from HW, CHW, HWC"),
        ((3, 9, 9), {"mean": (1, 2)}, "pass a number, or one for each of 3 channels"),
        ((3, 9, 9), {"mean": "bright"}, "pass a number"),
        ((3, 9, 9), {"std": [1, np.nan, 1]}, "pass a number"),
        ((3, 9, 9), {"std": 0}, "divided by 0"),
        ((9, 9), {"value_range": (1, 0)}, "pass two numbers, black and white"),
        ((9, 9), {"value_range": 3}, "pass two numbers, black and white"),
        ((9, 9), {"value_range": (0, np.inf)}, "pass two numbers, black and white"),
    ],
)
def test_what_makes_no_picture_is_refused_with_the_cure(shape, options, said):
    """One sentence, before anything is read."""
    with pytest.raises(tnp.BadRequestError, match=said):
        tnp.image(torch.zeros(shape), **options)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: 3, tnp.NotATensorError),
        (lambda: [torch.zeros(3, 3)], tnp.NotATensorError),
        (lambda: np.array([["a"]]), tnp.BadRequestError),
        (lambda: np.array([[None]]), tnp.BadRequestError),
        (lambda: np.zeros((2, 2), [("a", float)]), tnp.BadRequestError),
        (lambda: torch.zeros(3, 3, dtype=torch.complex64), tnp.BadRequestError),
        (lambda: torch.zeros(3, 3, device="meta"), tnp.NoDataError),
        (lambda: torch.nested.nested_tensor([torch.zeros(2, 2)]), tnp.BadRequestError),
    ],
)
def test_what_has_no_pixels_is_refused(make, error):
    """As conversion does, or with what to pass instead."""
    with pytest.raises(error):
        tnp.image(make())


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.bfloat16(), lambda t: t.T.contiguous().T, lambda t: t.to_sparse(), lambda t: t.requires_grad_() * 1,
        lambda t: torch.view_as_complex(torch.stack([-t, -t], -1)).conj().imag, lambda t: t.to(torch.float8_e5m2),
        lambda t: torch.quantize_per_tensor(t, 0.5, 0, torch.quint8), torch.nn.Parameter,
    ],
)  # fmt: skip
def test_any_kind_of_tensor_is_seen_and_nothing_changes(make):
    """The pixels are those of the converted array."""
    t = make(torch.eye(6))
    with unchanged(t):
        image = tnp.image(t)
    np.testing.assert_array_equal(decoded(image), np.eye(6) * 255)
    assert t.is_sparse or t.untyped_storage().resizable()


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
    assert escape(image.alt) in bundle["text/html"]
    assert 'width="300" height="400"' in bundle["text/html"]
    small = tnp.image(torch.rand(8, 8))
    assert (small.size, small.magnification) == ((8, 8), 16)
    assert 'width="128" height="128"' in small._repr_html_()


@pytest.mark.slow
@needs_card
@in_child
def test_only_the_pixels_that_are_shown_leave_a_device():
    """Sixteen million elements on it, one million to the host."""
    ledger = register()
    t = torch.zeros(4096, 4096, dtype=torch.uint8).to("card")
    ledger.clear()
    assert tnp.image(t).size == (1024, 1024)
    assert ledger.to_host == 2**20
