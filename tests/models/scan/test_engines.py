"""A checkpoint that is scanned by other processes, of several kinds: the same bits, whatever becomes of them."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from child import in_child
from safetensors.torch import save_file

import tensornp as tnp

TIMEOUT_S = 400


def saved(folder: Path) -> dict[str, torch.Tensor]:
    """Write a checkpoint of two files, of which one weight takes several tasks."""
    g = torch.Generator().manual_seed(0)
    large = torch.randn(9_000_001, generator=g).to(torch.bfloat16)
    large[8_765_432] = math.nan
    made = {"large": large, "w": torch.randn(300, 701, generator=g), "f8": torch.ones(9).to(torch.float8_e4m3fn)}
    more = {"b": torch.tensor([1.0, -math.inf]), "i": torch.arange(-50, 50), "empty": torch.zeros(0, 3)}
    save_file(made, folder / "model-00001-of-00002.safetensors")
    save_file(more, folder / "model-00002-of-00002.safetensors")
    return made | more


@contextlib.contextmanager
def threads(folder: Path) -> Iterator[Executor]:
    """Of this process."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


@contextlib.contextmanager
def processes(folder: Path, num: int = 2) -> Iterator[Executor]:
    """That are made anew."""
    with ProcessPoolExecutor(num, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextlib.contextmanager
def ipyparallel(folder: Path) -> Iterator[Executor]:
    """Two engines on this machine."""
    os.environ["IPYTHONDIR"] = str(folder / "ipython")
    import ipyparallel

    with ipyparallel.Cluster(n=2, controller_ip="127.0.0.1", log_level=30) as client:
        client.wait_for_engines(2)
        yield client.executor()


@contextlib.contextmanager
def dask(folder: Path) -> Iterator[Executor]:
    """Two workers on this machine."""
    import distributed

    options = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "local_directory": str(folder / "dask")}
    with (
        distributed.LocalCluster(processes=True, dashboard_address=None, **options) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        yield executor


@contextlib.contextmanager
def loky(folder: Path, num: int = 2) -> Iterator[Executor]:
    """Workers that whoever asks for as many is given again, and in the place of those that died others."""
    import loky

    executor = loky.get_reusable_executor(num)
    yield executor
    executor.shutdown(kill_workers=True)


@contextlib.contextmanager
def mpi(folder: Path) -> Iterator[Executor]:
    """Two processes that MPI starts."""
    # As the wheel of `mpich` has it; on loopback alone.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ |= {"HYDRA_IFACE": "lo", "FI_TCP_IFACE": "lo", "FI_PROVIDER": "tcp"}
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor(2) as pool:
        yield pool


def lacks_mpi() -> str:
    """Return why no processes are started by MPI here; empty where they are."""
    if sys.platform != "linux" or importlib.util.find_spec("mpi4py") is None:
        return "its wheel is tried on Linux" if sys.platform != "linux" else "mpi4py is not installed"
    folder = Path(sys.executable).parent
    return "" if shutil.which("mpiexec", path=folder) else "mpi4py brings no MPI, and none is in this environment"


needs_loky = pytest.mark.skipif(importlib.util.find_spec("loky") is None, reason="loky is not installed")
ENGINES: dict[str, Callable[[Path], contextlib.AbstractContextManager[Executor]]] = {
    "threads": threads, "processes": processes, "ipyparallel": ipyparallel, "dask": dask, "loky": loky, "mpi": mpi,
}  # fmt: skip
MARKS = {"loky": needs_loky, "mpi": pytest.mark.skipif(bool(lacks_mpi()), reason=lacks_mpi())}
EACH = [pytest.param(name, marks=MARKS.get(name, ())) for name in ENGINES]


def end_in_time() -> None:
    """Have this process be interrupted if it takes too long, so that what it has started is ended."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"no answer within {TIMEOUT_S} s")

    if hasattr(signal, "alarm"):
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(TIMEOUT_S)


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
@in_child
def test_every_engine_gives_the_bits_of_a_scan_without_one(name):
    """And those of the tensors in memory."""
    end_in_time()
    with tempfile.TemporaryDirectory() as place:
        made = saved(Path(place))
        explorer = tnp.weights(place)
        assert explorer["large"]._source.num_tasks > 1
        expected = {key: tnp.stats(one) for key, one in made.items()}
        assert dict(explorer.scan()) == expected
        with ENGINES[name](Path(place)) as executor:
            assert (executor.submit(os.getpid).result() == os.getpid()) == (name == "threads")
            table = explorer.scan(executor)
            assert table.complete
            assert table.failed == {}
            assert dict(table) == expected
            found = [found.text for found in table.findings("large")]
            assert found == ["1 of 9,000,001 is NaN"]
            # A worker sees for itself that it is not the file that was listed.
            os.utime(explorer["b"].location, ns=(1, 1))
            failed = explorer.scan(executor).failed
            assert sorted(failed) == sorted(["b", "i", "empty"])
            assert all("was written to since it was listed" in why for why in failed.values())


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signal")
@pytest.mark.parametrize("name", ["processes", pytest.param("loky", marks=needs_loky)])
@in_child
def test_what_a_killed_worker_had_is_marked_and_read_by_the_next_scan(name):
    """Nothing hangs, and what was finished is kept."""
    end_in_time()
    with tempfile.TemporaryDirectory() as place:
        # More than an executor has at once.
        made = {f"w{i}": torch.full((10,), float(i)) for i in range(100)}
        save_file(made, Path(place, "x.safetensors"))
        explorer = tnp.weights(place)
        expected = {key: tnp.stats(one) for key, one in made.items()}
        engine = {"processes": processes, "loky": loky}[name]
        with engine(Path(place), 1) as pool:
            worker = pool.submit(os.getpid).result()
            killed: list[int] = []

            def kill(done: int, total: int) -> None:
                if not killed:
                    killed.append(worker)
                    os.kill(worker, signal.SIGKILL)

            table = explorer.scan(pool, progress=kill)
            assert killed
            assert table.complete
            assert set(table).isdisjoint(table.failed)
            assert set(table) | set(table.failed) == set(explorer)
            assert all(why.startswith("its worker died: ") for why in table.failed.values())
            assert len(table.failed) > 60
            assert {key: expected[key] for key in table} == dict(table)
            assert set(explorer.scan(pool).failed) == set(explorer)
        with engine(Path(place), 1) as pool:
            assert dict(explorer.scan(pool, resume=table)) == expected


@pytest.mark.slow
@in_child
def test_workers_without_numpy_end_in_a_sentence():
    """They cannot even take a task, and their executor tells no more than that."""
    end_in_time()
    with tempfile.TemporaryDirectory() as place:
        saved(Path(place))
        explorer = tnp.weights(place)
        hidden = ("import sys; sys.modules['numpy'] = None",)
        spawning = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=spawning, initializer=exec, initargs=hidden) as pool:
            table = explorer.scan(pool)
        assert table.complete
        failed = table.failed.values()
        assert len(failed) == len(explorer) - 1
        assert all(why.startswith("its worker died: ") and "Traceback" not in why for why in failed)
