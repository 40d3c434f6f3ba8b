"""The world that all tests share, and that their children, kernels and servers inherit."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
"""Whether this process is one of several that share the tests; they inherit what their parent has set."""

FORKING = (
    "test_gallery.py", "test_private_names.py", "test_devices.py", "test_tracing.py", "test_changes.py",
    "test_dcp.py", "test_differences.py", "test_on_device.py", "test_fingerprint.py", "memory/test_aliases.py",
    "test_traps.py", "test_damaged_files.py", "test_footprint.py",
)  # fmt: skip
"""Files of tests in processes that are forked from a warm one: to warm one up for each worker takes longer than all."""

# What a user would see in a simpler form is to be seen here as the error that it is.
os.environ["TENSORNP_RAISE"] = "1"

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
    _profile.write_text("c.TensorDisplay.max_search_ms = 60_000\nc.HistoryManager.hist_file = ':memory:'\n")


@pytest.fixture(scope="session", autouse=True)
def _each_warning() -> None:
    """Have torch warn each time: what it says once in a process would be heard in the first test alone."""
    import torch

    torch.set_warn_always(True)


@pytest.fixture(scope="session")
def folder_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if IS_WORKER else own


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand tests out one by one, but what shares a server or a kernel to one worker, and the browser's first."""
    from xdist.scheduler import LoadScopeScheduling

    class OneServer(LoadScopeScheduling):
        # pytest-xdist 3.8 has a mark for that, which pytest 9.2 does not see.
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            if file.endswith(("test_toggle_js.py", "test_kernel.py", "test_cell_magic.py", "test_packaging.py")):
                return file
            if file.endswith(FORKING):
                return "forking"
            return "browser" if "/browser/" in file else nodeid

    return OneServer(config, log)
