"""The command `tensornp`: what it prints, what its status tells, and that it ends quietly wherever it is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import tensornp
from tensornp.fronts.command_line import main

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX system is needed: signals and terminals")
COMMAND = [sys.executable, "-m", "tensornp"]
PATH = os.pathsep.join(filter(None, sys.path))
STATE = {
    **{f"layers.{i}.weight": torch.arange(12.0).reshape(3, 4) + i for i in range(3)},
    "head.weight": torch.full((5, 4), 2.5), "head.bias": torch.zeros(5),
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a model, the same by torch.save, and another one, of which one value is NaN."""
    folder = tmp_path_factory.mktemp("files")
    save_file(STATE, folder / "model.safetensors", {"format": "pt"})
    torch.save(STATE, folder / "model.pt")
    save_file(STATE | {"head.bias": torch.tensor([0, 0, torch.nan, 0, 0])}, folder / "other.safetensors")
    (folder / "text.safetensors").write_text("no weights")
    return folder


@pytest.fixture
def said(files, capsys, monkeypatch):
    """What runs the command in that folder, and gives its status, its output and its errors."""
    monkeypatch.chdir(files)

    def ran(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        return status, *capsys.readouterr()

    return ran


def in_child(folder, *arguments: str, command=COMMAND, **options) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own, whose environment has `env` besides."""
    env = {key: value for key, value in os.environ.items() if key not in ("TENSORNP_RAISE", "NO_COLOR")}
    env |= {"PYTHONPATH": PATH, **options.pop("env", {})}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "timeout": 300} | options
    return subprocess.run([*command, *arguments], cwd=folder, env=env, check=False, **options)


def test_a_path_is_listed_as_in_a_notebook(said):
    """Layers that are alike in one line, under the totals."""
    status, out, err = said("model.safetensors")
    assert (status, err) == (0, "")
    heading, columns, *rows = out.splitlines()
    assert heading == "model.safetensors · 5 weights · 61 elements · 244 bytes · all float32"
    assert columns.split() == ["name", "shape", "bytes"]
    assert {row.split("  ")[0] for row in rows} == {"layers.{0..2}.weight", "head.weight", "head.bias", "format: pt"}


def test_a_list_is_searched_and_sorted(said):
    """By the words of `find`, and by a column, the largest first."""
    assert "2 weights" in said("--find", "head", "model.safetensors")[1]
    _, out, _ = said("model.safetensors", "--sort", "bytes")
    assert [line.split()[0] for line in out.splitlines()[2:5]] == ["head.weight", "layers.{0..2}.weight", "head.bias"]
    for command in ([], ["scan"]):
        assert said(*command, "--find", "nothing", "model.safetensors") == (2, "", "tensornp: no name fits 'nothing'\n")


def test_json_tells_each_weight_by_itself(said):
    status, out, _ = said("--json", "--sort", "name", "model.safetensors")
    record = json.loads(out)
    assert status == 0
    assert list(record) == ["source", "totals", "problems", "weights"]
    assert record["totals"] == {"parameters": 61, "elements_stored": 61, "nbytes": 244}
    assert [one["name"] for one in record["weights"]] == sorted(STATE)
    assert record["weights"][1] | {"location": ""} == {
        "name": "head.weight", "kind": "tensor", "shape": [5, 4], "dtype": "float32", "nbytes": 80, "location": "",
        "tied_to": [], "note": "", "problem": "", "wanted_imports": [],
    }  # fmt: skip


def test_a_scan_tells_what_stands_out_and_has_the_status_of_one_that_found_nothing(said):
    """A finding is no trouble."""
    status, out, err = said("scan", "other.safetensors")
    assert (status, err) == (0, "")
    assert "1 weight has NaN: head.bias" in out
    record = json.loads(said("scan", "--json", "other.safetensors")[1])
    assert record["complete"]
    assert record["weights"][0]["name"] == "head.bias"
    assert record["weights"][0]["findings"] == ["1 of 5 is NaN"]
    assert [one["name"] for one in json.loads(said("scan", "--find", "head.w*", "--json", "other.safetensors")[1])[
        "weights"
    ]] == ["head.weight"]  # fmt: skip


def test_the_status_of_a_diff_tells_whether_two_are_equal(said):
    """As that of diff does: 0, 1, or 2 for trouble."""
    status, out, _ = said("diff", "model.safetensors", "model.pt")
    assert (status, out) == (0, "model.safetensors and model.pt: same bits\n")
    status, out, _ = said("diff", "model.safetensors", "other.safetensors")
    assert (status, out.splitlines()[0]) == (1, "model.safetensors and other.safetensors: 1 of 5 weights differ")
    status, out, _ = said("diff", "--json", "model.safetensors", "other.safetensors")
    record = json.loads(out)
    assert (status, record["equal"], record["first"]) == (1, False, "model.safetensors")
    assert {one["name"]: one["equal"] for one in record["weights"]} == {name: name != "head.bias" for name in STATE}
    assert said("diff", "--find", "layers", "model.safetensors", "other.safetensors")[0] == 0
    assert said("diff", "model.safetensors", "nothing.safetensors")[0] == 2


def test_a_page_is_written_that_stands_alone(said, files, tmp_path):
    """It prints nothing then, unless JSON is asked for as well."""
    status, out, err = said("--html", str(tmp_path / "page.html"), "model.safetensors")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert (status, out, err) == (0, "", "")
    assert page.startswith("<!DOCTYPE html>")
    assert "5 weights" in page
    assert "<script" not in page
    assert json.loads(said("--json", "--html", str(tmp_path / "page.html"), "model.safetensors")[1])
    assert said("diff", "--html", str(tmp_path / "page.html"), "model.safetensors", "other.safetensors")[:2] == (1, "")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing.safetensors"], "there is no 'nothing.safetensors'"),
        (["text.safetensors"], "is not a valid safetensors file"),
        (["scan", "text.safetensors"], "is not a valid safetensors file"),
        (["--unknown", "model.safetensors"], "unrecognized arguments: --unknown"),
        (["--json=yes", "model.safetensors"], "--json"),
        (["--sort", "colour", "model.safetensors"], "invalid choice: 'colour'"),
        (["--sort", "bytes", "scan", "model.safetensors"], "scan has an order of its own"),
        (["--html", "no/folder.html", "model.safetensors"], "no/folder.html: No such file or directory"),
        ([], "takes PATH, and none are given"),
        (["scan"], "tensornp scan takes PATH, and none are given"),
        (["diff", "model.pt"], "tensornp diff takes A and B, and 1 is given"),
        (["model.pt", "model.pt"], "takes PATH, and 2 are given"),
        ([" "], "the path is empty"),
        (["--", "--json"], "there is no '--json'"),
        (["a\nb"], r"there is no 'a\nb'"),
    ],
)
def test_trouble_is_a_line_and_a_status(said, arguments, told):
    """On the stream of errors, without a traceback."""
    status, out, err = said(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("tensornp: ")
    assert told in err
    assert err.count("\n") == 1


def test_help_names_every_option_and_the_version_is_told(said):
    status, out, _ = said("--help")
    assert status == 0
    assert all(option in out for option in ("--find", "--sort", "--json", "--html"))
    assert said("--version")[:2] == (0, f"tensornp {tensornp.__version__}\n")


@pytest.mark.slow
@needs_posix
@pytest.mark.parametrize("arguments", [["model.safetensors"], ["--json", "model.safetensors"], ["--help"]])
def test_a_pipe_that_is_closed_early_is_no_trouble(files, arguments):
    """`| true` reads nothing of it, and `| head -1` a line."""
    ours = f"{' '.join(map(repr, COMMAND))} {' '.join(arguments)}"
    for reader, num_lines in (("true", 0), ("head -1", 1)):
        line = f"set -o pipefail; ({ours}; echo $? >&2) | {reader}"
        done = in_child(files, "-c", line, command=["bash"])
        assert (done.stderr, done.stdout.count(b"\n")) == (b"0\n", num_lines)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is needed")
def test_an_output_that_takes_nothing_is_trouble(files):
    """A full disk; streams that were closed before the start are written to by nobody."""
    with open("/dev/full", "wb") as full:
        done = in_child(files, "model.safetensors", stdout=full)
    assert (done.returncode, done.stderr) == (2, b"tensornp: No space left on device\n")
    for closed, status in ((">&-", "0"), ("2>&-", "0"), (">&- 2>&-", "0")):
        line = f"{' '.join(map(repr, COMMAND))} model.safetensors {closed}; echo $? >&2"
        assert in_child(files, "-c", line, command=["bash"]).stderr == f"{status}\n".encode()


def test_names_that_would_act_on_a_terminal_are_escaped(said, tmp_path):
    """A file may be anybody's."""
    np.savez(tmp_path / "a.npz", **{"a\x1b[31m": np.ones(2)})
    _, out, _ = said(str(tmp_path / "a.npz"))
    assert "\x1b" not in out
    assert r"a\x1b[31m" in out
    assert json.loads(said("--json", str(tmp_path / "a.npz"))[1])["weights"][0]["name"] == "a\x1b[31m"


def test_a_scan_that_could_not_read_all_is_trouble(said, tmp_path, monkeypatch):
    """A script would take it for one that has found nothing."""
    monkeypatch.chdir(tmp_path)
    save_file({"a": torch.ones(3)}, "1.safetensors")
    files = {"weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(files))
    status, output, errors = said("scan", "model.safetensors.index.json")
    assert status == 2
    assert "1 weight" in output
    assert errors.endswith("could not be read\n")
