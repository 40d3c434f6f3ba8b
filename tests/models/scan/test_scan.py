"""A scan of all weights: the same bits from every engine, the worst first, and what was finished is kept."""

from __future__ import annotations

import io
import logging
import math
import multiprocessing
import os
import pickle
import re
import shutil
import sys
import tempfile
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from child import in_fork
from safetensors.torch import save_file
from tqdm import tqdm

import tensornp as tnp
from tensornp.core.values.stats import fast, tasks
from tensornp.models.entries.in_file import FileSource
from tensornp.models.entries.source import Called
from tensornp.models.files import source_file
from tensornp.models.scan import findings, progress
from tensornp.models.scan import run as scan
from tensornp.models.scan.table import ScanTable


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    made = {f"layers.{i}.w": torch.randn(300, 701, generator=g) for i in range(3)}
    made["layers.1.w"][5, 6] = math.nan
    made["embed"] = torch.randn(9_000_001, generator=g).to(torch.bfloat16)
    made |= {
        "bn.running_var": torch.tensor([1.0, 0.0]), "full": torch.tensor([1.0, 65504.0]).half(),
        "ones": torch.ones(5), "empty": torch.zeros(0), "f8": torch.full((3,), 448.0).to(torch.float8_e4m3fn),
        "number": torch.tensor(7), "inf": torch.tensor([1.0, -math.inf]), "z": torch.tensor([1 + 2j, 3j]),
    }  # fmt: skip
    save_file(made, folder / "model.safetensors")
    return made


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Weights in a file, and the same in memory."""
    folder = tmp_path_factory.mktemp("model")
    made = weights_of(folder)
    return folder / "model.safetensors", made


@pytest.mark.slow
@in_fork
def test_every_engine_gives_the_bits_of_the_tensors():
    """Threads, processes that are made anew, and none; with tasks of a part of a weight each."""
    with tempfile.TemporaryDirectory() as folder:
        check_engines(Path(folder, "model.safetensors"), weights_of(Path(folder)))


def check_engines(path: Path, made: dict[str, torch.Tensor]) -> None:
    """Hold all engines to what the tensors themselves give."""
    explorer = tnp.weights(path)
    expected = {name: tnp.stats(tensor) for name, tensor in made.items()}
    spawned = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(3) as pool, ProcessPoolExecutor(1, mp_context=spawned) as processes:
        for engine in (None, pool, processes):
            table = explorer.scan(engine)
            assert table.complete
            assert dict(table) == expected
            assert not table.failed
    assert dict(tnp.weights(made).scan()) == expected


def test_the_worst_comes_first_with_its_numbers(model):
    """Each finding is a sentence."""
    table = tnp.weights(model[0]).scan()
    said = {name: [finding.text for finding in table.findings(name)] for name in table if table.findings(name)}
    assert list(said.items()) == [
        ("layers.1.w", ["1 of 210,300 is NaN"]),
        ("inf", ["1 of 2 is infinite"]),
        ("bn.running_var", ["a running variance is 0, and not positive"]),
        ("full", ["a value is 65504, the largest that float16 has"]),
        ("f8", ["a value is 448, the largest that float8_e4m3fn has", "all 3 are 448"]),
        ("ones", ["all 5 are 1"]),
    ]
    assert repr(table) == f"<ScanTable of {len(model[1])} weights, 5 with findings, 1 with what may be on purpose>"
    assert (table.num_alarms, table.num_quiet, table.num_left) == (5, 1, 0)
    with pytest.raises(KeyError, match=r"there are no statistics of 'layers\.9\.w'; the closest is 'layers\."):
        table["layers.9.w"]


def test_the_end_of_a_dtype_is_told_with_its_sign():
    table = tnp.weights({"w": torch.tensor([1.0, -65504.0]).half()}).scan()
    assert [one.text for one in table.findings("w")] == ["a value is -65504, the least that float16 has"]


def test_dead_rows_and_outlying_columns_are_found(tmp_path):
    """Quietly: what is pruned or a padding has such rows on purpose. Of more dimensions, channels are told by axis."""
    wide = torch.randn(30, 40, generator=torch.Generator().manual_seed(0))
    wide[[3, 17]] = 0
    wide[:, 5] *= 100
    wide[:, 7] *= 60
    convolution = torch.ones(8, 9, 3, 3)
    convolution[:, 4] = 0
    convolution[:, :, 0, 0] *= torch.arange(8.0).add(1)[:, None]
    made = {"w": wide, "c": convolution, "half": wide.half(), "zero": torch.zeros(20, 20)}
    save_file(made, tmp_path / "model.safetensors")
    for source in (made, tmp_path):
        table = tnp.weights(source).scan()
        median = wide.norm(dim=0).quantile(0.5)
        ratios = [f"{float(wide[:, i].norm() / median):.3g} times" for i in (5, 7)]
        dead = "2 of 30 rows are zero throughout: 3, 17"
        out = f"2 of 40 columns have 10 times the median norm or more: 5 ({ratios[0]}), 7 ({ratios[1]})"
        said = {name: [finding.text for finding in table.findings(name)] for name in table}
        assert said["w"] == [dead, out]
        assert said["half"][0] == dead
        assert said["c"] == ["1 of 9 channels along axis 1 is zero throughout: 4"]
        assert said["zero"] == ["all 400 are 0"]
        assert all(finding.rank >= findings.QUIET_RANK for name in table for finding in table.findings(name))


def test_weights_of_equal_content_are_found(tmp_path):
    """They lie twice in memory, or in the file; what is tied is one, and what is one number throughout says nothing."""
    values = torch.randn(400, 500, generator=torch.Generator().manual_seed(0))
    made = {
        "embed": values, "head": values.clone(), "other": values + 1, "half": values.half(), "flat": values.reshape(-1),
        "turned": values.t().contiguous(), "ones": torch.ones(9), "more ones": torch.ones(9),
        **{f"layers.{i}.inv_freq": torch.arange(8.0) for i in range(6)},
    }  # fmt: skip
    save_file({name: tensor.clone() for name, tensor in made.items()}, tmp_path / "model.safetensors")
    for source in (made, tmp_path):
        table = tnp.weights(source).scan()
        said = {name: [one.text for one in table.findings(name)] for name in table if table.findings(name)}
        assert said.pop("ones") == said.pop("more ones") == ["all 9 are 1"]
        assert said.pop("embed") == ["the same values as 'head'"]
        assert said.pop("head") == ["the same values as 'embed'"]
        first = "the same values as 'layers.1.inv_freq', 'layers.2.inv_freq', 'layers.3.inv_freq' and 2 more"
        assert said.pop("layers.0.inv_freq") == [first]
        assert set(said) == {f"layers.{i}.inv_freq" for i in range(1, 6)}


def test_what_is_tied_is_no_equal_content():
    """One tensor under two names is one."""
    model = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.Linear(5, 6), torch.nn.Linear(5, 6))
    model[1].weight = model[0].weight
    model[2].weight.data = model[0].weight.data.clone()
    table = tnp.weights(model).scan(names="*weight")
    assert [one.text for one in table.findings("0.weight")] == ["the same values as '2.weight'"]
    assert [one.text for one in table.findings("2.weight")] == ["the same values as '0.weight'"]


def test_what_is_tied_is_read_and_counted_once(tmp_path):
    """In a file and in memory; each name has the statistics."""
    weight = torch.randn(30, 40)
    made = {"embed": weight, "other": torch.randn(7), "head": weight}
    torch.save(made, tmp_path / "tied.pt")
    for source in (tmp_path / "tied.pt", made):
        told: list[tuple[int, int]] = []
        table = tnp.weights(source).scan(progress=lambda *seen, told=told: told.append(seen))
        assert list(table) == list(made)
        assert told[-1] == (4 * 1207, 4 * 1207)
        assert table["embed"] == table["head"]
        assert sorted(stats.count for _, stats in table.distinct()) == [7, 1200]
        some = tnp.weights(source).scan(names=["embed", "other"])
        assert dict(tnp.weights(source).scan(resume=some)) == dict(table)


def test_some_are_scanned_by_name(model):
    """By a glob, a part, or the names themselves."""
    explorer = tnp.weights(model[0])
    assert set(explorer.scan(names="layers.*")) == {"layers.0.w", "layers.1.w", "layers.2.w"}
    assert list(explorer.scan(names=["ones", "empty"])) == ["ones", "empty"]
    with pytest.raises(tnp.NoSuchWeightError):
        explorer.scan(names=["one"])


@pytest.mark.parametrize("engine", [None, ThreadPoolExecutor(1)])
def test_what_was_finished_is_kept(model, engine):
    """Ctrl-C gives a table that is not complete, with which the next scan goes on."""
    explorer = tnp.weights(model[0])
    told: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        raise KeyboardInterrupt

    table = explorer.scan(engine, progress=stop)
    assert not table.complete
    assert 0 < len(table) < len(explorer)
    assert repr(table).endswith(f", stopped, {table.num_left} were not read>")
    assert table.num_left == len(explorer) - len(table)
    whole = explorer.scan(engine, resume=table)
    assert whole.complete
    assert dict(whole) == dict(explorer.scan())
    assert 0 <= told[0][0] < told[0][1] == sum(entry.nbytes for entry in explorer.values())


class Failing(Executor):
    """An engine whose workers die of one weight, so many times."""

    def __init__(self, name: str, times: int, error: Exception | None = None) -> None:
        self.name, self.times, self.asked = name, times, 0
        self.error = error or EOFError("the pipe is closed")

    def submit(self, fn, /, *args, **kwargs):
        """Do it at once."""
        done: Future = Future()
        entry = args[0]
        if entry.name == self.name and self.asked < self.times:
            self.asked += 1
            done.set_exception(self.error)
        else:
            done.set_result(fn(*args, **kwargs))
        return done


def test_a_task_whose_worker_died_is_tried_once_more(model):
    """Then the weight is marked, and all others have their statistics."""
    explorer = tnp.weights(model[0])
    assert dict(explorer.scan(Failing("ones", 1))) == dict(explorer.scan())
    table = explorer.scan(Failing("ones", 2))
    assert table.complete
    assert table.failed == {"ones": "its worker died: the pipe is closed"}
    with pytest.raises(KeyError, match="there are no statistics of 'ones': its worker died"):
        table["ones"]


class EngineError(Exception):
    """As ipyparallel's."""


