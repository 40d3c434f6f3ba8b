"""Which call a block ended with, and why it did not go: what it got beside what its weight takes."""

from __future__ import annotations

import re

from tensornp.core.lowlevel.text import counted, with_article
from tensornp.core.tensor.dtypes import name_of
from tensornp.passes.records import LEFT, RAISED, RETURNED, ModuleCall, PassRecord, Value
from tensornp.passes.verdict.call_tree import CallTree, end_of
from tensornp.passes.verdict.operator_origin import overwritten
from tensornp.passes.verdict.wording import is_floating, named, number

_MISFIT = re.compile(r"shape|size|dim|channel|dtype|type|feature|index|device|element", re.IGNORECASE)
"""What torch says where an input does not fit."""


def failed_call(record: PassRecord) -> ModuleCall | None:
    """Return the innermost call that raised, where a block ended with an error and no call returned since."""
    if not record.error or not record.calls:
        return None
    tree = CallTree(record)
    failed: ModuleCall | None = None
    last = max(record.calls, key=end_of)
    # What ended last came first: inside it, the last that ended is where its error came from, if that raised.
    while last.status == RAISED and _is_of(record, last):
        failed = last
        below = tree.below(last)
        if not below:
            break
        last = below[-1]
    return failed


def _is_of(record: PassRecord, call: ModuleCall) -> bool:
    """Return whether what a call raised has ended the block, and was not handled."""
    return not record.causes or call.error in record.causes


def failure_of(record: PassRecord) -> str:
    """Return in one sentence how a block ended; empty where it came to its end."""
    if not record.error:
        return ""
    if told := overwritten(record):
        return told
    tree, call = CallTree(record), failed_call(record)
    if call is not None:
        misfit = _misfit(tree, call) if call.is_torch and _MISFIT.search(call.error or record.error) else ""
        return misfit or f"{named(call)} raised {call.error or record.error}{_got(call)}"
    left = tree.innermost([one for one in record.calls if one.status == LEFT])
    place = f" in {named(left[-1])}," if left else ""
    returned = [one for one in tree.ended if one.status == RETURNED]
    told = f"{record.error.partition(':')[0]}{place} after {counted(len(record.calls), 'call')}"
    return f"{told}; the last that returned was {returned[-1].title}" if returned else told


def _misfit(tree: CallTree, call: ModuleCall) -> str:
    """Return how the input of a call does not fit its weight; empty where it does, or the two are not known."""
    given = next((one for one in call.inputs if one.dtype), None)
    weight = next((one for one in call.params if one.path.rpartition(".")[2] == "weight"), None)
    if given is None or weight is None:
        return ""
    wanted = _wanted(call.class_name, given, weight.shape)
    if not wanted and is_floating(given) and given.dtype != weight.dtype:
        dtypes = with_article(name_of(given.dtype)), with_article(name_of(weight.dtype))
        return f"{named(call)} got {dtypes[0]} tensor, and its weight is {dtypes[1]} one"
    if not wanted and given.device != weight.device:
        return f"{named(call)} got a tensor on {given.device}, and its weight is on {weight.device}"
    if not wanted:
        return ""
    before = tree.at(given.maker) or tree.before(call)
    gave = f"; the call before ({before.title}) gave {_shapes(before.outputs)}" if before and before.outputs else ""
    return f"{named(call)} got {given.shape} and its weight is {weight.shape}: it takes {wanted}{gave}"


def _wanted(class_name: str, given: Value, weight: tuple[int, ...]) -> str:
    """Return what a module takes, where its input is something else."""
    got, ndim = given.shape, len(weight)
    if class_name == "Embedding" and ndim == 2 and given.max is not None and given.max >= weight[0]:
        return f"indices below {weight[0]:,}, and got {number(given.max)}"
    if class_name == "Linear" and ndim == 2 and got[-1:] != weight[1:]:
        return counted(weight[1], "feature")
    if class_name.startswith("Conv") and ndim >= 3:
        if len(got) not in (ndim - 1, ndim):
            return f"{ndim - 1} or {ndim} axes"
        # The weight of a transposed one has all channels first; of any other, those of one group second.
        is_transposed, channels = class_name.startswith("ConvTranspose"), got[1 - ndim]
        if channels != weight[0] if is_transposed else channels % max(weight[1], 1):
            return counted(weight[0], "channel") if is_transposed else f"{counted(weight[1], 'channel')} in each group"
    if class_name.startswith("BatchNorm") and ndim == 1 and len(got) > 1 and got[1] != weight[0]:
        return counted(weight[0], "channel")
    if class_name in ("LayerNorm", "RMSNorm") and got[-ndim:] != weight:
        return f"{weight} at the end"
    return ""


def _got(call: ModuleCall) -> str:
    return f"; it got {_shapes(call.inputs)}" if call.inputs else ""


def _shapes(values: tuple[Value, ...]) -> str:
    return " and ".join(str(one.shape) for one in values if one.dtype)
