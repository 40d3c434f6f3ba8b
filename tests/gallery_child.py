"""What is done with one kind of the gallery, in a process of its own that may die: the checks, and the folk recipe."""

from __future__ import annotations

import contextlib
import ctypes
import html
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import ml_dtypes
import numpy as np
import torch
from display import without_figures
from forked import Ending, run_each
from gallery import KINDS, Case, made
from IPython.core.interactiveshell import InteractiveShell
from torch._subclasses.fake_tensor import FakeTensorMode
from traitlets.config import Config
from unchanged import unchanged

import tensornp as tnp
from tensornp.core.convert.plan import MODES
from tensornp.render.tensor.receipt import statements
from tensornp.session import ledger
from tensornp.widget.toggle import TensorWidget


@contextlib.contextmanager
def _default_dtype() -> Iterator[None]:
    torch.set_default_dtype(torch.bfloat16)
    yield
    torch.set_default_dtype(torch.float32)


SURROUNDINGS: tuple[Callable[[], contextlib.AbstractContextManager[Any]], ...] = (
    lambda: torch.device("meta"),
    lambda: FakeTensorMode(allow_non_fake_inputs=True),
    torch.inference_mode,
    _default_dtype,
)
"""What a user may have entered; neither a card nor a conversion may depend on it."""


def check(name: str) -> str:
    """Hold one kind to every promise; an AssertionError tells which one is broken, the text why there is none."""
    case = made(name)
    if isinstance(case, str):
        return case
    text = _check_display(case)
    for surroundings in SURROUNDINGS:
        with surroundings():
            assert _text(case) == text, f"another text in {surroundings}"
    # To convert what a collective is making waits for it, and changes its card.
    for surroundings in SURROUNDINGS:
        with surroundings():
            _check_values_within(case)
    _check_stats(case)
    _check_follow(case)
    if case.error is not None:
        _check_refusal(case)
        return ""
    for mode in MODES:
        _check_mode(case, mode)
    _check_toggle(case)
    return ""


def _check_stats(case: Case) -> None:
    """Statistics are those of the array that it becomes, and are refused where there is none; nothing is changed."""
    refused = None
    with unchanged(case.tensor):
        try:
            found = tnp.stats(case.tensor)
            tnp.stats(case.tensor, axis=0)
            tnp.locate(case.tensor)
        except tnp.TensornpError as error:
            refused = error
    if refused is not None:
        assert str(refused).count("\n") == 0
        _check_advice(case, refused)
        if not isinstance(refused, tnp.BadRequestError):
            assert case.error is not None, f"no statistics: {refused}"
            return
    if case.error is not None:
        assert "local shard" in found.scope or case.error is tnp.TooLargeError
        return
    arrays = case.expected if isinstance(case.expected, list) else [case.expected]
    numbers = np.concatenate([np.zeros(0), *(_shown(np.ma.asanyarray(array)) for array in arrays)])
    if numbers.dtype.kind == "c":
        numbers = np.where(np.isnan(numbers), np.nan, np.abs(numbers.astype(np.complex128)))
    finite = numbers[np.isfinite(numbers)].astype(np.float64)
    assert (found.count, found.nan, found.finite) == (len(numbers), np.isnan(numbers).sum(), len(finite))
    assert found.zeros == (numbers == 0).sum()
    if len(finite):
        assert np.isclose(found.mean, finite.mean(), atol=1e-6 * np.abs(finite).max(initial=0))
        assert np.isclose(found.min, finite.min()) and np.isclose(found.max, finite.max())


def _check_follow(case: Case) -> None:
    """A call that gets and gives it is followed, whatever cannot be read of it; nothing is changed."""
    for level in ("modules", "operators"):
        _check_followed(case, level)


def _check_followed(case: Case, level: str) -> None:
    module = torch.nn.Identity()
    with unchanged(case.tensor), tnp.follow(level=level) as run:
        module(case.tensor)
    (call,) = run.calls
    assert (call.status, run._record.notes) == ("returned", ())
    assert all(value.figures or value.note for value in call.outputs.values()), "no figures, and no word why"
    assert "Identity" in tnp.card(run).text
    if level == "operators" and tnp.inspect(case.tensor).data_state == "available":
        with tnp.follow(level=level) as run, contextlib.suppress(Exception):
            case.tensor.clone()
        assert run._record.notes == ()


def _shown(array: Any) -> Any:
    """Return the elements that no mask hides, as NumPy's own numbers."""
    flat = array.compressed()
    return flat.astype(np.float32) if flat.dtype.kind == "V" else flat


def _text(case: Case) -> str:
    bundle, _ = shell().display_formatter.format(case.tensor)
    # How many bytes are free changes from one moment to the next.
    return re.sub(r"and [\d.,]+ \w+ are free", "and some are free", bundle["text/plain"])


