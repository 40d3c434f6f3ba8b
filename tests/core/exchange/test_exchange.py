"""JAX and CuPy: right values, copies that are copies, sharing proven by writes, and honest receipts."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import subprocess
import sys
import textwrap
import types
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from strategies import tensors

import tensornp as tnp
from tensornp.core.convert.plan import decide as decide_for_numpy
from tensornp.core.exchange import cupy as cupy_door
from tensornp.core.exchange import handover
from tensornp.core.exchange import jax as jax_door
from tensornp.core.exchange.dlpack import is_lent
from tensornp.core.exchange.handover import Recipient
from tensornp.core.tensor.steps import Step

jax = pytest.importorskip("jax")
jnp = jax.numpy

FLOAT8 = [name for name in dir(torch) if name.startswith("float8_")]
PLAIN = tnp.inspect(torch.zeros(2, 3))


def child(code: str) -> str:
    """Return what a child process prints; memory errors end only the child."""
    out = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    return out.stdout.strip()


def run(plan: tnp.ConversionPlan, t: torch.Tensor) -> Any:
    """Return what a receipt's code evaluates to."""
    return eval(plan.code, {"t": t, "torch": torch, "np": np, "jax": jax, "ml_dtypes": ml_dtypes})


def bits(array: Any) -> bytes:
    """Return the bytes of an array's elements in order."""
    return np.ascontiguousarray(np.asarray(array)).tobytes()


# JAX: values and receipts

enable_x64 = (jax if hasattr(jax, "enable_x64") else pytest.importorskip("jax.experimental")).enable_x64


@pytest.mark.parametrize("name", ["bfloat16", *FLOAT8])
def test_short_floats_go_to_jax_and_back_as_they_are(name):
    """Every bit pattern keeps its bits and its dtype, which NumPy alone would have to widen."""
    dtype = getattr(torch, name)
    count = 256**dtype.itemsize
    t = torch.arange(count, dtype=torch.int32).to(torch.uint8 if dtype.itemsize == 1 else torch.int16).view(dtype)
    expected = np.arange(count, dtype=f"u{dtype.itemsize}").tobytes()
    ways = (None, True, False)
    if not is_lent(dtype):
        # Before torch 2.9, float8 is not.
        with pytest.raises(tnp.CopyRequiredError, match="DLPack"):
            tnp.to_jax(t, copy=False)
        ways = (None, True)
    for copy in ways:
        a = tnp.to_jax(t, copy=copy)
        assert a.dtype == getattr(ml_dtypes, name)
        assert bits(a) == expected
        back = tnp.from_jax(a, copy=copy)
        assert back.dtype is dtype
        assert back.view(torch.uint8).numpy().tobytes() == expected


@settings(max_examples=25, deadline=None)
@given(tensors())
def test_the_array_and_the_code_of_its_receipt_are_equal(t):
    """For any dtype, stride and lazy bit: array, plan and code agree, and so does NumPy's array of the same dtype."""
    with enable_x64(True):
        plan, a = tnp.plan_jax(t), tnp.to_jax(t)
        again = run(plan, t)
        assert (a.dtype, a.shape) == (plan.dtype, tnp.to_numpy(t).shape)
        assert again.dtype == a.dtype
        assert bits(a) == bits(again) == bits(tnp.to_numpy(t, dtype=plan.dtype.name))
        assert plan.nbytes_copied == a.nbytes
        assert plan.exact


@settings(max_examples=25, deadline=None)
@given(tensors())
def test_sharing_is_planned_where_it_is_done_and_refused_elsewhere(t):
    """A shared array lies at the tensor's own address; what cannot be shared is refused by plan and conversion."""
    with enable_x64(True):
        try:
            plan = tnp.plan_jax(t, copy=False)
        except tnp.CopyRequiredError:
            with pytest.raises(tnp.CopyRequiredError):
                tnp.to_jax(t, copy=False)
            return
        a = tnp.to_jax(t, copy=False)
        assert a.dtype == plan.dtype
        assert bits(a) == bits(run(plan, t))
        assert plan.shares_memory == (t.numel() > 0)
        if plan.shares_memory:
            assert a.unsafe_buffer_pointer() == t.data_ptr()
            assert plan.nbytes_copied == 0


