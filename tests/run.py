"""Check all of tensornp: style, types and tests, in an environment of its own that the first run makes.

With arguments, run pytest alone, and hand them to it: `python tests/run.py -x tests/core`.

With another torch, and any Python, run what needs neither a browser nor a linter: `python tests/run.py --torch 2.7.0`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

import lanes  # noqa: E402

from environment import ensure  # noqa: E402

CHECKS = {
    "ruff check": ["-m", "ruff", "check"],
    "ruff format": ["-m", "ruff", "format", "--check"],
    "mypy": ["-m", "mypy"],
    "JavaScript": ["tests/javascript/check.py"],
    # One more than there are cores, since some wait for a kernel or a page.
    "pytest": ["-m", "pytest", f"--numprocesses={min(os.cpu_count() or 1, 4) + 1}"],
}
BROWSER_COMMANDS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge",
)  # fmt: skip
BROWSER_FILES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    "${ProgramFiles}/Google/Chrome/Application/chrome.exe",
    "${ProgramFiles(x86)}/Google/Chrome/Application/chrome.exe",
    "${LocalAppData}/Google/Chrome/Application/chrome.exe",
    "${ProgramFiles(x86)}/Microsoft/Edge/Application/msedge.exe",
)


def main() -> int:
    """Run the checks, the later ones even if an earlier one fails; 0 if all passed."""
    options, pytest_arguments = parse_options()
    if options.torch:
        return run_with(options.torch, pytest_arguments)
    python = ensure("examples", "test")
    browser = None if options.quick else find_browser(python) or (options.browser_install and install_browser(python))
    print(f"Browser: {browser or 'none'}", flush=True)
    if browser:
        os.environ["TENSORNP_CHROMIUM"] = str(browser)
    if os.environ.get("CI"):
        os.environ["TENSORNP_REQUIRE_BROWSER"] = "1"

    checks = {"pytest": ["-m", "pytest", *pytest_arguments]} if pytest_arguments else dict(CHECKS)
    if options.quick:
        checks["pytest"] = [*checks["pytest"], "-m", "not slow and not browser"]
    results = {name: run(name, [python, *command]) for name, command in checks.items()}
    print("\n" + ", ".join(f"{name} {'ok' if ok else 'FAILED'}" for name, ok in results.items()))
    return 0 if all(results.values()) else 1


def parse_options() -> tuple[argparse.Namespace, list[str]]:
    """The options of this command, and what is left for pytest."""
    summary, _, usage = __doc__.partition("\n\n")
    parser = argparse.ArgumentParser(description=summary, epilog=usage, allow_abbrev=False)
    parser.add_argument("--torch", metavar="VERSION", help="test with this torch, in an environment of its own")
    parser.add_argument(
        "--quick", action="store_true", help="leave out what needs a browser, or more than some seconds"
    )
    parser.add_argument(
        "--no-browser-install", dest="browser_install", action="store_false",
        help="if there is no Chromium, Chrome or Edge, do without one",
    )  # fmt: skip
    return parser.parse_known_args()


def run_with(torch: str, pytest_arguments: list[str]) -> int:
    """Run pytest with another torch; return 0 if all tests passed."""
    python = lanes.environment(torch).ensure("examples", "test")
    tests = ["-m", "pytest", *pytest_arguments] if pytest_arguments else CHECKS["pytest"]
    return 0 if run("pytest", [python, *tests, "-m", "not browser"]) else 1


def run(name: str, command: list[str | Path]) -> bool:
    """Run one check under a heading, tell its time, and return whether it passed."""
    print(f"\n--- {name}", flush=True)
    start = time.perf_counter()
    passed = subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    print(f"--- {name} {'passed' if passed else 'FAILED'} in {time.perf_counter() - start:.1f} s", flush=True)
    return passed


def find_browser(python: Path) -> Path | None:
    """The Chromium that TENSORNP_CHROMIUM names, or else the first that is installed."""
    named = os.environ.get("TENSORNP_CHROMIUM")
    if named and not Path(named).is_file():
        sys.exit(f"TENSORNP_CHROMIUM names {named}, and there is no such file.")
    return next((path for path in browsers(named, python) if path.is_file()), None)


def browsers(named: str | None, python: Path) -> Iterator[Path]:
    """The places where a Chromium may be, the best first."""
    if named:
        yield Path(named)
    yield from map(Path, filter(None, map(shutil.which, BROWSER_COMMANDS)))
    yield from (Path(os.path.expandvars(file)) for file in BROWSER_FILES)
    ask = "from playwright.sync_api import sync_playwright as s\nwith s() as p: print(p.chromium.executable_path)"
    yield Path(subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False).stdout.strip())


def install_browser(python: Path) -> Path | None:
    """A Chromium from the system's packages or, where these have none or are not ours to use, from Playwright."""
    print("Installing Chromium, for the tests in a browser ...", flush=True)
    if shutil.which("apt-get") and os.geteuid() == 0:
        packages = ["chromium", "fonts-dejavu-core"]
        subprocess.run(["apt-get", "-qq", "update"], check=False)
        subprocess.run(["apt-get", "-qq", "install", "-y", "--no-install-recommends", *packages], check=False)
    if not find_browser(python):
        subprocess.run([python, "-m", "playwright", "install", "chromium"], check=False)
    return find_browser(python)


if __name__ == "__main__":
    sys.exit(main())
