"""Looking never ends the process: shapes that would list billions, and memory that others made, broke or gave back."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest
import torch
from child import in_fork

import tensornp as tnp
from tensornp.core.lowlevel.raw_memory import SHORTENED
from tensornp.core.summary.card import summarize
from tensornp.core.summary.container import summarize_container
from tensornp.core.summary.options import DisplayOptions
from tensornp.fronts.ipython.shell import ShellSession
from tensornp.render.collections.container import container_document
from tensornp.render.tensor.card import tensor_text
from tensornp.session import ledger
from tensornp.session.ledger import Ledger


def shell_with(**names: object):
    """Return a shell with these names and the extension loaded."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    shell.user_ns.update(names)
    shell.run_line_magic("load_ext", "tensornp")
    # No test depends on how far a search comes on a busy machine.
    ledger.MAX_SEARCH_SECONDS = 60
    return shell


def _patient_ledger(shell):
    return Ledger(ShellSession(shell), DisplayOptions)


def card(t: torch.Tensor, /, **names: object) -> str:
    """Return the text of the card that a notebook with these names shows of `t`."""
    from IPython.core.interactiveshell import InteractiveShell

    # An older IPython starts a thread for each shell.
    shell = InteractiveShell.instance()
    shell.user_ns.update(names)
    return tensor_text(summarize(t, DisplayOptions(), _patient_ledger(shell).look))


def limit_memory(nbytes: int) -> None:
    """Let this process take no more than `nbytes` beyond what it has mapped now."""
    resource = pytest.importorskip("resource")
    with open("/proc/self/statm", encoding="ascii") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + nbytes, resource.RLIM_INFINITY))


LONG = [(10**9, 0), (0, 10**9), (0, 10**9, 0), (3, 0, 10**9), (10**9, 0, 2)]


@pytest.mark.slow
@in_fork
def test_an_empty_tensor_with_a_long_dimension_takes_no_memory():
    """Alone, in containers, nested, masked and sparse: within 200 MB, where a list of all indices takes gigabytes."""
    if not os.path.exists("/proc/self/statm"):
        return
    empties = [torch.zeros(shape, dtype=dtype) for shape in LONG for dtype in (torch.float32, torch.bfloat16)]
    nested = torch.nested.as_nested_tensor([torch.zeros(10**9, 0), torch.zeros(2, 0)])
    sparse = torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0), (10**9, 0))
    # What is imported when it is first used is imported now.
    container_document(summarize_container([torch.zeros(3), torch.zeros(2, 2).to_sparse()], DisplayOptions())).text()
    card(torch.zeros(3))
    limit_memory(200 * 2**20)
    for t in (*empties, sparse):
        expected = repr(tnp.to_numpy(t))
        assert expected in tensor_text(summarize(t, DisplayOptions()))
        assert expected in card(t, t=t)
    assert f"[{', '.join(map(repr, tnp.to_numpy(nested)))}]" in tensor_text(summarize(nested, DisplayOptions()))
    container_document(
        summarize_container({"all": empties, "nested": nested, "sparse": sparse}, DisplayOptions())
    ).text()


def test_an_empty_masked_tensor_is_shown_as_numpy_prints_it():
    """With the mask of no element."""
    from torch.masked import masked_tensor

    t = masked_tensor(torch.zeros(4, 0), torch.zeros(4, 0, dtype=torch.bool))
    assert repr(tnp.to_numpy(t)) in tensor_text(summarize(t, DisplayOptions()))


