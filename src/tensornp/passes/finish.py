"""Make the record of a block: statistics, names and lines instead of references."""

from __future__ import annotations

import linecache
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.collector import uncollected
from tensornp.core.lowlevel.text import counted, legible, quoted
from tensornp.passes.names import Known, joined
from tensornp.passes.readable import Row, is_ordinary
from tensornp.passes.recorder import Recorder
from tensornp.passes.records import RAISED, RETURNED, THE_CELL, Figures, PassRecord, SourceLine, Value, add_gradient
from tensornp.passes.tensors import MAX_KEPT


@modes.outside_modes
@uncollected()
def finished(recorder: Recorder, namespace: Mapping[str, Any], error: BaseException | None) -> PassRecord:
    """Read the statistics off the devices and return the record; nothing leads to the user's objects then."""
    recorder.end(namespace)
    buffers = _at_end(recorder, "_buffers")
    finals = _at_end(recorder, "_parameters") if recorder.steps else []
    rows, samples = recorder.tensors.table.read()
    _put_figures(recorder, rows, samples)
    _put_names(recorder)
    block, errors = recorder.calls[0], _errors(error)
    block.error = errors[0] if errors else ""
    block.status = RAISED if errors else RETURNED
    _put_lines(recorder, namespace.get("In"))
    for call, row in recorder.masked_rows:
        if count := int(rows[row][1]):
            were = "was" if count == 1 else "were"
            call.detail = f"{counted(count, 'row')} of its input {were} −Inf throughout"
    return PassRecord(
        recorder.calls,
        [one.gradient for one in recorder.gradients.parameters],
        recorder.steps,
        _became_odd(recorder, buffers),
        _became_odd(recorder, finals),
        block.error,
        tuple(errors[1:]),
        _scaler(namespace),
        recorder.has_operators,
        "the followed modules" if recorder.is_bound else "all modules",
        tuple(dict.fromkeys((*recorder.problems, *_notes(recorder, namespace)))),
    )


def _at_end(recorder: Recorder, table: str) -> list[tuple[Known, str, Value]]:
    """Return the floating-point parameters or buffers of the modules that were called as they are now."""
    found = []
    for known in recorder.names.called():
        for name, tensor in getattr(known.reference(), "__dict__", {}).get(table, {}).items():
            if tensor is None or not tensor.is_floating_point():
                continue
            if table == "_buffers":
                recorder.tensors.forget([tensor])
            elif is_ordinary(tensor) and math.isfinite(tensor.sum()):
                # Most are, and a sum is the cheapest read.
                continue
            found.append((known, name, recorder.tensors.value(tensor, has_sums=False)))
    return found


def _became_odd(recorder: Recorder, at_end: Iterable[tuple[Known, str, Value]]) -> dict[str, tuple[int, Value]]:
    """Return the parameters or buffers that were not odd at the first call of their module, and are now."""
    found = {}
    for known, name, value in at_end:
        before = recorder.calls[known.first].params.get(name)
        if value.is_odd and before is not None and not before.is_odd:
            found[joined(recorder.calls[known.last].name, name)] = known.last, value
    return found


def _put_figures(recorder: Recorder, rows: Sequence[Row], samples: Sequence[Any]) -> None:
    """Replace the numbers of rows by statistics, in values, calls and gradients."""
    # The views of a tensor share a row.
    figures = {i: _figures(rows[i], count, times) for i, (count, times, _) in recorder.tensors.counts.items()}
    for value in recorder.tensors.values:
        row: Any = value.figures
        if row is not None:
            value.figures = figures[row]
        elif 0 in value.shape and not value.note:
            value.figures = Figures(math.nan, math.nan, 0.0, 0.0, 0)
        number: Any = value.sample
        if type(number) is int:
            value.sample = samples[number]
    for call in recorder.calls:
        if call.zero_units is not None:
            row, *sizes = call.zero_units
            call.zero_units = int(rows[row][1]), sizes[0], sizes[1]
    for target, order, row in recorder.gradients.events:
        if row is None:
            target.note = target.note or "its gradient could not be read"
        else:
            add_gradient(target, figures[row], order)
    for one in recorder.gradients.parameters:
        held = [figures[row] for row in one.held]
        one.gradient.held = next((each for each in held if each.norm != 0), held[0] if held else None)


