"""`%%tonumpy` runs what is below it as IPython runs a cell."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from IPython.core.error import InputRejected
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


class _Tens(ast.NodeTransformer):
    def visit_Constant(self, node):
        return ast.copy_location(ast.Constant(10 * node.value), node) if type(node.value) is int else node


class _Reject(ast.NodeTransformer):
    def visit_Name(self, node):
        if node.id == "forbidden":
            raise InputRejected("forbidden is not for you")
        return node


@pytest.mark.parametrize("cell", ["w * 2", "y = w * 2\ny"])
def test_ast_transformers_apply_once(shell, cell):
    """As in a cell without the magic."""
    shell.ip.ast_transformers.append(_Tens())
    try:
        assert shell.run(f"%%tonumpy\n{cell}").tolist() == shell.run(cell).tolist() == [0, 20, 40]
    finally:
        shell.ip.ast_transformers.clear()


def test_an_ast_transformer_may_reject_the_cell(shell):
    """One sentence with its reason, and nothing has run."""
    shell.ip.ast_transformers.append(_Reject())
    try:
        assert "forbidden is not for you" in shell.fail("%%tonumpy\nran = 1\nforbidden")
    finally:
        shell.ip.ast_transformers.clear()
    assert "ran" not in shell.namespace


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


def test_a_name_that_is_missing_deep_inside_has_a_traceback(shell):
    """Only one in the expression itself is told in a sentence."""
    assert "name 'nope' is not defined; define it first" in shell.fail("%tonumpy nope")
    for magic in ("%tonumpy", "%totensor"):
        with capture_output() as captured:
            result = shell.ip.run_cell(f"def f():\n    return nope\n{magic} f()")
        assert type(result.error_in_exec) is NameError
        assert "return nope" in captured.stdout
        assert OUR_FOLDER not in captured.stdout


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
