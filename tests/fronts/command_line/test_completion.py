"""Completion of the command in three shells: each evaluates what is printed for it, and completes by it."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tensornp.fronts.command_line.arguments import SHELLS, parser
from tensornp.fronts.command_line.completion import completion

LINES = {
    "tensornp --so": {"--sort"},
    "tensornp --sort by": {"bytes"},
    "tensornp --color ": {"auto", "always", "never"},
    "tensornp s": {"scan", "some weights.pt"},
    "tensornp scan s": {"some weights.pt"},
    "tensornp --html s": {"some weights.pt"},
}
"""What is completed, and by what, in a folder in which there is one file."""


def found_by(shell: str) -> str:
    """Return the path of a shell; skip where it is not there."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is needed")
    return path


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "some weights.pt").touch()
    (tmp_path / "other.pt").touch()
    return tmp_path


def words_of(folder, *command: str) -> set[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    assert not done.stderr
    return set(done.stdout.splitlines())


@pytest.mark.parametrize("shell", SHELLS)
def test_every_option_is_completed(shell):
    script = completion(parser(), shell)
    for action in parser()._actions:
        for flag in action.option_strings:
            spelled = re.sub("^--?", lambda dashes: {"-": "-s ", "--": "-l "}[dashes[0]], flag)
            assert (spelled if shell == "fish" else flag) in script
    assert "scan" in script
    assert "diff" in script


@pytest.mark.parametrize(("line", "words"), LINES.items())
def test_bash_completes_it(folder, line, words):
    ask = '; read -ra COMP_WORDS <<< "$0"; [[ $0 == *" " ]] && COMP_WORDS+=(""); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))'
    code = completion(parser(), "bash") + f"{ask}; _tensornp; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    assert words_of(folder, found_by("bash"), "--norc", "-c", code, line) == words


@pytest.mark.parametrize(("line", "words"), LINES.items())
def test_fish_completes_it(folder, line, words):
    code = completion(parser(), "fish") + f"\ncomplete -C '{line}'"
    found = words_of(folder, found_by("fish"), "--no-config", "-c", code)
    assert {word.partition("\t")[0].replace("\\", "") for word in found} >= words


def test_zsh_understands_it(folder):
    """It completes in a line that is edited, of which no script is told."""
    (folder / "_tensornp").write_text(completion(parser(), "zsh"))
    assert words_of(folder, found_by("zsh"), "-f", "-n", "_tensornp") == set()
