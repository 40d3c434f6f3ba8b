"""Figures for publication: labelled, with their scope, and nobody's but the caller's."""

from __future__ import annotations

import io
import subprocess
import sys
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest
import torch
from IPython.core.formatters import DisplayFormatter
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from PIL import Image

import tensornp as tnp
from tensornp.core.values.stats.distribution import Histogram
from tensornp.render.pictures import palette
from tensornp.render.pictures.plot import figure_of

STATS = SimpleNamespace(
    histogram=Histogram(np.array([1, 5, 2]), np.array([0.0, 1, 2, 3]), "sample of 8"),
    scope_of_histogram="sample of 8",
    is_complex=False,
    nan=0,
    posinf=0,
    neginf=0,
)


@pytest.fixture
def plane():
    made = np.random.default_rng(0).normal(size=(500, 300))
    made[250:300, 100:150] = np.nan
    return made


def shown(figure) -> Image.Image:
    return Image.open(io.BytesIO(figure._repr_png_()))


def test_both_parts_are_labelled_with_their_scope(plane):
    """Axes, colour bar, title and caption; the rows count downwards, as in the array."""
    figure = tnp.plot(plane, title="weight")
    assert isinstance(figure, Figure)
    histogram, picture, bar = figure.axes
    assert (histogram.get_xlabel(), histogram.get_ylabel()) == ("value", "elements in 1/64 of the range")
    assert (picture.get_xlabel(), picture.get_ylabel()) == ("column", "row")
    assert bar.get_ylabel() == "value"
    assert (picture.get_xlim(), picture.get_ylim()) == ((-0.5, 299.5), (499.5, -0.5))
    assert figure.get_suptitle() == "weight"
    for said in ("histogram: all elements, without 2,500 NaN", "with NaN (violet)", "farthest from 0"):
        assert said in figure.get_supxlabel()


def test_of_complex_numbers_it_is_said_that_the_modulus_is_shown():
    """By the axes, and in the caption of each picture."""
    waves = torch.fft.rfft(torch.arange(24.0).reshape(3, 8))
    figure = tnp.plot(waves)
    histogram, _, bar = figure.axes
    assert (histogram.get_xlabel(), bar.get_ylabel()) == ("modulus", "modulus")
    assert figure.get_supxlabel().startswith("histogram of the modulus: all elements\nmodulus: dark blue 4 …")
    assert "modulus" not in tnp.plot(waves.real).get_supxlabel()


def test_the_bars_are_the_counts(plane):
    """Of even bins; of uneven ones they are densities, and the axis says so."""
    (axes,) = figure_of(STATS).axes
    (bars,) = (patch for patch in axes.patches if isinstance(patch, StepPatch))
    assert bars.get_data().values.tolist() == [1, 5, 2]
    uneven = Histogram(np.array([8, 8]), np.array([0.0, 1, 4]), "all elements")
    (axes,) = figure_of(SimpleNamespace(**{**vars(STATS), "histogram": uneven})).axes
    drawn = axes.patches[0].get_data()
    assert drawn.values.tolist() == pytest.approx([0.5] * 16 + [1 / 6] * 48)
    assert drawn.edges.tolist() == pytest.approx([i / 16 for i in range(65)])
    assert axes.get_ylabel() == "elements in 1/64 of the range"


@pytest.mark.slow
def test_a_nan_has_its_colour_where_it_lies(plane):
    """In the pixels of the axes, at the coordinates that the axes show."""
    figure = tnp.plot(plane)
    axes = figure.axes[1]
    picture = shown(figure)
    x, y = axes.transData.transform((125, 275))
    assert picture.convert("RGB").getpixel((int(x), picture.height - int(y))) == palette.NAN
    x, y = axes.transData.transform((50, 100))
    assert picture.convert("RGB").getpixel((int(x), picture.height - int(y))) != palette.NAN


