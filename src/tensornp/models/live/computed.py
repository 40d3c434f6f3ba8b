"""List the weights that a module computes or has offloaded, without reading them.

The values are made at each request. Parametrized weights are computed on copies, since a spectral norm writes to its
vectors.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from operator import methodcaller
from typing import Any

import torch

from tensornp.core.lowlevel.attributes import an_instance, error_text, is_tensor
from tensornp.core.lowlevel.modes import outside_modes, with_overrides
from tensornp.core.lowlevel.torch_private import is_module
from tensornp.core.memory.footprint import check_parts
from tensornp.core.namespace.lookup import look_up
from tensornp.core.namespace.search import members_of, registered_names
from tensornp.core.tensor.paths import is_attribute_name
from tensornp.errors import NoDataError, TensornpError
from tensornp.models.entries.entry import COMPUTED, IN_PARTS, META, NoSource, WeightEntry, noted
from tensornp.models.entries.in_memory import weight_of
from tensornp.models.live.refind import Requested
from tensornp.models.names.quoted import cut, shown_name

_LISTS = "parametrizations"
_OF_TORCH, _PACKING = "torch.nn.utils.parametrizations", "torch.ao.nn.quantized."
_MAX_SAID = 200


def offloaded_weight(live: WeightEntry, module: Any, key: str, holder: str) -> WeightEntry:
    """Return the weight that accelerate's hook has offloaded for `live`, or `live` itself."""
    hook = object.__getattribute__(module, "__dict__")["_hf_hook"]
    inner: Any = getattr(hook, "hooks", None)
    is_sequence = isinstance(inner, (list, tuple))
    hooks = {f"._hf_hook.hooks[{i}]": one for i, one in enumerate(inner)} if is_sequence else {"._hf_hook": hook}
    held = {path: getattr(one, "__dict__", {}) for path, one in hooks.items()}
    path = next((path for path, one in held.items() if one.get("offload") and one.get("weights_map") is not None), "")
    if not path:
        return live
    code = holder and f"{holder}{path}.weights_map[{key!r}]"
    source = NoSource("accelerate", identity=live._source.identity)
    row = noted(live._with_(code=code, problem="", _source=source), "offloaded by accelerate")

    def make(module: Any) -> Any:
        return look_up(f"_{path}", {"_": module}).weights_map[key]

    return _on_request(row, module, holder, make, live.requires_grad)


def computed_weights(module: Any, code: str) -> Iterator[WeightEntry]:
    """Yield the weights that a module computes or unpacks; nothing is computed."""
    if any(cls.__module__.startswith(_PACKING) and hasattr(cls, "weight") for cls in type(module).__mro__):
        row = WeightEntry("weight", COMPUTED, None, "", 0, NoSource("cpu"), code and f"{code}.weight()", "packed")
        yield _on_request(row, module, code, methodcaller("weight"))
    for name, parametrization in _parametrizations(module):
        yield _parametrized(name, parametrization, module, code)


def _parametrizations(module: Any) -> Iterator[tuple[str, Any]]:
    holder = next((child for name, _, child, _ in registered_names(module) if name == _LISTS), None)
    for name, _, child, _ in registered_names(holder) if is_module(holder) else ():
        if any(cls.__name__ == "ParametrizationList" for cls in type(child).__mro__):
            yield name, child


def _parametrized(name: str, parametrization: Any, module: Any, holder: str) -> WeightEntry:
    """Return a weight that is computed on request from copies of its originals."""
    held: Mapping[str, Any] = object.__getattribute__(parametrization, "__dict__")
    members = (one for table in ("_parameters", "_buffers") for one in members_of(held.get(table)))
    originals = {key: weight_of("", "", one, "") for key, one in members if is_tensor(one)}
    # Those of others may give a weight of any shape.
    is_kept = all(type(step).__module__ == _OF_TORCH for _, step in members_of(held.get("_modules")))
    original = originals.get("original1") or originals.get("original") if is_kept else None
    shape, dtype = (original.shape, original.dtype) if original is not None else (None, "")
    location = next((one.location for one in originals.values()), "")
    problem = "what it is computed from is on the meta device" if location == META else ""
    if any(one.problem == IN_PARTS for one in originals.values()):
        problem = "it is computed from sharded tensors, which takes all ranks"
    code = f"{holder}.{name}" if is_attribute_name(name) else f"getattr({holder}, {name!r})"
    note = f"computed from {_LISTS}.{name}.{', '.join(originals)}"
    row = WeightEntry(name, COMPUTED, shape, dtype, 0, NoSource(location), holder and code, note, problem)
    return _on_request(row, module, holder, lambda module: _computed(dict(_parametrizations(module)).get(name)))


@outside_modes
def _computed(parametrization: Any) -> Any:
    """Return the output of a copied parametrization; restores torch's random state."""
    if parametrization is None:
        return None
    tensors = (*parametrization.parameters(), *parametrization.buffers())
    for one in tensors:
        # A copy of freed memory would end the process.
        check_parts(one)
    devices = {one.device.index for one in tensors if one.device.type == "cuda"}
    with with_overrides(), torch.random.fork_rng(devices=sorted(devices)):
        return copy.deepcopy(parametrization)()


def _on_request(
    row: WeightEntry, module: Any, holder: str, make: Callable[[Any], Any], requires_grad: bool | None = None
) -> WeightEntry:
    """Return a row with values that `make` computes of the module, which the expression `holder` reaches.

    The source of `row` tells only their place and identity, since nothing here may hold its tensor.
    """

    def again(found: Any) -> WeightEntry | None:
        return _on_request(row, found, holder, make, requires_grad) if is_module(found) else None

    @outside_modes
    def made() -> WeightEntry:
        try:
            tensor = make(module)
        except TensornpError:
            raise
        except (Exception, SystemExit) as error:
            # The user's code raised it, or torch in a state that it does not expect.
            why = cut(error_text(error).partition("\n")[0], _MAX_SAID)
            cure = f"; see what {row.code} gives" if row.code else ""
            raise NoDataError(f"{shown_name(row.name)} cannot be made ({why}){cure}") from None
        if not is_tensor(tensor):
            raise NoDataError(f"the values are {an_instance(tensor)}, not a tensor")
        return weight_of(row.name, "", tensor, row.code)

    source: Any = row._source
    found = Requested(made, row.location, requires_grad, identity=source.identity, holder=holder, again=again)
    return row._with_(_source=found)
