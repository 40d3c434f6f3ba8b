"""`%tonumpy`, `%%tonumpy`, `%totensor`: options, verbatim expressions, receipts, errors in one sentence, TAB."""

from __future__ import annotations

from collections import OrderedDict, UserDict

import ml_dtypes
import numpy as np
import pytest
import torch
from ipywidgets.widgets.widget import _instances

from tensornp.fronts.ipython.magics import OPTIONS


@pytest.fixture(autouse=True)
def _names(shell):
    shell.namespace.update(
        w=torch.arange(4.0), half=torch.ones(2).bfloat16(), d={"a  b": torch.ones(3)}, x=torch.arange(6).view(2, 3)
    )


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
    """Mode, line of code, reason, as text and as HTML; a container says how many of each."""
    shell.run("a = %tonumpy -c w")
    (receipt,) = shell.displayed
    assert receipt["text/plain"].splitlines()[0] == "copy: a = w.clone().numpy()"
    assert "<details" in receipt["text/html"]
    shell.run("a = %tonumpy [w, half]")
    assert "2 tensors: 1 shares memory, 1 copied (8 bytes)" in shell.printed


@pytest.mark.parametrize("expression", ["[w]", "{'a': w}", "(w,)", "dict(a=[w])"])
def test_a_container_of_one_tensor_has_the_receipt_of_a_container(shell, expression):
    """The code that converts a tensor would not run on it."""
    shell.run(f"a = %tonumpy {expression}")
    assert shell.printed == "1 tensor: 1 shares memory, 0 copied (0 bytes)\n"
    assert shell.displayed == []


@pytest.mark.parametrize(
    "what", [" w.untyped_storage()", " x.mT.storage()", "\nt = w + 5\nw * 2", "\nw[0]; w[1:]", "\n[w][0]  # it"]
)
def test_the_code_of_a_receipt_gives_the_same(shell, what):
    """Of a storage, and of the last value of a cell, whatever ``t`` is."""
    shell.namespace["t"] = torch.zeros(9)
    shell.run(f"%{'%' * what.startswith(chr(10))}tonumpy -o shown{what}")
    array = shell.namespace.pop("shown")
    shell.run(shell.displayed[-1]["text/plain"].splitlines()[0].partition(": ")[2])
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


def test_the_way_back(shell):
    """`%totensor` gives the tensor, and `-o` binds it."""
    shell.namespace["a"] = np.arange(3)
    assert torch.equal(shell.run("%totensor a"), torch.arange(3))
    shell.run("%totensor -o t a + 1")
    assert shell.namespace["t"].tolist() == [1, 2, 3]


def test_the_way_back_says_whether_memory_is_shared(shell):
    """As a write proves; a semicolon silences it."""
    shell.namespace["np"] = np
    shell.run("writeable, frozen = np.zeros(3), np.zeros(4)\nfrozen.flags.writeable = False")
    for name, said in (
        ("writeable", "shares memory: a write to the array is seen in the tensor, and the other way round"),
        ("frozen", "copied 32 bytes: a read-only array cannot share memory with a tensor"),
    ):
        shell.run(f"t = %totensor {name}")
        (shown,) = shell.displayed
        assert shown["text/plain"] == said
        assert said in shown["text/html"]
        shares = np.shares_memory(shell.namespace["t"].numpy(), shell.namespace[name])
        assert shares == said.startswith("shares")
    shell.run("t = %totensor frozen;")
    assert not shell.displayed


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%tonumpy", "there is no expression"),
        ("%tonumpy nope", "name 'nope' is not defined"),
        ("%tonumpy w[", "is not an expression"),
        ("%tonumpy 3", "not 'int'"),
        ("%tonumpy -x w", "goes into parentheses"),
        ("%tonumpy -c -s w", "exclude each other"),
        ("%tonumpy -d nonsense w", "'nonsense' is not a dtype"),
        ("%tonumpy -o 1a w", "'1a' is not a valid Python name"),
        ("%tonumpy -s torch.ones(2, dtype=torch.complex64).conj()", "pass copy=None"),
        ("%tonumpy torch.ones(2, device='meta')", "meta tensor"),
        ("%tonumpy -w 3", "--widget takes a tensor"),
        ("%tonumpy --explain 3", "there is no tensor in this int"),
        ("%tonumpy -d", "requires argument"),
        ("%%tonumpy nope\npass", "no variable 'nope'"),
        ("%%tonumpy\npass", "has no value"),
        ("%%tonumpy\n1 +", "not valid Python"),
        ("%tonumpy -m 1e6 w", "takes a whole number of bytes, such as 1_000_000, not '1e6'"),
        ("%tonumpy -m 1MiB w", "such as 1_000_000"),
        ("%totensor w", "takes an array"),
        ("%totensor [1, 2]", "there is no array in this list; torch.tensor(...) converts numbers"),
        ("%totensor {'a': [w]}", "there is no array in this dict"),
        ("%totensor -c w", "the options are"),
    ],
)
def test_bad_input_gets_one_clear_sentence(shell, line, says):
    """No traceback wall."""
    assert says in shell.fail(line)


