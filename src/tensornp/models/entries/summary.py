"""The card of one weight: the facts of its entry, and NumPy's text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tensornp.core.lowlevel.attributes import error_text
from tensornp.core.summary.options import DisplayOptions
from tensornp.core.values.shown.preview import Preview, preview
from tensornp.core.values.shown.window_values import subject_of
from tensornp.errors import TensornpError
from tensornp.models.entries.entry import WeightEntry

_MAX_ELEMENTS = 10_000


@dataclass(frozen=True, slots=True)
class EntrySummary:
    """A weight as a card shows it; `refusal` says why no value is shown."""

    entry: WeightEntry
    preview: Preview
    refusal: str = ""


def preview_of(entry: WeightEntry, printoptions: Mapping[str, Any]) -> Preview:
    """Return NumPy's text of a weight, by reading only the printed elements.

    A sharded tensor counts with this rank's part.
    """
    subject = subject_of(entry._values_here())
    found = preview(subject.tensor, subject.info, subject.plan, max_elements=_MAX_ELEMENTS, printoptions=printoptions)
    if subject.num_parts < 2 and subject.shard is None:
        return found
    said = f"part {subject.part} of {subject.num_parts}" if subject.shard is None else subject.shard.scope
    return replace(found, note=f"{said}, {found.note}" if found.note else said)


def summarize_entry(entry: WeightEntry, options: DisplayOptions) -> EntrySummary:
    """Return the summary of a weight; never raises."""
    if not entry._can_be_read:
        return EntrySummary(entry, Preview(""), f"no values: {entry.problem}")
    try:
        return EntrySummary(entry, preview_of(entry, options.printoptions))
    except TensornpError as error:
        return EntrySummary(entry, Preview(""), str(error))
    except Exception as error:
        # Looking never fails: the facts are there all the same.
        return EntrySummary(entry, Preview(""), error_text(error))