def foreign_array(manager_context: int, owner: list[object], *, is_versioned: bool) -> np.ndarray:
    """Return an array that NumPy took by DLPack, 1.0 or older, from a producer whose `manager_ctx` is this number."""

    class Device(ctypes.Structure):
        _fields_ = (("kind", ctypes.c_int32), ("index", ctypes.c_int32))

    class Tensor(ctypes.Structure):
        _fields_ = (
            ("data", ctypes.c_void_p), ("device", Device), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
            ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
            ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
        )  # fmt: skip

    class Managed(ctypes.Structure):
        _fields_ = (("tensor", Tensor), ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p))

    class ManagedVersioned(ctypes.Structure):
        _fields_ = (
            ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", ctypes.c_void_p),
            ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor),
        )  # fmt: skip

    values, sizes = (ctypes.c_float * 3)(1, 2, 3), (ctypes.c_int64 * 2)(3, 1)
    delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
    shape = ctypes.addressof(sizes)
    tensor = Tensor(ctypes.addressof(values), Device(1, 0), 1, 2, 32, 1, shape, shape + 8, 0)
    deleter = ctypes.cast(delete, ctypes.c_void_p)
    managed = (
        ManagedVersioned(1, 0, manager_context, deleter, 0, tensor)
        if is_versioned
        else Managed(tensor, manager_context, deleter)
    )
    owner += [values, sizes, delete, managed]
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    name = ctypes.create_string_buffer(b"dltensor_versioned" if is_versioned else b"dltensor")
    owner.append(name)

    class Producer:
        def __dlpack__(self, **_: object) -> object:
            return make(ctypes.addressof(managed), ctypes.cast(name, ctypes.c_char_p), None)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    return np.from_dlpack(Producer())


@pytest.mark.slow
@in_fork
def test_a_producer_may_keep_any_number_where_torch_keeps_a_pointer():
    """DLPack calls `manager_ctx` opaque; an array of such a producer among the names harms no card and no table."""
    owner: list[object] = []
    takes_versioned = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
    arrays = [
        foreign_array(context, owner, is_versioned=is_versioned)
        for is_versioned in ([False, True] if takes_versioned else [False])
        for context in (7, 2**40, 2**63, 0)
    ]
    assert arrays[0].tolist() == [1, 2, 3]
    t = torch.arange(3.0)
    lent = np.from_dlpack(t)
    assert "same memory as lent (NumPy array)" in card(t, t=t, lent=lent, arrays=arrays)
    assert [alias.name for alias in tnp.aliases(t, {"lent": lent, "arrays": arrays})] == ["lent"]
    assert [alias.name for alias in tnp.aliases(arrays[0], {"arrays": arrays})] == ["arrays[0]"]
    shell = shell_with(t=t, arrays=arrays)
    shell.run_line_magic("tensors", "")
    shell.run_line_magic("tensorwatch", "arrays t")


