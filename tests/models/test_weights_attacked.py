"""What an attack on `weights` has found: of tensors in memory, of paths, and of what is asked of an explorer."""

from __future__ import annotations

import enum
import gzip
import json
import pickle
import re
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from older import since
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

import tensornp as tnp
from tensornp.render.models.weights import weights_document


class _Color(enum.Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize(
    "tree",
    [
        {(0, 1): torch.ones(1), (0, 2): torch.ones(2)},
        {np.str_("a"): torch.ones(1), np.str_("b"): torch.ones(2)},
        {np.int64(1): torch.ones(1), np.int64(2): torch.ones(2)},
        {_Color.RED: torch.ones(1), _Color.BLUE: torch.ones(2)},
        {"a": {torch.ones(1), torch.ones(2)}},
        {b"x" * 200 + b"1": torch.ones(1), b"x" * 200 + b"2": torch.ones(2)},
        {"x" * 200 + "1": {"a": torch.ones(1)}, "x" * 200 + "1.a": torch.ones(2)},
        {"a": {"b": torch.ones(1)}, "a.b": torch.ones(2), "['a']['b']": torch.ones(3)},
    ],
    ids=["tuples", "numpy.str_", "numpy.int64", "enum", "set", "bytes", "long", "brackets"],
)
def test_no_tensor_of_a_dictionary_vanishes(tree):
    """Though other keys give its name, or none that can be told from the others'."""
    explorer = tnp.weights(tree)
    sizes = sorted(len(entry.to_numpy()) for entry in explorer.values())
    assert sizes == list(range(1, len(sizes) + 1))
    assert len(sizes) == sum(len(one) if type(one) in (dict, set) else 1 for one in tree.values())


def test_keys_are_written_as_they_are_reached():
    """A tuple of numbers, a text of any length, and a text of another class."""
    tree = {(0, 1): torch.ones(1), "x" * 300: torch.ones(2), np.str_("a"): torch.ones(3)}
    explorer = tnp.weights(tree)
    assert list(explorer) == ["(0, 1)", "x" * 300, "a"]
    for entry in explorer.values():
        assert eval(entry.code, {"tree": tree}) is entry.tensor


def test_a_child_by_the_name_of_a_compiled_one_is_shown():
    """It is hidden only where `torch.compile` has put it."""
    model = nn.Linear(2, 2)
    model._orig_mod = nn.Linear(2, 2)
    assert list(tnp.weights(model)) == ["weight", "bias", "_orig_mod.weight", "_orig_mod.bias"]
    parallel = nn.DataParallel(nn.Linear(2, 2))
    parallel.register_parameter("weight", nn.Parameter(torch.ones(3)))
    explorer = tnp.weights(parallel)
    assert len(explorer) == 3
    assert {entry.shape for entry in explorer.values()} == {(3,), (2, 2), (2,)}


def test_an_attribute_with_dots_hides_no_weight():
    """A name that `setattr` takes may be that of a child's weight."""
    model = nn.Sequential(nn.Linear(1, 1))
    setattr(model, "0.weight", torch.ones(5))
    assert len(tnp.weights(model)) == 3


def test_modules_that_are_shared_at_each_level_end():
    """Of 2**40 names some are listed, each weight among them, and that there are more is told."""
    model: nn.Module = nn.Linear(2, 2)
    for _ in range(40):
        pair = nn.Module()
        pair.a = pair.b = model
        pair.own = nn.Parameter(torch.ones(1))
        model = pair
    explorer = tnp.weights(model)
    assert len({id(entry.tensor) for entry in explorer.values()}) == 42
    assert len(explorer) < 5000
    assert "places of shared modules are not listed" in explorer.problems[0]
    shared = nn.Linear(2, 2)
    ordinary = tnp.weights(nn.Sequential(*[shared] * 200))
    assert len(ordinary) == 400
    assert ordinary.problems == []


def test_a_module_of_any_depth_is_listed():
    """Without recursion."""
    model: nn.Module = nn.Linear(1, 1)
    for _ in range(3000):
        above = nn.Module()
        above.x = model
        model = above
    assert len(tnp.weights(model)) == 2
    # Python itself would take a module of this depth apart by recursion.
    while hasattr(model, "x"):
        model = model._modules.pop("x")


INDICES = (
    slice(None, None, -1), (slice(None, None, -2), 0), (0, slice(None, None, -3)), slice(5, 1, -1),
    (None, slice(3, 0, -1)),
    slice(-(10**30), None, 10**25), slice(10**30, None, -(10**25)), (slice(0, 0, -1), 1), (..., slice(-1, -9, -2)),
    (slice(1, None, 2), None, slice(None, None, -1)), slice(9, 2, -1),
)  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_an_index_takes_what_numpy_takes(index, tmp_path):
    """Downwards too, of a tensor, an array and a file with gaps."""
    whole = torch.arange(24.0).reshape(4, 6)
    torch.save({"file": whole.T.contiguous().T[:, ::2]}, tmp_path / "x.pt")
    tree = {"tensor": whole, "strided": whole[:, ::2], "bfloat16": whole.bfloat16(), "array": whole.numpy()}
    for entry in [*tnp.weights(tree).values(), *tnp.weights(tmp_path / "x.pt").values()]:
        expected = entry.to_numpy()[index]
        found = entry.to_numpy(index)
        assert found.shape == expected.shape
        assert np.array_equal(found, expected)
    shared = tnp.weights(tree)["tensor"].to_numpy(slice(None, None, -1), writeable=True)
    assert np.shares_memory(shared, whole.numpy())


@pytest.mark.parametrize(
    ("tensor", "index"),
    [
        (torch.eye(4).to_sparse(), (..., slice(0, 1))),
        (torch.eye(4).to_mkldnn(), 0),
        (torch.ones(2, 2), (None,) * 70),
        (torch.ones(2, 2), True),
        (torch.ones(2, 2), np.True_),
        (torch.ones(2, 2), (0, 0, 0)),
        (np.ones((2, 2)), (None,) * 70),
    ],
)
def test_an_index_that_torch_does_not_take_is_refused(tensor, index):
    """In one sentence, by `to_numpy` and by `plan`."""
    entry = tnp.weights({"a": tensor})["a"]
    for ask in (entry.to_numpy, entry.plan):
        with pytest.raises(tnp.BadRequestError):
            ask(index)


def test_a_freed_tensor_has_no_values():
    """It says so before it is asked."""
    tensor = torch.ones(4, 3)
    tensor.untyped_storage().resize_(0)
    entry = tnp.weights({"a": tensor})["a"]
    assert entry.problem == "its storage was freed"
    with pytest.raises(tnp.NoDataError):
        entry.to_numpy(0)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "layout", [torch.strided, pytest.param(torch.jagged, marks=since("2.5", "a jagged tensor gives a part"))]
)
def test_nested_tensors_give_a_list_and_are_counted(layout):
    """Their shape tells nothing of how many they have."""
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)], layout=layout)
    explorer = tnp.weights({"a": nested, "b": torch.ones(2)})
    entry = explorer["a"]
    assert entry.numel == 9
    assert explorer.totals.parameters == 11
    assert [one.shape for one in entry.to_numpy()] == [(2, 3), (1, 3)]
    assert entry.to_numpy(-1).tolist() == [[0, 0, 0]]
    for index in (2, slice(0, 1), (0, 0)):
        with pytest.raises(tnp.BadRequestError):
            entry.to_numpy(index)


