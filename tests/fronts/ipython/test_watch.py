"""`%tensorwatch` in a shell, and memory across the cells of a real kernel."""

from __future__ import annotations

import datetime
import gc
import re
import threading
import warnings
import weakref
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from child import in_two_ranks
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from kernels import TIMEOUT_S, start_kernel
from unchanged import unchanged

from tensornp.render.collections.report import MAX_LINES
from tensornp.session import watch


@pytest.fixture(autouse=True)
def _names(shell):
    shell.namespace.update(np=np, w=torch.zeros(3, 2))


def report(shell: Any, code: str) -> list[str]:
    """Run a numbered cell and return the lines of the report under it, without the heading."""
    with capture_output() as captured:
        expected = f"In[{shell.ip.execution_count}] changed:"
        shell.ip.run_cell(code, store_history=True)
    found = [data for output in captured.outputs if "changed" in (data := output.data).get("text/plain", "")]
    if not found:
        return []
    (data,) = found
    heading, *lines = data["text/plain"].split("\n  ")
    assert heading == expected
    # Many are summed up in a line.
    summary, *told = lines if re.match(r"[\d,]+ (of|new|gone|tensors)", lines[0]) else ["", *lines]
    # A page has those for which a text has no room.
    more = re.fullmatch(r"… and (\d+) more", told[-1])
    assert data["text/html"].count("<div>") == (len(told) if more is None else len(told) - 1 + int(more[1]))
    assert ("<details>" in data["text/html"]) == bool(summary)
    shell.summary = summary
    return told


def callbacks(shell: Any) -> int:
    return len(shell.ip.events.callbacks["post_run_cell"])


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("w[1] = 2", "w: row 1 of 3 · largest |Δ| 2 at [1, 0] · with a write counted by torch"),
        ("w.numpy()[2, 1] = 2", "w: row 2 of 3 · largest |Δ| 2 at [2, 1] · unseen by autograd"),
        ("a = %tonumpy -s w\na[0] = 4", "w: row 0 of 3 · largest |Δ| 4 at [0, 0] · unseen by autograd"),
        ("w = torch.ones(2)", "w: another object now, (2,) float32"),
        ("w = w.numpy()", "w: another object now, (3, 2) float32"),
        ("w.requires_grad_()", "w: requires_grad: False to True"),
        ("del w", "w: it is gone, and is no longer watched"),
        ("w = 3", "w: gone"),
        ("w[0] = 1\n1 / 0", "w: row 0 of 3 · largest |Δ| 1 at [0, 0] · with a write counted by torch"),
    ],
)
def test_each_cell_that_changes_something_reports_it_once(shell, code, line):
    """Also a cell that ends in an error; a cell that changes nothing says nothing."""
    shell.run("%tensorwatch w")
    assert report(shell, "w + 1") == []
    assert report(shell, code) == [line]
    assert report(shell, "5") == []


def test_modules_optimizers_and_containers_are_watched_as_a_whole(shell):
    """By the names that reach each tensor; what is new or gone is told."""
    shell.run("model = torch.nn.Linear(2, 1); opt = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)")
    shell.run("d = {'a b': torch.zeros(2), 'n': np.zeros(2)}")
    shell.run("%tensorwatch model d['a b'] opt")
    shell.run("%tensorwatch d")
    assert report(shell, "model(torch.ones(2)).sum().backward()") == [
        "model.weight: got a .grad",
        "model.bias: got a .grad",
    ]
    # What has changed most comes first.
    assert sorted(line.split(": ")[0] for line in report(shell, "opt.step()")) == [
        "model.bias",
        "model.weight",
        ", ".join(f"opt.state[opt.param_groups[0]['params'][{i}]]['momentum_buffer']" for i in (0, 1)),
    ]
    # It is watched by itself and as a part, and told once.
    assert report(shell, "d['a b'][1] = 3") == [
        "d['a b']: element 1 of 2 · largest |Δ| 3 at [1] · with a write counted by torch"
    ]
    shell.run("%tensorwatch --off d['a b'] model opt")
    assert report(shell, "d['n'][0] = 1; d['new'] = torch.ones(1)") == [
        "d['n']: element 0 of 2 · largest |Δ| 1 at [0]",
        "d['new']: new",
    ]
    assert report(shell, "del d['new']") == ["d['new']: gone"]


