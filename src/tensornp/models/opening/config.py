"""One safetensors file as entries, and the JSON that lies beside it."""

from __future__ import annotations

import json
import os
from typing import Any

from tensornp.errors import ChangedFileError, CheckpointError
from tensornp.models.files.address import AbsentError, Address, Place
from tensornp.models.files.listed import listed
from tensornp.models.opening import lora as adapters
from tensornp.models.quantization.layouts import GPTQ_CONFIG

UNREADABLE = (CheckpointError, ChangedFileError)
"""What one file raises, and hides no other."""
CONFIG = "config.json"
_OF_GPTQ = f"{GPTQ_CONFIG}.json"
_MAX_JSON_NBYTES = 100_000_000


def config_beside(folder: Place) -> tuple[dict[str, Any], list[str]]:
    """Return the configurations in a folder by name, and the problems.

    The file of AutoGPTQ is only read if the model's configuration does not describe the quantization.
    """
    found: dict[str, Any] = {}
    problems: list[str] = []
    for name in (CONFIG, _OF_GPTQ, adapters.CONFIG):
        if name == _OF_GPTQ and "quantization_config" in found.get("config", {}):
            continue
        path = folder / name
        try:
            found[name.removesuffix(".json")] = json_in(path)
        except UNREADABLE as error:
            is_there = not isinstance(error, AbsentError) if isinstance(path, Address) else os.path.lexists(path)
            problems += [str(error)] if is_there else []
    return found, problems


def json_in(path: Place) -> dict[str, Any]:
    """Return the mapping in a file of JSON; CheckpointError if it has none."""
    with listed(path) as file:
        if file.nbytes > _MAX_JSON_NBYTES:
            raise CheckpointError(f"{str(path)!r} has {file.nbytes:,} bytes, and {_MAX_JSON_NBYTES:,} are read")
        text = file.read(0, file.nbytes)
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        raise CheckpointError(f"{str(path)!r} is not valid JSON") from None
    if not isinstance(told, dict):
        raise CheckpointError(f"{str(path)!r} holds no mapping")
    return told