class _Raising(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args: object, **kwargs: object) -> object:
        raise RuntimeError("no")


def test_a_tensor_whose_class_raises_hides_no_other():
    """The table is complete, and its values are read."""
    explorer = tnp.weights({"bad": torch.ones(2).as_subclass(_Raising), "good": torch.ones(3)})
    assert explorer["bad"].requires_grad is False
    assert explorer["bad"].to_numpy().tolist() == [1, 1]
    assert "2 weights" in weights_document(explorer).text()


def test_an_array_says_what_it_cannot_become():
    """A dtype that is none, and values that are none of it."""
    tree = {"f": np.ones(2), "o": np.array([None, "a"], dtype=object), "s": np.array(["a"]), "r": np.zeros(2, "i4,f4")}
    explorer = tnp.weights(tree)
    for name, dtype in (("f", "foo"), ("f", 3), ("o", "float32"), ("s", "float32"), ("s", np.dtype("f8"))):
        with pytest.raises(tnp.BadRequestError):
            explorer[name].to_numpy(dtype=dtype)
    assert explorer["f"].to_numpy(dtype=np.float32).dtype == np.float32


def test_a_single_element_of_an_array_is_a_view():
    """As its plan says."""
    array = np.arange(3.0)
    assert np.shares_memory(tnp.weights({"a": array})["a"].to_numpy(0, copy=False), array)
    lists = np.empty(2, object)
    lists[0] = [1, 2, 3]
    assert tnp.weights({"a": lists})["a"].to_numpy(0).item() == [1, 2, 3]