def shortened_tensors(folder: str) -> dict[str, torch.Tensor]:
    """Return tensors over files that are then cut to their first page."""
    checkpoint = os.path.join(folder, "checkpoint.pt")
    torch.save({"w": torch.arange(100_000.0).view(100, -1), "b": torch.ones(30_000, dtype=torch.bfloat16)}, checkpoint)
    loaded = torch.load(checkpoint, mmap=True)
    names = [os.path.join(folder, name) for name in ("small", "large", "values")]
    for name, nbytes in zip(names, (40_000, 2**26, 2**20), strict=True):
        np.zeros(nbytes, np.uint8).tofile(name)
    small = torch.from_file(names[0], shared=True, size=10_000)
    large = torch.from_numpy(np.memmap(names[1], np.float32, "r+"))
    values = torch.from_file(names[2], shared=True, size=2**18)
    coordinates = torch.stack([torch.arange(2**18) // 512, torch.arange(2**18) % 512])
    found = {
        "w": loaded["w"], "b": loaded["b"], "column": loaded["w"][:, 3], "small": small[9_000:], "large": large,
        "strided": large[::5000],
        "sparse": torch.sparse_coo_tensor(
            coordinates, values, (512, 512), check_invariants=False, is_coalesced=True
        ),
        "row": torch.sparse_csr_tensor(
            torch.tensor([0, 2**18]), torch.arange(2**18), values, (1, 2**18), check_invariants=False
        ),
    }  # fmt: skip
    for t in found.values():
        assert "array(" in tensor_text(summarize(t, DisplayOptions()))
    for name in (checkpoint, *names):
        os.truncate(name, 4096)
    return found


@pytest.mark.slow
@in_fork
def test_memory_of_a_file_that_has_become_shorter_is_said_and_not_read():
    """In cards, tables, %tensors and %tensorwatch, where SIGBUS would end the process."""
    import sys
    import tempfile

    if sys.platform != "linux":
        return
    shell = shell_with()
    with tempfile.TemporaryDirectory() as folder:
        names = shortened_tensors(folder)
        shell.user_ns.update(names, arrays=[names["large"].numpy(), names["strided"].numpy()])
        for name, t in names.items():
            text = shell.display_formatter.format(t)[0]["text/plain"]
            assert SHORTENED in text, (name, text)
        shell.display_formatter.format(list(names.values()))
        shell.run_line_magic("tensors", "")
        shell.run_line_magic("tensorwatch", f"{' '.join(names)} arrays")
        shell.run_cell("large.add_(0) if False else None")
        # What still has its bytes is shown.
        assert "0., 0., 0." in tensor_text(summarize(names["large"][:1000], DisplayOptions()))


@pytest.mark.slow
@in_fork
def test_a_card_before_and_after_the_file_was_cut():
    """A fingerprint and a watch from before do not read it again."""
    import sys
    import tempfile

    if sys.platform != "linux":
        return
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "values")
        np.zeros(2**20, np.uint8).tofile(name)
        t = torch.from_file(name, shared=True, size=2**18)
        array = np.memmap(name, np.uint8, "r+")
        shell = shell_with(t=t, array=array, gaps=array[::3])
        shell.display_formatter.format(t)
        shell.run_line_magic("tensorwatch", "t array gaps")
        os.truncate(name, 4096)
        shell.run_cell("pass")
        shell.run_line_magic("tensors", "")
        assert SHORTENED in shell.display_formatter.format(t)[0]["text/plain"]


@pytest.mark.slow
@in_fork
def test_with_the_switch_off_nothing_is_read_by_address_and_all_still_work():
    """Cards, fingerprints and watches by torch's own operators; what only pointers tell is not known."""
    from tensornp.core.lowlevel import raw_memory as raw

    shell = shell_with(t=torch.arange(4096.0).view(64, 64))
    t, a = shell.user_ns["t"], shell.user_ns["t"].numpy()
    lent = np.from_dlpack(t)
    shell.user_ns.update(a=a, lent=lent, sparse=t.to_sparse())

    def text(of: torch.Tensor) -> str:
        return shell.display_formatter.format(of)[0]["text/plain"]

    shown = text(t)
    raw.switch(False)
    assert not raw.is_on()
    for name in ("copy_into", "array_at", "_word_at", "_capsule_pointer"):
        setattr(raw, name, None)
    # Fingerprints of two kinds are not compared, so no change is claimed.
    assert text(t) == shown
    assert raw.version_counter_of(t) == 0
    t[3, 3] = -1
    assert "changed since the card" in text(t)
    assert repr(tnp.to_numpy(t)[:, :3].copy()) in text(t[:, :3].clone())
    text(shell.user_ns["sparse"])
    shell.run_line_magic("tensorwatch", "t a sparse")
    shell.run_cell("t[0, 0] = 7")
    shell.run_line_magic("tensors", "")
    assert {alias.name for alias in tnp.aliases(t, {"a": a, "lent": lent})} == {"a", "lent"}
    shell.run_line_magic("unload_ext", "tensornp")
    assert raw.is_on()


def test_the_environment_turns_raw_memory_off_before_any_is_read():
    """TENSORNP_RAW_MEMORY=0; the option then says so."""
    import subprocess
    import sys

    code = """
import ctypes
from tensornp.core.lowlevel import raw_memory
from tensornp.fronts.ipython.config import TensorDisplay
assert not raw_memory.is_on() and not TensorDisplay().raw_memory
assert raw_memory._find_counter_word.cache_info().misses == 0 == raw_memory._find_system_copy.cache_info().misses
import torch, tensornp as tnp
t = torch.zeros(3)
assert [alias.name for alias in tnp.aliases(t, {"a": t.numpy()})] == ["a"]
"""
    environment = os.environ | {"TENSORNP_RAW_MEMORY": "0"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=100)


@pytest.mark.slow
@in_fork
def test_a_card_in_a_forked_process_does_not_wait_for_threads_that_were_not_copied():
    """Sparse ones of each layout, large ones with gaps and whole ones, after the parent has computed on all cores."""
    import faulthandler

    if not hasattr(os, "fork"):
        return
    torch.set_num_threads(2)
    large = torch.randn(2_000, 2_000)
    assert (large @ large).exp().sum() > 0
    tensors = [
        torch.eye(5).to_sparse(), torch.eye(700).to_sparse(), torch.eye(700).to_sparse_csr(),
        torch.ones(300, 300).to_sparse(), torch.ones(64, 64).to_sparse_bsr((8, 8)), large[:, ::2], large,
        torch.ones(300, 1_000, dtype=torch.bfloat16),
    ]  # fmt: skip
    shown = [card(t) for t in tensors]
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(100, exit=True)
        with np.printoptions(threshold=10**6):
            card(tensors[-1])
        same = [card(t) for t in tensors] == shown and [tnp.to_numpy(t).sum() for t in tensors[:5]]
        os._exit(0 if same and torch.get_num_threads() == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert torch.get_num_threads() == 2


LOOKS_AT_CUT = (
    "[t]", "holder", "module", "%tensors", "tnp.stats(t)", "tnp.compare(t, t)", "tnp.locate(t)",
    "tnp.image(t)", "tnp.plot(t)", "tnp.inspect(t)", "tnp.plan(t)", "tnp.card(t)", "tnp.card([t])", "tnp.aliases(t)",
    "tnp.weights({'w': t})", "tnp.weights({'w': t}).scan()", "tnp.compare({'w': t}, {'w': w})", "%weights {'w': t}",
    "%tensorwatch t", "%tensorstats t", "%tensordiff t w", "%tonumpy --explain t",
    "tnp.weights({'w': t})['w'].to_numpy(..., copy=True)",
)  # fmt: skip
COPIES_OF_CUT = (
    "tnp.to_numpy(t, copy=True)", "%tonumpy t", "%tonumpy -c t", "tnp.to_tensor(t, copy=True)", "%totensor -o q t",
)  # fmt: skip


def cut_memory(name: str) -> object:
    """Return something over a file of 1 MiB, which is then cut to its first page."""
    import mmap

    np.zeros(2**20, np.uint8).tofile(name)
    with open(name, "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
    made = {
        "buffer": lambda: np.frombuffer(memoryview(mapped).toreadonly(), np.float32),
        "memmap": lambda: np.memmap(name, np.float32, "r").reshape(512, 512),
        "mask": lambda: np.ma.masked_array(np.zeros(2**20, np.float32), mask=np.memmap(name, np.bool_, "r")),
        "frombuffer": lambda: torch.frombuffer(mapped, dtype=torch.float32),
        "widened": lambda: torch.frombuffer(mapped, dtype=torch.bfloat16),
        "conj": lambda: torch.frombuffer(mapped, dtype=torch.complex64).conj(),
        "parameter": lambda: torch.nn.Parameter(torch.frombuffer(mapped, dtype=torch.float32)),
    }[os.path.basename(name)]()
    os.truncate(name, 4096)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("what", ["buffer", "memmap", "mask", "frombuffer", "widened", "conj", "parameter"])
@in_fork
def test_no_look_at_a_file_that_was_cut_ends_the_process(what):
    """Each tells what it can, or ends in a sentence; so does a copy."""
    import sys
    import tempfile

    from IPython.core.error import UsageError
    from IPython.utils.capture import capture_output

    from tensornp.errors import TensornpError

    if sys.platform != "linux":
        return
    with tempfile.TemporaryDirectory() as folder:
        t = cut_memory(os.path.join(folder, what))
        module = torch.nn.Linear(2, 2)
        module.extra = t
        shell = shell_with(tnp=tnp, t=t, w=torch.zeros(t.shape), holder=type("Holder", (), {})(), module=module)
        shell.user_ns["holder"].extra = t
        for line in (*LOOKS_AT_CUT, *COPIES_OF_CUT):
            with capture_output() as captured:
                error = shell.run_cell(line.replace("[t]", "[w, t]")).error_in_exec
            assert isinstance(error, (type(None), TensornpError, UsageError)), (line, captured.stdout)
            takes = isinstance(t, torch.Tensor) == ("numpy" in line)
            if line in COPIES_OF_CUT and takes:
                assert SHORTENED in str(error), (line, captured.stdout)
        if what == "widened":
            with pytest.raises(tnp.NoDataError, match=SHORTENED):
                tnp.to_numpy(t)


def _mapped(nbytes: int) -> tuple[np.ndarray, ctypes.CDLL]:
    """Return memory that is nobody's, and the library that can take it away."""
    system = ctypes.CDLL(None, use_errno=True)
    system.mmap.restype, system.munmap.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t)
    system.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    system.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    address = system.mmap(None, nbytes, 3, 0x22, -1, 0)
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address)), system


