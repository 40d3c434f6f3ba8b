"""How well a text can be read: its contrast with what is painted behind it."""

from __future__ import annotations

from playwright.sync_api import Locator

READABLE = 4.5
"""The least contrast of normal text by WCAG 2.2, success criterion 1.4.3."""

_CONTRAST = """(node) => {
  const parse = (colour) => {
    const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
    return { rgb: [r, g, b], a };
  };
  const over = ({ rgb, a }, under) => rgb.map((value, i) => value * a + under[i] * (1 - a));
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const around = [];
  for (let at = node; at; at = at.parentElement) around.unshift(at);
  const behind = around.reduce((rgb, at) => over(parse(getComputedStyle(at).backgroundColor), rgb), [255, 255, 255]);
  const text = over(parse(getComputedStyle(node).color), behind);
  const [dark, light] = [luminance(text), luminance(behind)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}"""


def contrast(text: Locator) -> float:
    """Return the contrast of a text by WCAG 2.2, from 1 (cannot be seen) to 21 (black on white)."""
    return float(text.evaluate(_CONTRAST))


def illegible(texts: Locator) -> list[str]:
    """Return those texts that are not readable, all looked at in one moment: a page may paint them anew."""
    # What was painted anew since it was looked up has no colours any more.
    there = "nodes.filter((node) => node.isConnected)"
    code = f"(nodes) => {there}.map((node) => [node.textContent, ({_CONTRAST})(node)])"
    found = texts.evaluate_all(code) or texts.evaluate_all(code)
    assert found
    return [text for text, ratio in found if ratio < READABLE]
