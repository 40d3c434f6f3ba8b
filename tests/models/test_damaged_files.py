"""Small files of each format that are changed in every way after they were listed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from saved_files import VALUES

import tensornp as tnp
from tensornp.render.models.weights import weights_document


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


def pipe(file: Path) -> None:
    # What is still there keeps its inode, by which the pipe is told from it.
    file.rename(file.parent / "old")
    os.mkfifo(file)


CHANGES = {
    shrink: "shrank from", grow: "changed since", rewrite: "changed since", replace: "changed since",
    Path.unlink: "cannot be opened any more", pipe: "since it was listed",
}  # fmt: skip


@pytest.mark.slow
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
