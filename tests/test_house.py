"""The house: imports go one way, each library has one home, and `import tensornp` is light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "tensornp"
ROOMS = ["errors", "core", "weights", "render", "widget", "notebook"]
MODULES = sorted(path for path in SRC.rglob("*.py") if path != SRC / "__init__.py")
HOMES = {
    "matplotlib": {"render/plot.py"},
    "xxhash": {"core/fingerprint.py"},
    "ctypes": {"core/raw_memory.py"},
    "anywidget": {"widget"},
    "ipywidgets": {"widget"},
    "IPython": {"notebook"},
    "torch": {"core", "weights", "widget", "notebook"},
}


def imports_of(path: Path) -> set[str]:
    """Return every module that a file imports for use, wherever in it; imports for type checkers do not run."""
    found = set()

    def visit(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            if isinstance(child, ast.Import):
                found.update(alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{path}: relative import"
                found.update(f"{child.module}.{alias.name}" for alias in child.names)
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def room_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_imports_go_one_way(path):
    """errors -> core -> weights -> render -> widget -> notebook; a room imports itself and what is left of it."""
    allowed = ROOMS[: ROOMS.index(room_of(path)) + 1]
    for name in imports_of(path):
        if name.startswith("tensornp."):
            assert name.split(".")[1] in allowed, f"{path.relative_to(SRC)} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_each_library_has_one_home(path):
    """matplotlib in plot.py, widget libraries in widget, IPython in notebook, torch not in render."""
    where = {room_of(path), str(path.relative_to(SRC).as_posix())}
    for name in imports_of(path):
        homes = HOMES.get(name.split(".")[0])
        assert homes is None or homes & where, f"{path.relative_to(SRC)} imports {name}"


@pytest.mark.parametrize("name", ["plan", "steps", "wording", "dtypes", "extents"])
def test_decisions_need_no_torch(name):
    """A plan is a pure function of facts."""
    assert not any(module.split(".")[0] == "torch" for module in imports_of(SRC / "core" / f"{name}.py"))


def test_only_info_and_private_names_read_tensor_attributes_that_can_lie():
    """`core/convert.py` is the only place that calls `.numpy()`."""
    for path in MODULES:
        calls = [
            node
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numpy"
        ]
        assert not calls or path == SRC / "core" / "convert.py"


def test_gradients_are_read_in_one_place():
    """Torch does not guard them against a backward in another thread: who reads them must ask first."""
    for path in MODULES:
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        reads = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "grad"]
        assert not reads or path == SRC / "core" / "gradients.py", path


def test_import_is_light():
    """`import tensornp` brings neither torch nor IPython nor matplotlib nor a widget library nor ml_dtypes."""
    code = (
        "import sys, tensornp; dir(tensornp); "
        "heavy = 'torch IPython matplotlib anywidget ipywidgets ml_dtypes numpy jax psutil xxhash'.split(); "
        "print(sorted(set(heavy) & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_is_there():
    """What `__all__` lists can be imported, and says what it returns."""
    import tensornp

    for name in tensornp.__all__:
        assert getattr(tensornp, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = tensornp.nonsense


def test_errors_derive_from_the_base_and_from_a_builtin():
    """`except ValueError` and `except TensornpError` both work."""
    import tensornp

    for name in tensornp.__all__:
        error = getattr(tensornp, name)
        if name.endswith("Error") and name != "TensornpError":
            assert issubclass(error, tensornp.TensornpError)
            assert issubclass(error, (ValueError, TypeError, MemoryError, ImportError))
