"""Make the record of a block: statistics, names and lines instead of references."""

from __future__ import annotations

import linecache
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from tensornp.core.lowlevel import modes
from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.lowlevel.text import counted, legible, quoted
from tensornp.passes.names import Known, Root, joined
from tensornp.passes.recorder import Recorder
from tensornp.passes.records import RAISED, RETURNED, Figures, PassRecord, SourceLine, Value
from tensornp.passes.row_table import Row
from tensornp.passes.tensors import MAX_KEPT


@modes.outside_modes
def finished(recorder: Recorder, namespace: Mapping[str, Any], error: BaseException | None) -> PassRecord:
    """Read the statistics off the devices and return the record; nothing leads to the user's objects then."""
    recorder.end(namespace)
    has_steps = bool(recorder.steps)
    buffers = dict(_at_end(recorder, "_buffers"))
    finals = dict(_at_end(recorder, "_parameters")) if has_steps else {}
    rows, samples = recorder.tensors.table.read()
    _put_figures(recorder, rows, samples)
    _put_gradients(recorder, rows)
    _put_names(recorder)
    block = recorder.calls[0]
    block.status, block.error = (RAISED, error_text(error)) if error is not None else (RETURNED, "")
    inputs = namespace.get("In")
    _put_lines(recorder, [one for one in inputs if type(one) is str] if type(inputs) is list else [])
    for call, row in recorder.masked_rows:
        if count := int(rows[row].max):
            were = "was" if count == 1 else "were"
            call.detail = f"{counted(count, 'row')} of its input {were} −Inf throughout"
    return PassRecord(
        recorder.calls,
        [one.gradient for one in recorder.gradients.parameters],
        recorder.steps,
        dict(_became_odd(recorder, buffers)),
        dict(_became_odd(recorder, finals)),
        error_text(error) if error is not None else "",
        tuple(_causes(error)),
        _scaler(namespace),
        recorder.has_operators,
        tuple(dict.fromkeys((*recorder.problems, *_notes(recorder, namespace)))),
    )


def _at_end(recorder: Recorder, table: str) -> Iterator[tuple[tuple[Known, str], Value]]:
    """Yield the floating-point parameters or buffers of the modules that were called as they are now."""
    for known in recorder.names.called():
        module = known.reference()
        held = module.__dict__.get(table, {}) if module is not None else {}
        for name, tensor in list(held.items()):
            if tensor is not None and tensor.is_floating_point():
                if table == "_buffers":
                    recorder.tensors.forget([tensor])
                yield (known, name), recorder.tensors.value(tensor, has_sums=False)


def _became_odd(
    recorder: Recorder, at_end: Mapping[tuple[Known, str], Value]
) -> Iterator[tuple[str, tuple[int, Value]]]:
    """Yield the parameters or buffers that were not odd at the first call of their module, and are now."""
    for (known, name), value in at_end.items():
        before = recorder.calls[known.first].params.get(name)
        if value.is_odd and before is not None and not before.is_odd:
            yield joined(recorder.calls[known.last].name, name), (known.last, value)


def _put_figures(recorder: Recorder, rows: Sequence[Row], samples: Sequence[Any]) -> None:
    for value in recorder.tensors.values:
        row: Any = value.figures
        if row is not None:
            value.figures = _figures(recorder, rows, row)
        elif 0 in value.shape and not value.note:
            value.figures = Figures(math.nan, math.nan, 0.0, 0.0, 0)
        number: Any = value.sample
        if type(number) is int:
            value.sample = samples[number]
        value.requires_grad = bool(value.requires_grad)
    for call in recorder.calls:
        if call.zero_units is not None:
            row, *sizes = call.zero_units
            call.zero_units = int(rows[row].max), sizes[0], sizes[1]


def _figures(recorder: Recorder, rows: Sequence[Row], row: int) -> Figures:
    """Return the statistics of a row; elements of an expanded tensor count as often as they occur."""
    low, high, total, norm = rows[row]
    count, times = recorder.tensors.counts[row]
    total, norm = total * times, norm * math.sqrt(times)
    reach = max(abs(low), abs(high))
    if (math.isinf(norm) and math.isfinite(reach)) or (norm == 0 and reach > 0):
        # Squares of float32 are beyond its range before the numbers are.
        norm = math.nan
    return Figures(low, high, total, norm, count)


def _put_gradients(recorder: Recorder, rows: Sequence[Row]) -> None:
    """Give values and parameters their gradients."""
    for target, order, row in recorder.gradients.events:
        if row is None:
            target.note = target.note or "its gradient could not be read"
        else:
            target.add_gradient(_figures(recorder, rows, row), order)
    for one in recorder.gradients.parameters:
        held = [_figures(recorder, rows, row) for row in one.held]
        one.gradient.held = next((figures for figures in held if figures.norm != 0), held[0] if held else None)


def _put_names(recorder: Recorder) -> None:
    """Name calls and gradients as weights are named; next to other models, the name of the model leads."""
    with_weights = {root for root in recorder.names.roots if root.has_weights}
    with_weights |= {known.root for index, known in recorder.known_of.items() if recorder.calls[index].params}

    def full(root: Root, name: str) -> str:
        return joined("" if with_weights == {root} else root.label, name)

    for index, known in recorder.known_of.items():
        call = recorder.calls[index]
        call.name = full(known.root, known.name)
        if known.root.code and known.code is not None:
            call.code = known.root.code + known.code
    for one in recorder.gradients.parameters:
        one.gradient.name = full(one.root, one.gradient.name)


def _put_lines(recorder: Recorder, inputs: Sequence[str]) -> None:
    lines: dict[Any, SourceLine] = {}
    sources: list[Any] = [*recorder.calls, *recorder.steps]
    for one in sources:
        place = one.source
        if place is not None:
            if place not in lines:
                lines[place] = _line_at(place, inputs)
            one.source = lines[place]


def _line_at(place: Any, inputs: Sequence[str]) -> SourceLine:
    """Return the line at a place as it is now; `inputs` are the cells of a notebook."""
    file, line = place
    cell = ""
    if inputs and not os.path.exists(file):
        source = "".join(linecache.getlines(file)).strip()
        found = [number for number, text in enumerate(inputs) if source and text.strip() == source]
        # A magic compiles its cell itself.
        cell = f"In[{found[-1]}]" if found else "the cell"
    return SourceLine(file, line, linecache.getline(file, line).strip(), cell)


def _causes(error: BaseException | None) -> Iterator[str]:
    """Yield the texts of the errors in whose handling an error was raised."""
    seen = {id(error)}
    while error is not None:
        error = error.__cause__ or error.__context__
        if error is None or id(error) in seen:
            return
        seen.add(id(error))
        yield error_text(error)


def _scaler(namespace: Mapping[str, Any]) -> tuple[str, float] | None:
    """Return name and scale of a gradient scaler that has scaled a loss."""
    for name, one in list(namespace.items()):
        if issubclass(type(one), torch.amp.GradScaler) and one.is_enabled() and one._scale is not None:
            return name, float(one._scale)
    return None


def _notes(recorder: Recorder, namespace: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was not recorded, in sentences."""
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