@pytest.mark.slow
@pytest.mark.parametrize("how", ["munmap", "mprotect"])
@pytest.mark.parametrize("nbytes", [2**20, 2**24])
@in_fork
def test_memory_that_was_unmapped_or_locked_is_not_read(nbytes, how):
    """Of no file, small and large, as values and as indices."""
    import sys

    if sys.platform != "linux":
        return
    memory, system = _mapped(nbytes)
    t = torch.from_numpy(memory)
    sparse = torch.sparse_coo_tensor(t.view(torch.int64)[None], torch.ones(nbytes // 8), (9,), check_invariants=False)
    tnp.card(sparse)
    address, end = memory.ctypes.data, nbytes // 2
    gone = system.munmap(address + end, nbytes - end) if how == "munmap" else system.mprotect(address + end, end, 0)
    assert gone == 0
    for one in (t, sparse):
        tnp.card(one)
        for look in (tnp.stats, lambda one: tnp.locate(one, "nan"), lambda one: tnp.to_numpy(one, copy=True)):
            with pytest.raises(tnp.TensornpError):
                look(one)


@pytest.mark.slow
@in_fork
def test_pages_between_elements_are_not_asked_for():
    """Which would bring all of a mapped file in for a column of it."""
    import sys

    if sys.platform != "linux":
        return
    memory, system = _mapped(2**24)
    column = torch.from_numpy(memory).view(16, -1)[:, :3]
    for row in range(16):
        assert system.mprotect(memory.ctypes.data + row * 2**20 + 4096, 2**20 - 4096, 0) == 0
    assert tnp.to_numpy(column, copy=True).sum() == 0
    with tnp.follow() as run:
        torch.nn.Identity()(column)
    assert run.calls[0].outputs[0].figures


@pytest.mark.slow
@in_fork
def test_a_weight_that_is_computed_of_memory_that_has_gone_says_so():
    """And no Bus error ends the scan of all weights."""
    import sys

    from torch.nn.utils.parametrizations import weight_norm

    if sys.platform != "linux":
        return
    memory, system = _mapped(2**20)
    module = weight_norm(torch.nn.Linear(4, 2**16))
    module.parametrizations.weight.original1.data = torch.from_numpy(memory.view(np.float32)).view(2**16, 4)
    weights = tnp.weights(module)
    assert system.mprotect(memory.ctypes.data, memory.size, 0) == 0
    with pytest.raises(tnp.TensornpError, match="cannot be read"):
        weights["weight"].to_numpy()
    weights.scan()
    weights["parametrizations.weight.original1"].tensor.grad = torch.ones(2**16, 4)
    weights.scan()