@pytest.mark.parametrize("copy", [None, True])
@pytest.mark.parametrize("count", [3, 1 << 16, 1 << 22])
def test_a_copy_is_a_copy_at_once(copy, count):
    """A write right after the call is not seen; `jnp.array` of the same memory does see it, now and then."""
    for _ in range(10):
        t = torch.zeros(count)
        a = tnp.to_jax(t, copy=copy)
        t.fill_(7)
        assert float(a.max()) == 0
        assert t.untyped_storage().resizable()


def test_shared_memory_is_live():
    """A torch write is seen in the array, and the receipt says what that does to constants."""
    p = torch.nn.Parameter(torch.zeros(64))
    plan, a = tnp.plan_jax(p, copy=False), tnp.to_jax(p, copy=False)
    with torch.no_grad():
        p[1] = 5
    assert float(a[1]) == 5
    assert (plan.steps, plan.mode, plan.exact) == ((Step.DETACH,), "view", True)
    assert "compiled functions may keep the old values" in plan.warnings[0]
    assert p.grad is None
    assert p.requires_grad


def test_compiled_code_may_keep_what_a_shared_array_was():
    """The hazard that the receipt names is real."""
    t = torch.zeros(64)
    a = tnp.to_jax(t, copy=False)
    add = jax.jit(lambda x: x + a[0])
    assert float(add(0.0)) == 0
    t.fill_(5)
    assert float(a[0]) == 5
    assert float(add(0.0)) == 0


@pytest.mark.slow
def test_a_shared_array_outlives_whatever_happens_to_the_tensor():
    """`set_`, `resize_`, freeing the storage and deleting the tensor leave the array's memory in place."""
    printed = child("""
        import gc, torch, tensornp as tnp
        arrays, kept = [], []
        def resize(t): t.resize_(1 << 22)
        def free(t): t.untyped_storage().resize_(0)
        def replace(t): t.set_(torch.ones(3))
        def nothing(t): pass
        for change in (resize, free, replace, nothing):
            t = torch.zeros(1 << 20)
            arrays.append(tnp.to_jax(t, copy=False))
            try:
                change(t)
            except RuntimeError as error:
                print("not resizable" in str(error))
            del t
            gc.collect()
            kept += [torch.ones(1 << 20) for _ in range(10)]
        print([float(a.max()) for a in arrays])
    """)
    assert printed.split("\n") == ["True", "True", "[0.0, 0.0, 0.0, 0.0]"]


def test_donating_an_array_writes_nothing_into_the_tensor():
    """JAX may use donated memory for its result, but not memory that is not its own."""
    t = torch.zeros(1 << 16)
    result = jax.jit(lambda x: x + 1, donate_argnums=0)(tnp.to_jax(t, copy=False))
    assert (float(result.min()), float(t.max())) == (1, 0)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: torch.zeros(65)[1:], "aligned to 64 bytes"),
        (lambda: torch.zeros(8, 8)[:, ::2], "gaps or repeat"),
        (lambda: torch.zeros(1).expand(4), "gaps or repeat"),
        (lambda: torch.zeros(4, dtype=torch.complex64).conj(), "conjugate is pending"),
        (lambda: torch.zeros(4, dtype=torch.complex64).conj().imag, "negation is pending"),
        (lambda: torch.zeros(4, dtype=torch.int64), "int64 only with jax_enable_x64"),
    ],
    ids=["offset", "strided", "expanded", "conj", "neg", "x64"],
)
def test_what_cannot_be_shared_is_refused_with_the_reason_and_the_cure(make, why):
    """The message says what, why and what to pass; the copy then works, for the same reason."""
    with pytest.raises(tnp.CopyRequiredError, match=f"cannot share memory with JAX, because .*{why}.*copy=None"):
        tnp.to_jax(make(), copy=False)
    assert why in tnp.plan_jax(make()).reason
    assert np.array_equal(np.asarray(tnp.to_jax(make())), tnp.to_numpy(make()))


def test_the_receipt_says_why_it_copies_by_default_and_how_to_share():
    """copy=None has a reason; copy=True was asked for."""
    t = torch.zeros(4)
    assert tnp.plan_jax(t).reason == "copy: JAX takes its arrays for constants; pass copy=False to share"
    assert "asked for" in tnp.plan_jax(t, copy=True).reason
    assert not tnp.plan_jax(t).writeable