def test_each_object_is_counted_and_told_once(shell):
    """Under the name that comes first, also where they were not named together, and where it is not all read."""
    shell.run("model = torch.nn.Linear(2, 1); opt = torch.optim.SGD(model.parameters(), 0.1)")
    shell.run("%tensorwatch model opt")
    assert shell.printed.startswith("watching model, opt (2 tensors or arrays)")
    shell.run("array = np.zeros(2); pair = [array, array]; w = torch.zeros(2); d = {'w': w}")
    shell.run("%tensorwatch pair d")
    assert shell.printed.startswith("watching pair, d (2 tensors or arrays)")
    shell.run("%tensorwatch w")
    told = report(shell, "with torch.no_grad():\n    for t in [*model.parameters(), w, array]: t += 1")
    # Rounding aside, all have changed by 1.
    assert sorted(line.split(": ")[0] for line in told) == ["d['w']", "model.bias", "model.weight", "pair[0]"]
    assert shell.summary.startswith("4 of 4 tensors and arrays")
    # Where another name stands for another object, that is told.
    assert report(shell, "w.add_(1); w = d['w'].clone()") == [
        "d['w']: all 2 elements · largest |Δ| 1 at [0] · with a write counted by torch",
        "w: another object now, (2,) float32",
    ]
    assert report(shell, "d['w'] = w") == ["d['w']: another object now, (2,) float32"]
    shell.run("%tensorwatch --off")
    shell.run("%config TensorDisplay.max_read_nbytes = 0\n%tensorwatch d w")
    assert "not read: d['w']; %config" in shell.printed


def test_what_is_new_or_gone_is_counted_apart_from_what_was_watched(shell):
    """Four new tensors beside one watched are no "4 of 5" that changed."""
    shell.run("d = {'a': torch.zeros(2)}\n%tensorwatch d")
    assert len(report(shell, "d.update({str(i): torch.ones(2) for i in range(4)})")) == 1
    assert shell.summary == "4 new"
    told = report(shell, "d['a'] += 1\nfor i in range(4): del d[str(i)]")
    assert (len(told), shell.summary.partition(" · largest")[0]) == (2, "1 of 5 tensors and arrays · 4 gone")


def test_nothing_of_the_users_runs(shell):
    """What is watched is read where it is kept: no property, no `__getattr__`, before or after a cell."""
    shell.run("""
class Loader:
    asked = 0
    def __init__(self):
        self.batch = torch.zeros(2)
    @property
    def next(self):
        self.asked += 1
        return torch.zeros(2)
    def __getattr__(self, name):
        self.asked += 1
        raise AttributeError(name)
loader = Loader()
%tensorwatch loader loader.batch""")
    assert "loader.next is not kept there" in shell.fail("%tensorwatch loader.next")
    line = "loader.batch: element 1 of 2 · largest |Δ| 3 at [1] · with a write counted by torch"
    assert report(shell, "loader.batch[1] = 3") == [line]
    assert report(shell, "del loader.batch") == [
        "loader.batch: gone",
        "loader.batch: it is gone, and is no longer watched",
    ]
    assert "asked" not in vars(shell.namespace["loader"])


def test_a_gradient_is_watched_by_its_name(shell):
    """Also while it is not there."""
    shell.run("p = torch.ones(2, requires_grad=True); p.sum().backward()\n%tensorwatch p.grad")
    assert report(shell, "p.grad[0] = 5") == [
        "p.grad: element 0 of 2 · largest |Δ| 4 at [0] · with a write counted by torch"
    ]
    assert report(shell, "p.grad = None") == ["p.grad: gone"]
    assert report(shell, "p.sum().backward()") == ["p.grad: new"]


def test_a_gradient_that_must_not_be_read_is_neither_gone_nor_new(shell):
    """While another thread runs, it is not looked at; after that it is compared with what it was before."""
    shell.run("p = torch.ones(2, requires_grad=True); q = [p]; p.sum().backward()\n%tensorwatch p.grad q")
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert report(shell, "p.grad = None") == []
        assert "another thread is running" in shell.fail("%tensorwatch q[0].grad")
    finally:
        done.set()
        thread.join()
    assert report(shell, "5") == ["p.grad: gone", "q[0]: lost its .grad"]


