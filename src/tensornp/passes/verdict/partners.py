"""Which names of one pass are those of another: beside other models, or in a wrapper, a model's own name leads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace

from tensornp.passes.records import ModuleCall, PassRecord

Names = Mapping[str, str | None]
"""By a module that the second pass called: its name in the first; None of what is around a model that is there."""
Builds = Mapping[Hashable, str]
"""By its build, where in a model it stands: the model itself first, and what it wraps."""


def names_in_first(first: PassRecord, second: PassRecord) -> Names:
    """Return the names that modules of the second pass have in the first: of another name, by expression or model."""
    own, others = ({call.name: call for call in reversed(record.calls)} for record in (first, second))
    codes = {call.code: name for name, call in own.items() if call.code and name not in others}
    names: dict[str, str | None] = {name: name for name in others}
    if found := {name: codes[one.code] for name, one in others.items() if name not in own and one.code in codes}:
        names |= found
    elif place := _place_of(own, others):
        inside = {name: name[len(place) + 1 :] for name in _inside(place, others)}
        names |= {"": None, **{name: short for name, short in inside.items() if not short or short not in others}}
    elif place := _place_of(others, own):
        whole = {name: f"{place}.{name}".rstrip(".") for name in others if not name or name not in own}
        names |= {name: one for name, one in whole.items() if one in own and one not in others}
    models, other_models = _models(own), _models(others)
    for name in models.keys() & other_models.keys():
        if names[name] == name and (found_at := _alike(models[name], other_models[name])):
            names |= _renamed(name, *found_at, others)
    left = (
        {name: one for name, one in models.items() if name not in set(names.values())},
        {name: one for name, one in other_models.items() if names[name] not in own},
    )
    for model, other in _of_one_build(*left):
        names |= _renamed(other, *_alike(models[model], other_models[other]), others)
    return names


def with_names_of(first: PassRecord, second: PassRecord, names: Names) -> PassRecord:
    """Return the second pass with the parameters of the first under their names there."""
    known, others = ({without_compiler(one.name): one.name for one in record.grads} for record in (first, second))
    inner, outer = _prefix(known, others), _prefix(others, known)

    def name_of(name: str) -> str:
        module = found = name
        while module:
            module = module.rpartition(".")[0]
            if module in names:
                place = names[module]
                found = name if place is None else f"{place}.{name.removeprefix(f'{module}.')}".lstrip(".")
                break
        plain = without_compiler(name)
        wrapped = plain.removeprefix(inner) if inner else f"{outer}{plain}"
        return known.get(without_compiler(found)) or known.get(wrapped, name)

    grads = tuple(replace(one, name=name_of(one.name)) for one in second.grads)
    steps = tuple(
        replace(
            one,
            spoilt=tuple((name_of(name), figures) for name, figures in one.spoilt),
            frozen=tuple(map(name_of, one.frozen)),
        )
        for one in second.steps
    )
    return replace(second, grads=grads, steps=steps)


def without_compiler(name: str) -> str:
    """Return a name as it was before `torch.compile` has put its own module around one."""
    return ".".join(step for step in name.split(".") if step != "_orig_mod")


def _prefix(names: Collection[str], others: Collection[str]) -> str:
    """Return with what before them some names are all of the others, as inside of what wraps a model; else nothing."""
    first = min(names, default="")
    found = {one.removesuffix(first) for one in others if one.endswith(f".{first}")}
    return next((one for one in found if {f"{one}{name}" for name in names} == {*others}), "")


def _inside(model: str, modules: Iterable[str]) -> list[str]:
    return [name for name in modules if f"{name}.".startswith(f"{model}.")]


def _models(modules: Mapping[str, ModuleCall]) -> dict[str, Builds]:
    """Return the models that have names, with their builds."""
    inside: dict[str, list[str]] = {name: [] for name, call in modules.items() if name and not call.depth}
    for name in modules:
        place = name
        while place:
            if place in inside:
                inside[place].append(name)
            place = place.rpartition(".")[0]
    return {model: _builds(model, names, modules) for model, names in inside.items()}


def _builds(model: str, names: list[str], modules: Mapping[str, ModuleCall]) -> Builds:
    """Return the names, classes and shapes of a model, and of what it wraps: of the one module that it calls itself."""
    found: dict[Hashable, str] = {}
    place = model
    while place:
        inside = ((name[len(place) :], modules[name]) for name in names)
        build = ((name, one.class_name, tuple(value.shape for value in one.params)) for name, one in inside)
        found[frozenset(build)] = place
        names = [name for name in names if name != place]
        inner = min(names, key=len, default="")
        place = inner if len(_inside(inner, names)) == len(names) else ""
    return found


def _alike(model: Builds, other: Builds) -> tuple[str, str]:
    """Return where two models, of which either may be wrapped, have the same build; nothing where they have none."""
    build = next((build for build in model if build in other), None)
    return ("", "") if build is None else (model[build], other[build])


def _of_one_build(models: Mapping[str, Builds], others: Mapping[str, Builds]) -> list[tuple[str, str]]:
    """Return the models that belong together, since no other one on either side has such a build."""
    sides: tuple[defaultdict[Hashable, list[str]], ...] = (defaultdict(list), defaultdict(list))
    for side, every in zip(sides, (models, others), strict=True):
        for name, builds in every.items():
            for build in builds:
                side[build].append(name)
    alone = [{build: names[0] for build, names in side.items() if len(names) == 1} for side in sides]
    return [*dict.fromkeys((alone[0][build], alone[1][build]) for build in alone[0] if build in alone[1])]


def _renamed(model: str, place: str, other_place: str, others: Iterable[str]) -> dict[str, str | None]:
    """Return the names of what is inside a model of the second pass, and None of what wraps it there."""
    inside = {name: f"{place}{name[len(other_place) :]}" for name in _inside(other_place, others)}
    return {**dict.fromkeys(_inside(model, others)), **inside}


def _place_of(model: Mapping[str, ModuleCall], others: Mapping[str, ModuleCall]) -> str:
    """Return the one name at which a model stands among others, with all that it has called; else nothing."""
    root, other = model.get(""), others.get("")
    if root is None or (other is not None and other.class_name == root.class_name):
        return ""
    inside = [name for name, call in model.items() if call.depth and name not in others]
    found = [
        name
        for name, call in others.items()
        if name and call.class_name == root.class_name and all(f"{name}.{one}" in others for one in inside)
    ]
    return found[0] if len(found) == 1 else ""
