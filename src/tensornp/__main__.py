"""``python -m tensornp`` is the command ``tensornp``."""

from __future__ import annotations

import sys

from tensornp.fronts.command_line import main

if __name__ == "__main__":
    sys.exit(main())