def test_what_has_happened_to_several_is_said_of_several(shell):
    """In their line, and where it holds for all, in the line over them."""
    shell.run("ws = [torch.ones(2, requires_grad=True) for _ in range(5)]; sum(w.sum() for w in ws).backward()")
    shell.run("%tensorwatch ws")
    with capture_output() as captured:
        shell.ip.run_cell("for w in ws: w.grad = None", store_history=True)
    said = captured.outputs[-1].data["text/plain"]
    assert "5 of 5 tensors and arrays · all lost their .grad" in said
    assert "ws[0], ws[1], ws[2] and 2 more: lost their .grad" in said


def test_the_items_of_a_tensordict_are_watched_by_their_keys(shell):
    """As its card names them, and as a user does."""
    shell.run("import tensordict; td = tensordict.TensorDict({'a': torch.ones(2), 'b': torch.ones(2)}, [2])")
    shell.run("%tensorwatch td")
    (line,) = report(shell, "td['b'][0] = 5")
    assert line.startswith("td['b']: element 0 of 2")


def test_listing_and_ending(shell):
    """What is watched, and a callback only while something is."""
    before = callbacks(shell)
    shell.run("%tensorwatch")
    assert "nothing is watched" in shell.printed
    shell.run("v = torch.zeros(1)\n%tensorwatch w v")
    assert "watching w, v (2 tensors or arrays) after each cell" in shell.printed
    shell.run("%tensorwatch w")
    assert callbacks(shell) == before + 1
    shell.run("%tensorwatch")
    assert "watched after each cell: w, v" in shell.printed
    shell.run("%tensorwatch --off w")
    assert report(shell, "w[0] = 1; v[0] = 1") == [
        "v: element 0 of 1 · largest |Δ| 1 at [0] · with a write counted by torch"
    ]
    shell.run("%tensorwatch --off")
    assert "no longer watched: v" in shell.printed
    assert (callbacks(shell), report(shell, "v[0] = 2")) == (before, [])
    shell.run("%tensorwatch --off")
    assert "nothing is watched" in shell.printed


def test_unloading_ends_the_watch(shell):
    """No callback stays."""
    shell.ip.run_line_magic("unload_ext", "tensornp")
    before = list(shell.ip.events.callbacks["post_run_cell"])
    shell.ip.run_line_magic("load_ext", "tensornp")
    loaded = callbacks(shell)
    shell.run("%tensorwatch w")
    assert callbacks(shell) == loaded + 1
    shell.ip.run_line_magic("unload_ext", "tensornp")
    assert shell.ip.events.callbacks["post_run_cell"] == before


def test_nothing_is_kept_alive(shell):
    """A watched tensor that is deleted is gone at once."""
    reference = weakref.ref(shell.namespace["w"])
    shell.run("%tensorwatch w")
    assert report(shell, "w[0] = 1")
    del shell.namespace["w"]
    gc.collect()
    assert reference() is None


def test_a_line_of_the_report_is_escaped(shell):
    """Keys are the user's text."""
    shell.run("d = {'<b>x</b>': torch.zeros(1)}\n%tensorwatch d")
    with capture_output() as captured:
        shell.ip.run_cell("d['<b>x</b>'][0] = 1")
    html = captured.outputs[-1].data["text/html"]
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert "<b>x" not in html


def test_many_lines_are_bounded(shell):
    """Twenty, and how many more."""
    shell.run("many = [torch.zeros(1) for _ in range(50)]\n%tensorwatch many")
    lines = report(shell, "for i, t in enumerate(many): t.add_(i + 1)")
    assert (len(lines), lines[-1]) == (MAX_LINES + 1, "… and 30 more")
    common = "all element 0 of 1 · all with a write counted by torch"
    assert shell.summary == f"50 of 50 tensors and arrays · largest |Δ| 50 in many[49] · {common}"


def test_the_headline_names_no_count(shell):
    """A batch norm counts its steps, by more than any weight changes."""
    shell.run("bn = torch.nn.BatchNorm1d(2)\n%tensorwatch bn")
    report(shell, "for t in [*bn.parameters(), bn.running_mean]: t.data += 0.25\nbn.num_batches_tracked += 1")
    assert "largest |Δ| 0.25 in bn." in shell.summary