def test_transposed_and_channels_last_tensors_are_shared():
    """Any order of the dimensions will do, and the values keep their places."""
    for t in (torch.arange(6.0).reshape(2, 3).T, torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)):
        if not jax_door._takes_columns():
            # Before JAX 0.7, which would read other values without a word.
            with pytest.raises(tnp.CopyRequiredError, match="row by row"):
                tnp.to_jax(t, copy=False)
            continue
        a = tnp.to_jax(t, copy=False)
        assert a.unsafe_buffer_pointer() == t.data_ptr()
        assert np.array_equal(np.asarray(a), tnp.to_numpy(t))


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_a_library_that_reads_row_by_row_is_lent_nothing_else(device):
    """Then the values go through NumPy, which keeps their places."""
    with pytest.raises(tnp.CopyRequiredError, match="this version of JAX reads every tensor row by row"):
        through(device, copy=False, keeps_order=False)
    assert through("cuda:0", keeps_order=False).code == "put(t.cpu().numpy())"


def test_pages_that_are_mapped_read_only_are_not_shared(tmp_path):
    """Another library may write where NumPy would not be let to."""
    np.zeros(1024, np.float32).tofile(tmp_path / "page")
    with pytest.warns(UserWarning, match="not writable"):
        t = torch.from_numpy(np.memmap(tmp_path / "page", np.float32, mode="r"))
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux tells how a page is mapped")
    for function in (tnp.plan_jax, tnp.to_jax):
        with pytest.raises(tnp.CopyRequiredError, match="mapped read-only"):
            function(t, copy=False)


def test_a_lazily_cloned_tensor_is_shared_by_itself():
    """Sharing gives the clone memory of its own, so that the original is not reached."""
    t = torch.zeros(64)
    lazy = torch._lazy_clone(t)
    a = tnp.to_jax(lazy, copy=False)
    lazy[0], t[1] = 5, 6
    assert a[:2].tolist() == [5, 0]


def test_modes_and_transforms_around_the_call_change_nothing():
    """A default device, inference mode, and torch.func with a tensor from outside."""
    t, seen = torch.ones(64), []

    def cross(x=None):
        for copy in (None, False):
            a = tnp.to_jax(t, copy=copy)
            seen.append((float(a.sum()), float(np.sum(tnp.to_numpy(tnp.from_jax(a, copy=copy))))))
        return None if x is None else x.sum()

    with torch.device("meta"):
        cross()
    with torch.inference_mode():
        cross()
    torch.func.grad(cross)(torch.ones(2))
    assert set(seen) == {(64.0, 64.0)}


# JAX: 64 bits


def test_64_bit_integers_that_fit_become_32_bit_ones():
    """Token ids and labels are int64 in torch; without x64 they cross exactly, checked, and the receipt says so."""
    for dtype, narrow in ((torch.int64, "int32"), (torch.uint64, "uint32")):
        limits = np.iinfo(narrow)
        t = torch.tensor([limits.min, 5, limits.max], dtype=dtype)
        plan, a = tnp.plan_jax(t), tnp.to_jax(t)
        assert a.dtype == plan.dtype == narrow
        assert a.tolist() == t.tolist()
        assert plan.exact
        assert "every" in plan.warnings[-1] or "each value is checked" in plan.warnings[-1]
        assert bits(run(plan, t)) == bits(a)
    assert tnp.to_jax(torch.zeros(0, dtype=torch.int64)).shape == (0,)


@pytest.mark.parametrize(
    ("t", "name"),
    [
        (torch.tensor([2**31]), "int32"),
        (torch.tensor([-(2**31) - 1]), "int32"),
        (torch.tensor([2**32], dtype=torch.uint64), "uint32"),
        (torch.zeros(2, dtype=torch.float64), "float32"),
        (torch.zeros(2, dtype=torch.complex128), "complex64"),
    ],
)
def test_nothing_is_cut_off_silently(t, name):
    """JAX itself would truncate without a word; here it is refused, and the cure works."""
    with pytest.raises(tnp.UnsupportedTensorError, match=f"jax_enable_x64.*dtype='{name}'"):
        tnp.to_jax(t)
    assert not tnp.plan_jax(t, dtype=name).exact
    assert tnp.to_jax(t, dtype=name).dtype == name
    with enable_x64(True):
        assert tnp.to_jax(t).tolist() == t.tolist()
        assert tnp.to_jax(torch.zeros(8, dtype=t.dtype), copy=False).dtype == tnp.to_numpy(t).dtype


