"""`%tensornp`, the greeting, and options that are kept for all notebooks."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.profiledir import ProfileDir
from IPython.utils.capture import capture_output

import tensornp as tnp
from tensornp.core.summary.options import DisplayOptions
from tensornp.fronts.ipython.guide import WHAT_THERE_IS


@pytest.fixture
def file(shell, tmp_path, monkeypatch):
    """The file of a profile of the test's own."""
    monkeypatch.setattr(shell.ip, "profile_dir", ProfileDir.create_profile_dir(str(tmp_path / "own")))
    return tmp_path / "own" / "ipython_config.json"


def test_one_screen_tells_what_there_is_and_the_options_as_they_are(shell):
    """Each magic that is there, each option, and what was set."""
    shell.run("%config TensorDisplay.mode = 'copy'\n%tensornp")
    (shown,) = shell.displayed
    lines = shown["text/plain"].splitlines()
    assert lines[0] == f"tensornp {tnp.__version__}"
    assert len(lines) < 50
    assert max(map(len, lines)) < 160
    for option in fields(DisplayOptions):
        assert any(line.startswith(f"{option.name}  ") for line in lines)
    assert any(line.split()[:4] == ["mode", "copy", "(default:", "view)"] for line in lines)
    told = " ".join(what for what, _ in WHAT_THERE_IS)
    ours = [name for kind in shell.ip.magics_manager.magics.values() for name, magic in kind.items()
            if type(getattr(magic, "__self__", None)).__module__.startswith("tensornp")]  # fmt: skip
    assert all(name in told for name in ours if name != "tensornp")
    assert "<table" in shown["text/html"]


def test_options_are_kept_and_taken_back(shell, file):
    """What else the file holds stays; what has its default is not written."""
    file.write_text('{"Other": {"a": 1}}')
    shell.run("%config TensorDisplay.mode = 'copy'\n%config TensorDisplay.precision = 3\n%tensornp --save")
    assert str(file) in shell.printed
    kept = json.loads(file.read_text())
    assert kept.pop("Other") == {"a": 1}
    # The tests' own configuration has set another one.
    assert kept == {"TensorDisplay": {"mode": "copy", "precision": 3, "max_search_ms": 60_000}}
    shell.run("%tensornp --reset")
    assert str(file) in shell.printed
    assert json.loads(file.read_text()) == {"Other": {"a": 1}}
    shell.run("%tensornp --save")
    assert "nothing to keep" in shell.printed
    shell.run("%tensornp")
    assert "(default" not in shell.displayed[0]["text/plain"]


def test_a_file_of_ours_alone_is_gone_afterwards(shell, file):
    """Nothing is left behind."""
    shell.run("%config TensorDisplay.mode = 'copy'\n%tensornp --save\n%tensornp --reset")
    assert not list(file.parent.glob("ipython_config*"))


@pytest.mark.parametrize("content", ["{", "[]", "\x00"])
def test_a_file_that_is_no_configuration_is_not_written_over(shell, file, content):
    """One sentence names it."""
    file.write_text(content)
    shell.run("%config TensorDisplay.mode = 'copy'")
    for option in ("--save", "--reset"):
        assert str(file) in shell.fail(f"%tensornp {option}")
    assert file.read_text() == content


@pytest.mark.parametrize("line", ["x", "--save --reset", "--nonsense", "--save x"])
def test_what_means_nothing_is_refused(shell, line):
    """In one sentence."""
    assert shell.fail(f"%tensornp {line}")


def test_tab_offers_its_options(shell):
    """And nothing else."""
    assert shell.complete("%tensornp --") == ["--reset", "--save"]


def _run(*lines, profile):
    program = f"""
from IPython.terminal.ipapp import load_default_config
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
from traitlets.config.loader import JSONFileConfigLoader
import os
config = Config()
if os.path.exists({str(profile)!r} + "/ipython_config.json"):
    config = JSONFileConfigLoader("ipython_config.json", {str(profile)!r}).load_config()
config.HistoryManager.enabled = False
shell = InteractiveShell(config=config)
for line in {lines!r}:
    shell.run_cell(line)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    return done.stdout


def test_a_session_is_greeted_once_and_not_where_the_option_says_so(tmp_path):
    """By the cell that loads; a configuration that loads us greets nobody."""
    greeting = f"tensornp {tnp.__version__}: show a tensor"
    said = _run("%load_ext tensornp", "%unload_ext tensornp", "%load_ext tensornp", profile=tmp_path)
    assert said.count(greeting) == 1
    (tmp_path / "ipython_config.json").write_text('{"TensorDisplay": {"greeting": false}}')
    assert greeting not in _run("%load_ext tensornp", profile=tmp_path)
    shell = InteractiveShell()
    with capture_output() as captured:
        shell.extension_manager.load_extension("tensornp")
    assert captured.stdout == ""
    shell.extension_manager.unload_extension("tensornp")