def test_what_has_changed_alike_is_one_line(shell):
    """A training step touches every tensor of a model: one line sums it up, and each difference is under it."""
    shell.run("model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(4)))\n%tensorwatch model")
    lines = report(shell, "model(torch.ones(1, 2)).sum().backward()")
    assert lines == ["model[0].weight, model[0].bias, model[1].weight and 5 more: got a .grad"]
    assert shell.summary == "8 of 8 tensors and arrays · all got a .grad"
    lines = report(shell, "with torch.no_grad():\n    for p in model.parameters(): p.sub_(p.grad + 1)")
    assert shell.summary.startswith("8 of 8 tensors and arrays · largest |Δ| ")
    assert shell.summary.endswith(" · all with a write counted by torch")
    assert len(lines) == 8
    # Of random numbers, rounding would tell which difference is the largest.
    report(shell, "model[0].bias.data.zero_()")
    assert report(shell, "model[0].bias.data.add_(1)") == [
        "model[0].bias: all 2 elements · largest |Δ| 1 at [0] · unseen by autograd"
    ]
    assert shell.summary == ""


def test_past_the_budget_of_copies_the_place_is_told(shell, monkeypatch):
    """The copies of all that is watched have one bound."""
    monkeypatch.setattr(watch, "MAX_COPY_NBYTES", 0)
    shell.run("%tensorwatch w")
    assert report(shell, "w[1] = 2") == [
        "w: within rows 0–2 of 3 (not compared value by value) · with a write counted by torch"
    ]


def test_members_of_a_set_are_told_apart(shell):
    """They have no names of their own, and each is watched."""
    shell.run("a, b = torch.zeros(1), torch.zeros(1); both = {a, b}\n%tensorwatch both")
    assert len(report(shell, "a[0] = 1")) == len(report(shell, "b[0] = 1")) == 1
    assert len(report(shell, "a[0] = 2; b[0] = 2")) == 2


def test_what_is_not_searched_to_its_end_is_not_said_to_be_gone(shell, monkeypatch):
    """A bounded search may come less far than the last one; what it found is told."""
    shell.run("many = [torch.zeros(1) for _ in range(20)]")
    monkeypatch.setattr(watch, "MAX_TENSORS", 10)
    shell.run("%tensorwatch many")
    assert "watching many (the first 10 tensors" in shell.printed
    monkeypatch.setattr(watch, "MAX_TENSORS", 5)
    assert report(shell, "many[3][0] = many[8][0] = 1") == [
        "many[3]: element 0 of 1 · largest |Δ| 1 at [0] · with a write counted by torch"
    ]
    monkeypatch.setattr(watch, "MAX_TENSORS", 20)
    assert report(shell, "5") == ["many[8]: element 0 of 1 · largest |Δ| 1 at [0] · with a write counted by torch"]


def test_a_subclass_that_raises_is_watched(shell):
    """Nothing that it overrides is asked."""

    class Odd(np.ndarray):
        @property
        def nbytes(self):
            raise RuntimeError("no")

        shape = dtype = nbytes

    shell.namespace["odd"] = np.zeros(3).view(Odd)
    shell.run("%tensorwatch odd")
    assert report(shell, "odd[1] = 1") == ["odd: element 1 of 3 · largest |Δ| 1 at [1]"]
    shell.namespace["new"] = np.ones(3).view(Odd)
    assert report(shell, "odd = new") == ["odd: another object now, (3,) float64"]
    shell.namespace["nested"] = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    assert report(shell, "odd = nested") == ["odd: another object now, (2, ?) float32"]


def test_an_array_and_a_view_of_it(shell):
    """Both are told, by their own indices."""
    shell.run("a = np.zeros((4, 2)); v = a[2:]\n%tensorwatch a v")
    assert report(shell, "a[3, 1] = 1") == [
        "a: row 3 of 4 · largest |Δ| 1 at [3, 1]",
        "v: row 1 of 2 · largest |Δ| 1 at [1, 1]",
    ]


def test_odd_tensors_do_not_end_the_watch(shell):
    """Meta, freed and nested ones beside the ordinary one."""
    shell.run("odd = [torch.nested.nested_tensor([torch.ones(2)]), torch.ones(2, device='meta'), torch.zeros(2)]")
    shell.run("%tensorwatch odd")
    assert report(shell, "odd[2][0] = 1") == [
        "odd[2]: element 0 of 2 · largest |Δ| 1 at [0] · with a write counted by torch"
    ]
    (line,) = report(shell, "odd[2].untyped_storage().resize_(0);")
    assert line.startswith("odd[2]: ")
    assert "its storage was freed" in line
    assert report(shell, "5") == []


