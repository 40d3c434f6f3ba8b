"""By which scales and zero points modules quantize what they give, where these are others on the other side."""

from __future__ import annotations

from tensornp.models.explorer import WeightsExplorer
from tensornp.models.live.torch_ao import output_scheme


def requantized(first: WeightsExplorer, second: WeightsExplorer, pairs: dict[str, str]) -> dict[str, str]:
    """Return by which scale and zero point modules quantize what they give, where that is another in the second."""
    schemes = {a: (output_scheme(first[a]), output_scheme(second[b])) for a, b in pairs.items() if _is_weight(a)}
    return {
        name: f"scale {one[0]:.6g} and zero point {one[1]} before, {other[0]:.6g} and {other[1]} now"
        for name, (one, other) in schemes.items()
        if one is not None and other is not None and one != other
    }


def _is_weight(name: str) -> bool:
    return name.rpartition(".")[2] == "weight"
