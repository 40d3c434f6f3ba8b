"""The world that all tests share, and that their children, kernels and servers inherit."""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
"""Whether this process is one of several that share the tests; they inherit what their parent has set."""

# What a user would see in a simpler form is to be seen here as the error that it is.
os.environ["TENSORNP_RAISE"] = "1"

# A busy machine takes longer than a fifth of a second for what takes none.
hypothesis.settings.register_profile(
    "any machine", deadline=None, derandomize=True, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

if sys.dont_write_bytecode:
    # To compile torch anew in each of hundreds of children takes longer than all they do.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(Path(sys.prefix) / "bytecode")
    sys.dont_write_bytecode = False

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # What was started in the background ignores Ctrl-C, and tests send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

if IS_WORKER:
    # More threads than cores only wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # The threads by which a worker hears of its tests run nothing of the user's, and no notebook has them.
    _of_all_threads = sys._current_frames
    _of_the_worker = set(_of_all_threads()) - {threading.get_ident()}
    sys._current_frames = lambda: {i: frame for i, frame in _of_all_threads().items() if i not in _of_the_worker}
else:
    # Neither the profile nor the history of whoever runs the tests is theirs to read or to write.
    _ipython = tempfile.TemporaryDirectory(prefix="ipython ü ")
    atexit.register(_ipython.cleanup)
    os.environ["IPYTHONDIR"] = _ipython.name
    _profile = Path(_ipython.name, "profile_default", "ipython_config.py")
    _profile.parent.mkdir()
    # On a busy machine a card may need more than the milliseconds that it takes on a quiet one.
    _patient = "from tensornp.session import ledger\nledger.MAX_SEARCH_SECONDS = 60\n"
    _profile.write_text(f"{_patient}c.HistoryManager.hist_file = ':memory:'\n")


@pytest.fixture(scope="session", autouse=True)
def _each_warning() -> None:
    """Have torch warn each time: what it says once in a process would be heard in the first test alone."""
    import torch

    torch.set_warn_always(True)


@pytest.fixture(scope="session", autouse=True)
def _numpys_print_options() -> None:
    """Have cards print as NumPy does, to be compared with it: its options count once one of them was changed."""
    np.set_printoptions(linewidth=76)


@pytest.fixture(scope="session")
def folder_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if IS_WORKER else own


def pytest_collection() -> None:
    """Collect no garbage while thousands of tests are made, each of which stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Have no later collection walk through all of them, nor through torch: many tests collect garbage."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand tests out one by one, but to one worker what shares a server, a fixture or a cache: these first."""
    from xdist.scheduler import LoadScopeScheduling

    forking, served, shared = (
        files_that_name("in_fork", "in_two_ranks", "forked", "gallery_child"),
        files_that_name("browser.lab"),
        files_that_name('scope="module"', "functools.cache"),
    )

    class OneServer(LoadScopeScheduling):
        # pytest-xdist 3.8 has a mark for that, which pytest 9.2 does not see.
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file in forking:
                # To warm a process up for each worker takes longer than all that is forked from it.
                return "forking"
            if "/browser/" in file:
                return "JupyterLab" if file in served else file
            return file if file in shared else nodeid

    return OneServer(config, log)


def files_that_name(*names: str) -> set[str]:
    """The files of tests in whose text one of these names is, as they stand in the names of tests."""
    folder = Path(__file__).parent
    word = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, names))})(?!\w)")
    files = [file for file in folder.rglob("test_*.py") if word.search(file.read_text(encoding="utf-8"))]
    return {file.relative_to(folder.parent).as_posix() for file in files}
