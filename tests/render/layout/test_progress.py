"""How far a reading has come."""

from __future__ import annotations

from tensornp.render.layout.progress import progress_html, progress_text


def test_the_share_the_speed_and_the_rest_are_told():
    """Where the speed is known."""
    assert progress_text("scan", 2**29, 2**30, 0.0) == "scan: 50% of 1 GiB"
    assert progress_text("scan", 2**29, 2**30, 2**28) == "scan: 50% of 1 GiB · 256 MiB/s · about 2 s left"
    assert progress_text("scan", 0, 0, 0.0) == "scan: 0% of 0 bytes"


def test_the_bar_says_the_same_and_is_escaped():
    """For a screen reader too."""
    html = progress_html("a<b", 1, 4, 0.0)
    assert '<progress max="4" value="1" aria-label="a&lt;b"></progress> a&lt;b: 25% of 4 bytes' in html