def test_a_dtype_can_be_named_as_jax_names_it():
    """JAX's scalar types, NumPy's, torch's and strings; what JAX cannot have is refused."""
    t = torch.tensor([1.5, 2.5])
    for dtype in (jnp.bfloat16, "bfloat16", torch.bfloat16):
        assert tnp.to_jax(t, dtype=dtype).dtype == jnp.bfloat16
    assert tnp.to_jax(t, dtype=np.int8).tolist() == [1, 2]
    with pytest.raises(tnp.UnsupportedTensorError, match="float64 only with"):
        tnp.to_jax(t, dtype="float64")
    with pytest.raises(tnp.BadRequestError, match="byte order"):
        tnp.to_jax(t, dtype=">f4")
    with pytest.raises(tnp.BadRequestError, match="JAX has no"):
        tnp.to_jax(t, dtype="longdouble")


# JAX: refusals, containers, devices


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: torch.zeros(2, device="meta"), tnp.NoDataError),
        (lambda: torch.nn.LazyLinear(2).weight, tnp.NoDataError),
        (lambda: torch._subclasses.FakeTensorMode().from_tensor(torch.zeros(2)), tnp.NoDataError),
        (lambda: torch.zeros([1] * 65), tnp.UnsupportedTensorError),
        (lambda: np.zeros(2), tnp.NotATensorError),
    ],
)
@pytest.mark.parametrize("copy", [None, False])
def test_what_to_numpy_refuses_is_refused_here_too(make, error, copy):
    """Never garbage from a null pointer, which DLPack gives for wrappers."""
    with pytest.raises(error):
        tnp.to_jax(make(), copy=copy)


def test_a_wrapper_is_never_handed_to_dlpack():
    """A subclass with its own dispatch has no memory of its own, whatever it says."""

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (64,))

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError("no")

    with pytest.raises(tnp.TensornpError):
        tnp.to_jax(Wrapper(), copy=False)


def test_what_is_free_is_for_all_that_goes_to_jax_together(monkeypatch):
    """Each array is small enough to be made without asking, and all together are not."""
    monkeypatch.setattr("tensornp.core.convert.budget._free_nbytes_at", lambda second: 0)
    monkeypatch.setattr("tensornp.core.convert.budget.SMALL_NBYTES", 5000)
    t = torch.ones(1000)
    assert len(tnp.to_jax([t])) == 1
    with pytest.raises(tnp.TooLargeError, match=r"together take 7\.8 KiB"):
        tnp.to_jax({"a": t, "b": [t]})


def test_freed_storage_is_refused_and_not_read():
    """As FSDP leaves its parameters."""
    t = torch.ones(1000)
    t.untyped_storage().resize_(0)
    for copy in (None, False):
        with pytest.raises(tnp.NoDataError, match="freed"):
            tnp.to_jax(t, copy=copy)


Pair = collections.namedtuple("Pair", "left right")


def test_containers_go_there_and_back_leaf_by_leaf():
    """Structure stays, and what is neither tensor nor array too."""
    tree = {"a": [torch.ones(2), 3], "b": Pair(torch.eye(2), None)}
    out = tnp.to_jax(tree)
    assert isinstance(out["a"][0], jax.Array)
    assert (out["a"][1], type(out["b"])) == (3, Pair)
    back = tnp.from_jax(out)
    assert torch.equal(back["b"].left, torch.eye(2))
    assert type(tnp.to_jax(torch.nn.BatchNorm1d(2).state_dict())) is collections.OrderedDict


def test_a_device_is_named_or_given():
    """An array goes where it is asked to; nonsense is refused."""
    cpu = jax.devices("cpu")[0]
    for device in (None, "cpu", cpu):
        assert tnp.to_jax(torch.ones(2), device=device).devices() == {cpu}
    for device in ("nonsense", 0):
        with pytest.raises(tnp.BadRequestError, match=r"jax\.devices"):
            tnp.to_jax(torch.ones(2), device=device)
    with pytest.raises(tnp.BadRequestError, match="means nothing"):
        tnp.to_jax(torch.ones(2), copy="yes")


# The decision for GPUs, which needs none