class KilledWorker(Exception):  # dask's name
    """As dask's."""


@pytest.mark.parametrize("error", [EngineError("Engine 3 died"), KilledWorker("tally")])
def test_the_death_of_another_library_s_worker_is_one_too(model, error):
    """It is tried once more."""
    explorer = tnp.weights(model[0])
    assert not explorer.scan(Failing("ones", 1, error)).failed
    assert explorer.scan(Failing("ones", 2, error)).failed == {"ones": f"its worker died: {error}"}


def test_an_error_of_a_task_is_none(model):
    """It is told as it is."""
    failed = tnp.weights(model[0]).scan(Failing("ones", 1, ImportError("cannot import name 'x'"))).failed
    assert failed == {"ones": "cannot import name 'x'"}


class RemoteError(Exception):
    """As ipyparallel's."""

    ename = "ModuleNotFoundError"


@pytest.mark.parametrize("lacking", ["numpy", "tensornp"])
@pytest.mark.parametrize("kind", [ModuleNotFoundError, RemoteError])
def test_a_worker_that_lacks_a_library_is_told_in_a_sentence(model, kind, lacking):
    """With what to do, for each weight that it was to read."""
    said = f"No module named '{lacking}'"
    failed = tnp.weights(model[0]).scan(Failing("ones", 1, kind(said))).failed
    assert failed == {"ones": f"its worker lacks a library ({said}); install tensornp there"}