def test_sizes_that_no_array_has_are_refused(tmp_path):
    """Though such a tensor has no element, or a single one."""
    header = {
        "a": {"dtype": "F32", "shape": [0, 2**64 - 1], "data_offsets": [0, 0]},
        "b": {"dtype": "F32", "shape": [1] * 100, "data_offsets": [0, 4]},
    }
    for entry in tnp.weights(_written(tmp_path / "x.safetensors", header, 4)).values():
        for ask in (entry.to_numpy, entry.plan, lambda entry=entry: entry.to_numpy(0)):
            # Of more dimensions than NumPy has, its line says so already.
            with pytest.raises(tnp.NoDataError if entry.name == "b" else tnp.BadRequestError):
                ask()


def test_a_scan_takes_what_its_words_promise():
    """An expression, a list of names and of beginnings of them; anything else is refused in a sentence."""
    explorer = tnp.weights({"a": {"x": torch.ones(2), "y": torch.ones(3)}, "b": torch.ones(4)})
    assert sorted(explorer.scan(names=re.compile("^a"))) == ["a.x", "a.y"]
    assert sorted(explorer.scan(names=["a", "a.x", "b"])) == ["a.x", "a.y", "b"]
    for ask in (
        lambda: explorer.scan(names=3),
        lambda: explorer.scan(names=[3]),
        lambda: explorer.scan(names=["c"]),
        lambda: explorer.scan(resume="x"),
        lambda: explorer.scan(progress=5),
        lambda: explorer.find(re.compile(b"x")),
    ):
        with pytest.raises(tnp.TensornpError):
            ask()
    table = explorer.scan()
    assert [] not in table
    for name in ("nowhere", 1, []):
        with pytest.raises(tnp.NoSuchWeightError):
            table[name]
        with pytest.raises(tnp.NoSuchWeightError):
            table.findings(name)


def test_an_executor_that_was_shut_down_is_told(tmp_path):
    """In a sentence."""
    torch.save({"a": torch.ones(3)}, tmp_path / "x.pt")
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(tnp.BadRequestError, match="the executor cannot submit tasks: cannot schedule"):
        tnp.weights(tmp_path / "x.pt").scan(executor)


def test_totals_count_each_element_and_byte_once(tmp_path):
    """In memory and in a file, of views that overlap in part, and of an array with two names."""
    whole, array = torch.arange(10.0), np.arange(4.0)
    tree = {"a": whole, "b": whole[:5], "c": whole[3:8], "d": whole[::2], "e": array, "f": array, "g": array[1:]}
    assert tnp.weights(tree).totals == (10 + 5 + 5 + 5 + 4 + 3, 14, 72)
    tensors = {
        "a": whole,
        "b": whole,
        "c": whole[:5],
        "d": whole[3:8],
        "e": whole[::2],
        "f": torch.ones(3).expand(4, 3),
    }
    torch.save(tensors, tmp_path / "x.pt")
    explorer = tnp.weights(tmp_path / "x.pt")
    assert explorer.totals == (10 + 5 + 5 + 5 + 12, 13, 52)


class _BytesPath:
    def __fspath__(self) -> bytes:
        return b"nowhere"


@pytest.mark.parametrize(
    "path",
    ["~nouserzz/x", "a\0b/c", "\ud800/x", _BytesPath(), "x" * 5000, "x/" * 3000, "a\x1b[2J\n"],
    ids=["home", "NUL", "surrogate", "bytes", "name", "path", "escape"],
)
def test_an_odd_path_gets_a_sentence(path):
    """Whatever the system says of it, in a line of its own."""
    with pytest.raises(tnp.CheckpointError) as raised:
        tnp.weights(path)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 700


def test_links_that_lead_nowhere_get_a_sentence(tmp_path):
    """To a name that is too long, to itself, and to nothing."""
    for name, target in (("a", "x" * 300), ("b", "b"), ("c", "nothing")):
        (tmp_path / name).symlink_to(target)
        with pytest.raises(tnp.CheckpointError, match="cannot be opened"):
            tnp.weights(tmp_path / name)


@pytest.mark.parametrize("nothing", ["", " ", {}, {"a": 1}, {1, 2}, [], {"a": {"b": []}}], ids=repr)
def test_what_holds_no_weights_is_a_bad_request(nothing):
    """As the documentation says."""
    with pytest.raises(tnp.BadRequestError):
        tnp.weights(nothing)