def _check_display(case: Case) -> str:
    formatter = shell().display_formatter
    inside = [
        held for held in object.__getattribute__(case.tensor, "__dict__").values() if isinstance(held, torch.Tensor)
    ]
    watched = [case.tensor, *inside, *([case.memory] if case.memory is not None else [])]
    with unchanged(*watched):
        bundle, _ = formatter.format(case.tensor)
        info = tnp.inspect(case.tensor)
    assert {"text/plain", "text/html"} <= set(bundle)
    assert not bundle["text/plain"].startswith("<"), "the last resort of a shell"
    if case.error is None:
        assert info.data_state == "available"
        check_text(case, bundle["text/plain"])
    else:
        assert case.says in bundle["text/plain"], bundle["text/plain"]
    return _text(case)


def _check_values_within(case: Case) -> None:
    """The values do not depend on what is around; a tensor that has none is refused everywhere."""
    try:
        array = tnp.to_numpy(case.tensor, copy=True)
    except tnp.TensornpError as error:
        assert type(error) is case.error, repr(error)
    else:
        assert equal(array, case.expected)


def check_text(case: Case, card: str) -> None:
    """What is shown is what NumPy prints of the expected array, or a sentence that says why not."""
    # Under the badges, there may be lines on the memory.
    notes = ("this torch", "same memory", "other")
    text = "\n".join(line for line in without_figures(card).splitlines()[1:] if not line.startswith(notes))
    if text.startswith("("):
        assert "looking" in text, text
        return
    assert text == repr(_exactly(case.expected, tnp.plan(case.tensor).dtype)), text


def _exactly(expected: Any, dtype: np.dtype[Any]) -> Any:
    if isinstance(expected, list):
        return [_exactly(part, dtype) for part in expected]
    return expected.astype(dtype)


def _check_refusal(case: Case) -> None:
    for copy in (None, True, False):
        try:
            tnp.to_numpy(case.tensor, copy=copy)
        except tnp.TensornpError as error:
            # Where a copy is out of the question, no other cure need be named.
            if copy is not False or type(error) is case.error:
                assert type(error) is case.error, repr(error)
                assert case.says in str(error), str(error)
            assert "\n" not in str(error)
            _check_advice(case, error)
        else:
            raise AssertionError("not refused")


def _check_advice(case: Case, error: Exception) -> None:
    """Each expression that an error names can be converted, unless it is too large."""
    for code in re.findall(r"tnp\.\w+\(t\)|\bt(?:\.\w+(?:\([^()]*\))?)+", str(error)):
        with contextlib.suppress(tnp.TooLargeError):
            named = eval(code, {"t": case.tensor, "torch": torch, "tnp": tnp})
            for one in named if isinstance(named, (tuple, list)) else [named]:
                if isinstance(one, torch.Tensor):
                    tnp.to_numpy(one, copy=True)


def _check_mode(case: Case, mode: str) -> None:
    arguments = MODES[mode]
    try:
        with unchanged(case.tensor):
            plan = tnp.plan(case.tensor, **arguments)
    except tnp.CopyRequiredError as error:
        assert mode == "share"
        assert "pass copy=None" in str(error)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        array = tnp.to_numpy(case.tensor, **arguments)
    first = array[0] if isinstance(array, list) and array else array
    if plan.writeable and isinstance(first, np.ndarray) and first.size:
        # A write to a page that is mapped read-only would end the process.
        first[(0,) * first.ndim] = first[(0,) * first.ndim]
    assert equal(array, case.expected), (mode, array)
    if not isinstance(array, list) or array:
        assert first.dtype == plan.dtype
        assert first.flags.writeable == plan.writeable
        _check_sharing(case, first, plan)
    names = {"t": case.tensor, "np": np, "torch": torch, "ml_dtypes": ml_dtypes}
    _check_code(plan, case, names)


def _check_toggle(case: Case) -> None:
    """In each mode that a live card offers, what it shows is what Assign assigns."""
    bound: dict[str, Any] = {}

    def bind(name: str, make: Callable[[], Any], overwrite: bool) -> None:
        bound[name] = make()

    widget = TensorWidget(case.tensor, binder=bind)
    for mode in [choice["name"] for choice in widget.choices if choice["enabled"]]:
        with unchanged(case.tensor):
            widget.mode = mode
        widget.bind(mode)
        # Looking does not read everything; then nothing is shown.
        # A nested tensor gives a list, and its card says so.
        first = html.escape(repr(bound[mode]).split("\n")[0])
        assert first in re.sub("<[^>]*>", "", widget.html) or "looking" in _text(case), mode
    widget.close()


