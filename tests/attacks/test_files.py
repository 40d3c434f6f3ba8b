"""Checkpoints of each format, as their own libraries write them, damaged at random: each ends well, or in a sentence.

Ended by a count, and the same in each run. ``TENSORNP_ATTACK=100 python tests/run.py tests/attacks`` tries a hundred
times as many files, with other seeds.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from child import in_fork
from memory_limit import limit_memory
from saved_files import FORMATS
from watched import Watch

import tensornp as tnp
from tensornp.render.models.weights import weights_document

pytestmark = pytest.mark.slow
NUM_FILES = 50 * max(int(os.environ.get("TENSORNP_ATTACK", "1")), 1)
NBYTES = 100_000_000
"""What a process may take to look at any of these files."""
INTERNAL = re.compile(
    r"\b\w+(Error|Exception)\b|Traceback|NoneType|object has no attribute|to unpack|unpack \(|codec can't"
    r"|invalid literal|index out of range|not subscriptable|unhashable|requires a buffer|<class |object at 0x"
    r"|expected str|not enough data|Bad magic|Error -\d|embedded null|Expecting |unexpected end|positional argument"
    r"|NotImplemented|math domain"
)
"""Words of Python and its libraries, which nobody is to read."""
NUMBERS = [
    value.to_bytes(size, "little")
    for size in (1, 2, 4, 8)
    for value in (0, 1, 2 ** (8 * size - 1) - 1, 2 ** (8 * size) - 1)
]
ODD = [b"/../", b"\\u202e", b"\x1b[2J", b"1e999", b"[" * 200, b"9" * 5000]
"""Texts of which a header should have none."""


def flipped(data: bytearray, draw: random.Random) -> None:
    for _ in range(draw.randint(1, 8)):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def cut(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data)) :]


def taken_out(data: bytearray, draw: random.Random) -> None:
    """Leave some bytes out, by which all that follow lie elsewhere."""
    first = draw.randrange(len(data))
    del data[first : first + draw.randint(1, 64)]


def put_in(data: bytearray, draw: random.Random) -> None:
    """Put some bytes in, of any value or of one."""
    num, first = draw.randint(1, 64), draw.randrange(len(data))
    data[first:first] = draw.randbytes(num) if draw.random() < 0.5 else bytes([draw.randrange(256)]) * num


def with_another_number(data: bytearray, draw: random.Random) -> None:
    """Write a length, an offset or a count over what may be one."""
    number, first = draw.choice(NUMBERS), draw.randrange(len(data))
    data[first : first + len(number)] = number


def with_another_text(data: bytearray, draw: random.Random) -> None:
    """Write digits, brackets or quotes over each other, as in a header of text."""
    places = [i for i, byte in enumerate(data) if byte in b'0123456789[]{}",:']
    for place in draw.sample(places, min(len(places), 3)):
        data[place] = draw.choice(b'0123456789[]{}",:-.e')


def with_odd_text(data: bytearray, draw: random.Random) -> None:
    """Put a text in that no header should have, or over others."""
    text, first = draw.choice(ODD), draw.randrange(len(data))
    data[first : first + draw.choice((0, len(text)))] = text


def swapped(data: bytearray, draw: random.Random) -> None:
    """Have two pieces change places, as the headers of two members would."""
    num = draw.randint(1, 32)
    first, second = (draw.randrange(max(len(data) - num, 1)) for _ in range(2))
    data[first : first + num], data[second : second + num] = data[second : second + num], data[first : first + num]


DAMAGES: list[Callable[[bytearray, random.Random], None]] = [
    flipped, cut, taken_out, put_in, with_another_number, with_another_text, with_odd_text, swapped,
]  # fmt: skip


def damaged(data: bytes, draw: random.Random) -> bytes:
    """Return the bytes of a file with one to three damages."""
    made = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 3))):
        if made:
            draw.choice(DAMAGES)(made, draw)
    return bytes(made)


def told_of(path: Path) -> Iterator[str]:
    """Do what one does with a checkpoint, and yield all that is said to be wrong with it; no other error comes out."""
    try:
        explorer = tnp.weights(path)
    except tnp.TensornpError as error:
        yield str(error)
        return
    yield from explorer.problems
    document = weights_document(explorer)
    yield from document.text().split("\n")
    document.html()
    assert min(explorer.totals) >= 0
    yield from (str(value) for value in dict(explorer.metadata).values() if str(value).startswith("not read"))
    for entry in explorer.values():
        yield entry.problem
        for use in _USES:
            try:
                use(entry)
            except tnp.TensornpError as error:
                yield str(error)


_USES: list[Callable[[Any], object]] = [
    lambda entry: entry.to_numpy(), lambda entry: entry.to_numpy((0, ...)), lambda entry: entry.stats(),
    lambda entry: tnp.compare(entry, entry), lambda entry: entry.plan(0), repr,
]  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
@in_fork
def test_a_damaged_file_ends_in_a_sentence_of_our_own(tmp_path, name):
    """In an explorer or a TensornpError, in 100 MB, with nothing run, imported or written, and no word of Python."""
    path, file = FORMATS[name](tmp_path)
    data = file.read_bytes()
    assert not [one for one in told_of(path) if INTERNAL.search(one)]
    watch = Watch(tmp_path)
    if sys.platform == "linux":
        limit_memory(NBYTES)
    for seed in range(NUM_FILES):
        file.write_bytes(damaged(data, random.Random(f"{name} {seed}")))
        watch.is_on = True
        told = list(told_of(path))
        watch.is_on = False
        assert watch.seen == [], (seed, watch.seen)
        for one in told:
            assert one.isprintable() and not INTERNAL.search(one), (seed, one)