def test_help_names_every_option(shell):
    """`%tonumpy?` shows them all, short and long."""
    magics = shell.ip.magics_manager.magics["line"]
    for name, options in OPTIONS.items():
        for option in options:
            for flag in option.flags:
                assert flag in magics[name].__doc__


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("%tonumpy ha", ["half"]),
        ("a = %tonumpy -c ha", ["half"]),
        ("%tonumpy --co", ["--copy"]),
        ("%tonumpy --e", ["--explain"]),
        ("%tonumpy -d bf", ["bfloat16"]),
        ("%%tonumpy ha", ["half"]),
        ("%totensor arr", ["arr"]),
        ("%load_ext ten", ["tensornp"]),
        ("reload_ext ", ["tensornp"]),
    ],
)
def test_tab_offers_tensors_and_options_and_nothing_else(shell, line, offered):
    """Nothing in the field completes after a magic."""
    shell.namespace.update(arr=np.ones(2), happy="a string")
    assert shell.complete(line) == offered


@pytest.mark.parametrize("magic", ["%tonumpy ", "%%tonumpy -c ", "a = %tonumpy --explain "])
def test_tab_offers_what_an_expression_may_begin_with(shell, magic):
    """Tensors, and what they are reached through: modules of either kind, dicts, lists and tuples."""
    shell.namespace.update(
        my_model=torch.nn.Linear(1, 1), my_dict={}, my_ordered=OrderedDict(), my_list=[], my_tuple=(), my_text="w",
        my_user_dict=UserDict(), my_torch=torch, my_function=len, my_array=np.ones(1), _my_tensor=torch.ones(1),
        my_parameter=torch.nn.Parameter(torch.ones(1)),
    )  # fmt: skip
    names = "dict list model ordered parameter torch tuple user_dict".split()
    assert sorted(shell.complete(f"{magic}my_")) == [f"my_{name}" for name in names]
    offered = shell.complete(magic)
    assert "my_model" in offered
    assert not {"my_array", "_my_tensor", "In", "_ih"} & set(offered)
    assert shell.complete(f"{magic}_my") == ["_my_tensor"]
    assert shell.complete(f"{magic}Ou") == ["Out"]


def test_the_live_card_can_be_pinned(shell):
    """`-w` displays a widget with the static card as its fallback, and binds names in this shell."""
    shell.run("%tonumpy -w w")
    (data,) = shell.displayed
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "array([0., 1., 2., 3.]" in data["text/html"]
    assert "array([0., 1., 2., 3.]" in data["text/plain"]


def test_a_pinned_card_names_who_shares_its_memory_and_not_itself(shell):
    """Nor another card of the same tensor, in any mode; other names of it stand behind the fold."""
    shell.run("b = w.numpy(); also = w")
    widgets = []
    for _ in range(2):
        shell.run("%tonumpy -w w")
        (data,) = shell.displayed
        assert "same memory as b (NumPy array)" in data["text/plain"]
        widgets.append(_instances[data["application/vnd.jupyter.widget-view+json"]["model_id"]])
    for widget in widgets:
        for card in widget.cards.values():
            assert card["memory"] == ["same memory as b (NumPy array)"]
            assert "also named also" in card["receipt"]["lines"]
            assert "idget" not in str(card)
