"""`%tonumpy`, `%%tonumpy`, `%totensor`: options, verbatim expressions, receipts, errors in one sentence, TAB."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from IPython.utils.capture import capture_output

from tensornp.fronts.ipython.arguments import flags_of
from tensornp.fronts.ipython.magics import OPTIONS


@pytest.fixture(autouse=True)
def _names(shell):
    shell.namespace.update(w=torch.arange(4.0), c=torch.ones(4), half=torch.ones(2).bfloat16())
    shell.namespace.update(d={"a  b": torch.ones(3)}, x=torch.arange(6).view(2, 3))


def test_it_returns_the_array_of_the_default_mode(shell):
    """`a = %tonumpy w` works; the array is live and read-only."""
    shell.run("a = %tonumpy w")
    a = shell.namespace["a"]
    shell.namespace["w"][0] = 9
    assert a[0] == 9
    assert not a.flags.writeable


@pytest.mark.parametrize(
    ("option", "shares", "writeable"),
    [("-v", True, False), ("--share", True, True), ("-s", True, True), ("-c", False, True), ("--copy", False, True)],
)
def test_options_choose_the_mode(shell, option, shares, writeable):
    """Short and long, the three modes do what they are called."""
    a = shell.run(f"%tonumpy {option} w")
    shell.namespace["w"][0] = 9
    assert ((a[0] == 9), a.flags.writeable) == (shares, writeable)


def test_dtype_converts(shell):
    """Also to a dtype of ml_dtypes, with the value apart or after =."""
    assert shell.run("%tonumpy -d float64 half").dtype == np.float64
    assert shell.run("%tonumpy --dtype=bfloat16 half").dtype == ml_dtypes.bfloat16


def test_out_binds_a_name_and_shows_nothing(shell):
    """`-o NAME` is for the name alone."""
    assert shell.run("%tonumpy -c -o mine w") is None
    assert shell.namespace["mine"].tolist() == [0, 1, 2, 3]


def test_explain_prints_the_receipt_and_converts_nothing(shell):
    """The storage stays resizable."""
    assert shell.run("%tonumpy --explain half") is None
    assert "code:  a = half.to(torch.float32).numpy()" in shell.printed
    shell.run("%tonumpy --explain w")
    assert shell.namespace["w"].untyped_storage().resizable()


def test_every_conversion_shows_its_receipt(shell):
    """One line, as text and as HTML, and the code below; a container says how many of each."""
    expected = {
        "a = %tonumpy w": "shares memory with w, read-only (--share to write)",
        "%tonumpy --share -o b w": "shares memory with w, writeable: a write to b changes w",
        "a = %tonumpy -c w": "copied 16 bytes: asked for, so no later write is seen on the other side",
        "a = %tonumpy half": "copied 8 bytes: bfloat16 → float32",
        "a = %tonumpy --dtype float16 w": "copied 8 bytes: float32 → float16, lossy",
        "a = %tonumpy torch.empty(0)": "empty: there is nothing to share or to copy",
    }
    for line, said in expected.items():
        shell.run(line)
        receipt = shell.displayed[-1]
        assert receipt["text/plain"].splitlines()[0] == said
        assert f">{said}&ensp;<u>code</u></summary>" in receipt["text/html"]
    shell.run("a = %tonumpy [w, half]")
    assert "2 tensors: 1 shares memory, 1 copied (8 bytes)" in shell.printed


@pytest.mark.parametrize("expression", ["[w]", "{'a': w}", "(w,)", "dict(a=[w])"])
def test_a_container_of_one_tensor_has_the_receipt_of_a_container(shell, expression):
    """The code that converts a tensor would not run on it."""
    shell.run(f"a = %tonumpy {expression}")
    assert shell.printed == "1 tensor: 1 shares memory, 0 copied (0 bytes)\n"
    assert shell.displayed == []


@pytest.mark.parametrize("what", [
    "\nt = w + 5\nw * 2", "\nw[0]; w[1:]", "\n[w][0]  # it", "\n[w,\n c][0]", "\n(w  # all\n + c)",
    " d['a  b']", " torch.neg(w)[1:]", " größe",
])  # fmt: skip
def test_the_code_of_a_receipt_gives_the_same(shell, what):
    """Of the last value of a cell, whatever ``t`` is."""
    shell.namespace.update(t=torch.zeros(9), größe=torch.ones(2))
    shell.run(f"%{'%' * what.startswith(chr(10))}tonumpy -o shown{what}")
    array = shell.namespace.pop("shown")
    shell.run(shell.displayed[-1]["text/plain"].splitlines()[1])
    np.testing.assert_array_equal(shell.namespace["shown"], array, strict=True)


def test_a_semicolon_silences_value_and_receipt(shell):
    """As everywhere in IPython."""
    assert shell.run("%tonumpy w;") is None
    assert shell.displayed == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("d['a  b']", [1, 1, 1]),
        ("x[{0}.pop()]", [0, 1, 2]),
        ("(-w)[:2]", [0, -1]),
        ("w[w > 2]", [3]),
        ("torch.tensor([len('a  --copy -c b')])", [14]),
        ("w - 1 if len(d) else 'it''s'", [-1, 0, 1, 2]),
        ("d['a  b'].clone() # a remark", [1, 1, 1]),
        ("w -c", [-1, 0, 1, 2]),
    ],
)
def test_an_expression_is_taken_exactly_as_typed(shell, expression, expected):
    """Spaces, braces, dollars, quotes and dashes inside it are its own."""
    assert shell.run(f"%tonumpy {expression}").tolist() == expected
    assert shell.run(f"%tonumpy -c {expression}").tolist() == expected


def test_the_cell_magic_converts_the_last_value(shell):
    """The cell runs as it would, its last value comes as an array, and nothing is shown twice."""
    assert shell.run("%%tonumpy -c\ny = w * 2\ny + 1").tolist() == [1, 3, 5, 7]
    assert shell.namespace["y"].tolist() == [0, 2, 4, 6]


def test_the_cell_magic_converts_named_tensors(shell):
    """One name gives an array, more give a dict of arrays; other magics work inside the cell."""
    assert shell.run("%%tonumpy y\ny = w * 2\n%time pass\nprint('ran')").tolist() == [0, 2, 4, 6]
    assert "ran" in shell.printed
    both = shell.run("%%tonumpy y z\ny = w * 2\nz = w + 1")
    assert {name: a.tolist() for name, a in both.items()} == {"y": [0, 2, 4, 6], "z": [1, 2, 3, 4]}


@pytest.mark.parametrize("last", ["return w", "w +", "w\0", "(" * 1000 + "w" + ")" * 1000])
def test_a_cell_that_is_no_python_does_not_run(shell, last):
    with capture_output():
        result = shell.ip.run_cell(f"%%tonumpy\nran = 1\n{last}")
    assert isinstance(result.error_in_exec or result.error_before_exec, (SyntaxError, ValueError, MemoryError))
    assert "ran" not in shell.namespace


def test_the_way_back(shell):
    """`%totensor` gives the tensor, and `-o` binds it."""
    shell.namespace["a"] = np.arange(3)
    assert torch.equal(shell.run("%totensor a"), torch.arange(3))
    shell.run("%totensor -o t a + 1")
    assert shell.namespace["t"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%tonumpy", "there is no expression"),
        ("%tonumpy --cpy w", "option --cpy not recognized; the options are --view"),
        ("%tonumpy nope", "name 'nope' is not defined"),
        ("%tonumpy w[", "is not an expression"),
        ("%tonumpy 3", "not 'int'"),
        ("%tonumpy -x w", "into parentheses"),
        ("%tonumpy w --copy", "stands behind the expression; put options before it"),
        ("%weights nowhere.pt --out x", "stands behind the expression; put options before it"),
        ("%tonumpy --cop --sh w", "exclude each other"),
        ("%tonumpy -d nonsense w", "'nonsense' is not a dtype"),
        ("%tonumpy -o 1a w", "'1a' is not a valid Python name"),
        ("%tonumpy -s torch.ones(2, dtype=torch.complex64).conj()", "pass copy=None"),
        ("%tonumpy torch.ones(2, device='meta')", "meta tensor"),
        ("%tonumpy --explain 3", "to_numpy takes a tensor, or a dict"),
        ("%tonumpy -d", "requires argument"),
        ("%%tonumpy nope\npass", "no variable 'nope'"),
        ("%%tonumpy\npass", "has no value"),
        ("%totensor w", "takes an array"),
        ("%totensor [1, 2]", "there is no array in this list"),
        ("%totensor -c w", "the options are"),
    ],
)
def test_bad_input_gets_one_clear_sentence(shell, line, says):
    """No traceback wall."""
    assert says in shell.fail(line)


def test_help_names_every_option_and_is_short(shell):
    """`%tonumpy?` shows them all, in at most 18 lines, and `%weights?` in 25."""
    magics = shell.ip.magics_manager.magics
    names = ("tonumpy", "totensor", "tensors", "tensorwatch", "tensorstats", "tensordiff", "weights", "tensornp")
    helps = {name: magics["line"][name].__doc__ for name in names} | {"follow": magics["cell"]["follow"].__doc__}
    for name, text in helps.items():
        assert len(text.strip().splitlines()) <= (25 if name == "weights" else 18), name
    for name, options in OPTIONS.items():
        assert all(flag in magics["line"][name].__doc__ for flag in flags_of(options))


def test_tab_offers_options_variables_and_paths(shell, tmp_path, monkeypatch):
    """Attributes and paths are completed by IPython."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.pt").touch()
    (tmp_path / "models").mkdir()
    shell.namespace["modern"] = 1
    assert shell.complete("%tonumpy mod") == ["modern"]
    assert sorted(shell.complete("%weights mod")) == ["model.pt", "models/", "modern"]
    assert shell.complete("%tonumpy --co") == ["--copy"]