def through(
    device: str = "cuda:0", dtype: torch.dtype = torch.float32, copy: bool | None = None, *, asked: object = None,
    constant: bool = True, reaches: bool = True, keeps_order: bool = True, **facts: Any,
) -> tnp.ConversionPlan:  # fmt: skip
    """Return the decision for a tensor on a device that this machine need not have."""
    info = dataclasses.replace(PLAIN, device=torch.device(device), dtype=dtype, itemsize=dtype.itemsize, **facts)
    free, copied = (
        decide_for_numpy(info, writeable=True, dtype=asked),
        decide_for_numpy(info, copy=True, dtype=asked),
    )
    library = "JAX" if constant else "CuPy"
    recipient = Recipient(library, constant, reaches, True, copied.dtype, "dlpack({})", "put({})", keeps_order)
    return handover.decide(recipient, info, free, copied, copy)


def test_a_gpu_tensor_is_copied_on_its_gpu():
    """Where the library works on that GPU too, nothing goes through the host."""
    plan = through()
    assert (plan.steps, plan.code) == ((Step.COPY,), "dlpack(t.detach().clone())")
    assert (plan.nbytes_copied, plan.shares_memory) == (24, False)
    assert "takes its arrays for constants" in plan.reason


def test_a_gpu_tensor_goes_through_the_host_where_the_library_lacks_the_gpu():
    """The receipt says so, and sharing is refused."""
    plan = through(reaches=False)
    assert (plan.steps, plan.code) == ((Step.TO_HOST,), "put(t.cpu().numpy())")
    assert "on cuda:0" in plan.reason
    with pytest.raises(tnp.CopyRequiredError, match="on cuda:0"):
        through(reaches=False, copy=False)


def test_a_gpu_tensor_is_shared_with_the_hazards_of_its_library():
    """JAX: constants. CuPy: writes that autograd does not see. Both: nothing locks the storage."""
    plan = through(copy=False, requires_grad=True)
    assert (plan.steps, plan.mode, plan.code) == ((Step.DETACH,), "view", "dlpack(t.detach())")
    assert "constant" in plan.warnings[0]
    assert "nothing locks" in plan.warnings[-1]
    plan = through(copy=False, constant=False, requires_grad=True)
    assert plan.mode == "share"
    assert "autograd" in plan.warnings[0]


def test_short_floats_on_a_gpu_stay_there():
    """JAX takes bfloat16 as it is, and CuPy widened on the GPU."""
    own = through(dtype=torch.bfloat16, asked="bfloat16")
    assert (own.steps, own.dtype) == ((Step.COPY,), ml_dtypes.bfloat16)
    assert through(dtype=torch.bfloat16, asked="bfloat16", copy=False).dtype == ml_dtypes.bfloat16
    wide = through(dtype=torch.bfloat16, constant=False)
    assert (wide.steps, wide.code) == ((Step.WIDEN,), "dlpack(t.detach().to(torch.float32))")
    with pytest.raises(tnp.CopyRequiredError, match="widen"):
        through(dtype=torch.bfloat16, constant=False, copy=False)


@pytest.mark.parametrize(
    "facts",
    [{"is_conj": True, "dtype": torch.complex64}, {"is_neg": True}, {"asked": "float16"}, {"storage": None}],
    ids=["conj", "neg", "cast", "no storage"],
)
def test_whatever_is_not_plain_on_a_gpu_goes_through_the_host(facts):
    """DLPack knows neither lazy bits nor wrappers, so it is not asked."""
    assert Step.TO_HOST in through(**facts).steps
    with pytest.raises(tnp.CopyRequiredError):
        through(copy=False, **facts)


def test_an_expanded_gpu_tensor_is_shared_with_cupy_only():
    """JAX takes dense memory alone; CuPy takes any strides, and its receipt warns."""
    with pytest.raises(tnp.CopyRequiredError, match="gaps or repeat"):
        through(copy=False, stride=(0, 1))
    assert "several indices" in through(copy=False, constant=False, stride=(0, 1)).warnings[0]


def test_pinned_memory_is_not_shared():
    """DLPack calls it CUDA's, although it is the host's."""
    with pytest.raises(tnp.CopyRequiredError, match="pinned"):
        through("cpu", copy=False, is_pinned=True)


# From JAX


def test_from_jax_copies_because_jax_arrays_never_change():
    """No write crosses, unless sharing is asked for."""
    a = jnp.zeros(64)
    for copy in (None, True):
        t = tnp.from_jax(a, copy=copy)
        t[0] = 5
        assert float(a[0]) == 0
        assert t.untyped_storage().resizable()
    t = tnp.from_jax(a, copy=False)
    t[0] = 5
    assert float(a[0]) == 5