def test_a_path_is_the_same_after_the_folder_was_left(tmp_path, monkeypatch):
    """The source is shown as it was typed."""
    torch.save({"a": torch.ones(2)}, tmp_path / "x.pt")
    save_file({"a": torch.ones(2)}, tmp_path / "x.safetensors")
    monkeypatch.chdir(tmp_path)
    explorers = [tnp.weights("x.pt"), tnp.weights("x.safetensors"), tnp.weights(Path("x.pt"))]
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    for explorer in explorers:
        assert explorer.source in ("x.pt", "x.safetensors")
        assert explorer["a"].to_numpy().tolist() == [1, 1]


def test_several_names_of_one_view_in_a_file_are_tied(tmp_path):
    """Another view of the storage is not."""
    whole = torch.arange(6.0)
    tensors = {"a": whole, "b": whole, "c": whole[:3], "d": whole.reshape(2, 3), "e": whole.clone()}
    torch.save(tensors, tmp_path / "x.pt")
    tied = {name: entry.tied_to for name, entry in tnp.weights(tmp_path / "x.pt").items()}
    assert tied == {"a": ("b",), "b": ("a",), "c": (), "d": (), "e": ()}


KINDS = {
    "a PNG image": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "text": b"a,b\n1,2\n3,4\n",
    "JSON": b'{"a": 1, "b": 2}',
    "HTML or XML": b"<!DOCTYPE html><html></html>",
    "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 123\n",
    "a 7z archive": b"7z\xbc\xaf\x27\x1c" + bytes(40),
    "a gzip file": gzip.compress(b"x" * 100),
    "a pickle, but none of torch.save": pickle.dumps({"a": 1}, 0),
    "a tar archive": b"a" * 100 + bytes(157) + b"ustar" + bytes(300),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_another_kind_is_told(kind, tmp_path):
    """In words, and not by what its header would have."""
    (tmp_path / "x").write_bytes(KINDS[kind])
    with pytest.raises(tnp.CheckpointError, match=f"seems to be {kind}"):
        tnp.weights(tmp_path / "x")


def test_bytes_that_are_no_text_are_not_called_one(tmp_path):
    """A text that is cut off within a character is one."""
    (tmp_path / "x").write_bytes(b"\xff" * 8 + b"{}")
    with pytest.raises(tnp.CheckpointError, match="is not a valid safetensors file"):
        tnp.weights(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"a" + "ü".encode() * 1000)
    with pytest.raises(tnp.CheckpointError, match="seems to be text"):
        tnp.weights(tmp_path / "x")


def test_an_index_of_files_that_are_not_read_is_told(tmp_path):
    """By what it lists; one that lists nothing is none."""
    path = tmp_path / "tf_model.h5.index.json"
    path.write_text('{"metadata": {}, "weight_map": {"a": "tf_model-00001-of-00002.h5"}}')
    with pytest.raises(tnp.CheckpointError, match="is an index of files that are not read, such as 'tf_model-00001"):
        tnp.weights(path)
    path.write_text('{"a": 1}')
    with pytest.raises(tnp.CheckpointError, match="has no weight_map, so it is not an index"):
        tnp.weights(path)


def _written(path: Path, header: dict[str, object], nbytes: int) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(nbytes))
    return path


def test_what_a_file_says_is_shown_on_one_line(tmp_path):
    """Whatever is in its names, dtypes and metadata, and in the path: in the table, in reprs and in errors."""
    evil = "\x1b[2J\u202e\n"
    header = {
        f"n{evil}": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "d": {"dtype": f"F99{evil}", "shape": [1], "data_offsets": [4, 8]},
        "": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]},
        "__metadata__": {f"k{evil}": f"v{evil}"},
    }
    path = _written(tmp_path / f"x{evil}.safetensors", header, 12)
    explorer = tnp.weights(path)
    said = [repr(explorer), *map(repr, explorer.values()), *weights_document(explorer).text().split("\n")]
    said += weights_document(explorer).html().split("\n")
    for ask in (lambda: explorer["nowhere"], lambda: explorer[f"n{evil}x"], explorer["d"].to_numpy):
        with pytest.raises(tnp.TensornpError) as raised:
            ask()
        said.append(str(raised.value))
    assert all(text.isprintable() for text in said)
    assert "''" in weights_document(explorer).text()