def test_that_no_task_is_finished_is_told(model, monkeypatch):
    """With how many there are, and the scan goes on."""
    monkeypatch.setattr("tensornp.models.scan.run._STALLED_S", 0.0)
    go_on = threading.Event()

    class Late(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):
            return super().submit(lambda: (go_on.wait(60), fn(*args, **kwargs))[1])

    class Noted(logging.Handler):
        def emit(self, record):
            said.append(record.getMessage())
            go_on.set()

    said: list[str] = []
    handler = Noted()
    logging.getLogger("tensornp").addHandler(handler)
    try:
        with Late(1) as pool:
            assert tnp.weights(model[0]).scan(pool).complete
    finally:
        logging.getLogger("tensornp").removeHandler(handler)
    assert "that the executor has was finished for a minute" in said[0]


def test_what_leads_to_an_executor_is_told(model):
    """Of ipyparallel and dask, whose clients are none."""
    for package, cure in (("ipyparallel.client.client", "client.executor()"), ("distributed.client", "get_executor()")):
        client = type("Client", (), {"__module__": package, "submit": lambda self: None})()
        with pytest.raises(tnp.BadRequestError, match=f"not a Client; give .*{re.escape(cure)}"):
            tnp.weights(model[0]).scan(client)


def test_a_file_that_changed_is_marked(tmp_path):
    """Also where a worker sees it."""
    weights_of(tmp_path)
    explorer = tnp.weights(tmp_path)
    os.utime(tmp_path / "model.safetensors", ns=(1, 1))
    with ThreadPoolExecutor(1) as pool:
        for engine in (None, pool):
            table = explorer.scan(engine)
            assert len(table) == 0
            assert all("was written to since it was listed" in why for why in table.failed.values())


