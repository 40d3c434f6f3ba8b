"""`%%tonumpy` runs what is below it as IPython runs a cell."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from IPython.utils.capture import capture_output
from IPython.utils.path import compress_user
from kernels import TIMEOUT_S, start_kernel

import tensornp

OUR_FOLDER = compress_user(str(Path(tensornp.__file__).parent)) + os.sep
"""As a traceback writes it."""
AWAITED = "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return w * 2\n"
REFUSED = [
    ("return w", "line 2 of the cell", "'return' outside function"),
    ("x = 1\nyield w", "line 3 of the cell", "'yield' outside function"),
    ("w\nbreak", "line 3 of the cell", "'break' outside loop"),
    ("async def f():\n    pass\nw +", "line 4 of the cell", "invalid syntax"),
    ("w\0", "the cell", "null bytes"),
    ("(" * 1000 + "w" + ")" * 1000, "line 2 of the cell", "nested"),
    ("-" * 100_000 + "w", "the cell", "too deeply nested"),
    ("w" + ".T" * 100_000, "the cell", "too deeply nested"),
    ("await w" + ".T" * 100_000, "the cell", "too deeply nested"),
]


@pytest.fixture(autouse=True)
def _names(shell):
    shell.namespace.update(w=torch.arange(3.0), half=torch.ones(2).bfloat16())


@pytest.mark.parametrize(
    "last", ["await f()", "[x async for x in g()][0]", "async with c(): pass\nw * 2", "y = await f()"]
)
def test_top_level_await_works(shell, last):
    """The cell's value, and variables by name, come from what was awaited."""
    shell.run(
        f"from contextlib import asynccontextmanager\n{AWAITED}\nasync def g():\n    yield w * 2\n"
        "@asynccontextmanager\nasync def c():\n    yield\n"
    )
    names = "y" if last.startswith("y") else ""
    assert shell.run(f"%%tonumpy -c {names}\n{last}").tolist() == [0, 2, 4]


def test_a_cell_that_awaits_takes_options_errors_and_a_semicolon_like_any_other(shell):
    """Quiet, bound, explained, refused: as without `await`."""
    assert shell.run(f"%%tonumpy -o a\n{AWAITED}await f()") is None
    assert shell.namespace["a"].tolist() == [0, 2, 4]
    assert shell.run("%%tonumpy\nawait f();") is None
    assert shell.displayed == []
    shell.run("%%tonumpy --explain\n(await f()).bfloat16()")
    assert "code:  a = (await f()).bfloat16().to(torch.float32).numpy()" in shell.printed
    assert "no variable 'z'" in shell.fail("%%tonumpy z\nawait f()")
    assert "has no value" in shell.fail("%%tonumpy\nx = await f()")
    assert "not 'int'" in shell.fail("%%tonumpy\nawait f()\n3")
    assert "not a valid Python name" in shell.fail("%%tonumpy -o 1a\nawait f()")


def test_cells_of_other_magics_and_of_none_are_left_as_they_are(shell):
    """Only our own magic is awaited, and nothing else of a cell is changed; unloading takes the transformer out."""
    cells = ["await f()", "%%time\nawait f()", "%%tonumpy\nw", "%%tonumpy\n'await'", "%%tonumpy?", "%tonumpy await f()"]
    with_us = [shell.ip.transform_cell(cell) for cell in cells]
    awaited = shell.ip.transform_cell("%%tonumpy\nawait f()")
    shell.run("%unload_ext tensornp")
    assert [shell.ip.transform_cell(cell) for cell in cells] == with_us
    assert "await " + shell.ip.transform_cell("%%tonumpy\nawait f()") == awaited
    shell.run("%load_ext tensornp")


