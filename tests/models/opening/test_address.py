"""Weights at an address are read by positions: few requests, of the bytes that are wanted, and each one checked."""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import fields
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import fsspec
import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from saved_files import FORMATS, config
from served_files import Served, serving
from written_dcp import ITEMS, in_rows, save, whole, writer_of, written

import tensornp as tnp
from tensornp.fronts.command_line.main import run
from tensornp.models.files import over_http
from tensornp.models.files.address import Address, shown_path
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
    """Yield a folder that is served."""
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


def test_a_scan_reads_each_byte_once_by_large_requests(large):
    """4 MiB each, over a connection for each thread; and a comparison does."""
    found = tnp.weights(f"{large.base}/model.safetensors")
    large.forget()
    table = found.scan(progress=False)
    assert table.complete and not table.failed
    assert table["layers.2.weight"].max == TENSORS["layers.2.weight"].max().item()
    assert (len(large.requests), large.nbytes) == (16, 2**26)
    assert len({one.connection for one in large.requests}) <= (os.cpu_count() or 1)
    large.forget()
    assert tnp.compare(found, large.folder / "model.safetensors").equal
    assert (len(large.requests), large.nbytes) == (16, 2**26)


def test_small_weights_are_scanned_together(served):
    """A thousand of 4 KiB by a few requests."""
    small_ones = {f"experts.{i:04}.scale": torch.full((1024,), float(i)) for i in range(1000)}
    save_file(small_ones, served.folder / "x.safetensors")
    found = tnp.weights(f"{served.base}/x.safetensors")
    served.forget()
    table = found.scan(progress=False)
    assert [table[name].max for name in small_ones] == list(range(1000)) and not table.failed
    assert len(served.requests) < 25 and served.nbytes < 2**23


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
    assert "404 Not Found" in found.problems[0] and not found["a"].problem and found["b"].problem


def test_the_configuration_is_asked_for_where_it_tells_something(served):
    """Of packed weights it does."""
    config(served.folder)
    found = tnp.weights(f"{served.base}/x.safetensors")
    assert "4-bit codes (mlx)" in found["w.weight"].note
    assert {one.path for one in served.requests} > {"/config.json"}


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
    with pytest.raises(tnp.ChangedFileError, match="breaks off: its server has sent 320,000 of 640,000 bytes"):
        entry.to_numpy()
    assert "breaks off" in refused(entry.location)


def test_a_server_that_gives_some_at_a_time_is_asked_again(served):
    """It says how many it gives."""
    address = small(served)
    served.most = 100_000
    assert tnp.weights(address)["a"].to_numpy()[-1, -1] == 159_999


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


def test_a_server_that_tells_no_size_is_refused(served):
    """Nobody would know where the file ends."""
    address = small(served)
    served.told = {"Content-Range": "bytes 0-65535/*"}
    assert "has a server that tells no size of it; download it, and open its path" in refused(address)


def test_packed_answers_are_refused(served):
    """Their bytes are not those of the file."""
    address = small(served)
    served.told = {"Content-Encoding": "gzip"}
    assert "sends other bytes" in refused(address)


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
    said = {"size": "had 640,080 bytes and has 800,080 since it was listed; open it again", "gone": "404 Not Found"}
    assert said.get(what, "is another one since it was listed; open it again") in str(found.value)
    with pytest.raises(tnp.ChangedFileError):
        entry.stats()


NOT_NOTICED = "the server tells neither ETag nor date{}: a change that keeps the size could not be noticed"


