"""Records that are taken at once are those that opcodes make one by one, and count as much."""

from __future__ import annotations

import pickle
import pickletools
from io import BytesIO
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex

import tensornp as tnp
from tensornp.models.pickles import plain_records
from tensornp.models.pickles.keys import OddKey
from tensornp.models.pickles.look_through import _KEEPING_RECORDS, FREE_RECORDS, _carried_out, xray
from tensornp.models.pickles.machine import Machine
from tensornp.models.pickles.opcodes import BY_CODE
from tensornp.models.pickles.plain_records import RecordMachine
from tensornp.models.pickles.records import Call, Global, Record


class Held:
    """Holds fields."""

    def __init__(self, **fields: Any) -> None:
        vars(self).update(fields)


def told(value: Any) -> Any:
    """Return what is alike for a record and for a call that makes the same."""
    if type(value) is Record:
        return True, value.kind.func, [], told(value.fields()), [], []
    if type(value) is Call:
        if value.func == Global("torch", "Size") and type(value.args[0]) is tuple:
            return told(value.args[0])
        parts = (value.func, value.args, value.state, value.appended, dict(value.items))
        return value.is_new, *map(told, parts)
    if type(value) is dict:
        return [(told(key), told(one)) for key, one in value.items()]
    if type(value) in (list, tuple):
        return [told(one) for one in value]
    return str(value) if type(value) is OddKey else value


def alike(data: bytes) -> Any:
    """Return what a pickle would build, if it is the same in both ways, else what is wrong, in the same words."""
    found = []
    for are_kept in (True, False):
        try:
            one = xray(data, are_records_kept=are_kept)
            found.append((told(one.root), one.imports, sorted(one.called), one.nbytes, one.persistent))
        except tnp.CheckpointError as error:
            found.append(str(error).partition("before byte")[::2][0])
    assert repr(found[0]) == repr(found[1])
    return found[0]


shapes = st.lists(st.integers(0, 2**62), max_size=5).map(torch.Size)
numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300) | st.integers(0, 2**17)
values = st.one_of(numbers, shapes, st.text(max_size=300), st.none(), st.booleans(), st.floats(), st.lists(numbers))
fields = st.dictionaries(st.sampled_from("abcdef"), values, max_size=5)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(fields, max_size=12), st.integers(2, 5))
def test_records_are_what_opcodes_make(made, protocol):
    """Of any fields, the counts included; more than once, in a list, as keys and as values."""
    every = [Held(**one) for one in made for _ in range(2)]
    data = pickle.dumps([every, every[:3], {one: one for one in every}], protocol)
    alike(data)
    if protocol < 4:
        return
    room = FREE_RECORDS
    whole, by_opcodes = RecordMachine(data, stream := BytesIO(data), room, None), Machine(room)
    _carried_out(stream, whole, _KEEPING_RECORDS)
    _carried_out(BytesIO(data), by_opcodes, BY_CODE)
    for count in ("left", "memos_left", "_num_made", "num_memos"):
        assert getattr(whole, count) == getattr(by_opcodes, count), count


def written_by_torch(count: int = 9) -> list[Any]:
    sizes = torch.Size([1, 8])
    return [
        (MetadataIndex("w", torch.Size([i, 0]), i), _StorageInfo(f"__{i}_0.distcp", 2**40 + i, 1600),
         ChunkStorageMetadata(torch.Size([i, 0]), sizes))
        for i in range(count)
    ]  # fmt: skip


def test_what_torch_writes_is_taken_at_once():
    """All but the first of each class, by which the names become known."""
    root = xray(pickle.dumps(written_by_torch()), are_records_kept=True).root
    assert [type(one) for of_rank in root for one in of_rank] == [Call] * 3 + [Record] * 24
    assert root[8][1].fields()["offset"] == 2**40 + 8
    # Of another rank each, which has sent it, the names are as long and other texts.
    made = [(MetadataIndex(f"{'layers.' * 30}{i}", torch.Size([i])), i) for i in range(9)]
    root = xray(pickle.dumps(made), are_records_kept=True).root
    assert [type(one) for one, _ in root] == [Call] + [Record] * 8


def test_what_is_asked_for_again_is_carried_out_anew():
    """A dictionary of a state that stands in the pickle besides, what is changed later, and memos with numbers."""
    made = written_by_torch()
    inside = [made, vars(made[7][1]), vars(made[8][0])]
    data = pickle.dumps(inside)
    assert xray(data, are_records_kept=True).root[1]["length"] == 1600
    alike(data)
    alike(pickle.dumps(made, 2))
    again = b"}\x94\x8c\x01a\x94K\x01sbe."
    for end in (again, b"]\x94K\x01aae.", b"K\x01K\x01se.", b"K\x01be.", b"0e.", b"2be.", b"q\x03e."):
        alike(pickle.dumps([Held(a=i, b=i) for i in range(4)])[:-2] + end)


def test_what_a_record_has_made_itself_is_asked_for_in_it():
    """One text, or one size, under two names, and the record itself."""
    texts = [f"text {i}" for i in range(9)]
    own = [Held(a=1) for _ in range(9)]
    for one in own:
        one.b = one
    for made in (
        [Held(a=one, b=one) for one in texts],
        [Held(a=s, b=s) for s in map(torch.Size, [[i] for i in range(9)])],
    ):
        assert "not sound" not in str(alike(pickle.dumps(made, 4)))
    assert xray(pickle.dumps(own, 4), are_records_kept=True).imports


def test_a_tuple_that_is_called_is_no_class():
    """It has the parts of the name of one."""
    data = pickle.dumps([("torch", "Size"), [Held(a=torch.Size([i])) for i in range(4)]], 4)
    alike(data)


def test_what_is_cut_off_or_malformed_is_refused_alike():
    """At each byte of it."""
    data = pickle.dumps(written_by_torch(4))
    places = [at for op, _, at in pickletools.genops(data)]
    for at in range(places[40], len(data)):
        alike(data[:at])
        alike(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        alike(data[:at] + b"\xff" + data[at + 1 :])


def test_limits_count_records(monkeypatch):
    """In the same words."""
    data = pickle.dumps(written_by_torch(1000))
    for limit in (10, 100, 9000):
        for are_kept in (True, False):
            with pytest.raises(tnp.CheckpointError, match=f"more than {limit:,} containers and texts|more containers"):
                xray(data, limit, are_records_kept=are_kept)
    monkeypatch.setattr(plain_records, "_MAX_KEPT", 2)
    monkeypatch.setattr(plain_records, "_MAX_KINDS", 1)
    alike(data)