@pytest.mark.slow
def test_a_tensor_shared_from_jax_outlives_the_array():
    """Deleting or donating the array leaves the tensor's memory in place."""
    printed = child("""
        import jax, jax.numpy as jnp, torch, tensornp as tnp
        tensors, kept = [], []
        for end in (lambda a: a.delete(), jax.jit(lambda x: x + 1, donate_argnums=0)):
            a = jnp.zeros(1 << 20)
            tensors.append(tnp.from_jax(a, copy=False))
            kept += [end(a)] + [torch.ones(1 << 20) for _ in range(10)]
        print([float(t.max()) for t in tensors])
    """)
    assert printed == "[0.0, 0.0]"


def test_what_jax_cannot_give_is_refused_in_a_sentence():
    """Deleted, traced and key arrays, dtypes that torch does not have, and no arrays at all."""
    gone = jnp.zeros(3)
    gone.delete()
    with pytest.raises(tnp.NoDataError, match="deleted or donated"):
        tnp.from_jax(gone)

    def traced(x):
        with pytest.raises(tnp.NoDataError, match="tracing"):
            tnp.from_jax(x)
        return x.sum()

    jax.jit(traced)(jnp.zeros(3))
    jax.grad(traced)(jnp.zeros(3))
    with pytest.raises(tnp.UnsupportedArrayError, match="key_data"):
        tnp.from_jax(jax.random.key(0))
    for name in ("int4", "float8_e4m3"):
        with pytest.raises(tnp.UnsupportedArrayError, match="no dtype"):
            tnp.from_jax(jnp.zeros(2, name))
        with pytest.raises(tnp.CopyRequiredError):
            tnp.from_jax(jnp.zeros(2, name), copy=False)
    with pytest.raises(tnp.NotATensorError):
        tnp.from_jax(np.zeros(2))
    with pytest.raises(tnp.CopyRequiredError, match="meta"):
        tnp.from_jax(jnp.zeros(2), copy=False, device="meta")


# CuPy, played by NumPy


class FakeArray:
    """What CuPy's arrays have of what is used here, in host memory."""

    device = types.SimpleNamespace(id=0)

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.dtype, self.strides, self.itemsize = array, array.dtype, array.strides, array.itemsize
        self.data = types.SimpleNamespace(ptr=array.ctypes.data)

    def __dlpack__(self, **kwargs: Any) -> Any:
        kwargs.pop("stream", None)
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@pytest.fixture
def cupy(monkeypatch):
    """A CuPy whose GPU is the CPU."""
    module = types.ModuleType("cupy")
    module.ndarray = FakeArray
    module.is_available = lambda: True
    module.asarray = lambda array: FakeArray(array.copy())
    module.asnumpy = lambda array: array.array.copy()
    module.from_dlpack = lambda tensor: FakeArray(np.from_dlpack(tensor))
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 1)
    module.cuda = types.SimpleNamespace(runtime=runtime, Device=lambda index: contextlib.nullcontext())
    monkeypatch.setitem(sys.modules, "cupy", module)
    monkeypatch.setattr(cupy_door, "torch_device", lambda platform, index: torch.device("cpu"))
    return module


def test_host_tensors_are_placed_by_cupy(cupy):
    """Values are NumPy's, bfloat16 widened; sharing host memory is refused."""
    out = tnp.to_cupy({"a": torch.arange(3), "b": torch.ones(2, dtype=torch.bfloat16)})
    assert out["a"].array.tolist() == [0, 1, 2]
    assert out["b"].dtype == np.float32
    plan = tnp.plan_cupy(torch.ones(2))
    assert (plan.code, plan.writeable) == ("cupy.asarray(t.clone().numpy())", True)
    with pytest.raises(tnp.CopyRequiredError, match="on cpu"):
        tnp.to_cupy(torch.ones(2), copy=False)
    with pytest.raises(tnp.BadRequestError, match="bfloat16"):
        tnp.to_cupy(torch.ones(2), dtype="bfloat16")


def test_from_cupy_shares_where_it_can_and_copies_where_asked(cupy):
    """CuPy arrays are written like NumPy's, so the way back is that of `to_tensor`."""
    source = np.zeros(4, np.float32)
    array = FakeArray(source)
    shared, copied = tnp.from_cupy([array])[0], tnp.from_cupy(array, copy=True)
    source[0] = 5
    assert (shared.tolist(), copied.tolist()) == ([5, 0, 0, 0], [0, 0, 0, 0])
    assert tnp.from_cupy(array, copy=False).data_ptr() == source.ctypes.data