def test_it_is_told_where_a_change_could_not_be_noticed(served):
    """Once, however many files there are; either of both would tell it, and no comparison is the less equal."""
    address, path = small(served), served.folder / "x.safetensors"
    assert tnp.weights(address).problems == []
    served.has_validators = False
    found = tnp.weights(address)
    assert found.problems == [NOT_NOTICED.format("")]
    compared = tnp.compare(found, tnp.weights(path))
    assert compared.equal and not compared._not_listed
    for name in ("ETag", "Last-Modified"):
        served.told = {name: "x"}
        assert tnp.weights(address).problems == []
    served.told = {}
    for name in "ab":
        save_file({name: torch.arange(3.0)}, served.folder / f"{name}.safetensors")
    index = {"weight_map": {name: f"{name}.safetensors" for name in "ab"}}
    (served.folder / "m.safetensors.index.json").write_text(json.dumps(index))
    assert tnp.weights(f"{served.base}/m.safetensors.index.json").problems == [NOT_NOTICED.format(" of 2 files")]
    several(served.folder)
    [problem] = tnp.weights(f"{served.base}/").problems
    assert problem == NOT_NOTICED.format(" of 3 files")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "401 Unauthorized; write user:password@"), (403, "403 Forbidden; write user:password@"),
        (404, "404 Not Found; check the address"), (500, "500 Internal Server Error; try again later"),
        (503, "503 Service Unavailable; try again later"), (299, "299 no status that is known"),
    ],
)  # fmt: skip
def test_a_refusal_is_one_sentence(served, status, said):
    """What, where, the cure."""
    served.statuses["/x.safetensors"] = status
    assert refused(f"{served.base}/x.safetensors").startswith(f"'{served.base}/x.safetensors' is not given out: {said}")


def test_a_server_that_is_not_there_is_told(served):
    """Refused, unknown, without TLS, or no address at all."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "cannot be reached: Connection refused; check" in refused(f"http://127.0.0.1:{port}/x.npy")
    assert "cannot be reached" in refused("http://no-such-host.invalid/x.npy")
    assert "cannot be reached by TLS" in refused(served.base.replace("http:", "https:") + "/x.npy")
    for address in ("http://", "http:///x.npy", "http://host:port/x.npy", "http://[::/x.npy"):
        assert "is no address that can be asked" in refused(address)


def test_a_certificate_is_checked(tmp_path, monkeypatch):
    """The variable that the sentence names is heeded."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl makes a certificate")
    key, chain, folder = tmp_path / "key.pem", tmp_path / "chain.pem", tmp_path / "served"
    made = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=here".split()
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(chain)]
    subprocess.run(made, check=True, capture_output=True)
    both = tmp_path / "both.pem"
    both.write_text(key.read_text() + chain.read_text())
    folder.mkdir()
    with serving(folder, both) as served:
        said = refused(small(served))
        assert re.search(r"is not trusted \(.*\); the variable SSL_CERT_FILE names a file of those that are$", said)
        monkeypatch.setenv("SSL_CERT_FILE", str(chain))
        entry = tnp.weights(small(served))["a"]
        assert entry.to_numpy(3)[0] == 12 and entry.stats().max == 159_999


def test_a_proxy_of_the_environment_is_asked(served, monkeypatch):
    """By its own login."""
    small(served)
    monkeypatch.setenv("http_proxy", served.base.replace("//", "//owner7:s3cret@"))
    entry = tnp.weights("http://elsewhere.invalid/x.safetensors")["a"]
    assert entry.to_numpy(3)[0] == 12
    assert {one.path for one in served.requests} == {"http://elsewhere.invalid/x.safetensors"}
    monkeypatch.setenv("no_proxy", "elsewhere.invalid")
    assert "cannot be reached" in refused("http://elsewhere.invalid/x.safetensors")


def test_a_server_that_is_silent_is_told(served, monkeypatch):
    """After a time."""
    monkeypatch.setattr(over_http, "TIMEOUT_S", 0.2)
    address = small(served)
    served.pause_s = 1.0
    assert "gives no answer within 0.2 seconds" in refused(address)