def _check_code(plan: Any, case: Case, names: dict[str, Any]) -> None:
    if type(case.tensor).__name__ in ("Raising", "Lying"):
        # Plain code is at the mercy of such a class.
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert equal(eval(plan.code, names), case.expected), plan.code
        written = {**names, "model": SimpleNamespace(t=case.tensor), "t": None}
        exec(statements(plan.code, "model.t"), written)
        assert equal(written["a"], case.expected), plan.code
        if isinstance(written["a"], np.ndarray) and plan.shares_memory:
            assert written["a"].flags.writeable == plan.writeable, plan.code


def equal(array: Any, expected: Any) -> bool:
    """Return whether all values are the same, in their bits where the dtype is; NaN is NaN, whatever its payload."""
    if isinstance(expected, list):
        return isinstance(array, list) and len(array) == len(expected) and all(map(equal, array, expected))
    if isinstance(expected, np.ma.MaskedArray):
        if type(array) is not type(expected):
            return False
        same_mask = np.array_equal(np.ma.getmaskarray(array), np.ma.getmaskarray(expected))
        return same_mask and equal(array.data, expected.data)
    if not isinstance(array, np.ndarray) or array.shape != expected.shape:
        return False
    wide = np.result_type(expected.dtype, np.float32) if array.dtype != expected.dtype else expected.dtype
    if array.dtype.kind not in "biufc":
        array = array.astype(np.complex64 if array.dtype.name == "complex32" else np.float32)
    a, b = array.astype(wide), expected.astype(wide)
    is_float = wide.kind in "fc"
    if not np.array_equal(a, b, equal_nan=is_float):
        return False
    return not is_float or np.array_equal(np.signbit(a.real[~np.isnan(a)]), np.signbit(b.real[~np.isnan(b)]))


def _check_sharing(case: Case, array: Any, plan: Any) -> None:
    """Prove the badge by writes: past every library into the tensor's memory, and by NumPy into the array."""
    if not plan.writeable:
        try:
            array[...] = 0
        except ValueError:
            pass
        else:
            raise AssertionError("a read-only array was written")
    if case.memory is None or not case.memory.numel():
        return
    byte = ctypes.c_uint8.from_address(torch.Tensor.data_ptr(case.memory))
    before = array.tobytes()
    byte.value ^= 1
    seen = array.tobytes() != before
    byte.value ^= 1
    assert seen == plan.shares_memory, f"shares_memory is {plan.shares_memory}, and a write was {seen=}"
    if plan.shares_memory and plan.writeable:
        first, old = (0,) * array.ndim, before[: array.itemsize]
        array[first] = _element(bytes([old[0] ^ 1]) + old[1:], array.dtype)
        assert byte.value == old[0] ^ 1, "a NumPy write does not reach the tensor"
        array[first] = _element(old, array.dtype)


def _element(content: bytes, dtype: np.dtype[Any]) -> Any:
    return np.ndarray((), dtype, bytearray(content))


def find(name: str) -> None:
    """Search for one kind among others of its kind, as the target and as a name: each is found, and nothing changed."""
    case, t = made(name), torch.ones(3)
    if isinstance(case, str):
        return
    try:
        other = KINDS[name][1]()
    except (ValueError, RuntimeError):
        # A process group, or a level of differentiation, that there is only once.
        other = case
    watched = [case.tensor, *([case.memory] if case.memory is not None else [])]
    names = {"case": case.tensor, "t": t}
    with unchanged(*watched):
        mine, plain = tnp.aliases(case.tensor, names), tnp.aliases(t, names)
        strange = tnp.aliases(case.tensor, {"other": other.tensor}) if other.tensor is not case.tensor else []
        beside = tnp.aliases(case.tensor, {"memory": case.memory}) if case.memory is not None else None
    assert ("case", "same object") in {(a.name, a.relation) for a in mine}
    assert [a.name for a in plain] == ["t"]
    assert [a.name for a in strange] == []
    if beside is not None and case.memory is not None and case.memory.numel():
        assert [a.name for a in beside][:1] == ["memory"]


def endings(name: str, *tasks: Callable[[str], Any]) -> dict[str, Ending]:
    """Return how each of `tasks` ended for one kind, by the task's name."""
    return dict(zip((task.__name__ for task in tasks), run_each(tasks, name), strict=True))


def shell() -> InteractiveShell:
    """Return a real shell with tensornp loaded and every MIME type active."""
    if not InteractiveShell.initialized():
        quiet = Config({"HistoryManager": {"enabled": False}, "InteractiveShell": {"colors": "nocolor"}})
        ledger.MAX_SEARCH_SECONDS = 60
        shell = InteractiveShell.instance(config=quiet)
        shell.display_formatter.active_types = shell.display_formatter.format_types
        shell.run_line_magic("load_ext", "tensornp")
        # Cards print compactly only if NumPy's options are at their defaults.
        np.set_printoptions(linewidth=76)
        # Python, IPython and NumPy import and cache on first use: not what is looked for.
        shell.display_formatter.format(torch.ones(3, dtype=torch.bfloat16))
    return InteractiveShell.instance()
