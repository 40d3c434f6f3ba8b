"""Open the examples in JupyterLab, in an environment of their own that the first run makes."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from environment import VENV, ensure

FIRST_NOTEBOOK = Path(__file__).with_name("1-tour.ipynb")


def main() -> int:
    """Ensure the environment, run JupyterLab until Ctrl-C, and return its exit status."""
    options = parse_options()
    python = ensure("examples")
    options.notebook = working_copy(options.notebook)
    print(f"JupyterLab opens {options.notebook.name}; Ctrl-C ends it.", flush=True)
    return run_lab(python, options)


def parse_options() -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="The environment is .venv in the repository; delete it to start afresh.",
    )
    parser.add_argument(
        "--notebook",
        type=Path,
        default=FIRST_NOTEBOOK,
        metavar="FILE",
        help=f"the notebook to open (default: examples/{FIRST_NOTEBOOK.name})",
    )
    parser.add_argument(
        "--no-browser", dest="browser", action="store_false", help="print the address, and open no browser"
    )
    parser.add_argument("--port", type=int, default=8888, help="the port, or the next free one (default: 8888)")
    options = parser.parse_args()
    options.notebook = options.notebook.resolve()
    if not options.notebook.is_file():
        parser.error(f"there is no notebook {options.notebook}")
    return options


def working_copy(notebook: Path) -> Path:
    """Copy the examples into the environment, as JupyterLab changes a notebook by opening it.

    A copy that is older than its example is replaced. A notebook from elsewhere is opened in its place.
    """
    if notebook.parent != FIRST_NOTEBOOK.resolve().parent:
        return notebook
    folder = VENV / "examples"
    folder.mkdir(exist_ok=True)
    for example in notebook.parent.glob("*.ipynb"):
        copy = folder / example.name
        if not copy.exists() or copy.stat().st_mtime < example.stat().st_mtime:
            shutil.copyfile(example, copy)
    return folder / notebook.name


def run_lab(python: Path, options: argparse.Namespace) -> int:
    """Run JupyterLab, seen from this machine only, until it ends."""
    command = [
        *(python, "-m", "jupyterlab", "--log-level=WARN"),
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={options.port}",
        f"--ServerApp.root_dir={options.notebook.parent}",
        f"--LabApp.default_url=/lab/tree/{quote(options.notebook.name)}",
        f"--ServerApp.open_browser={options.browser}",
        "--ServerApp.answer_yes=True",  # Ctrl-C ends it without a question
        "--ServerApp.allow_root=True",  # as in a container
    ]
    # Before all other places, so that no kernel of the user's that bears the same name is taken for this one.
    places = [str(VENV / "share" / "jupyter"), *filter(None, [os.environ.get("JUPYTER_PATH")])]
    lab = subprocess.Popen(command, env={**os.environ, "JUPYTER_PATH": os.pathsep.join(places)})
    # Ctrl-C reaches JupyterLab too: wait while it ends its kernels. A plain kill reaches only this process.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: lab.terminate())
    return lab.wait()


if __name__ == "__main__":
    sys.exit(main())
