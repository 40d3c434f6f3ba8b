"""Tensors that torch has quantized, in files of `torch.save`: what they mean is what torch itself makes of the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tensornp as tnp

FORMATS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}
QINTS = {"qint8": np.int8, "quint8": np.uint8, "qint32": np.int32}
HAS_FBGEMM = "fbgemm" in torch.backends.quantized.supported_engines
pytestmark = pytest.mark.filterwarnings("ignore")
"""Torch deprecates these tensors, and typed storages."""


def per_tensor(shape: tuple[int, ...], dtype: str = "qint8", scale: float = 0.1, zero: int = 3) -> torch.Tensor:
    most = np.iinfo(QINTS[dtype])
    codes = np.random.default_rng(0).integers(most.min, most.max, shape, dtype=QINTS[dtype], endpoint=True)
    return torch._make_per_tensor_quantized_tensor(torch.from_numpy(codes), scale, zero)


def per_channel(shape: tuple[int, ...], axis: int, dtype: str = "qint8", *, turned: bool = False) -> torch.Tensor:
    """Return codes of all sizes with scales and zero points of all sizes."""
    g = np.random.default_rng(0)
    most, n = np.iinfo(QINTS[dtype]), shape[axis]
    codes = torch.from_numpy(g.integers(most.min, most.max, shape, dtype=QINTS[dtype], endpoint=True))
    scales = torch.from_numpy(g.random(n) * 10.0 ** g.integers(-9, 9, n))
    zeros = torch.from_numpy(g.integers(most.min, most.max, n, dtype=np.int64, endpoint=True))
    made = torch._empty_per_channel_affine_quantized(
        shape, scales=scales, zero_points=zeros, axis=axis, dtype=getattr(torch, dtype),
        **({"memory_format": torch.channels_last} if turned else {}),
    )  # fmt: skip
    # Whatever torch rounds to, codes are put where they belong.
    torch.empty(0, dtype=codes.dtype).set_(made.untyped_storage(), 0, made.shape, made.stride()).copy_(codes)
    return made


def dequantized(path: Path, name: str = "w") -> np.ndarray:
    loaded = torch.load(path, weights_only=False)
    return (loaded[name] if isinstance(loaded, dict) else loaded).dequantize().detach().contiguous().numpy()


def same_bits(found: np.ndarray, expected: np.ndarray, *, is_exact: bool = True) -> bool:
    """Return whether all bits are the same; without fbgemm, torch computes with the double that a scale is."""
    if not is_exact:
        return np.allclose(found, expected, rtol=3e-7, atol=0)
    return found.dtype == expected.dtype == np.float32 and np.array_equal(found.view("u4"), expected.view("u4"))


INDICES = (
    ..., 1, -1, slice(2), slice(None, None, -2), (..., 0), (..., slice(None, None, 2)), (..., slice(-1, None, -3)),
    (None, ..., slice(1, 3)), slice(0), (slice(1, None, 3), ...),
)  # fmt: skip
SAMPLES = {
    "per tensor": (lambda: per_tensor((5, 7)), "quantized per tensor, scale 0.1, zero point 3"),
    "wide": (
        lambda: per_tensor((6, 9), "qint32", 1e-8, -(2**31)),
        "quantized per tensor, scale 1e-08, zero point -2147483648",
    ),
    "strided": (lambda: per_tensor((8, 9)).t()[1::2, ::3], "quantized per tensor, scale 0.1, zero point 3, view"),
    "rows": (lambda: per_channel((5, 7), 0), "quantized per channel along axis 0"),
    "columns": (lambda: per_channel((5, 7), 1, "quint8"), "quantized per channel along axis 1"),
    "gaps": (lambda: per_channel((8, 9), 1)[::2], "quantized per channel along axis 1, view"),
    "channels last": (lambda: per_channel((4, 5, 3, 2), 1, turned=True), "quantized per channel along axis 1"),
    "no channels": (lambda: per_channel((0, 3), 0), "quantized per channel along axis 0"),
    "one": (lambda: per_tensor(()), "quantized per tensor, scale 0.1, zero point 3"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("name", SAMPLES)
def test_the_values_are_those_that_torch_makes_of_the_file(tmp_path, name, kind):
    """Bit for bit: whole, in parts, one after the other, and for statistics."""
    make, note = SAMPLES[name]
    made, path = make(), tmp_path / "x.pt"
    torch.save({"w": made, "plain": torch.ones(2)}, path, **FORMATS[kind])
    explorer, expected = tnp.weights(path), dequantized(path)
    entry = explorer["w"]
    is_exact = HAS_FBGEMM or made.qscheme() != torch.per_tensor_affine
    assert entry._source.codec is not None
    assert (entry.dtype, entry._dtype_of_values, entry.problem) == (str(made.dtype)[6:], "float32", "")
    assert (entry.shape, entry.kind) == (tuple(made.shape), "tensor")
    assert entry.note.startswith(note)
    assert explorer.problems == []
    for index in INDICES:
        try:
            part = expected[index]
        except IndexError:
            with pytest.raises(tnp.BadRequestError):
                entry.to_numpy(index)
            continue
        assert same_bits(entry.to_numpy(index), np.asarray(part), is_exact=is_exact), index
        assert entry.plan(index).shape == part.shape
    assert entry.to_numpy(dtype="float16").dtype == np.float16
    found, wanted = entry.stats(), tnp.stats(entry.to_numpy())
    assert (found.count, found.min, found.max, found.zeros) == (wanted.count, wanted.min, wanted.max, wanted.zeros)
    assert found.count == expected.size
    if found.count:
        assert found.sum == pytest.approx(wanted.sum)
        assert found.norm == pytest.approx(wanted.norm)
    assert tnp.stats(entry._values()).sum == wanted.sum
    as_floats = tnp.compare(entry, torch.from_numpy(entry.to_numpy()))
    assert (as_floats.equal, as_floats._num_changed) == (False, 0)
    assert eval(entry.code).dequantize().shape == made.shape


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.rnn = torch.nn.Linear(4, 3), torch.nn.LSTM(4, 3)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_state_of_a_dynamically_quantized_module_shows_its_weights(tmp_path, kind):
    """They lie in tuples of packed parameters, also of a recurrent layer."""
    quantize_dynamic = pytest.importorskip("torch.ao.quantization").quantize_dynamic

    model = quantize_dynamic(Model(), {torch.nn.Linear, torch.nn.LSTM}, dtype=torch.qint8)
    torch.save(model.state_dict(), tmp_path / "x.pt", **FORMATS[kind])
    explorer = tnp.weights(tmp_path / "x.pt")
    coded = [one for one in explorer.values() if one.dtype == "qint8"]
    assert [one.shape for one in coded] == [(3, 4), (12, 4), (12, 3)]
    found = explorer["fc._packed_params._packed_params.0"].to_numpy()
    assert same_bits(found, model.fc.weight().dequantize().numpy(), is_exact=HAS_FBGEMM)
    weights = dict(model.rnn.get_weight())
    for one, name in zip(coded[1:], ("weight_ih_l0", "weight_hh_l0"), strict=True):
        assert same_bits(one.to_numpy(), weights[name].dequantize().numpy(), is_exact=HAS_FBGEMM)
    assert explorer.problems == ["it wants to import 'torch.ScriptObject', and nothing was imported"]
    assert not explorer.scan().failed


class Rebuilt:
    """Pickled as a quantized tensor of four codes."""

    def __init__(self, dtype: torch.dtype, quantizer: object) -> None:
        codes = torch.ones(32, dtype=torch.uint8).untyped_storage()
        self.storage = torch.storage.TypedStorage(wrap_storage=codes, dtype=dtype, _internal=True)
        self.quantizer = quantizer

    def __reduce__(self) -> tuple[object, ...]:
        return torch._utils._rebuild_qtensor, (self.storage, 0, (4,), (1,), self.quantizer, False, {})


QUANTIZERS = {
    "zero point": (torch.per_tensor_affine, 0.1, 10**400), "scale": (torch.per_tensor_affine, 10**400, 0),
    "axis": (torch.per_channel_affine, torch.ones(4), torch.zeros(4, dtype=torch.long), -1), "no scheme": ["x"],
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.qint8, torch.float32, torch.bool])
@pytest.mark.parametrize(
    "quantizer", [*QUANTIZERS.values(), (torch.per_tensor_affine, 0.1, 0)], ids=[*QUANTIZERS, "own"]
)
def test_what_torch_would_not_write_is_a_problem_and_hides_no_other(tmp_path, dtype, quantizer):
    """Codes of another dtype, and scales that no tensor can have."""
    torch.save({"w": Rebuilt(dtype, quantizer), "p": torch.ones(2)}, tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    is_sound = dtype == torch.qint8 and quantizer not in QUANTIZERS.values()
    assert (explorer["w"].problem == "") == is_sound
    assert explorer["p"].to_numpy().tolist() == [1, 1]
    assert list(explorer.scan(progress=False)) == (["w", "p"] if is_sound else ["p"])


def test_files_of_quantized_tensors_are_compared(tmp_path):
    """With each other, and with what they were before."""
    values = torch.linspace(-1, 1, 60).view(6, 10)
    for name, scale in (("a", 0.01), ("b", 0.02)):
        torch.save({"w": torch.quantize_per_tensor(values, scale, 0, torch.qint8)}, tmp_path / f"{name}.pt")
    torch.save({"w": values}, tmp_path / "plain.pt")
    a, b, plain = (tmp_path / f"{name}.pt" for name in ("a", "b", "plain"))
    assert tnp.compare(a, a).same_bits
    assert not tnp.compare(a, b).equal
    assert 0 < tnp.compare(plain, a)["w"].max_abs <= 0.0051
    as_floats = tnp.compare(tnp.weights(a)["w"], torch.load(a, weights_only=False)["w"].dequantize())
    assert (as_floats.equal, as_floats.verdict) == (False, "the same values, qint8 and float32")
    of_other_scheme = torch.quantize_per_channel(values, torch.full((6,), 0.01), torch.zeros(6).long(), 0, torch.qint8)
    torch.save({"w": of_other_scheme}, tmp_path / "c.pt")
    found = tnp.compare(a, tmp_path / "c.pt")
    assert (found.equal, found.same_bits) == (True, False)