@pytest.mark.parametrize(
    ("begin", "again", "said"),
    [
        (b"", b"X", "gives no answer within 0.3 seconds; try again, or download it"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "gives no answer within 0.3 seconds; try again, or download it"),
        (
            b"HTTP/1.1 206 OK\r\nContent-Range: bytes 0-65535/70000\r\nContent-Length: 65536\r\n\r\n", b"x",
            "comes at less than 100,000 bytes a second; try again, or download it",
        ),
    ],
    ids=["status", "continue", "bytes"],
)  # fmt: skip
def test_a_server_that_sends_little_by_little_is_told(monkeypatch, begin, again, said):
    """It is never silent for long, and would not end."""
    monkeypatch.setattr(over_http, "TIMEOUT_S", 0.3)
    monkeypatch.setattr(over_http, "_LEAST_BYTES_S", 100_000)

    def serve() -> None:
        there, _ = server.accept()
        with there:
            there.recv(2**16)
            there.sendall(begin)
            for _ in range(400):
                there.sendall(again)
                time.sleep(0.01)

    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        served = pool.submit(serve)
        begun = time.monotonic()
        assert refused(f"http://127.0.0.1:{server.getsockname()[1]}/x.npy").endswith(said)
        assert time.monotonic() - begun < 3
        assert isinstance(served.exception(), OSError)


def test_a_redirect_is_followed_and_kept(served, tmp_path_factory):
    """The login goes to no other server; one that has expired is asked for anew."""
    with serving(tmp_path_factory.mktemp("other")) as other:
        target = small(other)
        served.moved["/m"] = f"{target}?signed=1"
        address = f"http://me:secret@{served.base[7:]}/m"
        entry = tnp.weights(address)["a"]
        assert entry.to_numpy(5)[0] == 20
        assert [one.path for one in served.requests] == ["/m"] and served.requests[0].login
        assert not any(one.login for one in other.requests)
        assert not any("signed" in text for text in (entry.location, repr(entry), entry.code))
        other.statuses["/x.safetensors"] = 403
        small(other, "y.safetensors")
        os.utime(other.folder / "y.safetensors", ns=(0, (other.folder / "x.safetensors").stat().st_mtime_ns))
        served.moved["/m"] = f"{other.base}/y.safetensors"
        assert entry.to_numpy(6)[0] == 24
    served.moved |= {"/a": "/b", "/b": "/a", "/c": "ftp://host/x"}
    assert "leads from one address to another, 10 times" in refused(f"{served.base}/a")
    assert "leads to what is no address of the web" in refused(f"{served.base}/c")


def test_what_is_opened_anew_lies_where_its_server_sends_now(served):
    """Also where the old place is still served, of which what was opened before goes on to read."""
    for name, value in (("v1", 1.0), ("v2", 2.0)):
        save_file({"a": torch.full((300, 300), value)}, served.folder / name)
    os.utime(served.folder / "v1", (0, 0))
    address = f"{served.base}/m.safetensors"
    served.moved["/m.safetensors"] = "/v1"
    before = tnp.weights(address)
    assert before["a"].to_numpy(0)[0] == before.scan(progress=False)["a"].mean == 1
    served.moved["/m.safetensors"] = "/v2"
    after = tnp.weights(address)
    assert after["a"].to_numpy(0)[0] == after.scan(progress=False)["a"].mean == 2
    assert before["a"].to_numpy(0)[0] == 1
    served.statuses["/v1"] = 403
    with pytest.raises(tnp.ChangedFileError, match="is another one since it was listed; open it again"):
        before["a"].to_numpy()


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
        refused("http://owner7:sec?ret@host/"),
    ]
    for raised in (entry.to_numpy, lambda: tnp.compare(address, torch.ones(2))):
        with pytest.raises(tnp.TensornpError) as error:
            raised()
        texts.append(str(error.value))
    assert not [text for text in texts if any(word in text for word in ("cret", "t0ken", "owner7"))]
    assert entry.code == "" and "x.safetensors" in found.source


def test_a_connection_that_the_server_has_closed_is_made_anew(served):
    """Nobody is told."""
    entry = tnp.weights(small(served))["a"]
    served.is_kept = False
    assert [entry.to_numpy(i)[0] for i in (1, 2, 3)] == [4, 8, 12]


def test_another_process_reads_the_same_file(served):
    """What was kept while it was listed does not go with it."""
    found = tnp.weights(small(served))
    assert len(pickle.dumps(found["a"]._source)) < 2_000
    with ProcessPoolExecutor(1) as pool:
        table = found.scan(pool, progress=False)
    assert table.complete and table["a"].max == 159_999


