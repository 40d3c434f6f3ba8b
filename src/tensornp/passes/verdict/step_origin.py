"""Which step of an optimizer has made what is not finite of a parameter that was."""

from __future__ import annotations

from tensornp.core.lowlevel.text import counted
from tensornp.passes.records import OPTIMIZER, ModuleCall, OptimizerStep, Origin
from tensornp.passes.verdict.call_tree import CallTree
from tensornp.passes.verdict.wording import holds, word_of


def step_origin(tree: CallTree, what: str, *, name: str = "", before: ModuleCall | None = None) -> Origin | None:
    """Return the first step that has made it of any parameter, or the last before a call that made it of one."""
    steps = [one for one in tree.record.steps if before is None or one.num_calls <= before.index]
    for step in steps if before is None else reversed(steps):
        found = [one for one in step.spoilt if holds(what, one[1]) and name in ("", one[0])]
        if found:
            first, figures = found[0]
            others = f" and {counted(len(found) - 1, 'more parameter')}" if len(found) > 1 else ""
            they = "were" if others else "was"
            sentence = f"{first}{others} held {word_of(figures)} after {named_step(step)}, and {they} finite before it"
            return Origin(what, OPTIMIZER, first, "", None, step.source, sentence, first)
    return None


def named_step(step: OptimizerStep) -> str:
    """Return how a step is told: ``a step of the optimizer (Adam, train.py:12 `optimizer.step()`)``."""
    return f"a step of the optimizer ({', '.join(map(str, filter(None, (step.class_name, step.source))))})"
