"""Find private names of torch."""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch


def find(path: str) -> Any:
    """Return the object at a dotted path below torch; torch 2.7 and later have all that are asked for."""
    return reduce(getattr, path.split("."), torch)
