"""The options of a shell: declared once, told everywhere."""

from __future__ import annotations

from dataclasses import fields

import options_table
import pytest
import traitlets

from tensornp.core.summary.options import DisplayOptions
from tensornp.fronts.ipython.config import TensorDisplay


def test_each_option_is_a_trait_with_its_default_its_bounds_and_its_help():
    """Whoever sets one that means nothing hears so."""
    display = TensorDisplay()
    assert display.options == DisplayOptions()
    for option in fields(DisplayOptions):
        trait = display.traits()[option.name]
        assert trait.help == option.metadata["help"]
        bounds = option.metadata
        wrong = "nonsense" if "choices" in bounds or "min" not in bounds else bounds["min"] - 1
        with pytest.raises(traitlets.TraitError):
            setattr(display, option.name, wrong)
    display.max_rows = 7
    assert display.options == DisplayOptions(max_rows=7)


def test_the_page_of_options_is_current():
    """`python tests/options_table.py` writes it."""
    assert options_table.PAGE.read_text(encoding="utf-8").endswith(options_table.table())
