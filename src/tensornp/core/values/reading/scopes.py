"""How much of a tensor was read, in words."""

from __future__ import annotations

ALL, SEVERAL, PARTIAL = "all elements", "several parts", "partial"
MAX_SCOPE = 120
