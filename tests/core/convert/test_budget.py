"""Nothing absurd is tried: what an array would take is counted before, and refused above a limit."""

from __future__ import annotations

import pytest
import torch

import tensornp as tnp
from tensornp.core.convert.budget import free_nbytes
from tensornp.core.summary.card import plan_modes, summarize
from tensornp.core.summary.options import DisplayOptions

TERA = torch.zeros(1).expand(2**20, 2**20)


def test_a_copy_past_the_limit_is_refused_with_the_bytes():
    """The limit is the caller's; one byte more would do."""
    t = torch.ones(1000)
    with pytest.raises(
        tnp.TooLargeError, match=r"4,000 bytes, and 3,999 bytes are allowed; .*, or pass a larger max_n"
    ):
        tnp.to_numpy(t, copy=True, max_nbytes=3999)
    assert tnp.to_numpy(t, copy=True, max_nbytes=4000).nbytes == 4000
    assert tnp.to_numpy(t, max_nbytes=0).nbytes == 4000, "sharing takes none"


def test_without_a_limit_the_machine_sets_it():
    """Four tebibytes are refused at once, not tried."""
    with pytest.raises(tnp.TooLargeError, match=r"4 TiB, and .* are free; slice the tensor first$"):
        tnp.to_numpy(TERA, copy=True)
    with pytest.raises(tnp.TooLargeError, match=r"slice the tensor first$"):
        tnp.weights({"a": TERA})["a"].to_numpy(copy=True)
    assert tnp.to_numpy(TERA).shape == TERA.shape, "a view takes none"


def test_the_limit_counts_what_widening_takes():
    """bfloat16 doubles."""
    with pytest.raises(tnp.TooLargeError, match=r"3\.9 KiB"):
        tnp.to_numpy(torch.ones(1000, dtype=torch.bfloat16), max_nbytes=3000)


def test_too_large_is_a_memory_error_too():
    """`except MemoryError` catches it, as it would NumPy's."""
    with pytest.raises(MemoryError):
        tnp.plan(TERA, copy=True)


def test_a_card_of_what_is_too_large_shows_its_corners_and_says_so():
    """No array, but values: the printed elements take no more than any others."""
    huge = torch.sparse_coo_tensor([[0], [9_999_999]], [7.0], (10**7, 10**7), check_invariants=True)
    summary = summarize(huge, DisplayOptions())
    assert summary.plan is None
    assert "7.]" in summary.preview.text
    assert "363.8 TiB" in summary.preview.note


def test_the_toggle_does_not_offer_a_copy_that_cannot_be():
    """The reason stands in its place."""
    offered = plan_modes(tnp.inspect(TERA), DisplayOptions())
    assert offered["view"].shares_memory
    assert "are free; slice the tensor first" in offered["copy"]


def test_small_arrays_are_made_without_asking(monkeypatch):
    """Only large ones are worth a look at the machine."""
    monkeypatch.setattr("tensornp.core.convert.budget._free_nbytes_at", lambda second: 0)
    assert tnp.to_numpy(torch.ones(1000), copy=True).nbytes == 4000
    with pytest.raises(tnp.TooLargeError):
        tnp.plan(torch.ones(1).expand(2**27), copy=True)


def test_the_limit_is_that_of_a_container_as_a_whole():
    """Four arrays of which each would fit; what shares takes none."""
    many = {"a": torch.ones(250), "b": [torch.ones(250), torch.ones(250, dtype=torch.float64)[::2]]}
    assert tnp.to_numpy(many, copy=True, max_nbytes=3000)["b"][1].nbytes == 1000
    with pytest.raises(tnp.TooLargeError, match="together take 3,000 bytes and more, and 2,999 bytes are"):
        tnp.to_numpy(many, copy=True, max_nbytes=2999)
    assert tnp.to_numpy(many, max_nbytes=0)["a"].nbytes == 1000
    with pytest.raises(tnp.TooLargeError, match="together take 2 KiB"):
        tnp.to_numpy([torch.ones(250, dtype=torch.bfloat16)] * 9, max_nbytes=1500)


def test_what_is_free_is_for_a_container_as_a_whole(monkeypatch):
    """Also where each tensor is small, plain and widened, which needs no plan."""
    monkeypatch.setattr("tensornp.core.convert.budget._free_nbytes_at", lambda second: 0)
    monkeypatch.setattr("tensornp.core.convert.budget.SMALL_NBYTES", 5000)
    narrow = torch.ones(1000, dtype=torch.bfloat16)
    assert len(tnp.to_numpy([narrow])) == 1
    with pytest.raises(tnp.TooLargeError, match="free"):
        tnp.to_numpy([narrow, narrow])
    with pytest.raises(tnp.TooLargeError, match="free"):
        tnp.to_numpy([narrow.float()] * 2, copy=True)
    assert len(tnp.to_numpy([narrow.float()] * 2)) == 2


def _group(folder, limit, used, cached, version=2):
    limit_file, used_file, key = {
        2: ("memory.max", "memory.current", "inactive_file"),
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    }[version]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / limit_file).write_text(f"{limit}\n")
    (folder / used_file).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 300000\n{key} {cached}\n")


def test_a_container_of_the_operating_system_has_less(tmp_path):
    """The limit of its control group counts, less what is used and more what can be dropped."""
    root, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("0::/\n")
    _group(root, 1_000_000, 400_000, 50_000)
    assert free_nbytes(root, own) == 650_000
    _group(root, "max", 400_000, 50_000)
    assert free_nbytes(root, own) > 650_000
    assert free_nbytes(root / "absent", own) > 650_000
    assert free_nbytes(root, tmp_path / "absent") > 650_000


def test_the_smallest_limit_of_all_groups_around_the_process_holds(tmp_path):
    """Its own group and those that this lies in, up to the root; others do not count."""
    root, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("0::/user.slice/job/step\n")
    _group(root / "user.slice" / "job" / "step", 3_000_000, 1_000_000, 0)
    _group(root / "user.slice" / "job", 5_000_000, 4_000_000, 200_000)
    _group(root / "user.slice", "max", 4_000_000, 0)
    _group(root / "other.slice", 1_000, 0, 0)
    assert free_nbytes(root, own) == 1_200_000
    _group(root / "user.slice" / "job" / "step", 3_000_000, 3_500_000, 0)
    assert free_nbytes(root, own) == 0


@pytest.mark.parametrize("group", ["job", ""])
def test_control_groups_of_version_1_are_read(tmp_path, group):
    """The controller has a folder of its own; in a container, its root is the group of the process."""
    root, own = tmp_path / "cgroup", tmp_path / "own"
    own.write_text("7:cpu,cpuacct:/elsewhere\n5:memory:/job\n1:name=systemd:/\n")
    _group(root / "memory" / group, 2_000_000, 500_000, 100_000, version=1)
    _group(root / "cpu" / "elsewhere", 1_000, 0, 0, version=1)
    assert free_nbytes(root, own) == 1_600_000
    _group(root / "memory" / group, 2**63 - 4096, 500_000, 100_000, version=1)
    assert free_nbytes(root, own) > 1_600_000


@pytest.mark.parametrize("limit", ["5", float("nan"), -1])
def test_a_limit_that_is_no_number_of_bytes_is_refused(limit):
    """Bad input gets one clear sentence."""
    with pytest.raises(tnp.BadRequestError, match="max_nbytes"):
        tnp.to_numpy(torch.ones(3), max_nbytes=limit)
