"""Two engines of ipyparallel that train together: asked each by itself, busy and killed."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import pytest
from child import in_child

import tensornp as tnp

TIMEOUT_S, LIMIT_S = 400, 20
"""After which the child is ended, and in which a card must come that waits for nobody."""
SET_UP = """
import datetime, os, torch, torch.distributed as dist
os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if os.uname().sysname == "Darwin" else "lo"
limit = datetime.timedelta(seconds=100)
dist.init_process_group("gloo", init_method="file://{place}", rank={rank}, world_size=2, timeout=limit)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 15), torch.nn.LayerNorm(15))
whole = model[0].weight.detach().clone()
whole[12, 3] = float("nan")
model[0].weight = torch.nn.Parameter(distribute_tensor(whole, mesh, [Shard(0)]))
before = dist.group.WORLD._get_sequence_number_for_group()
"""
WAIT = """
import pathlib, time
pathlib.Path("{busy}").touch()
while not pathlib.Path("{free}").exists():
    time.sleep(0.1)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signal")
@in_child
def test_two_engines_are_one_card_whatever_becomes_of_them():
    """They have a rank each, hold a part each, and one after the other is busy and killed."""
    timer = threading.Timer(TIMEOUT_S, os.kill, (os.getpid(), signal.SIGINT))
    timer.daemon = True
    timer.start()
    with tempfile.TemporaryDirectory() as place:
        os.environ["IPYTHONDIR"] = str(Path(place, "ipython"))
        import ipyparallel

        with ipyparallel.Cluster(n=2, controller_ip="127.0.0.1", log_level=30) as client:
            client.wait_for_engines(2)
            # Engine 0 is rank 1.
            begun = [
                client[i].execute(SET_UP.format(place=Path(place, "met"), rank=1 - i), block=False) for i in (0, 1)
            ]
            for one in begun:
                one.get(100)
            look_at(client)
            lose(client, Path(place))


def look_at(client):
    found = tnp.ranks(client, timeout=100).weights("model")
    assert found.told == "2 ranks: the same 4 tensors"
    assert found.answered == (1, 0)
    with pytest.raises(tnp.TensornpError, match="client must be a client of ipyparallel"):
        tnp.ranks(client[:])
    stats = found.stats("0.weight")
    assert (stats.count, stats.nan, stats.scope) == (120, 1, "all elements")
    assert stats.nonfinite == {1: "1 NaN"}
    card = tnp.ranks(client, timeout=100).card("model[0].weight")
    assert (stats.count, stats.nan, stats.sum, stats.std) == (card.count, card.nan, card.sum, card.std)
    assert (card.facts.kind, card.facts.layout) == ("parameter", "S(0)")
    assert not found.drift()
    client[0].execute("with torch.no_grad(): model[1].weight[3] = 5", block=True)
    assert dict(found.drift()) == {"1.weight": "differs on rank 1"}
    # No collective was begun, on either of them.
    for engine in client:
        assert engine.apply_sync(eval, "dist.group.WORLD._get_sequence_number_for_group() - before", None) == 0


def lose(client, place):
    pids = client[:].apply_sync(os.getpid)
    own = tnp.ranks(client, timeout=1)
    busy = client[1].execute(WAIT.format(busy=place / "busy", free=place / "free"), block=False)
    while not (place / "busy").exists():
        time.sleep(0.1)
    begun = time.monotonic()
    found = own.weights("model")
    assert found.told == "1 of 2 ranks: the same 4 tensors"
    assert found.silent[1].startswith("engine 1 did not answer")
    own.weights("model")
    assert time.monotonic() - begun < LIMIT_S
    (place / "free").touch()
    # It was neither interrupted nor cancelled.
    assert busy.get(100).status == "ok"
    client[1].apply_sync(os.getpid)
    assert own.weights("model").answered == (1, 0)
    os.kill(pids[1], signal.SIGKILL)
    begun = time.monotonic()
    while own.weights("model").silent[1] != "rank 0 has died, or was stopped":
        assert time.monotonic() - begun < 100
    found = own.weights("model")
    assert (found.answered, found.told) == ((0,), "1 of 2 ranks: the same 4 tensors")
    assert not client.results
