"""A scan of all weights: the same bits from every engine, the worst first, and what was finished is kept."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from child import in_child
from safetensors.torch import save_file

import tensornp as tnp
from tensornp.models.scan import findings
from tensornp.models.scan import run as scan


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    g = torch.Generator().manual_seed(0)
    made = {f"layers.{i}.w": torch.randn(300, 701, generator=g) for i in range(3)}
    made["layers.1.w"][5, 6] = math.nan
    made["embed"] = torch.randn(9_000_001, generator=g).to(torch.bfloat16)
    made |= {
        "bn.running_var": torch.tensor([1.0, 0.0]), "full": torch.tensor([1.0, 65504.0]).half(),
        "ones": torch.ones(5), "empty": torch.zeros(0), "f8": torch.full((3,), 448.0).to(torch.float8_e4m3fn),
        "number": torch.tensor(7), "inf": torch.tensor([1.0, -math.inf]), "z": torch.tensor([1 + 2j, 3j]),
    }  # fmt: skip
    save_file(made, folder / "model.safetensors")
    return made


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    made = weights_of(folder)
    return folder / "model.safetensors", made


@pytest.mark.slow
def test_the_worst_comes_first_with_its_numbers(model):
    """Each finding is a sentence."""
    table = tnp.weights(model[0]).scan()
    said = {name: [finding.text for finding in table.findings(name)] for name in table if table.findings(name)}
    assert list(said.items()) == [
        ("layers.1.w", ["1 of 210,300 is NaN"]),
        ("inf", ["1 of 2 is infinite"]),
        ("bn.running_var", ["a running variance is 0, and not positive"]),
        ("f8", ["a value is 448, the largest that float8_e4m3fn has", "all 3 are 448"]),
        ("full", ["a value is 65504, the largest that float16 has"]),
        ("ones", ["all 5 are 1"]),
    ]
    assert repr(table) == f"<ScanTable of {len(model[1])} weights, 5 findings, 1 remark>"
    assert (table.num_alarms, table.num_quiet, table.num_left) == (5, 1, 0)
    with pytest.raises(KeyError, match=r"there are no statistics of 'layers\.9\.w'; the closest is 'layers\."):
        table["layers.9.w"]


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("v_proj.weight", torch.zeros(8, 8), "a matrix whose 64 elements are all 0"),
        ("conv.weight", torch.zeros(2, 3, 2, 2).bfloat16(), "a matrix whose 24 elements are all 0"),
        ("w", torch.tensor([1.0, 3e38]), "a value is 3e+38, beyond any weight"),
        ("w", torch.tensor([[1.0, -2e35]]), "a value is -2e+35, beyond any weight"),
        ("w", torch.tensor([1.0, -65504.0]).half(), "a value is -65504, the least that float16 has"),
        # What is so on purpose: a bias, an adapter before training, integers, a mask.
        ("norm.bias", torch.zeros(8), ""),
        ("q.lora_B.default.weight", torch.zeros(8, 8), ""),
        ("positions", torch.zeros(8, 8, dtype=torch.long), ""),
        ("mask", torch.full((8, 8), torch.finfo(torch.float32).min).triu(1), ""),
    ],
)
def test_zero_matrices_and_huge_values_are_findings(name, values, told):
    """Among weights that are not zero, and alone."""
    for others in ({}, {"other.weight": torch.randn(8, 8)}):
        table = tnp.weights({name: values, **others}).scan()
        assert [one.text for one in table.findings(name) if one.rank < findings.QUIET_RANK] == ([told] if told else [])


def test_dead_rows_and_outlying_columns_are_found(tmp_path):
    """Quietly: what is pruned or a padding has such rows on purpose. Of more dimensions, channels are told by axis."""
    wide = torch.randn(30, 40, generator=torch.Generator().manual_seed(0))
    wide[[3, 17]] = 0
    wide[:, 5] *= 100
    wide[:, 7] *= 60
    convolution = torch.ones(8, 9, 3, 3)
    convolution[:, 4] = 0
    convolution[:, :, 0, 0] *= torch.arange(8.0).add(1)[:, None]
    made = {"w": wide, "c": convolution, "half": wide.half(), "zero": torch.zeros(20)}
    save_file(made, tmp_path / "model.safetensors")
    for source in (made, tmp_path):
        table = tnp.weights(source).scan()
        median = wide.norm(dim=0).quantile(0.5)
        ratios = [f"{float(wide[:, i].norm() / median):.3g} times" for i in (5, 7)]
        dead = "2 of 30 rows are zero throughout: 3, 17"
        out = f"2 of 40 columns have 10 times the median norm or more: 5 ({ratios[0]}), 7 ({ratios[1]})"
        said = {name: [finding.text for finding in table.findings(name)] for name in table}
        assert said["w"] == [dead, out]
        assert said["half"][0] == dead
        assert said["c"] == ["1 of 9 channels along axis 1 is zero throughout: 4"]
        assert said["zero"] == ["all 20 are 0"]
        assert all(finding.rank >= findings.QUIET_RANK for name in table for finding in table.findings(name))


def test_weights_of_equal_content_are_found(tmp_path):
    """They lie twice in memory, or in the file; what is tied is one, and what is one number throughout says nothing."""
    values = torch.randn(400, 500, generator=torch.Generator().manual_seed(0))
    made = {
        "embed": values, "head": values.clone(), "other": values + 1, "half": values.half(), "flat": values.reshape(-1),
        "turned": values.t().contiguous(), "ones": torch.ones(9), "more ones": torch.ones(9),
        **{f"layers.{i}.inv_freq": torch.arange(8.0) for i in range(6)},
    }  # fmt: skip
    save_file({name: tensor.clone() for name, tensor in made.items()}, tmp_path / "model.safetensors")
    for source in (made, tmp_path):
        table = tnp.weights(source).scan()
        said = {name: [one.text for one in table.findings(name)] for name in table if table.findings(name)}
        assert said.pop("ones") == said.pop("more ones") == ["all 9 are 1"]
        assert said.pop("embed") == ["the same values as 'head'"]
        assert said.pop("head") == ["the same values as 'embed'"]
        first = "the same values as 'layers.1.inv_freq', 'layers.2.inv_freq' and 3 more"
        assert said.pop("layers.0.inv_freq") == [first]
        assert set(said) == {f"layers.{i}.inv_freq" for i in range(1, 6)}


def test_what_is_tied_is_read_and_counted_once(tmp_path):
    """In a file and in memory; each name has the statistics."""
    weight = torch.randn(30, 40)
    made = {"embed": weight, "other": torch.randn(7), "head": weight}
    torch.save(made, tmp_path / "tied.pt")
    for source in (tmp_path / "tied.pt", made):
        told: list[tuple[int, int]] = []
        table = tnp.weights(source).scan(progress=lambda *seen, told=told: told.append(seen))
        assert list(table) == list(made)
        assert told[-1] == (4 * 1207, 4 * 1207)
        assert table["embed"] == table["head"]
        assert sorted(stats.count for _, stats in table.distinct()) == [7, 1200]


@pytest.mark.parametrize("engine", [None, ThreadPoolExecutor(1)])
def test_what_was_finished_is_kept(model, engine):
    """Ctrl-C gives a table that is not complete."""
    explorer = tnp.weights(model[0])
    told: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        told.append((done, total))
        raise KeyboardInterrupt

    table = explorer.scan(engine, progress=stop)
    assert not table.complete
    assert 0 < len(table) < len(explorer)
    assert repr(table).endswith(f", stopped, {table.num_left} were not read>")
    assert table.num_left == len(explorer) - len(table)
    assert 0 <= told[0][0] < told[0][1] == sum(entry.nbytes for entry in explorer.values())


@pytest.mark.slow
def test_a_bar_appears_where_it_takes_long(model, monkeypatch, capsys):
    """And nothing is written where it does not, or is not wanted."""
    monkeypatch.setattr(scan, "_DELAY_S", 1000.0)
    tnp.weights(model[0]).scan()
    monkeypatch.setattr(scan, "_DELAY_S", 0.0)
    tnp.weights(model[0]).scan(progress=False)
    tnp.compare(model[1], model[1], progress=False)
    assert capsys.readouterr().err == ""
    tnp.weights(model[0]).scan()
    assert "scan:" in capsys.readouterr().err
    tnp.compare(model[1], model[1])
    assert "compare:" in capsys.readouterr().err
    with pytest.raises(tnp.BadRequestError, match="progress must be a function of two numbers or False, got "):
        tnp.weights(model[0]).scan(progress=3)


def test_a_tensor_that_torch_does_not_read_hides_no_other():
    """Its scales are of another size than it has channels: that is told of it alone."""
    codes, scales = torch.ones(4, 3, dtype=torch.int8), torch.ones(4)
    odd = torch._make_per_channel_quantized_tensor(codes, scales, torch.zeros(4, dtype=torch.long), 0)
    odd.q_per_channel_scales().resize_(1)
    table = tnp.weights({"odd": odd, "z": torch.full((3,), math.nan)}).scan()
    assert table.complete
    assert table["z"].nan == 3
    assert "scales" in table.failed["odd"]
    compared = tnp.compare({"odd": odd, "z": torch.zeros(3)}, {"odd": odd, "z": torch.ones(3)})
    assert list(compared.changed()) == ["z"] and "odd" in compared.failed


def test_a_scan_says_which_weight_is_not_as_its_siblings_are():
    """Those that are one line of the tree with it, and of one shape; what counts has none."""
    state = {f"layer.{i}.w": torch.randn(30, 20, generator=torch.Generator().manual_seed(i)) for i in range(6)}
    state["layer.4.w"] *= 9
    state |= {f"layer.{i}.steps": torch.tensor(10**i) for i in range(6)} | {"head": 1e6 * torch.arange(1.0, 8)}
    found = tnp.weights(state).scan()
    said = {name: [one.text for one in found.findings(name) if "siblings" in one.text] for name in found}
    assert {name for name, texts in said.items() if texts} == {"layer.4.w"}
    norms = sorted(float(state[f"layer.{i}.w"].norm()) for i in range(6))
    assert said["layer.4.w"] == [f"its norm is {norms[-1] / norms[2]:.3g} times the median of its 5 siblings"]
    assert (found.num_alarms, found.num_quiet) == (0, 1)


TIMEOUT_S = 400


def saved(folder: Path) -> dict[str, torch.Tensor]:
    """Write a checkpoint of two files, of which one weight takes several tasks."""
    g = torch.Generator().manual_seed(0)
    large = torch.randn(9_000_001, generator=g).to(torch.bfloat16)
    large[8_765_432] = math.nan
    made = {"large": large, "w": torch.randn(300, 701, generator=g), "f8": torch.ones(9).to(torch.float8_e4m3fn)}
    more = {"b": torch.tensor([1.0, -math.inf]), "i": torch.arange(-50, 50), "empty": torch.zeros(0, 3)}
    save_file(made, folder / "model-00001-of-00002.safetensors")
    save_file(more, folder / "model-00002-of-00002.safetensors")
    return made | more


def end_in_time() -> None:
    """Have this process be interrupted if it takes too long, so that what it has started is ended."""

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"no answer within {TIMEOUT_S} s")

    if hasattr(signal, "alarm"):
        signal.signal(signal.SIGALRM, too_long)
        signal.alarm(TIMEOUT_S)


@pytest.mark.slow
@in_child
def test_other_processes_give_the_bits_of_a_scan_without_them():
    """And those of the tensors in memory."""
    end_in_time()
    with tempfile.TemporaryDirectory() as place:
        made = saved(Path(place))
        explorer = tnp.weights(place)
        assert len([*explorer["large"]._source.tasks()]) > 1
        expected = {key: tnp.stats(one) for key, one in made.items()}
        assert dict(explorer.scan()) == expected
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
            assert executor.submit(os.getpid).result() != os.getpid()
            table = explorer.scan(executor)
            assert table.complete
            assert table.failed == {}
            assert dict(table) == expected
            found = [found.text for found in table.findings("large")]
            assert found == ["1 of 9,000,001 is NaN"]
            # A worker sees for itself that it is not the file that was listed.
            os.utime(explorer["b"].location, ns=(1, 1))
            failed = explorer.scan(executor).failed
            assert sorted(failed) == ["b", "i"]
            assert all("changed since it was listed" in why for why in failed.values())
