"""The page of a kernel: whether there is one, and whether it keeps outputs apart."""

from __future__ import annotations

import os
import sys
from typing import Any


def runs_without_page(shell: Any) -> bool:
    """Return whether cells are run for a file, as by nbconvert or papermill.

    These run cells with nbclient, which does not answer `input`; voila does so too, and has a page.
    """
    if getattr(getattr(shell, "kernel", None), "_allow_stdin", True) or keeps_outputs_apart(shell):
        return False
    return not os.environ.get("SERVER_SOFTWARE", "").startswith("voila")


def keeps_outputs_apart(shell: Any) -> bool:
    """Return whether the front end is Colab or VS Code."""
    return "google.colab" in sys.modules or "__vsc_ipynb_file__" in shell.user_ns