def test_cupy_arrays_that_torch_cannot_share_are_copied(cupy):
    """Negative strides, at which torch 2.13 aborts the process, and uneven ones: copied right, or refused."""
    uneven = np.zeros(4, dtype=[("a", "i1"), ("b", "f4")])["b"]
    for source in (np.arange(4)[::-1], np.arange(6).reshape(2, 3)[:, ::-1], uneven):
        assert tnp.from_cupy(FakeArray(source)).tolist() == source.tolist()
        with pytest.raises(tnp.CopyRequiredError, match="negative or uneven"):
            tnp.from_cupy(FakeArray(source), copy=False)


def test_memory_that_dlpack_did_not_share_is_not_called_shared(cupy):
    """The address is the proof."""
    array = FakeArray(np.zeros(4))
    array.data = types.SimpleNamespace(ptr=1)
    with pytest.raises(tnp.CopyRequiredError, match="other memory"):
        tnp.from_cupy(array, copy=False)


def test_an_absent_library_is_one_clear_sentence(monkeypatch):
    """Caught as ImportError too."""
    for name, function in (("jax", tnp.to_jax), ("jax", tnp.from_jax), ("cupy", tnp.to_cupy), ("cupy", tnp.from_cupy)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(tnp.MissingLibraryError, match=f"not installed here; install {name}"):
            function(torch.ones(2))
    assert issubclass(tnp.MissingLibraryError, ImportError)


def test_cupy_without_a_gpu_says_so(cupy):
    """CuPy imports without one, and fails later."""
    cupy.is_available = lambda: False
    with pytest.raises(tnp.MissingLibraryError, match="no GPU"):
        tnp.to_cupy(torch.ones(2))


# On a GPU


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.int16, torch.complex64, torch.bfloat16])
def test_cupy_on_a_gpu_copies_shares_and_comes_back(dtype):
    """Values are NumPy's; a write crosses where memory is shared, and nowhere else."""
    real = pytest.importorskip("cupy")
    t = torch.arange(6, device="cuda").reshape(2, 3).to(dtype).T
    a = tnp.to_cupy(t)
    assert np.array_equal(real.asnumpy(a), tnp.to_numpy(t))
    assert torch.equal(tnp.from_cupy(a).to(dtype), t)
    a[:] = 0
    assert t[2, 1].item() == torch.tensor(5).to(dtype).item()
    if dtype is not torch.bfloat16:
        shared = tnp.to_cupy(t, copy=False)
        shared[:] = 1
        assert bool((t == 1).all())
        assert np.array_equal(real.asnumpy(eval(tnp.plan_cupy(t).code, {"t": t, "cupy": real, "torch": torch})), shared)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_jax_on_a_gpu_copies_shares_and_comes_back():
    """Where JAX has the GPU, nothing goes through the host; where it does not, the values are right all the same."""
    t = torch.arange(64.0, device="cuda")
    a = tnp.to_jax(t)
    t[0] = 9
    assert np.asarray(a).tolist() == list(range(64))
    assert torch.equal(tnp.from_jax(a).cpu(), torch.arange(64.0))
    if next(iter(a.devices())).platform == "gpu":
        assert Step.TO_HOST not in tnp.plan_jax(t).steps
        shared = tnp.to_jax(t, copy=False)
        t[1] = 8
        torch.cuda.synchronize()
        assert float(shared[1]) == 8


def test_to_tensor_knows_an_array_of_jax_and_of_cupy(cupy):
    """The way back has one name, whatever the array; containers too."""
    out = tnp.to_tensor({"j": jax.numpy.arange(3), "c": FakeArray(np.ones(2, np.float32)), "n": np.zeros(1)})
    assert [t.tolist() for t in out.values()] == [[0, 1, 2], [1, 1], [0]]
    assert tnp.to_tensor(jax.numpy.ones(2, dtype="bfloat16")).dtype == torch.bfloat16


@pytest.mark.parametrize("obj", [3, None, [torch.ones(1)], np.ones(2)])
def test_a_plan_of_what_is_no_tensor_names_the_function_that_was_called(obj):
    """And not the one behind it."""
    with pytest.raises(tnp.NotATensorError, match=r"plan_jax takes a torch.Tensor"):
        tnp.plan_jax(obj)
