"""Small files of each format: damaged anywhere before they are listed, and changed in every way afterwards."""

from __future__ import annotations

import os
import signal
import struct
import sys
from pathlib import Path

import pytest
from child import in_fork
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_limit import limit_memory
from saved_files import FORMATS, VALUES
from watched import Watch

import tensornp as tnp
from tensornp.render.models.weights import weights_document

NBYTES = 100_000_000
"""What a process may take to look at any of these files."""
TIMEOUT_S = 400
ODD = [b"\xff" * 4, b"\xff" * 8, b"\0" * 8, b"/../", b"\\u202e", b"\x1b[2J", b"1e999", b"[" * 200, b"9" * 5000]
ODD += [struct.pack("<Q", 2**bits) for bits in (31, 32, 40, 62, 63)]
EDITS = st.tuples(
    st.floats(0, 1, exclude_max=True), st.integers(0, 9), st.one_of(st.binary(max_size=9), st.sampled_from(ODD))
)  # fmt: skip
"""Where, in parts of the whole, how many bytes are taken out, and what is put in."""


def edited(data: bytes, edits: list[tuple[float, int, bytes]]) -> bytes:
    for place, cut, put in edits:
        at = int(place * len(data))
        data = data[:at] + put + data[at + cut :]
    return data


def looked_at(path: Path) -> None:
    """Do all that one may do with a checkpoint; what is wrong with it ends in one sentence."""
    try:
        explorer = tnp.weights(path)
    except tnp.TensornpError as error:
        assert str(error).isprintable()
        return
    assert all(one.isprintable() for one in explorer.problems)
    assert all(line.isprintable() for line in weights_document(explorer).text().split("\n"))
    weights_document(explorer).html()
    dict(explorer.metadata)
    assert explorer.totals.nbytes >= 0
    for entry in explorer.values():
        for use in (lambda one: one.to_numpy((0, ...)), lambda one: one.to_numpy(), lambda one: one.stats()):
            try:
                use(entry)
            except tnp.TensornpError as error:
                assert str(error).isprintable()


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
@in_fork
def test_bytes_that_are_changed_anywhere_do_no_harm(tmp_path, name):
    """No crash, no hang, no import, nothing run or written, no 100 MB: a sentence, or what is sound."""
    if hasattr(signal, "setitimer"):
        # Of the processor; what hangs without it is ended by `Forked`.
        signal.setitimer(signal.ITIMER_PROF, TIMEOUT_S)
    path, file = FORMATS[name](tmp_path)
    data = file.read_bytes()
    looked_at(path)
    watch = Watch(tmp_path)
    if sys.platform == "linux":
        limit_memory(NBYTES)

    @settings(max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(st.lists(EDITS, min_size=1, max_size=3), st.one_of(st.just(1.0), st.floats(0, 1)))
    def check(edits: list[tuple[float, int, bytes]], kept: float) -> None:
        changed = edited(data, edits)
        file.write_bytes(changed[: int(kept * len(changed))])
        watch.is_on = True
        looked_at(path)
        watch.is_on = False
        assert watch.seen == [], watch.seen

    check()


def shrink(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def grow(file: Path) -> None:
    with open(file, "ab") as there:
        there.write(bytes(100))


def rewrite(file: Path) -> None:
    file.write_bytes(file.read_bytes())
    os.utime(file, ns=(1, 1))


def replace(file: Path) -> None:
    (file.parent / "new").write_bytes(file.read_bytes())
    os.utime(file.parent / "new", ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    os.replace(file.parent / "new", file)


def remove(file: Path) -> None:
    file.unlink()


def pipe(file: Path) -> None:
    # What is still there keeps its inode, by which the pipe is told from it.
    file.rename(file.parent / "old")
    os.mkfifo(file)


CHANGES = {
    shrink: "shrank from", grow: "was written to", rewrite: "was written to", replace: "was replaced",
    remove: "cannot be opened any more", pipe: "was replaced",
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", VALUES)
def test_a_file_that_changes_after_it_was_listed_is_not_read(tmp_path, name, change):
    """Each value, figure and scan says so, and none is of the other file; to open it anew does."""
    if change is pipe and not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    path, file = VALUES[name](tmp_path)
    explorer = tnp.weights(path)
    assert [entry.to_numpy().size for entry in explorer.values()] == [entry.numel for entry in explorer.values()]
    change(file)
    for entry in explorer.values():
        for use in (entry.to_numpy, lambda entry=entry: entry.to_numpy(0), entry.stats):
            with pytest.raises(tnp.ChangedFileError, match=CHANGES[change]):
                use()
    table = explorer.scan()
    assert (len(table), set(table.failed)) == (0, set(explorer))
    assert all(CHANGES[change] in why for why in table.failed.values())
    looked_at(path)