@pytest.mark.parametrize(
    "raising",
    ["1 / 0", "raise KeyboardInterrupt", "import signal; signal.raise_signal(signal.SIGINT)", "next(iter(()))"],
)
@pytest.mark.parametrize("before", ["pass", "import asyncio; await asyncio.sleep(0)"])
def test_an_error_comes_with_the_users_own_traceback_alone(shell, before, raising):
    """The lines are counted as they are seen, no frame of ours or of IPython's stands before them."""
    if "await" in before and "iter" in raising:
        # Python itself lets no StopIteration out of what is awaited.
        before = "pass"
    cell = f"{before}\ndef deep():\n    {raising}\n\ndeep()\nran = 1"
    with capture_output() as captured:
        result = shell.ip.run_cell(f"%%tonumpy\n{cell}", store_history=True)
    assert type(result.error_in_exec).__name__ in ("ZeroDivisionError", "KeyboardInterrupt", "StopIteration")
    assert "ran" not in shell.namespace
    frames = re.findall(r"^(?:File|Cell|\s*\[\.\.\.).*", captured.stdout, re.MULTILINE)
    number = result.execution_count
    assert frames == [f"Cell In[{number}], line 6", f"Cell In[{number}], line 4, in deep()"]
    assert "_render_traceback_" not in vars(result.error_in_exec)


@pytest.mark.slow
def test_what_is_no_python_is_told_in_a_sentence_and_nothing_has_run(shell):
    """Deeply nested, NUL bytes, `return` and `yield` of no function, `break` of no loop."""
    for cell, where, why in REFUSED:
        said = shell.fail(f"%%tonumpy\n{cell}\nran = 1")
        assert said.startswith(where)
        assert why in said
        assert "ran" not in shell.namespace


@pytest.mark.slow
def test_an_expression_that_is_none_is_told_in_a_sentence(shell):
    """The same ones, for each magic that takes an expression, and not the whole of a long one."""
    expressions = [cell.splitlines()[-1] for cell, *_ in REFUSED if "async" not in cell]
    for expression in [*expressions, "(yield)"]:
        for magic in ("%tonumpy", "%totensor", "%tensorwatch"):
            assert len(shell.fail(f"{magic} {expression}")) < 1200


@pytest.fixture(scope="module")
def kernel() -> Iterator[object]:
    manager, client = start_kernel()
    client.execute_interactive("%load_ext tensornp\nimport torch\nw = torch.arange(3.)", timeout=TIMEOUT_S)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def _outputs(client, code, on_output=lambda kind, content: None):
    outputs = []

    def keep(message):
        outputs.append((message["msg_type"], message["content"]))
        on_output(message["msg_type"], message["content"])

    reply = client.execute_interactive(code, timeout=TIMEOUT_S, output_hook=keep)
    return reply["content"], outputs


@pytest.mark.slow
def test_a_kernel_awaits_in_the_loop_that_it_runs_in(kernel):
    """A task of an earlier cell can be awaited, and one result is shown."""
    _, client = kernel
    _outputs(client, f"{AWAITED}\ntask = asyncio.get_running_loop().create_task(f())".replace("return", "return"))
    reply, outputs = _outputs(client, "%%tonumpy\nassert asyncio.get_running_loop() is task.get_loop()\nawait task")
    assert reply["status"] == "ok", reply
    results = [content["data"]["text/plain"] for kind, content in outputs if kind == "execute_result"]
    assert results == ["array([0., 2., 4.], dtype=float32)"]


@pytest.mark.parametrize("waiting", ["while True: pass", "import asyncio\nwhile True: await asyncio.sleep(0.01)"])
def test_a_kernel_can_be_interrupted_in_it(kernel, waiting):
    """The stop button ends the cell with the user's own traceback, and the kernel goes on."""
    manager, client = kernel
    started = threading.Event()

    def stop(kind, content):
        if kind == "stream" and "started" in content["text"] and not started.is_set():
            started.set()
            manager.interrupt_kernel()

    # Whoever flushes waits until it is sent, and would be what is interrupted.
    reply, _ = _outputs(client, f"%%tonumpy\nprint('started')\n{waiting}", stop)
    assert (reply["status"], reply["ename"]) in (("error", "KeyboardInterrupt"), ("error", "CancelledError"))
    assert OUR_FOLDER not in "".join(reply["traceback"])
    assert _outputs(client, "%%tonumpy\nw")[0]["status"] == "ok"