def test_torch_swaps_what_is_watched(shell):
    """It refuses that for a tensor with a weak reference: so conversions of watched modules would raise."""
    shell.run("model = torch.nn.Linear(2, 1); a, b = torch.zeros(2), torch.ones(2)\n%tensorwatch model a")
    assert report(shell, "torch.utils.swap_tensors(a, b)") == [
        "a: all 2 elements · largest |Δ| 1 at [0] · by a road that cannot be told · its storage is another one now"
    ]
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        assert report(shell, "model.double();") == [
            f"model.{name}: float32 to float64 · its storage is another one now" for name in ("weight", "bias")
        ]
        state = "{'weight': torch.zeros(1, 2), 'bias': torch.zeros(1)}"
        assert len(report(shell, f"model.load_state_dict({state})")) == 2
        assert report(shell, "5") == []
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert len(report(shell, f"model.load_state_dict({state}, assign=False)")) == 0
    assert [line.partition(":")[2][:19] for line in report(shell, f"model.load_state_dict({state}, assign=True)")] == [
        " another object now"
    ] * 2


def test_watching_changes_nothing(shell):
    """No mode sees a call of it, whatever is watched; nothing warns."""
    w = torch.ones(3, 2, requires_grad=True)
    (w * w).sum().backward()
    odd = [
        torch.eye(3).to_sparse(),
        torch.ones(4)[1:],
        torch.eye(2, dtype=torch.complex64).conj(),
        torch._lazy_clone(w),
    ]
    shell.namespace.update(w=w, odd=odd, a=np.ones(3))
    with unchanged(w, *odd):
        shell.run("%tensorwatch w odd a")
        shell.run("5")
        shell.run("a[0] = 2")
        shell.run("%tensorwatch --off")


@in_two_ranks
def test_a_pending_collective_is_not_waited_for(rank):
    """The other rank may never join; what it then writes is no change, and a write after that is one."""
    import torch.distributed as dist
    from torch.distributed import _functional_collectives as collectives

    store = dist.distributed_c10d._get_default_store()
    begin = lambda: collectives.all_reduce(torch.ones(3) + rank, "sum", dist.group.WORLD)  # noqa: E731
    if rank:
        store.wait(["looked"], datetime.timedelta(seconds=100))
        assert begin().tolist() == [3, 3, 3]
        return
    ip = InteractiveShell.instance(colors="nocolor")
    ip.run_line_magic("load_ext", "tensornp")

    def run(cell: str) -> str:
        with capture_output() as captured:
            ip.run_cell(cell).raise_error()
        return captured.stdout + "".join(output.data["text/plain"] for output in captured.outputs)

    ip.user_ns.update(y=begin(), store=store)
    ip.user_ns["d"] = {"y": ip.user_ns["y"]}
    assert type(ip.user_ns["y"]).__name__ == "AsyncCollectiveTensor"
    assert run("%tensorwatch y d").strip().endswith("waiting for a collective: y")
    assert run("x = 5") == ""
    run("%tensors")
    store.set("looked", "yes")
    assert run("assert y.tolist() == [3, 3, 3]") == ""
    assert run("x = 6") == ""
    assert "y: element 1 of 3 · largest |Δ| 4 at [1]" in (said := run("y.elem[1] = 7")), said
    assert run("x = 7") == ""


class Kernel:
    """A kernel, and the texts that its cells show."""

    def __init__(self) -> None:
        self.manager, self.client = start_kernel()

    def run(self, code: str, kinds: Counter[str] | None = None) -> str:
        """Run a cell and return its outputs as text, errors included; `kinds` counts the messages."""
        texts: list[str] = []

        def take(message: dict[str, Any]) -> None:
            content = message["content"]
            if kinds is not None:
                kinds[message["msg_type"]] += 1
            if message["msg_type"] == "stream":
                texts.append(content["text"])
            elif "data" in content:
                texts.append(content["data"].get("text/plain", ""))
            elif message["msg_type"] == "error":
                texts.append(f"{content['ename']}: {content['evalue']}")

        self.client.execute_interactive(code, timeout=TIMEOUT_S, output_hook=take)
        return "\n".join(texts)


