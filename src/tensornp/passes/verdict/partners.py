"""Which names of one pass are those of another: beside other models, or in a wrapper, a model's own name leads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace

from tensornp.passes.records import ModuleCall, PassRecord

Names = Mapping[str, str | None]
"""By a module that the second pass called: its name in the first; None of what is around a model that is there."""


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
    left = _builds(own, {*names.values()}), _builds(others, {name for name in others if names[name] in own})
    for build in left[0].keys() & left[1].keys():
        model, other = left[0][build], left[1][build]
        names |= {name: f"{model}{name[len(other) :]}" for name in _inside(other, others)}
    return names


def with_names_of(first: PassRecord, second: PassRecord, names: Names) -> PassRecord:
    """Return the second pass with the parameters of the first under their names there."""
    known = {one.name for one in first.grads}

    def name_of(name: str) -> str:
        module = name
        while module:
            module = module.rpartition(".")[0]
            if module in names:
                place = names[module]
                found = name if place is None else f"{place}.{name.removeprefix(f'{module}.')}".lstrip(".")
                return found if found in known else name
        return name

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


def _inside(model: str, modules: Iterable[str]) -> list[str]:
    return [name for name in modules if f"{name}.".startswith(f"{model}.")]


def _builds(modules: Mapping[str, ModuleCall], paired: Collection[str | None]) -> dict[Hashable, str]:
    """Return the models that have no partner yet by their names, classes and shapes, where these are of one alone."""
    found: defaultdict[Hashable, list[str]] = defaultdict(list)
    for model, call in modules.items():
        if model and not call.depth and model not in paired:
            inside = ((name[len(model) :], modules[name]) for name in _inside(model, modules))
            build = ((name, one.class_name, tuple(value.shape for value in one.params)) for name, one in inside)
            found[frozenset(build)].append(model)
    return {build: models[0] for build, models in found.items() if len(models) == 1}


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
