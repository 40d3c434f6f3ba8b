"""Weights at an address are read by positions: few requests, of the bytes that are wanted, and each one checked."""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
from itertools import product
from pathlib import Path

import fsspec
import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from saved_files import FORMATS
from served_files import Served, free_port, serving
from written_dcp import ITEMS, in_rows, save, whole, written

import tensornp as tnp
from tensornp.fronts.command_line import main
from tensornp.models.files import address as remote_file
from tensornp.render.models.weights import weights_document

HEAD = 65_536
"""Bytes that are asked for first."""
TENSORS = {f"layers.{i}.weight": torch.randn(1024, 4096) for i in range(4)}


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    """Have nothing stand between a test and its server."""
    for name, ending in product(("http", "https", "all"), ("_proxy", "_PROXY")):
        monkeypatch.delenv(name + ending, raising=False)


@pytest.fixture
def served(tmp_path):
    with serving(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Yield a folder with 64 MiB of float32 that is served."""
    folder = tmp_path_factory.mktemp("large")
    save_file(TENSORS, folder / "model.safetensors")
    with serving(folder) as made:
        yield made


def small(served: Served, name: str = "x.safetensors", rows: int = 40_000) -> str:
    """Write a file of which not all comes with its beginning, and return its address."""
    save_file({"a": torch.arange(4.0 * rows).view(rows, 4)}, served.folder / name)
    return f"{served.base}/{name}"


def refused(address: str, *, kind: type[Exception] = tnp.CheckpointError) -> str:
    """Return the sentence with which an address is refused."""
    with pytest.raises(kind) as found:
        tnp.weights(address)
    assert "\n" not in str(found.value) and not found.value.__cause__
    return str(found.value)


def test_64_mb_are_listed_by_one_request_of_their_beginning(large):
    """The header is in it."""
    large.forget()
    found = tnp.weights(f"{large.base}/model.safetensors")
    assert list(found) == list(TENSORS) and found.totals.nbytes == 2**26 and not found.problems
    assert [(one.first, one.nbytes) for one in large.requests] == [(0, HEAD)]


def test_rows_are_read_by_one_request_of_their_bytes(large):
    """As `plan` says it."""
    entry = tnp.weights(f"{large.base}/model.safetensors")["layers.1.weight"]
    large.forget()
    assert np.array_equal(entry.to_numpy(slice(4, 8)), TENSORS[entry.name][4:8].numpy())
    assert [one.nbytes for one in large.requests] == [entry.plan(slice(4, 8)).nbytes_read] == [4 * 4096 * 4]
    large.forget()
    assert np.array_equal(entry.to_numpy(), TENSORS[entry.name].numpy())
    assert len(large.requests) == 1


@pytest.mark.slow
def test_a_scan_reads_each_byte_once(large):
    """And a comparison does."""
    found = tnp.weights(f"{large.base}/model.safetensors")
    large.forget()
    table = found.scan(progress=False)
    assert table.complete and not table.failed
    assert table["layers.2.weight"].max == TENSORS["layers.2.weight"].max().item()
    size = (large.folder / "model.safetensors").stat().st_size
    assert large.nbytes <= size * 1.2
    large.forget()
    assert tnp.compare(found, large.folder / "model.safetensors").equal
    assert large.nbytes <= size * 1.2


@pytest.mark.parametrize("name", [name for name in FORMATS if "dcp" not in name and "offload" not in name])
def test_a_file_of_each_format_is_read_as_on_disk(served, name):
    """With the same values, problems and metadata."""
    path, _ = FORMATS[name](served.folder)
    if path.is_dir():
        indices = list(path.glob("*.index.json"))
        path = indices[0] if indices else path / "x.safetensors"
    if not path.is_file():
        pytest.skip("a folder of many files")
    own, found = tnp.weights(path), tnp.weights(f"{served.base}/{path.relative_to(served.folder)}")
    assert list(found) == list(own) and found.metadata == own.metadata
    assert [one.replace(served.base, str(served.folder)) for one in found.problems] == own.problems
    for entry in found.values():
        mine = own[entry.name]
        assert (entry.shape, entry.dtype, entry.nbytes, entry.note) == (mine.shape, mine.dtype, mine.nbytes, mine.note)
        if not entry.problem:
            assert np.array_equal(entry.to_numpy(), mine.to_numpy(), equal_nan=mine.dtype.startswith("float"))
            assert np.array_equal(eval(entry.code, {"tnp": tnp}), mine.to_numpy())


def test_a_folder_is_opened_by_its_index(served):
    """Whose files lie beside it; a folder without one is asked for the usual file."""
    FORMATS["index"](served.folder)
    found = tnp.weights(f"{served.base}/")
    assert set(found) == {"a", "b", "c"} and not found.problems
    assert found["a"].code == f"tnp.weights('{served.base}/')['a'].to_numpy()"
    (served.folder / "one").mkdir()
    save_file({"w": torch.ones(2)}, served.folder / "one" / "model.safetensors")
    assert list(tnp.weights(f"{served.base}/one/")) == ["w"]
    assert "gives out none of model.safetensors.index.json, " in refused(f"{served.base}/none/")


def test_a_lost_shard_is_a_problem(served):
    """That hides no other."""
    FORMATS["index"](served.folder)
    (served.folder / "model-00002-of-00002.safetensors").unlink()
    found = tnp.weights(f"{served.base}/model.safetensors.index.json")
    assert "status 404" in found.problems[0] and not found["a"].problem and found["b"].problem


def test_a_server_without_ranges_is_refused_and_nothing_downloaded(large):
    """In one sentence; what the sockets hold is all that is sent."""
    large.forget()
    large.has_ranges = False
    try:
        said = refused(f"{large.base}/model.safetensors")
    finally:
        large.has_ranges = True
    assert said.endswith("gives only whole files, and nothing of it was downloaded; download it, and open its path")
    assert len(large.requests) == 1 and large.nbytes < 2**24


def test_a_page_is_no_file(served):
    """As it stands in the bar of a browser."""
    address = small(served)
    served.has_ranges, served.told = False, {"Content-Type": "text/html; charset=utf-8"}
    assert "is the address of a page; take that of the file" in refused(address)


def test_a_server_that_sends_fewer_bytes_than_it_says_is_told(served):
    """Those that came are no values."""
    entry = tnp.weights(small(served))["a"]
    served.share = 0.5
    with pytest.raises(tnp.ChangedFileError, match="breaks off after 320,000 of 640,000 bytes"):
        entry.to_numpy()
    assert "breaks off" in refused(entry.location)


@pytest.mark.parametrize(
    "told",
    [*({"Content-Range": range_} for range_ in ("bytes 5-68/9999", "bytes 0-10", "")), {"Content-Length": "640088"}],
    ids=str,
)
def test_other_bytes_than_were_asked_for_are_refused(served, told):
    """By what the answer says of them; as many as the whole file has are not those of a range."""
    address = small(served)
    served.told = told
    assert "sends other bytes than it is asked for" in refused(address)


@pytest.mark.parametrize("what", ["ETag", "Last-Modified", "size", "gone"])
def test_another_file_than_was_listed_is_told(served, what):
    """By its tag, its date or its size."""
    served.told = {"ETag": '"1"', "Last-Modified": "then"}
    entry = tnp.weights(small(served))["a"]
    if what == "size":
        small(served, rows=50_000)
    elif what == "gone":
        (served.folder / "x.safetensors").unlink()
    else:
        served.told[what] = '"2"'
    with pytest.raises(tnp.ChangedFileError) as found:
        entry.to_numpy()
    said = {"gone": "status 404"}
    assert said.get(what, "changed since it was listed; open it again") in str(found.value)
    with pytest.raises(tnp.ChangedFileError):
        entry.stats()


@pytest.mark.parametrize(
    ("status", "said"), [(404, "404; check the address"), (500, "500; "), (401, "401; write user")]
)
def test_a_refusal_is_one_sentence(served, status, said):
    """What, where, the cure."""
    served.statuses["/x.safetensors"] = status
    assert refused(f"{served.base}/x.safetensors").startswith(
        f"'{served.base}/x.safetensors' is not given out: status {said}"
    )


def test_a_server_that_is_not_there_is_told(served):
    """Refused, unknown, without TLS, or no address at all."""
    port = free_port()
    assert "cannot be reached: Connection refused; check" in refused(f"http://127.0.0.1:{port}/x.npy")
    assert "cannot be reached" in refused("http://no-such-host.invalid/x.npy")
    assert "cannot be reached" in refused(served.base.replace("http:", "https:") + "/x.npy")
    for address in ("http://", "http:///x.npy", "http://host:port/x.npy", "http://[::/x.npy"):
        assert "cannot be reached" in refused(address)


@pytest.mark.slow
def test_a_server_that_is_silent_is_told(served, monkeypatch):
    """After a time."""
    monkeypatch.setattr(remote_file, "TIMEOUT_S", 0.2)
    address = small(served)
    served.pause_s = 1.0
    assert "no answer within 0.2 seconds" in refused(address)


def test_a_redirect_is_followed(served, tmp_path_factory):
    """The login goes to no other server."""
    with serving(tmp_path_factory.mktemp("other")) as other:
        target = small(other)
        served.moved["/m"] = f"{target}?signed=1"
        address = f"http://me:secret@{served.base[7:]}/m"
        entry = tnp.weights(address)["a"]
        assert entry.to_numpy(5)[0] == 20
        assert {one.path for one in served.requests} == {"/m"} and all(one.login for one in served.requests)
        assert not any(one.login for one in other.requests)
        assert not any("signed" in text for text in (entry.location, repr(entry), entry.code))
    served.moved |= {"/a": "/b", "/b": "/a", "/c": "ftp://host/x"}
    assert "is not given out: status 302" in refused(f"{served.base}/a")
    assert "cannot be reached" in refused(f"{served.base}/c")


def test_secrets_of_an_address_are_sent_and_never_shown(served):
    """Nor does the code reach what it does not show."""
    small(served)
    served.login = f"Basic {base64.b64encode(b'owner7:se cret').decode()}"
    address = f"http://owner7:se%20cret@{served.base[7:]}/x.safetensors?token=t0ken#part"
    found = tnp.weights(address)
    entry = found["a"]
    assert entry.to_numpy(1)[0] == 4 and served.requests[-1].path.endswith("?token=t0ken")
    texts = [repr(found), repr(entry), entry.location, entry.code, str(entry.extents), repr(entry._source)]
    texts += [weights_document(found).html(), weights_document(found).text(), str(tnp.card(entry))]
    texts.append(repr(tnp.compare(found, address)))
    served.login = "another"
    texts += [
        refused(address),
        refused("http://owner7:secret@host:port/?t0ken"),
    ]
    for raised in (entry.to_numpy, lambda: tnp.compare(address, torch.ones(2))):
        with pytest.raises(tnp.TensornpError) as error:
            raised()
        texts.append(str(error.value))
    assert not [text for text in texts if any(word in text for word in ("cret", "t0ken", "owner7"))]
    assert entry.code == "" and "x.safetensors" in found.source


def test_the_command_lists_scans_and_compares(served, capsys, tmp_path):
    """Its page names what was compared, without secrets."""
    address = small(served)
    secret = address.replace("http://", "http://owner7:s3cret@") + "?t0ken"
    page = tmp_path / "page.html"
    for arguments in ([secret], ["scan", secret], ["diff", secret, str(served.folder / "x.safetensors")]):
        assert main([*arguments, "--html", str(page)]) == 0
        assert main([*arguments, "--json"]) == 0
        text = page.read_text(encoding="utf-8") + "".join(capsys.readouterr())
        assert address in text and not [word for word in ("owner7", "s3cret", "t0ken") if word in text]


def test_listing_an_address_brings_no_torch(served):
    """By the command."""
    address = small(served)
    code = (
        "import sys; from tensornp.fronts.command_line import main; status = main(); "
        "sys.exit(status or 'torch' in sys.modules)"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code, address], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert address in done.stdout


def test_a_protocol_of_fsspec_is_read(tmp_path):
    """By the same rules."""
    path = tmp_path / "x.safetensors"
    save_file({"a": torch.arange(160_000.0).view(-1, 4)}, path)
    files = fsspec.filesystem("memory")
    files.pipe("/of tensornp/x.safetensors", path.read_bytes())
    files.pipe("/of tensornp/model.safetensors.index.json", json.dumps({"weight_map": {"a": "x.safetensors"}}).encode())
    try:
        for address in ("memory://of tensornp/x.safetensors", "memory://of tensornp/"):
            found = tnp.weights(address)
            assert found["a"].to_numpy(3)[0] == 12 and not found.problems
            assert found.scan(progress=False)["a"].max == 159_999
        files.pipe("/of tensornp/x.safetensors", path.read_bytes())
        with pytest.raises(tnp.ChangedFileError, match="changed since it was listed"):
            found["a"].to_numpy()
        assert "is not there" in refused("memory://of tensornp/y.npy")
    finally:
        files.rm("/of tensornp", recursive=True)


def test_a_protocol_that_is_not_there_is_told(monkeypatch):
    """With what to install; one that does not work, or that nobody knows, is none of these."""
    said = refused("ftp://owner7:s3cret@127.0.0.1:1/x.npy")
    assert said.startswith("'ftp://127.0.0.1:1/x.npy' cannot be read: ConnectionRefusedError")
    assert "cannot be read: ValueError" in refused("nosuch://me:secret@host/x.npy")
    for missing in ("s3fs", "fsspec"):
        monkeypatch.setitem(sys.modules, missing, None)
        said = refused("s3://bucket/x.npy", kind=tnp.MissingLibraryError)
        assert "is read by a library that is not installed" in said and "for s3://" in said


def several(folder: Path, count: int = 3) -> dict[str, torch.Tensor]:
    """Write a folder as so many ranks save it together, and return what it holds."""
    made = {"w": torch.randn(8 * count, 1000), "v": torch.arange(4.0), "empty": torch.zeros(0, 3)}

    def change(metadata):
        data = (folder / ITEMS).read_bytes()
        for index, one in metadata.storage_data.items():
            rank = index.offset[0] // 8 if index.fqn == "w" else 0
            one.relative_path, at = f"__{rank}_0.distcp", one.offset
            path = folder / one.relative_path
            one.offset = path.stat().st_size if path != folder / ITEMS and path.exists() else 0
            with open(f"{path}.tmp", "ab") as there:
                one.offset = there.tell()
                there.write(data[at : at + one.length])
        for path in folder.glob("*.tmp"):
            path.replace(path.with_suffix(""))

    written(folder, {"w": in_rows(made["w"], *[8] * count), "v": whole(made["v"]), "empty": whole(made["empty"])})
    metadata = pickle.loads((folder / ".metadata").read_bytes())
    change(metadata)
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))
    return made


def test_a_distributed_checkpoint_is_read_as_on_disk(served):
    """By its metadata, its values and its items; of these, a byte is asked for when it is listed."""
    made = {"w": torch.arange(12.0).view(3, 4), "b": torch.ones(5).bfloat16(), "step": 3, "lr": {"a": 0.1}}
    own = tnp.weights(save(made, served.folder / "x"))
    for address in (f"{served.base}/x/", f"{served.base}/x/.metadata"):
        served.forget()
        found = tnp.weights(address)
        assert list(found) == list(own) == ["w", "b"] and not found.problems
        assert dict(found.metadata) == dict(own.metadata) and found.metadata["lr.a"] == 0.1
        for name, entry in found.items():
            assert np.array_equal(entry.to_numpy(), own[name].to_numpy())
            assert np.array_equal(eval(entry.code, {"tnp": tnp}), own[name].to_numpy())
            assert entry.stats() == own[name].stats()
    assert "holds items of torch.distributed.checkpoint; open its folder" in refused(f"{served.base}/x/__0_0.distcp")


def test_a_place_leads_to_no_other_protocol(tmp_path):
    """By which fsspec would read a file of this machine."""
    several(tmp_path)
    places = [f"x::file://{tmp_path}/__{rank}_0.distcp" for rank in range(3)]
    metadata = pickle.loads((tmp_path / ".metadata").read_bytes())
    for one in metadata.storage_data.values():
        one.relative_path = places[int(one.relative_path[2])]
    files = fsspec.filesystem("memory")
    files.pipe("/of tensornp/.metadata", pickle.dumps(metadata))
    try:
        found = tnp.weights("memory://of tensornp/")
        [said] = found.problems
        assert " and 2 more: " in said and "would lie outside of the folder" in said
        with pytest.raises(tnp.NoDataError):
            found["v"].to_numpy()
    finally:
        files.rm("/of tensornp", recursive=True)