def test_what_is_long_is_cut(tmp_path):
    """Names, keys, values and numbers; before they are escaped."""
    header = {
        "n" * 100_000: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
        "__metadata__": {"k" * 100_000: "\x1b" * 100_000},
    }
    explorer = tnp.weights(_written(tmp_path / "x.safetensors", header, 4))
    assert len(weights_document(explorer).text()) < 1000
    assert len(weights_document(explorer).html()) < 6000
    tree = {"a": torch.ones(1), "bytes": b"x" * 10**6, "number": 10**5000, "b" * 10**5: 1}
    assert len(weights_document(tnp.weights(tree)).text()) < 1000


def test_the_heading_of_a_long_path_keeps_both_its_ends(tmp_path):
    """Within a line of a narrow page; what tells the file is its name."""
    folder = tmp_path / "a_folder_of_many_runs" / "with_checkpoints_of_each" / "step_00012000"
    folder.mkdir(parents=True)
    path = _written(
        folder / "model-epoch-12.safetensors", {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, 4
    )
    source = weights_document(tnp.weights(path)).text().split(" · ")[0]
    assert len(source) == 60
    begin, end = source.split("…")
    assert str(path).startswith(begin) and str(path).endswith(end) and end.endswith("/model-epoch-12.safetensors")


FACTS = '"dtype":"F32","shape":[1],"data_offsets":[0,4]'
HEADERS = {
    "null metadata": f'{{"__metadata__":null,"a":{{{FACTS}}}}}',
    "array": '{"a":["F32",[1],[0,4]]}',
    "long array": '{"a":["F32",[1],[0,4],1]}',
    "short array": '{"a":["F32",[1]]}',
    "-0": '{"a":{"dtype":"F32","shape":[1],"data_offsets":[-0,4]}}',
    "-0 besides": f'{{"a":{{{FACTS},"x":-0}}}}',
    "lone surrogate": f'{{"\\ud800":{{{FACTS}}}}}',
    "lone low surrogate": f'{{"\\udc00":{{{FACTS}}}}}',
    "pair": f'{{"\\ud83d\\ude00":{{{FACTS}}}}}',
    "no escape": f'{{"\\\\ud800":{{{FACTS}}}}}',
    "surrogate besides": f'{{"a":{{{FACTS},"x":["\\ud800"]}}}}',
    "surrogate in metadata": f'{{"__metadata__":{{"k":"\\uDFFF"}},"a":{{{FACTS}}}}}',
    "out of range": f'{{"a":{{{FACTS},"x":1e999}}}}',
    "many digits": f'{{"a":{{{FACTS},"x":{"1" * 400}}}}}',
    "deep": f'{{"a":{{{FACTS},"x":{"[" * 125}{"]" * 125}}}}}',
    "too deep": f'{{"a":{{{FACTS},"x":{"[" * 126}{"]" * 126}}}}}',
    "besides": f'{{"a":{{{FACTS},"x":[1,{{"y":2.5}}]}}}}',
    "float size": '{"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}}',
    "metadata of numbers": f'{{"__metadata__":{{"a":1}},"a":{{{FACTS}}}}}',
}


@pytest.mark.parametrize("kind", HEADERS)
def test_a_header_is_taken_where_the_library_takes_it(kind, tmp_path):
    """And is refused where that does."""
    path = tmp_path / "x.safetensors"
    text = HEADERS[kind].encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
    try:
        with safe_open(path, "pt") as file:
            expected = sorted(file.keys())
    except Exception:
        with pytest.raises(tnp.CheckpointError):
            tnp.weights(path)
    else:
        assert sorted(tnp.weights(path)) == expected


def test_a_zip_without_anything_is_told(tmp_path):
    """And one of other things."""
    for name, members in (("empty.zip", ()), ("other.zip", ("a.txt",))):
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            for member in members:
                file.writestr(member, "text")
        with pytest.raises(tnp.CheckpointError):
            tnp.weights(tmp_path / name)


def test_a_module_below_a_number_is_named_by_it():
    """torch takes any key that is put into its table by hand."""
    m = torch.nn.Module()
    m._modules[3] = torch.nn.Linear(1, 1)
    w = tnp.weights(m)
    assert list(w) == ["3.weight", "3.bias"]
    assert all(eval(entry.code, {"m": m}) is getattr(m._modules[3], name[2:]) for name, entry in w.items())
    assert tnp.compare(m, m)
