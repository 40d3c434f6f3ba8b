"""What a pickle would build, without building it: nothing is imported, called or compared, whatever the pickle says.

Arguments are read by the standard library's own disassembler, and the opcodes carried out on a stack of plain values
and inert records: what would be a call is a `Call`, and what would be imported is a `Global`.
"""

from __future__ import annotations

import io

from tensornp.errors import CheckpointError
from tensornp.models.pickles.machine import Machine, UnsoundError
from tensornp.models.pickles.opcodes import BY_CODE, STOP, Acts, why_not
from tensornp.models.pickles.records import XRay

MAX_NBYTES = 2**28
"""Bytes of a pickle that are read: without the values of tensors, which lie elsewhere."""
FREE_RECORDS, NBYTES_PER_RECORD = 200_000, 4
"""Containers and calls that any pickle may make, and in how many bytes one more; memos, as many again.

Those that torch and others write take five bytes each, and more.
"""


def xray(data: bytes | memoryview, max_made: int | None = None) -> XRay:
    """Return what the pickle at the beginning of `data` would build, as far as that is `max_made` records at most.

    Raises
    ------
    CheckpointError
        If it is no pickle, is cut off, or larger than any that is met.
    """
    if len(data) > MAX_NBYTES:
        raise CheckpointError(f"a pickle of {len(data):,} bytes is not read; {MAX_NBYTES:,} are allowed")
    stream, num_records = io.BytesIO(data), FREE_RECORDS + len(data) // NBYTES_PER_RECORD
    try:
        return _carried_out(stream, Machine(num_records, max_made), BY_CODE)
    except CheckpointError:
        raise
    except RecursionError:
        raise CheckpointError("the pickle is nested too deeply") from None
    except Exception as error:
        raise CheckpointError(f"the pickle is not sound before byte {stream.tell():,}: {_why(error)}") from None


def _why(error: Exception) -> str:
    """Return what is wrong, in words that are not Python's own."""
    if isinstance(error, UnsoundError):
        return str(error)
    if isinstance(error, KeyError):
        return "it takes what it has not remembered"
    return "it takes what is not there" if isinstance(error, IndexError) else "an argument is malformed, or cut off"


def _carried_out(stream: io.BytesIO, machine: Machine, acts: Acts) -> XRay:
    read_some, known = stream.read, acts.get
    # Each opcode takes a byte, of which there are no more than `MAX_NBYTES`.
    while True:
        code = read_some(1)
        found = known(code)
        if found is None:
            raise CheckpointError(why_not(code))
        act, read = found
        act(machine, read(stream) if read is not None else None)
        if code == STOP:
            if len(machine.stack) != 1:
                raise UnsoundError(f"it makes {len(machine.stack):,} values, and not one")
            imports, persistent = tuple(machine.imports), tuple(machine.persistent)
            return XRay(machine.stack[0], imports, stream.tell(), persistent, frozenset(machine.called))