@pytest.mark.slow
def test_over_the_heat_map_stands_which_plane_it_is():
    """Of a batch the first, or the one at an index, whose very elements are drawn; also under a title of one's own."""
    batch = torch.arange(2 * 3 * 40 * 40, dtype=torch.float64).view(2, 3, 40, 40)
    for options, at in [({}, (0, 0)), ({"index": (1, 2)}, (1, 2)), ({"index": (-1, 0), "title": "a batch"}, (1, 0))]:
        figure = tnp.plot(batch, **options)
        _, heat, bar = figure.axes
        assert heat.get_title() == f"plane {list(at)} of 2 × 3"
        assert bar.get_ylim() == (batch[at].min(), batch[at].max())
        assert figure.get_suptitle() == options.get("title", "Tensor (2, 3, 40, 40) float64")
    assert tnp.plot(torch.zeros(7, 40, 40), index=3).axes[1].get_title() == "plane [3] of 7"
    assert tnp.plot(torch.zeros(2, 3, 8, 8)).axes[1].get_title() == "plane [0, 0] of 2 × 3"
    assert tnp.plot(torch.zeros(8, 8)).axes[1].get_title() == ""
    for index in ((2, 0), (-3, 0), 1, "ab"):
        with pytest.raises(tnp.BadRequestError, match="pass"):
            tnp.plot(batch, index=index)
    for obj, index in [(batch[0, 0], 0), (tnp.stats(batch), (0, 0))]:
        with pytest.raises(tnp.BadRequestError, match="pass"):
            tnp.plot(obj, index=index)


def test_one_value_and_nothing_finite_can_be_drawn():
    """One value has a bar, although it has no width of its own."""
    for value in (0.0, -3.0, 1e-5, 1e299):
        figure = tnp.plot(np.full((1, 7), value))
        bar = figure.axes[0].patches[0].get_data()
        assert bar.values.tolist() == [7]
        assert bar.edges[0] < value < bar.edges[1]
        assert shown(figure).size[0] > 100
    assert shown(tnp.plot(np.full((3, 3), np.nan))).size[0] > 100
    assert figure_of(SimpleNamespace(histogram=None, scope_of_histogram="all elements")).axes == []


def test_a_notebook_shows_it_without_pyplot():
    """As a PNG, where nobody has said ``%matplotlib inline``."""
    bundle, _ = DisplayFormatter().format(figure_of(STATS))
    assert bundle["image/png"].startswith(b"\x89PNG")


def test_options_of_the_user_shape_it_and_stay_as_they_are():
    """`rcParams` are read, never set."""
    with matplotlib.rc_context({"font.size": 7}):
        before = dict(matplotlib.rcParams)
        figure = figure_of(STATS)
        figure._repr_png_()
        assert figure.axes[0].xaxis.label.get_size() == 7
        assert dict(matplotlib.rcParams) == before


@pytest.mark.slow
def test_neither_pyplot_nor_a_window_is_opened():
    """So there is no list of open figures: nothing but what writes PNGs is imported."""
    code = (
        "import sys; from types import SimpleNamespace as N; from tensornp.render.pictures.plot import figure_of; "
        "assert 'matplotlib' not in sys.modules; "
        "bars = N(counts=[1], edges=[0, 1]); "
        "stats = N(histogram=bars, scope_of_histogram='all', is_complex=False, nan=0, posinf=0, neginf=0); "
        "figure_of(stats)._repr_png_(); "
        "print(*(name for name in sys.modules if 'pyplot' in name or 'backends.backend_' in name))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["matplotlib.backends.backend_agg"]


def test_what_is_in_no_bin_and_in_no_pixel_is_said():
    half = torch.randn(500, 500)
    half[:, ::2] = torch.nan
    half[0, 1], half[0, 3] = torch.inf, -torch.inf
    words = tnp.plot(half).get_supxlabel()
    assert "histogram: all elements, without 125,000 NaN, 1 +Inf, 1 −Inf" in words
    # A pixel of several elements shows the one that is not finite.
    assert "no pixel of finite values alone" in words
    assert "no finite value ·" in tnp.plot(torch.full((4, 4), torch.nan)).get_supxlabel()
