"""Loading and unloading: exact, repeatable, light, and at peace with other libraries."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import torch


def state(ip) -> dict:
    """Return all that an extension can change in a shell."""
    formatters = ip.display_formatter.formatters
    every = {**formatters, "bundle": ip.display_formatter.mimebundle_formatter}
    return {
        "types": {mime: dict(f.type_printers) for mime, f in every.items()},
        "deferred": {mime: dict(f.deferred_printers) for mime, f in every.items()},
        "magics": {kind: dict(names) for kind, names in ip.magics_manager.magics.items()},
        "registry": dict(ip.magics_manager.registry),
        "configurables": [id(c) for c in ip.configurables],
        "matchers": list(ip.Completer.custom_matchers),
        "events": {name: list(callbacks) for name, callbacks in ip.events.callbacks.items()},
        "config": {name: dict(section) for name, section in ip.config.items() if section},
    }


def test_three_rounds_leave_the_shell_as_it_was(bare_shell):
    """Load, use, reload and unload, three times: promise 7."""
    ip = bare_shell

    class Own(torch.Tensor):
        def __repr__(self, **_):
            return "own"

    before = state(ip)
    for _ in range(3):
        ip.run_line_magic("load_ext", "tensornp")
        assert state(ip) != before
        ip.display_formatter.format({"a": torch.ones(2).as_subclass(Own)})
        ip.display_formatter.format(torch.ones(2).as_subclass(Own))
        ip.run_cell("%config TensorDisplay.mode = 'copy'")
        ip.run_line_magic("reload_ext", "tensornp")
        ip.run_line_magic("unload_ext", "tensornp")
        assert state(ip) == before


def test_loading_twice_and_unloading_twice_do_no_harm(bare_shell):
    """The second call does nothing."""
    import tensornp

    before = state(bare_shell)
    tensornp.load_ipython_extension(bare_shell)
    tensornp.load_ipython_extension(bare_shell)
    tensornp.unload_ipython_extension(bare_shell)
    tensornp.unload_ipython_extension(bare_shell)
    assert state(bare_shell) == before


class _Broken(RuntimeError):
    pass


@pytest.mark.parametrize(
    "place", ["events.register", "register_magics", "Completer.custom_matchers", "display_formatter.formatters"]
)
def test_loading_is_all_or_nothing(bare_shell, monkeypatch, place):
    """A step that raises undoes the others, and the next try loads."""
    import tensornp

    before = state(bare_shell)

    def fail(*_, **__):
        raise _Broken

    owner, _, name = place.rpartition(".")
    of = getattr(bare_shell, owner) if owner else bare_shell
    with monkeypatch.context() as patch:
        if name in ("register", "register_magics"):
            patch.setattr(of, name, fail)
        else:
            patch.setattr(type(of), name, property(fail), raising=False)
        with pytest.raises(_Broken):
            tensornp.load_ipython_extension(bare_shell)
    assert state(bare_shell) == before
    tensornp.load_ipython_extension(bare_shell)
    assert state(bare_shell) != before
    tensornp.unload_ipython_extension(bare_shell)
    assert state(bare_shell) == before


@pytest.mark.parametrize(("kind", "is_replaced"), [(torch.Tensor, True), (list, False)])
@pytest.mark.parametrize("mime", ["text/plain", "text/html"])
def test_a_printer_that_was_there_before_comes_back(bare_shell, kind, is_replaced, mime):
    """Another library's printer for tensors is put back on unload; that for a container is never replaced."""

    def theirs(obj, *args):
        return "theirs"

    formatter = bare_shell.display_formatter.formatters[mime]
    original = formatter.for_type(kind, theirs)
    try:
        bare_shell.run_line_magic("load_ext", "tensornp")
        assert (formatter.lookup_by_type(kind) is not theirs) == is_replaced
        bare_shell.run_line_magic("unload_ext", "tensornp")
        assert formatter.lookup_by_type(kind) is theirs
    finally:
        formatter.pop(kind)
        if original is not None:
            formatter.for_type(kind, original)