@pytest.mark.slow
def test_across_the_cells_of_a_kernel():
    """Cards, conversion, watch, table and release as a user meets them, with the numbers of the cells."""
    kernel = Kernel()
    try:
        kernel.run("%load_ext tensornp\nimport torch")
        kernel.run("w = torch.zeros(4, 3)")
        kernel.run("a = %tonumpy -s w")
        assert "same memory as a (NumPy array)" in kernel.run("w")
        assert kernel.run("a[1] = 7") == ""
        assert "changed since the card in In[4]" in kernel.run("w")
        assert "watching w (1 tensor" in kernel.run("%tensorwatch w")
        assert kernel.run("a[2, 0] = 1").strip() == (
            "In[8] changed:\n  w: row 2 of 4 · largest |Δ| 1 at [2, 0] · unseen by autograd"
        )
        assert "ZeroDivisionError" in kernel.run("w[0] = 1; 1 / 0")
        # A cell that runs others has one report.
        looped = kernel.run("for i in range(9):\n    get_ipython().run_cell('w += 1')")
        assert looped.count("changed:") == 1
        assert "w: all 4 rows · largest |Δ| 9 at [0, 0]" in looped
        kernel.run("pass")
        assert kernel.run("w += 1").count("changed") == 1
        kernel.run("torch.ones(1000)")
        table = kernel.run("%tensors")
        assert "2 tensors and 1 array in 2 storages · cpu" in table
        assert "Out[13]" in table
        assert "released Out[13]: 3.9 KiB (4,000 bytes) on cpu came free" in kernel.run("%tensors --release")
        assert "Out[13]" not in kernel.run("%tensors")
        assert "w: it is gone" in kernel.run("del w")
        assert kernel.run("%unload_ext tensornp").strip() == ""
        assert kernel.run("torch.ones(1)").strip() == "tensor([1.])"
    finally:
        kernel.client.stop_channels()
        kernel.manager.shutdown_kernel(now=True)


def test_what_no_float_can_hold_is_watched_too(shell):
    """A long double: without a warning, and it is no infinity."""
    shell.namespace["long"] = np.zeros(2, np.longdouble)
    shell.run("%tensorwatch long")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (line,) = report(shell, "long[1] = np.longdouble('1e4000')")
    if np.finfo(np.longdouble).max > np.finfo(float).max:
        assert line == "long: element 1 of 2 · largest |Δ| 1e+4000 at [1]"


def test_parts_of_what_is_watched_count_once(shell):
    """Names and numbers of a report are those of distinct tensors."""
    shell.run("m = torch.nn.Sequential(*[torch.nn.Linear(3, 3) for _ in range(8)])")
    shell.run("for p in m.parameters(): torch.nn.init.zeros_(p)\n%tensorwatch m m[0] m[0].weight")
    told = report(shell, "with torch.no_grad():\n    for p in m.parameters(): p += 1")
    assert shell.summary.startswith("16 of 16 tensors and arrays")
    assert "all all" not in shell.summary
    counted = "with a write counted by torch"
    assert told == [
        f"m[0].weight, m[1].weight, m[2].weight and 5 more: all 3 rows · largest |Δ| 1 at [0, 0] · {counted}",
        f"m[0].bias, m[1].bias, m[2].bias and 5 more: all 3 elements · largest |Δ| 1 at [0] · {counted}",
    ]


def texts_of(captured: Any) -> list[str]:
    return [output.data.get("text/plain", "") for output in captured.outputs]


def test_a_name_is_watched_once_however_often_it_is_given(shell):
    """And one tensor is not called tensors."""
    shell.run("w = torch.zeros(4)")
    shell.run("%tensorwatch w w")
    assert shell.printed == "watching w (1 tensor or array) after each cell\n"
    shell.run("%tensorwatch --off w w")
    assert shell.printed == "no longer watched: w\n"


def test_an_array_of_objects_is_not_said_to_be_watched(shell):
    """Nothing of it is read, so no report would ever come."""
    shell.run("import numpy as np; objects = np.array([1, 'a'], dtype=object)")
    assert shell.fail("%tensorwatch objects").startswith("objects is an array of objects")


def test_a_count_is_no_largest_change_but_is_not_hidden(shell):
    """A single integer may count batches; where it has changed by more than anything else, the summary says so."""
    shell.run("d = dict(a=torch.zeros(3), b=torch.zeros(2), c=torch.zeros(4), n=torch.tensor(5))\n%tensorwatch d")
    for by, aside in ((70, ", single integers aside"), (1, "")):
        report(shell, f"d['a'] += 2; d['b'] += 3; d['c'] += 1; d['n'] += {by}")
        assert shell.summary.split(" · ")[1] == f"largest |Δ| 3 in d['b']{aside}"