@pytest.mark.parametrize("what", ["e.to_numpy()", "e.stats()", "w.scan(progress=False)", "tnp.compare(w, w)"])
def test_ctrl_c_ends_a_read(served, what):
    """Also of threads that wait for a server that sends 16 KiB a second."""
    address = small(served, rows=2_000_000)
    code = (
        "import sys, time, torch, tensornp as tnp\n"
        "w = tnp.weights(sys.argv[1]); e = w['a']; tnp.stats(torch.ones(1))\n"
        "print('listed', flush=True); begin = time.time()\n"
        f"try: found = {what}; print(getattr(found, 'complete', None))\n"
        "except KeyboardInterrupt: pass\n"
        "print(time.time() - begin)"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen([sys.executable, "-c", code, address], stdout=subprocess.PIPE, text=True, env=env)
    assert child.stdout is not None
    assert child.stdout.readline() == "listed\n"
    served.pause_s = 1.0
    time.sleep(2)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    # A piece alone would take four minutes.
    assert 1 < float(out.split()[-1]) < 30


def test_the_command_lists_scans_and_compares(served, capsys, tmp_path):
    """Its page names what was compared, without secrets."""
    address = small(served)
    secret = address.replace("http://", "http://owner7:s3cret@") + "?t0ken"
    page = tmp_path / "page.html"
    for arguments in ([secret], ["scan", secret], ["diff", secret, str(served.folder / "x.safetensors")]):
        assert run([*arguments, "--html", str(page)]) == 0
        assert run([*arguments, "--json"]) == 0
        text = page.read_text(encoding="utf-8") + "".join(capsys.readouterr())
        assert address in text and not [word for word in ("owner7", "s3cret", "t0ken") if word in text]


def test_listing_an_address_brings_no_torch(served):
    """By the command."""
    address = small(served)
    code = (
        "import sys; from tensornp.fronts.command_line.main import main; status = main(); "
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
        with pytest.raises(tnp.ChangedFileError, match="is another one since it was listed"):
            found["a"].to_numpy()
        assert "is not there; check the address" in refused("memory://of tensornp/y.npy")
    finally:
        files.rm("/of tensornp", recursive=True)


@pytest.fixture
def lying(tmp_path, monkeypatch):
    """Return what a protocol does, of which each file is the same one, or answers as it is told."""
    path = tmp_path / "x.safetensors"
    save_file({"a": torch.arange(40_000.0)}, path)
    odd = SimpleNamespace(read=lambda data, wanted: data[:wanted], size=path.stat().st_size, is_ended_quietly=False)

    class File(io.BytesIO):
        @property
        def details(self):
            return {"size": odd.size}

        def __exit__(self, *_):
            return odd.is_ended_quietly

        def read(self, wanted):
            return odd.read(path.read_bytes()[self.tell() :], wanted)

        def readinto(self, view):
            return len(view)

    files = SimpleNamespace(open=lambda *_, **__: File(bytes(2**20)))
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda url: (files, url))
    return odd


def test_no_memory_is_shown_that_a_protocol_has_not_filled(lying):
    """Whatever it says of it; one that gives some bytes at a time is asked again."""
    found = tnp.weights("lying://x.safetensors")
    assert found.problems == [NOT_NOTICED.format("")]
    lying.read = lambda data, wanted: data[: min(wanted, 50_001)]
    assert np.array_equal(found["a"].to_numpy(), np.arange(40_000))
    lying.read = lambda data, wanted: b""
    with pytest.raises(tnp.CheckpointError, match="ends before byte"):
        found["a"].to_numpy()


@pytest.mark.parametrize("came", [None, 5, "x", b"x" * 2**20, []], ids=["none", "number", "text", "more", "list"])
def test_an_answer_of_a_protocol_that_is_none_is_told(lying, came):
    """In one sentence, whatever came in place of bytes."""
    lying.read = lambda *_: came
    assert "cannot be read: " in refused("lying://x.safetensors")
    lying.is_ended_quietly = True
    assert refused("lying://x.safetensors") == (
        "'lying://x.safetensors' cannot be read: EOFError; fsspec.open(...).open() tells more"
    )


@pytest.mark.parametrize("size", [None, "5", -5, True, 5.0, 2**63])
def test_a_size_of_a_protocol_that_is_none_is_told(lying, size):
    """Whatever came in place of one."""
    lying.size = size
    assert "is of a size that nothing tells; download it" in refused("lying://x.safetensors")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipe has a name here")
def test_a_pipe_at_an_address_is_not_opened(tmp_path):
    """It would hang whoever opens it; a file beside it is read."""
    save_file({"a": torch.arange(4.0)}, tmp_path / "x.safetensors")
    os.mkfifo(tmp_path / "pipe.safetensors")
    assert tnp.weights(f"file://{tmp_path}/x.safetensors")["a"].to_numpy(3) == 3
    assert "is no regular file, and is not opened" in refused(f"file://{tmp_path}/pipe.safetensors")
    assert "is not there; check the address" in refused(f"file://{tmp_path}/y.safetensors")


def test_a_protocol_that_is_not_there_is_told(monkeypatch):
    """With what to install, or that nobody knows it; one that does not work is none of these."""
    said = refused("ftp://owner7:s3cret@127.0.0.1:1/x.npy")
    assert (
        said == "'ftp://127.0.0.1:1/x.npy' cannot be read: ConnectionRefusedError; fsspec.open(...).open() tells more"
    )
    assert "has a scheme that fsspec does not know" in refused("nosuch://me:secret@host/x.npy")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    said = refused("s3://bucket/x.npy", kind=tnp.MissingLibraryError)
    assert said == "'s3://bucket/x.npy' is read by a library that is not installed; Install s3fs to access S3"
    monkeypatch.setitem(sys.modules, "fsspec", None)
    said = refused("s3://bucket/x.npy", kind=tnp.MissingLibraryError)
    assert said.endswith("is read by fsspec, which is not installed; pip install fsspec, and what it needs for s3://")


def test_the_library_reads_no_more_than_it_is_asked_for(monkeypatch):
    """Its cache would read 5 MB."""
    files, read = fsspec.filesystem("memory"), []
    files.pipe("/one.npy", b"\0" * 2**23)

    class Counting(fsspec.spec.AbstractBufferedFile):
        def _fetch_range(self, start, end):
            read.append(end - start)
            return files.cat_file("/one.npy", start, end)

    monkeypatch.setattr(type(files), "_open", lambda *args, **more: Counting(*args, size=2**23, **more))
    try:
        assert "does not begin as a .npy file does" in refused("memory://one.npy")
        assert read == [HEAD]
    finally:
        files.rm("/one.npy")


@pytest.mark.parametrize(
    ("url", "shown", "parent", "below"),
    [
        (
            "https://u:p@h:1/a/b.npy?t=1#x",
            "https://h:1/a/b.npy",
            "https://u:p@h:1/a/?t=1",
            "https://u:p@h:1/a/c%20d?t=1",
        ),
        ("http://h", "http://h", "http://h/", "http://h/c%20d"),
        ("https://u:p@ss/w@h/x", "https://u:p@ss/w@h/x", "https://u:p@ss/w@h/", "https://u:p@ss/w@h/c%20d"),
        ("s3://bucket/k", "s3://bucket/k", "s3://bucket/", "s3://bucket/c d"),
    ],
)
def test_an_address_is_a_path(url, shown, parent, below):
    """What stands before the last @ of its host is not shown, nor what follows a question mark."""
    address = Address(url)
    assert (address.parent.url, (address.parent / "c d").url) == (parent, below)
    if url.count("@") < 2:
        assert str(address) == shown


def test_threads_share_what_comes(large):
    """Eight that read all at once take nothing twice but what each asks for itself."""
    found = tnp.weights(f"{large.base}/model.safetensors")
    large.forget()
    rows: dict[int, np.ndarray] = {}
    threads = [
        threading.Thread(target=lambda i=i: rows.update({i: found["layers.3.weight"].to_numpy(i)})) for i in range(8)
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert all(np.array_equal(rows[i], TENSORS["layers.3.weight"][i].numpy()) for i in range(8))
    assert large.nbytes == 8 * 4096 * 4


def test_a_path_of_pathlib_that_was_an_address_is_told():
    """It has lost a slash."""
    said = "an address begins with its scheme, has two slashes, and is a text"
    assert said in refused(Path("https://host/x.npy"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (Path("https://me:secret@host/x.npy"), "https:/host/x.npy"),
        ("https:/me:secret@host/x.npy", "https:/host/x.npy"),
        ("'https://me:secret@host/x.npy'", "'https:/host/x.npy'"),
        ("simplecache::https://me:secret@host/x.npy?secret", "simplecache::https:/host/x.npy"),
        ("filecache::memory://x.npy?token=secret", "filecache::memory:/x.npy"),
        ("//me:secret@host/x.npy", "//host/x.npy"),
        ("h://me:secret@host/x.npy", "h:/host/x.npy"),
    ],
)
def test_what_is_no_address_shows_no_secret_of_one(typed, shown):
    """It was pasted with more than the address, or has lost a part of it."""
    for refuse in (tnp.weights, lambda path: tnp.compare(path, {"a": torch.ones(2)})):
        with pytest.raises(tnp.CheckpointError) as found:
            refuse(typed)
        assert f"'{shown}'" in str(found.value) and "secret" not in str(found.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("zip://x.pt::https://me:secret@host/a.zip?secret", "zip://…@host/a.zip"),
        ("zip://x.pt::https://me:se?cret@host/a.zip", "zip://…"),
        ("zip://x.pt::https://host/a.zip?secret", "zip://x.pt::https://host/a.zip"),
        ("https://me:secr/et@host/x.npy", "https://…@host/x.npy"),
        ("https://me:12?secret@host/x.npy", "https://…"),
        ("https://me:secret", "https://…"),
        ("https://[fe80::a]:80/x@v1.npy", "https://[fe80::a]:80/x@v1.npy"),
        ("hf://owner/name@v1/x.npy", "hf://owner/name@v1/x.npy"),
        ("\n https://host/x.npy ", "https://host/x.npy"),
    ],
)
def test_what_may_be_a_secret_is_not_shown(url, shown):
    """But a version in the path is."""
    assert str(Address(url)) == shown


def test_a_path_on_disk_is_shown_as_it_is(tmp_path):
    """Whatever is in its names."""
    for path in ("C:/a@b/x?.npy", "/me:1@host/x#1.npy", "a:b@c/x.npy", f"{tmp_path}/a" * 40_000):
        assert shown_path(path) == path


def test_an_address_with_blanks_around_it_is_opened(served):
    """It was pasted; no copy of an entry tells its secrets."""
    address = small(served).replace("//", "//me:secret@")
    for pasted in (f" {address}?secret", f"\n{address}\n"):
        entry = tnp.weights(pasted)["a"]
        assert entry.to_numpy(3)[0] == 12 and "secret" not in repr([getattr(entry, one.name) for one in fields(entry)])


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


@pytest.mark.parametrize("form", ["torch.save", "safetensors"])
def test_a_distributed_checkpoint_is_read_as_on_disk(served, form):
    """By its metadata, its values and its items; of these, a byte is asked for when it is listed."""
    writer = writer_of(form, str(served.folder / "x"))
    if writer is None:
        pytest.skip("this torch does not write it")
    save({"w": torch.arange(12.0).view(3, 4), "b": torch.ones(5).bfloat16(), "step": 3, "lr": {"a": 0.1}}, writer)
    own = tnp.weights(served.folder / "x")
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


def test_rows_of_a_distributed_checkpoint_are_read_by_their_bytes(served):
    """And what tells where in an item they lie, by a few requests for each chunk that is met."""
    made = several(served.folder)
    entry = tnp.weights(f"{served.base}/")["w"]
    sizes = {f"/__{rank}_0.distcp": 1 for rank in range(3)}
    assert {one.path: one.nbytes for one in served.requests if one.path in sizes} == sizes
    served.forget()
    assert np.array_equal(entry.to_numpy(slice(6, 10)), made["w"][6:10].numpy())
    # Two chunks are met: each by both ends of its item, and its rows.
    assert len(served.requests) == 6 and served.nbytes <= 2 * (8000 + 4096)
    served.forget()
    assert np.array_equal(entry.to_numpy(slice(6, 10)), made["w"][6:10].numpy())
    assert [one.nbytes for one in served.requests] == [2 * 4000] * 2
    assert tnp.weights(f"{served.base}/").scan(progress=False)["w"] == tnp.stats(made["w"])


def test_values_beside_weights_come_together(served):
    """A hundred of them by one request; one that is large comes by itself."""
    tree = {f"step{i}": i for i in range(60)} | {f"state{i}": list(range(i)) for i in range(39)} | {"w": torch.ones(3)}
    save(tree | {"large": "x" * 200_000}, writer_of("torch.save", str(served.folder / "x")))
    served.forget()
    found = tnp.weights(f"{served.base}/x/")
    assert {name: found.metadata[name] for name in tree if name != "w"} == {k: v for k, v in tree.items() if k != "w"}
    assert found.metadata["large"] == "x" * 200_000 and not found.problems
    of_items = [one for one in served.requests if one.path.endswith(".distcp")]
    # A byte, all small ones, and what the large one takes.
    assert len(of_items) == 5


@pytest.mark.parametrize("how", ["lost", "short", "changed", "outside"])
def test_a_distributed_checkpoint_is_checked_as_on_disk(served, how):
    """What is lost, cut off or another one is told, and hides no other."""
    made = several(served.folder)
    last = served.folder / "__2_0.distcp"
    found = tnp.weights(f"{served.base}/")
    if how == "changed":
        last.write_bytes(last.read_bytes()[::-1])
        os.utime(last, (1, 1))
        with pytest.raises(tnp.ChangedFileError, match=r"__2_0\.distcp' is another one since it was listed"):
            found["w"].to_numpy(20)
    elif how == "lost":
        last.unlink()
    elif how == "short":
        os.truncate(last, 1000)
    else:
        metadata = pickle.loads((served.folder / ".metadata").read_bytes())
        list(metadata.storage_data.values())[2].relative_path = "../__2_0.distcp"
        (served.folder / ".metadata").write_bytes(pickle.dumps(metadata))
    if how != "changed":
        found, own = tnp.weights(f"{served.base}/"), tnp.weights(served.folder)
        reason = "is not given out: 404 Not Found; check the address"
        expected = [
            one.replace(str(served.folder), served.base).replace("cannot be opened: No such file or directory", reason)
            for one in own.problems
        ]
        assert found.problems == expected and len(expected) == 1
    assert np.array_equal(found["v"].to_numpy(), made["v"].numpy())
    if how == "lost":
        assert np.array_equal(found["w"].to_numpy(slice(0, 16)), made["w"][:16].numpy())


def test_many_files_of_a_distributed_checkpoint_are_asked_for_at_once(served):
    """A hundred, of which each answer comes late, take as long as some one after another."""
    several(served.folder, 100)
    served.pause_s = 0.1
    begun = time.perf_counter()
    assert not tnp.weights(f"{served.base}/").problems
    assert time.perf_counter() - begun < 5


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
        assert len(found.problems) == 3
        assert all("would lie outside of the folder" in one for one in found.problems)
        with pytest.raises(tnp.NoDataError):
            found["v"].to_numpy()
    finally:
        files.rm("/of tensornp", recursive=True)


def test_a_distributed_checkpoint_is_read_by_a_protocol_of_fsspec(tmp_path):
    """And compared with that on disk, and scanned by other processes."""
    made = several(tmp_path)
    found = tnp.weights(f"file://{tmp_path}/")
    assert not found.problems and [chunk.rank for chunk in found["w"]._chunks] == [0, 1, 2]
    assert np.array_equal(found["w"].to_numpy(slice(None, None, -7)), made["w"].numpy()[::-7])
    assert tnp.compare(found, tmp_path).equal
    with ProcessPoolExecutor(2) as pool:
        assert found.scan(progress=False, executor=pool)["w"] == tnp.stats(made["w"])
