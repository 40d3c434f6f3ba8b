"""`%tensornp`, the greeting, and options that are kept for all notebooks."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from importlib.metadata import version

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.profiledir import ProfileDir
from IPython.utils.capture import capture_output
from traitlets.config import Config

import tensornp as tnp
from tensornp.core.summary.options import DisplayOptions
from tensornp.fronts.ipython import guide
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
    assert lines[0].startswith(f"tensornp {tnp.__version__} · fast: numba {version('numba')}, ")
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


def test_it_tells_how_statistics_become_fast(shell, monkeypatch):
    """Where numba is not installed."""
    monkeypatch.setattr(guide, "version", lambda name: version(name if name != "numba" else "no-such-distribution"))
    shell.run("%tensornp")
    assert 'pip install "tensornp[fast]"' in shell.displayed[0]["text/plain"].splitlines()[0]


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
    shell.run("%tensornp")
    assert "(default" not in shell.displayed[0]["text/plain"]


def test_arrays_are_read_at_a_glance_where_that_is_asked_for(shell, file):
    """In four digits, or in rows, now and for all notebooks; what cannot be is said."""
    shell.namespace["t"] = torch.tensor([[1e-7, 12345.678, 0.5]] * 2)
    shell.run("%tensornp --compact")
    assert "precision = 4, suppress = True" in shell.printed
    with np.printoptions(precision=4, suppress=True):
        assert repr(shell.namespace["t"].numpy()) in shell.show(shell.namespace["t"])["text/plain"]
    shell.run("%tensornp --style line --save")
    assert shell.show(torch.rand(3, 4))["text/plain"].count("\n") == 0
    assert json.loads(file.read_text())["TensorDisplay"] == {
        "style": "line", "precision": 4, "suppress": True, "max_search_ms": 60_000
    }  # fmt: skip
    assert "style is one of auto, card, line, not 'row'" in shell.fail("%tensornp --style row")
    shell.run("%tensornp --reset")
    assert repr(shell.namespace["t"].numpy()) in shell.show(shell.namespace["t"])["text/plain"]


def test_where_all_options_have_their_defaults_nothing_is_kept(tmp_path):
    """And no file is made."""
    shell = InteractiveShell(profile_dir=ProfileDir.create_profile_dir(str(tmp_path / "own")))
    shell.run_line_magic("load_ext", "tensornp")
    with capture_output() as captured:
        shell.run_line_magic("tensornp", "--save")
    assert "nothing to keep" in captured.stdout
    assert not list((tmp_path / "own").glob("ipython_config*"))
    shell.run_line_magic("unload_ext", "tensornp")


def test_a_file_of_ours_alone_is_gone_afterwards(shell, file):
    """Nothing is left behind."""
    shell.run("%config TensorDisplay.mode = 'copy'\n%tensornp --save\n%tensornp --reset")
    assert not list(file.parent.glob("ipython_config*"))


def test_saving_again_keeps_what_is_so_now(shell, file):
    """Also where that is the default; unknown options of the file, its rights and a link to it stay."""
    target = file.parent / "elsewhere.json"
    target.write_text('{"TensorDisplay": {"mode": "copy", "of a newer version": 1}}')
    target.chmod(0o600)
    file.symlink_to(target)
    shell.run("%config TensorDisplay.mode = 'view'\n%config TensorDisplay.precision = 2\n%tensornp --save")
    kept = json.loads(target.read_text())["TensorDisplay"]
    assert kept["of a newer version"] == 1
    assert kept["precision"] == 2
    assert "mode" not in kept
    assert file.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in file.parent.glob("*.json*")) == ["elsewhere.json", file.name]


def test_a_default_overrules_what_another_file_sets(tmp_path):
    """IPython reads both, and ours last."""
    profile = ProfileDir.create_profile_dir(str(tmp_path / "own"))
    config = Config({"TensorDisplay": {"style": "line", "precision": 2}})
    shell = InteractiveShell(config=config, profile_dir=profile)
    shell.run_line_magic("load_ext", "tensornp")
    for line in ("TensorDisplay.style = 'auto'", "TensorDisplay.precision = None", "TensorDisplay.mode = 'copy'"):
        shell.run_line_magic("config", line)
    shell.run_line_magic("tensornp", "--save")
    kept = json.loads((tmp_path / "own" / "ipython_config.json").read_text())["TensorDisplay"]
    assert kept == {"style": "auto", "precision": None, "mode": "copy"}
    shell.run_line_magic("unload_ext", "tensornp")


@pytest.mark.parametrize("content", ["{", "[]", "\x00", "[" * 100_000])
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
    assert shell.complete("%tensornp --") == ["--compact", "--reset", "--save", "--style"]
    assert shell.complete("%tensornp --style ") == ["auto", "card", "line"]


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


@pytest.mark.slow
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
