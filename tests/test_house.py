"""The house: imports go one way, each library has one home, and `import tensornp` is light."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

SRC = Path(__file__).parents[1] / "src" / "tensornp"
ROOMS = {
    "": "errors -> core -> models -> passes, processes -> render -> widget, session -> fronts -> __main__",
    "core": "lowlevel -> tensor -> namespace -> memory -> convert -> values -> summary",
    "core/values": "blocks, stored -> sources -> shown, stats -> compare -> locate, pictures",
    "models": "names -> files -> pickles -> entries -> quantization, optimizers, outline "
    "-> scan -> formats, explorer -> live -> opening -> in_memory -> weights -> comparing, module_view",
    "passes": "wording, readable -> records -> tree, compare, tensors, operators "
    "-> origin, gradients -> findings, names -> recorder -> finish -> follow",
    "render": "layout -> pictures -> tensor -> values, collections, models, passes -> ranks -> renderers -> show",
}
"""A room imports what is left of it: not what shares its place, between two commas."""
VERDICT = [SRC / "passes" / f"{name}.py" for name in "records wording origin findings compare tree".split()]
"""What is concluded of a pass: functions of frozen records, in which there is no tensor."""
MODULES = sorted(path for path in SRC.rglob("*.py") if path != SRC / "__init__.py")
HOMES = {
    "matplotlib": {"render/pictures/plot"},
    "PIL": {"render/pictures/png"},
    "xxhash": {"core/memory/changes"},
    "numba": {"core/values/stats/fast"},
    "ml_dtypes": {"core/tensor/dtypes"},
    "psutil": {"core/convert/budget"},
    "jax": {"core/convert/to_tensor"},
    "cupy": {"core/convert/to_tensor"},
    "fsspec": {"models/files/address"},
    "gguf": {"models/formats/gguf"},
    "tqdm": {"models/scan/run"},
    "pandas": {"models/scan/table"},
    "anywidget": {"widget"},
    "ipywidgets": {"widget"},
    "IPython": {"fronts/ipython", "widget/part"},
    "marimo": {"fronts/marimo"},
    "torch": {"core", "models", "passes", "processes", "widget", "session", "fronts"},
}


def place_of(name: str) -> tuple[str, ...]:
    """Return the folders and the file of a module of ours, from its dotted name."""
    return tuple(name.split(".")[1:])


class Names(NamedTuple):
    """What a file names, wherever in it."""

    imports: set[str]
    """Modules, for type checkers and by a string too."""
    attributes: set[str]
    methods: set[str]
    """Attributes that are called."""


@functools.cache
def names_of(path: Path) -> Names:
    names = Names(set(), set(), set())
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.imports.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("tensornp."):
            names.imports.add(node.value.replace(":", "."))
        elif isinstance(node, ast.Attribute):
            names.attributes.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            names.methods.add(node.func.attr)
    return names


def imports_of(path: Path) -> set[str]:
    return names_of(path).imports


def floors_of(line: str) -> dict[str, int]:
    """Return how far to the right each room stands."""
    return {room: floor for floor, rooms in enumerate(line.split(" -> ")) for room in rooms.split(", ")}


@pytest.mark.slow
def test_imports_go_one_way():
    """From the right to the left of the two lines above, and within a room."""
    floors = {place: floors_of(line) for place, line in ROOMS.items()}
    wrong = []
    for path in MODULES:
        own = path.relative_to(SRC).with_suffix("").parts
        for name in imports_of(path):
            other = place_of(name) if name.startswith("tensornp.") else ()
            for place, floor in floors.items():
                above = tuple(filter(None, place.split("/")))
                depth = len(above)
                if len(own) <= depth or len(other) <= depth or not own[:depth] == other[:depth] == above:
                    continue
                if own[depth] not in (other[depth], "__init__") and floor[other[depth]] >= floor[own[depth]]:
                    wrong.append(f"{'/'.join(own)} imports {name}")
    assert not wrong


@pytest.mark.slow
def test_no_two_modules_import_each_other():
    """Not by way of others either, when they are first imported."""
    names = {".".join(("tensornp", *path.relative_to(SRC).with_suffix("").parts)): path for path in MODULES}
    edges = {
        name: {other for other in names for imported in imports_of(path) if f"{imported}.".startswith(f"{other}.")}
        - {name}
        for name, path in names.items()
    }
    graphlib.TopologicalSorter(edges).prepare()


def test_each_library_has_one_home():
    """matplotlib in plot, widget libraries in widget, IPython in its front, torch not in render."""
    wrong = []
    for path in MODULES:
        own = path.relative_to(SRC).with_suffix("").as_posix()
        for name in imports_of(path):
            homes = HOMES.get(name.split(".")[0])
            if homes is not None and not any(f"{own}/".startswith(f"{home}/") for home in homes):
                wrong.append(f"{own} imports {name}")
    assert not wrong


@pytest.mark.parametrize("name", ["convert/plan", "convert/receipt", "tensor/dtypes", "memory/extents"])
def test_decisions_need_no_torch(name):
    """A plan is a pure function of facts."""
    assert not any(module.split(".")[0] == "torch" for module in imports_of(SRC / "core" / f"{name}.py"))


@pytest.mark.slow
def test_a_verdict_needs_no_torch():
    """Of a pass that is over, records are left: not even by way of what these modules import is torch needed."""
    names = [".".join(("tensornp", *path.relative_to(SRC).with_suffix("").parts)) for path in VERDICT]
    code = f"import sys, importlib; list(map(importlib.import_module, {names})); print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
    assert not any(module.split(".")[0] == "torch" for path in VERDICT for module in imports_of(path))


def test_only_info_and_private_names_read_tensor_attributes_that_can_lie():
    """`core/convert/to_numpy.py` is the only place that calls `.numpy()`."""
    assert {path for path in MODULES if "numpy" in names_of(path).methods} <= {SRC / "core" / "convert" / "to_numpy.py"}


def test_gradients_are_read_in_one_place():
    """Torch does not guard them against a backward in another thread: who reads them must ask first."""
    for path in MODULES:
        names = names_of(path)
        if "passes" in path.relative_to(SRC).parts and not any(name.split(".")[0] == "torch" for name in names.imports):
            # Records of a pass bear that name too, and where there is no torch, there are records alone.
            continue
        assert "grad" not in names.attributes or path == SRC / "core" / "lowlevel" / "gradients.py", path


def test_modes_are_left_in_one_way():
    """Other modules use `outside_modes`."""
    for path in MODULES:
        used = names_of(path).attributes & {"no_grad", "set_grad_enabled", "inference_mode"}
        assert not used or path == SRC / "core" / "lowlevel" / "modes.py", path


def test_one_module_has_no_name():
    """The innermost that calls torch, in whose frames Python drops warnings; all others are known by theirs."""
    nameless = [
        path.name for path in MODULES if re.search(r'globals\(\)\["__name__"\] = ', path.read_text(encoding="utf-8"))
    ]
    assert nameless == ["quiet.py"]


def test_import_is_light():
    """`import tensornp` brings neither torch nor IPython nor matplotlib nor a widget library nor ml_dtypes."""
    code = (
        "import sys; before = set(sys.modules); import tensornp; dir(tensornp); "
        "heavy = 'torch IPython matplotlib anywidget ipywidgets ml_dtypes numpy jax psutil xxhash tqdm'.split(); "
        "print(sorted(set(heavy) & set(sys.modules) - before))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_is_there():
    """What `__all__` lists can be imported, and says what it returns."""
    import tensornp

    for name in tensornp.__all__:
        assert getattr(tensornp, name).__doc__
    with pytest.raises(AttributeError, match="nonsense"):
        _ = tensornp.nonsense


def test_errors_derive_from_the_base_and_from_a_builtin():
    """`except ValueError` and `except TensornpError` both work."""
    import tensornp

    for name in tensornp.__all__:
        error = getattr(tensornp, name)
        if name.endswith("Error") and name != "TensornpError":
            assert issubclass(error, tensornp.TensornpError)
            assert issubclass(error, (ValueError, TypeError, MemoryError, ImportError, OSError, KeyError, RuntimeError))