def test_a_printer_that_came_after_stays(bare_shell):
    """What another library has set since is not ours to take away."""

    def theirs(obj):
        return "theirs"

    formatter = bare_shell.display_formatter.formatters["text/html"]
    bare_shell.run_line_magic("load_ext", "tensornp")
    formatter.for_type(torch.Tensor, theirs)
    bare_shell.run_line_magic("unload_ext", "tensornp")
    try:
        assert formatter.lookup_by_type(torch.Tensor) is theirs
    finally:
        formatter.pop(torch.Tensor)


def test_a_printer_for_object_does_not_beat_the_card(shell):
    """treescope registers one for every object; its HTML stays for containers without tensors."""
    formatter = shell.ip.display_formatter.formatters["text/html"]
    formatter.for_type(object, lambda obj: "theirs")
    try:
        assert "float32" in shell.show(torch.ones(2))["text/html"]
        assert shell.show([1, 2])["text/html"] == "theirs"
    finally:
        formatter.pop(object)


def in_a_child(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_loading_imports_nothing_heavy_and_works_once_torch_comes():
    """What is heavy waits until it is needed, for ordinary cards never; unloading before torch is exact too."""
    out = in_a_child(
        """
        import sys
        from IPython.core.interactiveshell import InteractiveShell
        ip = InteractiveShell.instance(colors="nocolor")
        before = set(sys.modules)
        ip.run_line_magic("load_ext", "tensornp")
        heavy = {"torch", "matplotlib", "anywidget", "ipywidgets", "ml_dtypes"}
        print(sorted(heavy & set(sys.modules) - before))
        ip.run_line_magic("unload_ext", "tensornp")
        deferred = ip.display_formatter.formatters["text/html"].deferred_printers
        print([key for key in deferred if key[0].startswith("torch")])
        ip.run_line_magic("load_ext", "tensornp")
        ip.run_cell("import torch")
        print(ip.display_formatter.format(ip.user_ns["torch"].ones(2))[0]["text/plain"])
        ip.display_formatter.active_types = ip.display_formatter.format_types
        assert "<img" in ip.display_formatter.format(ip.user_ns["torch"].randn(9, requires_grad=True))[0]["text/html"]
        ip.run_cell("import tensornp; a = tensornp.to_numpy({'a': torch.ones(3)}, copy=True)").raise_error()
        ip.run_line_magic("unload_ext", "tensornp")
        print(ip.display_formatter.format(ip.user_ns["torch"].ones(2))[0]["text/plain"])
        unmet = {"torch._dynamo", "torch._inductor", "torch.distributed.tensor", "tensornp.models.explorer", "PIL"}
        print(sorted(unmet & set(sys.modules)))
        """
    )
    assert out.splitlines() == [
        "[]",
        "[]",
        "(2,) | float32 | cpu | shared",
        "array([1., 1.], dtype=float32)",
        "tensor([1., 1.])",
        "[]",
    ]


@pytest.mark.slow
def test_a_profile_loads_and_configures_it(tmp_path):
    """`c.InteractiveShellApp.extensions` and `c.TensorDisplay` in an IPython profile."""
    (tmp_path / "ipython_config.py").write_text(
        "c.InteractiveShellApp.extensions = ['tensornp']\nc.TensorDisplay.mode = 'copy'\nc.TensorDisplay.max_rows = 7\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--profile-dir", str(tmp_path), "--colors=nocolor", "-c",
         "import torch\ndisplay(torch.ones(1))\n%config TensorDisplay.max_rows"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "copy 4 bytes" in done.stdout, done.stderr
    assert "7" in done.stdout.splitlines()[-1]


def test_options_take_effect(shell):
    """max_rows and receipt; mode and widget have tests of their own."""
    shell.run("%config TensorDisplay.max_rows = 4")
    assert len(shell.show([torch.ones(1), 1] * 10)["text/plain"].splitlines()) == 7
    shell.run("%config TensorDisplay.receipt = 'open'")
    assert "<details open" in shell.show(torch.ones(2))["text/html"]
    shell.run("%config TensorDisplay.receipt = 'hidden'")
    assert "<details" not in shell.show(torch.ones(2))["text/html"]
