"""Text as HTML: escaped, and from right to left only where it is."""

from __future__ import annotations

import pytest

from tensornp.render.layout.escaped import escaped


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a<b>.weight", "a&lt;b&gt;.weight"),
        ("层.…é", "层.…é"),
        ("a.שלום.1.2", "a.<bdi>שלום</bdi>.1.2"),
        ("שלום.عالم, x", "<bdi>שלום</bdi>.<bdi>عالم</bdi>, x"),
        ("שלום עולם <3", "<bdi>שלום עולם</bdi> &lt;3"),
    ],
)
def test_words_from_right_to_left_are_kept_apart(text, html):
    """So that a point or a comma beside them stays where it is; words of one phrase stay together."""
    assert escaped(text) == html