def _figures(row: Row, count: int, times: float) -> Figures:
    """Return the statistics of a row; elements of an expanded tensor count as often as they occur."""
    low, high, total, norm = row
    return Figures(low, high, total * times, norm * math.sqrt(times), count)


def _put_names(recorder: Recorder) -> None:
    """Name calls and gradients as weights are named; next to other models, the name of the model leads."""
    with_weights = {root for root in recorder.names.roots if root.has_weights}
    with_weights |= {known.root for index, known in recorder.known_of.items() if recorder.calls[index].params}
    for index, known in recorder.known_of.items():
        call, root = recorder.calls[index], known.root
        call.name = joined("" if with_weights == {root} else root.label, known.name)
        call.code = known.expression
    for one in recorder.gradients.parameters:
        one.gradient.name = joined("" if with_weights == {one.root} else one.root.label, one.gradient.name)


def _put_lines(recorder: Recorder, inputs: Any) -> None:
    cells = [one for one in inputs if type(one) is str] if type(inputs) is list else []
    lines: dict[Any, SourceLine] = {}
    sources: list[Any] = [*recorder.calls, *recorder.steps]
    for one in sources:
        if (place := one.source) is not None:
            lines[place] = one.source = lines.get(place) or _line_at(place, cells)


def _line_at(place: Any, cells: Sequence[str]) -> SourceLine:
    (file, line), cell = place, ""
    if cells and not os.path.exists(file):
        source = "".join(linecache.getlines(file)).strip()
        found = [number for number, text in enumerate(cells) if source and text.strip() == source]
        # A magic compiles its cell itself.
        cell = f"In[{found[-1]}]" if found else THE_CELL
    return SourceLine(file, line, linecache.getline(file, line).strip(), cell)


def _errors(error: BaseException | None) -> list[str]:
    found: dict[int, str] = {}
    while error is not None and id(error) not in found:
        found[id(error)] = error_text(error)
        error = error.__cause__ or error.__context__
    return list(found.values())


def _scaler(namespace: Mapping[str, Any]) -> tuple[str, float] | None:
    """Return name and scale of a gradient scaler that has scaled a loss."""
    for name, one in list(namespace.items()):
        if issubclass(type(one), torch.amp.GradScaler) and one.is_enabled() and one._scale is not None:
            return name, float(one._scale)
    return None


def _notes(recorder: Recorder, namespace: Mapping[str, Any]) -> Iterator[str]:
    if recorder.is_full:
        yield f"recording ended after {counted(recorder.max_calls, 'call')}; pass a larger max_calls to record more"
    if number := recorder.tensors.num_left_out:
        yield f"{counted(number, 'copy')} left out: keep takes {MAX_KEPT // 2**20} MB at most"
    called = list(recorder.names.called())
    is_within, is_kept = any(one.is_within for one in called), any(one.is_kept for one in called)
    for option, pattern, is_met in (("only", recorder.only, is_within), ("keep", recorder.keep, is_kept)):
        if pattern is not None and called and not is_met:
            yield f"{option}={quoted(pattern)} matches no module that was called"
    for name, one in namespace.items():
        if isinstance(one, torch.nn.Module) and one.__dict__.get("_compiled_call_impl") is not None:
            yield f"{legible(str(name))} is compiled in place: calls inside compiled code are not seen"
    if recorder.is_bound and not called:
        names = ", ".join(legible(one.label) for one in recorder.names.roots)
        yield f"{names} was not called in this block; of a compiled model, follow the result of torch.compile"