def test_what_is_registered_as_none_is_no_weight_to_read():
    """Neither read nor failed, by itself or among others; a parameter without a state is told."""
    model = torch.nn.Linear(3, 2, bias=False)
    table = tnp.weights(model).scan()
    assert (list(table), table.failed, table.complete, table.num_left) == (["weight"], {}, True, 0)
    assert len(tnp.weights(model).scan(names=["bias"])) == 0
    state = tnp.weights(torch.optim.Adam(model.parameters()), model=model).scan()
    assert list(state.failed) == ["state.weight"]
    assert repr(state) == "<ScanTable of 0 weights, 0 with findings, 1 without values to read>"


def test_what_is_no_executor_is_refused(model):
    """And so is one that would have to read the memory of this process."""
    with pytest.raises(tnp.BadRequestError, match=r"executor is a concurrent.futures.Executor, not an int"):
        tnp.weights(model[0]).scan(3)
    with ThreadPoolExecutor(1) as pool, pytest.raises(tnp.BadRequestError, match="lies in the memory of this process"):
        tnp.weights(torch.nn.Linear(2, 2)).scan(pool)


def test_tasks_are_of_bounded_size(model):
    """A large weight is read in several, and a result is small."""
    explorer = tnp.weights(model[0])
    entry = explorer["embed"]
    assert isinstance(entry._source, FileSource)
    assert entry._source.num_tasks == -(-9_000_001 // (2**17 * tasks.TASK_BLOCKS))
    assert scan.tally_of(scan.Sent(entry._source, "embed", ""), 0).numel == 2**17 * tasks.TASK_BLOCKS


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system is not told what it need not keep")
def test_what_was_scanned_of_a_large_file_is_not_kept_in_the_cache(model, monkeypatch):
    """It would crowd everything else out; a smaller one may soon be loaded."""
    told = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, offset, nbytes, advice: told.append((offset, nbytes, advice)))
    explorer = tnp.weights(model[0])
    explorer.scan(names=["embed"])
    assert told == []
    monkeypatch.setattr("tensornp.models.entries.in_file.MIN_GIVEN_BACK", 1)
    explorer.scan(names=["embed"])
    ((_, offset, nbytes),) = explorer["embed"].extents
    assert told == [(offset, nbytes, os.POSIX_FADV_DONTNEED)]


def settled(path: Path, ns: int = 10**18) -> None:
    """Make a file of a time ago: what was written just now might be written to again in the same tick of its clock."""
    os.utime(path, ns=(ns, ns))


