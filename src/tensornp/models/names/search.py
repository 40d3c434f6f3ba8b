"""Find names by words, globs, alternatives in braces or regular expressions."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from tensornp.core.lowlevel.attributes import an_instance
from tensornp.errors import BadRequestError
from tensornp.models.names.quoted import closest, shown_name

_WILDCARDS = frozenset("*?[")
_BRACES = re.compile(r"\{([^{}]+)\}")
_RANGE = re.compile(r"([0-9]{1,18})(?:\.\.([0-9]{1,18}))?")
_WORD = re.compile(r"(?:\[[^\]]*\]|\{[^{}]*\}|\S)+")
"""A word of a pattern, which may have spaces in brackets."""
_MAX_NUMBERS = 10_000
"""Numbers of a range in braces."""
_SAME = {"attn": "attention", "attention": "attn"}
"""Words that models write in two ways."""
_PLACE = "\ue000"
"""Marks for braces while a glob becomes an expression."""


def fitting(
    pattern: str | re.Pattern[Any],
    names: Sequence[str],
    facts: Callable[[], Sequence[str]] = tuple,
    lowered: Sequence[str] = (),
) -> list[int]:
    """Return the indices of names that match a regular expression or all words.

    A text between slashes is a regular expression. A word is a part of the name or a glob, or, if no name has it, one
    of the `facts`, which returns a text for each name. A number is a whole one, if there is any: ``layers.3`` is not
    ``layers.30``. A glob without a star at either end matches anywhere. Braces list alternatives and ranges:
    ``layer.{0..5,9}.{query,key}``. Capitals only matter if the pattern has some. A search at
    each letter gives the `lowered` names, which take as long as the search.
    """
    if isinstance(pattern, str) and is_expression(pattern):
        try:
            pattern = re.compile(pattern[1:-1])
        except (re.error, ValueError, RecursionError, OverflowError) as error:
            raise BadRequestError(f"{pattern} is not a regular expression: {error}") from None
    if isinstance(pattern, re.Pattern):
        return [i for i, name in enumerate(names) if pattern.search(name)]
    if not isinstance(pattern, str):
        raise BadRequestError(
            f"a weight is found by a glob or a compiled regular expression, not by {an_instance(pattern)}"
        )
    # Capitals are meant where they are typed.
    is_exact = pattern != pattern.lower()
    searched = names if is_exact else lowered or [name.lower() for name in names]
    others = cache(lambda: [one if is_exact else one.lower() for one in facts()])
    found: Sequence[int] = range(len(names))
    for word in _WORD.findall(pattern):
        # A pass over all names for each word: a call for each name would take ten times as long.
        found = _having(word, searched, found) or (_having(word, others(), found) if others() else [])
    return list(found)


def is_expression(text: str) -> bool:
    """Return whether a search is a regular expression between slashes."""
    return len(text) > 1 and text[0] == text[-1] == "/"


def none_fits(pattern: str, names: Sequence[str]) -> str:
    """Return a message that no name fits, with the part closest to a missing word."""
    if is_expression(pattern):
        return f"no name fits {pattern}"
    parts = dict.fromkeys(part for name in names for part in name.split("."))
    missing = (word for word in _WORD.findall(pattern) if not fitting(word, names))
    return f"no name fits {shown_name(pattern)}" + next(
        filter(None, (closest(one.strip("*"), parts) for one in missing)), ""
    )


def _having(word: str, names: Sequence[str], places: Sequence[int]) -> list[int]:
    if _WILDCARDS.isdisjoint(word) and not _BRACES.search(word):
        found = [i for i in places if word in names[i]]
        if word in _SAME:
            found = sorted({*found, *(i for i in places if _SAME[word] in names[i])})
        if not word[0].isdecimal() and not word[-1].isdecimal():
            return found
        before = "(?<![0-9])" if word[0].isdecimal() else ""
        whole = re.compile(before + re.escape(word) + ("(?![0-9])" if word[-1].isdecimal() else "")).search
        return [i for i in found if whole(names[i])] or found
    glob = word if word[0] == "*" or word[-1] == "*" else f"*{word}*"
    braces = iter([_one_of(inside) for inside in _BRACES.findall(glob)])
    expression = fnmatch.translate(_BRACES.sub(_PLACE, glob.replace(_PLACE, "?")))
    fits = re.compile(re.sub(_PLACE, lambda _: next(braces), expression)).match
    return [i for i in places if fits(names[i])]


def _one_of(inside: str) -> str:
    """Return a regular expression for the alternatives in braces."""
    said = []
    for part in map(str.strip, inside.split(",")):
        if (numbers := _RANGE.fullmatch(part)) is None:
            said.append(re.escape(part))
            continue
        first, last = sorted((int(numbers[1]), int(numbers[2] or numbers[1])))
        if last - first > _MAX_NUMBERS:
            raise BadRequestError(f"a range must have at most {_MAX_NUMBERS:,} numbers, got {{{part}}}")
        said.append(f"(?<![0-9])(?:{'|'.join(map(str, range(first, last + 1)))})(?![0-9])")
    return f"(?:{'|'.join(said)})"
