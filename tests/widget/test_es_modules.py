"""Modules that import each other become one text."""

from __future__ import annotations

import re

import pytest

from tensornp.widget import part
from tensornp.widget.part import STATIC, module

ENTRIES = ("calls", "comparison", "table", "toggle", "weights")


def test_what_is_imported_comes_first_and_once(tmp_path, monkeypatch):
    """In the order in which it is needed, whoever imports it."""
    modules = dict(
        a='import { b } from "./b.js";\nimport {\n  c,\n} from "./c.js";\nexport default () => b(c);\n',
        b='import { c } from "./c.js";\nexport function b(x) {\n  return x + c;\n}\n',
        c="export const c = 1;\nconst own = 2;\n",
    )
    (tmp_path / "a").mkdir()
    for name, text in modules.items():
        (tmp_path / "a" / f"{name}.js").write_text(text, encoding="utf-8")
    monkeypatch.setattr(part, "STATIC", tmp_path)
    assert module("a") == (
        "const c = 1;\nconst own = 2;\nfunction b(x) {\n  return x + c;\n}\nexport default () => b(c);\n"
    )


@pytest.mark.parametrize("name", ENTRIES)
def test_ours_are_joined(name):
    """Each is one module with one default export, in which nothing is imported any more."""
    text = module(name)
    assert len(re.findall("^export default ", text, re.MULTILINE)) == 1
    assert not re.search("^import ", text, re.MULTILINE)
    assert "function docking(" in text


def test_every_file_is_used():
    """What no widget shows is not kept."""
    used = "".join(module(name) for name in ENTRIES)
    for path in STATIC.rglob("*.js"):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert first in used, path


def test_what_comes_from_the_theme_of_a_page_stands_in_one_list():
    """In the style sheet that all parts have: JupyterLab's variables, VS Code's and marimo's."""
    themed = {path.name for path in STATIC.rglob("*.css") if re.search(r"var\(--(?!tensornp-)", path.read_text())}
    assert themed == {"controls.css"}
    scripts = [path.name for path in STATIC.rglob("*.js") if re.search("--(jp|vscode)-", path.read_text())]
    assert not scripts