def scanned(path: Path) -> tnp.TensorStats:
    """Return the statistics of the only weight of a file."""
    (found,) = tnp.weights(path).scan().values()
    return found


def test_a_scan_goes_on_with_the_same_weights_alone(tmp_path):
    """By its name, a weight may be one of another model, or of a file that has changed."""
    zeros = tnp.weights({"w": torch.zeros(4, 4)}).scan()
    assert tnp.weights({"w": torch.full((9,), math.nan)}).scan(resume=zeros)["w"].nan == 9
    save_file({"w": torch.zeros(4, 4)}, tmp_path / "a.safetensors")
    of_file = tnp.weights(tmp_path).scan()
    save_file({"w": torch.ones(5)}, tmp_path / "a.safetensors")
    assert tnp.weights(tmp_path).scan(resume=of_file)["w"].count == 5
    assert tnp.weights(tmp_path).scan(resume=of_file).complete


def test_a_bar_appears_where_it_takes_long(model, monkeypatch, capsys):
    """And nothing is written where it does not, or is not wanted."""
    tnp.weights(model[0]).scan()
    monkeypatch.setattr(progress, "_DELAY_S", 0.0)
    monkeypatch.setattr(scan, "_TOLD_EVERY_S", 0.0)
    tnp.weights(model[0]).scan(progress=False)
    tnp.compare(model[1], model[1], progress=False)
    assert capsys.readouterr().err == ""
    tnp.weights(model[0]).scan()
    assert "scan:" in capsys.readouterr().err
    tnp.compare(model[1], model[1])
    assert "compare:" in capsys.readouterr().err
    told: list[str] = []

    class Own:
        def __init__(self, what: str) -> None:
            told.append(what)

        def tell(self, done: int, total: int) -> None:
            told.append("told")

        def close(self) -> None:
            told.append("closed")

    progress.put_in(Own)
    try:
        tnp.weights(model[0]).scan()
    finally:
        progress.take_out(Own)
    assert (told[0], told[1], told[-1]) == ("scan", "told", "closed")
    assert capsys.readouterr().err == ""
    with pytest.raises(tnp.BadRequestError, match="progress is a function of two numbers, or False, not an int"):
        tnp.weights(model[0]).scan(progress=3)


class BrokenPipe(io.StringIO):
    """Nobody listens any more."""

    def write(self, _):
        raise BrokenPipeError(32, "Broken pipe")


def closed() -> io.StringIO:
    out = io.StringIO()
    out.close()
    return out


@pytest.mark.parametrize("make", [lambda: None, closed, BrokenPipe], ids=["none", "closed", "broken pipe"])
def test_a_scan_goes_on_where_no_bar_can_be_written(model, monkeypatch, make):
    """And the bars of others too: no lock of tqdm's is left taken."""
    monkeypatch.setattr(progress, "_DELAY_S", 0.0)
    monkeypatch.setattr(scan, "_TOLD_EVERY_S", 0.0)
    monkeypatch.setattr(sys, "stderr", make())
    assert tnp.weights(model[0]).scan().complete

    def are_free() -> bool:
        taken = [lock for lock in tqdm.get_lock().locks if lock.acquire(False)]
        for lock in taken:
            lock.release()
        return len(taken) == len(tqdm.get_lock().locks)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(are_free).result()


def test_a_worker_elsewhere_knows_the_file_of_a_share_again(tmp_path, monkeypatch):
    """There it is on another device; by its size, its time, and what it begins and ends with it is the same."""
    made = weights_of(tmp_path)
    path = tmp_path / "model.safetensors"
    settled(path)
    entry = tnp.weights(path)["layers.0.w"]._source
    called = Called("w", "")
    expected = tnp.stats(made["layers.0.w"])
    sent = pickle.dumps(entry)
    here = source_file._mark_of
    monkeypatch.setattr(source_file, "_mark_of", lambda status: here(status)._replace(device=99))
    source_file._fingerprint_of.cache_clear()
    received = pickle.loads(sent)
    assert received.put_together([received.tally(called, i) for i in range(received.num_tasks)]) == expected
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    settled(path)
    source_file._fingerprint_of.cache_clear()
    with pytest.raises(tnp.ChangedFileError):
        pickle.loads(sent).tally(Called("w", ""), 0)


