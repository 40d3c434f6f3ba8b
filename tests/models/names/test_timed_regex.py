"""What is typed between slashes finds what `re` finds, and what would take for ever is given up in a sentence."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from child import in_fork

import tensornp as tnp
from tensornp.models.names import timed_regex as typed_pattern
from tensornp.models.outline.choose import searched

NAMES = [f"model.layers.{i}.{part}.weight" for i in range(30) for part in ("q_proj", "k_proj", "mlp.up")]
NAMES += ["", "a b", "line\nbreak", "é.ß", "x" * 5000, "\ud800", "{e}", "[:alpha:]"]
BOUNDED = [
    r"layers\.(1|2)\..*weight", "^$", r"\bq_|k_", r"(?i)LAYERS\.\d+$", "(q|k)?_proj", r"[[:alp\]ha:]+\]", "a{e}", "{e",
]  # fmt: skip
APART = [
    r"(\.\d+)+\.mlp", r"(?:\w+\.)*weight$", "(?x) ( l\\w+ ) # a layer\n* s", r"(a|b){2,}", "(é|ß|\\.)+$",
    ".*a.*b.*c.*d",
]  # fmt: skip
ENDLESS = ["(a+)+$", "(a|a)*$", "(a|aa)+$", "(?:a*)*$", "(?x)(a+) +$", "a*" * 20 + "$", "(a|a)" * 30 + "$"]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("text", BOUNDED + APART)
def test_it_finds_what_re_finds(text, monkeypatch):
    """Here or in another process, which is started for what repeats a repeat, and for long names."""
    monkeypatch.setattr(typed_pattern, "LIMIT_S", 1000)
    started = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: (started.append(1), run(*args, **kwargs))[1])
    assert searched(f"/{text}/", NAMES) == [i for i, name in enumerate(NAMES) if re.search(text, name)]
    short = [name for name in NAMES if len(name) < 40]
    started.clear()
    assert searched(f"/{text}/", short) == [i for i, name in enumerate(short) if re.search(text, name)]
    assert bool(started) == (text in APART)


@pytest.mark.slow
@in_fork
def test_what_takes_for_ever_is_given_up():
    """Of a repeat in a repeat, and of many in a row."""
    typed_pattern.LIMIT_S = 0.5
    for text in ENDLESS:
        with pytest.raises(tnp.BadRequestError) as raised:
            searched(f"/{text}/", ["b", "a" * 200 + "b"])
        assert str(raised.value).startswith(f"/{text}/ was given up after 0.5 seconds; write it without a repeat")


def test_what_takes_long_in_many_names_is_given_up(monkeypatch):
    """Between two of them."""
    monkeypatch.setattr(typed_pattern, "LIMIT_S", -1)
    with pytest.raises(tnp.BadRequestError, match="was given up after -1 seconds"):
        searched("/a/", NAMES)
    assert searched("*a[ ]b*", NAMES) == [NAMES.index("a b")]


def test_where_no_process_can_be_started_it_is_refused(monkeypatch):
    """And not tried: what needs none is."""
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(tnp.BadRequestError, match=r"for ever, and cannot be tried apart \(FileNotFoundError\); "):
        searched("/(a+)+$/", ["a"])
    for other in ("/usr/bin/blender", "", None):
        monkeypatch.setattr(sys, "executable", other)
        with pytest.raises(tnp.BadRequestError, match="for ever, and there is no Python to try it apart; write"):
            searched("/(a+)+$/", ["a"])
    assert searched("/a+$/", ["a", "b"]) == [0]


def test_flags_that_contradict_each_other_are_a_sentence():
    """Which `re` tells by another error."""
    with pytest.raises(tnp.BadRequestError, match="is not a regular expression"):
        searched("/(?a)(?u)a/", ["a"])