def test_a_file_that_was_replaced_is_another_one_for_a_worker_too(tmp_path):
    """On the same device an inode tells it."""
    weights_of(tmp_path)
    path = tmp_path / "model.safetensors"
    settled(path)
    sent = pickle.dumps(tnp.weights(path)["layers.0.w"]._source)
    shutil.copy2(path, tmp_path / "other")
    os.replace(tmp_path / "other", path)
    with pytest.raises(tnp.ChangedFileError, match="was replaced since it was listed"):
        pickle.loads(sent).tally(Called("w", ""), 0)
    path.unlink()
    with pytest.raises(tnp.ChangedFileError, match="cannot be opened any more"):
        pickle.loads(sent).tally(Called("w", ""), 0)


def test_what_has_no_values_has_not_failed():
    """As the state of an optimizer that keeps none."""
    optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    assert repr(tnp.weights(optimizer).scan()) == "<ScanTable of 0 weights, 0 with findings, 2 without values to read>"


def test_a_tensor_that_torch_does_not_read_hides_no_other():
    """Its scales are of another size than it has channels: that is told of it alone."""
    codes, scales = torch.ones(4, 3, dtype=torch.int8), torch.ones(4)
    odd = torch._make_per_channel_quantized_tensor(codes, scales, torch.zeros(4, dtype=torch.long), 0)
    odd.q_per_channel_scales().resize_(1)
    table = tnp.weights({"odd": odd, "z": torch.full((3,), math.nan)}).scan()
    assert table.complete
    assert table["z"].nan == 3
    assert "scales" in table.failed["odd"]
    compared = tnp.compare({"odd": odd, "z": torch.zeros(3)}, {"odd": odd, "z": torch.ones(3)})
    assert list(compared.changed()) == ["z"] and "odd" in compared.failed


def test_where_the_system_gives_no_thread_this_one_reads(model, monkeypatch):
    """All of it, without numba, which is loaded in a thread of its own."""
    path, made = model
    fast.load.cache_clear()

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    table = tnp.weights(path).scan()
    assert (set(table), table.complete) == (set(made), True)
    assert table["layers.1.w"].nan == 1
    fast.load.cache_clear()


def test_what_is_not_read_stands_in_the_order_of_the_weights(tmp_path):
    """Whichever of the threads comes first with it."""
    path = tmp_path / "x.safetensors"
    names = [f"l{i}" for i in range(40)]
    save_file({name: torch.zeros(300) for name in names}, path)
    explorer = tnp.weights(path)
    save_file({name: torch.zeros(3) for name in names}, path)
    assert all(list(explorer.scan().failed) == list(explorer) for _ in range(5))


def test_one_scan_has_one_answer_whichever_weight_is_read_first(tmp_path):
    """Which weights are siblings depends on their order, and so must not be told by that of the threads."""
    g = torch.Generator().manual_seed(0)
    keys = ("up.weight", "down.weight", "norm.weight")
    made = {f"layers.{i}.{key}": torch.randn(20, 30, generator=g) for i in range(6) for key in keys}
    made["layers.4.down.weight"] *= 9
    save_file(made, tmp_path / "x.safetensors")
    entries = list(tnp.weights(tmp_path / "x.safetensors").values())
    stats = {one.name: one.stats() for one in entries}
    for shuffled in (entries, entries[::-1], entries[1::2] + entries[::2]):
        table = ScanTable(entries)
        for one in shuffled:
            table.note(one, stats[one.name])
        table.settle()
        assert [one.what for one in table.findings("layers.4.down.weight")] == ["standing out among siblings"]
        assert (table.num_alarms, table.num_quiet) == (0, 1)
        assert [entry.name for entry, _ in table.distinct()] == [one.name for one in entries]
