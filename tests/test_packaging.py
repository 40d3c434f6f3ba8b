"""What people install, launch and run from the source tree is complete, and the same in every place that names it."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import lanes
import pytest
import yaml
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def run(*command, cwd=ROOT):
    """Run a Python command, and return what it printed; a failure shows it."""
    finished = subprocess.run(
        [sys.executable, *map(str, command)], cwd=cwd, capture_output=True, text=True, check=False
    )
    output = finished.stdout + finished.stderr
    assert finished.returncode == 0, output
    return output


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """The folder of the source distribution and of the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run("-m", "build", "--no-isolation", "--outdir", folder)
    return folder


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(dist):
    package = ROOT / "src" / "tensornp"
    files = {f"tensornp/{path.relative_to(package).as_posix()}" for path in package.rglob("*") if path.is_file()}
    (wheel,) = dist.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("tensornp/")}
    assert packed == {file for file in files if "__pycache__" not in file}
    assert "tensornp/py.typed" in packed


def test_the_wheel_brings_the_command(dist):
    """By the name of the package."""
    (wheel,) = dist.glob("*.whl")
    packed = zipfile.ZipFile(wheel)
    (told,) = (packed.read(name).decode() for name in packed.namelist() if name.endswith("/entry_points.txt"))
    assert "[console_scripts]\ntensornp = tensornp.fronts.command_line:main" in told


@pytest.mark.slow
def test_debugpy_finds_its_extension_in_the_wheel_which_adds_no_package(dist, tmp_path):
    """A part of a package that others have parts of too must not have an `__init__`."""
    (wheel,) = dist.glob("*.whl")
    files = zipfile.ZipFile(wheel)
    plugin = "pydevd_plugins/extensions/pydevd_plugin_tensornp.py"
    assert [name for name in files.namelist() if name.startswith("pydevd_plugins")] == [plugin]
    files.extractall(tmp_path)
    code = (
        "import debugpy.server.api, sys\n"
        "from _pydevd_bundle import pydevd_extension_api as api, pydevd_extension_utils as utils\n"
        "utils.extensions_of_type(api.StrPresentationProvider)\n"
        "print(sys.modules['pydevd_plugins.extensions.pydevd_plugin_tensornp'].__file__)"
    )
    for folder in (tmp_path, ROOT / "src"):
        settings = {"env": os.environ | {"PYTHONPATH": str(folder)}, "capture_output": True, "text": True}
        found = subprocess.run([sys.executable, "-c", code], check=True, **settings)
        assert Path(found.stdout.strip()) == folder / plugin


@pytest.mark.slow
def test_the_metadata_and_the_wheel_pass_their_checkers(dist):
    assert "PASSED" in run("-m", "twine", "check", "--strict", *dist.iterdir())
    run("-m", "check_wheel_contents", *dist.glob("*.whl"))


def test_the_version_is_the_same_everywhere():
    import tensornp

    assert tensornp.__version__ == PROJECT["version"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="repo2docker does not run on Windows")
def test_binder_builds_its_image_from_these_files(tmp_path):
    shutil.copytree(ROOT / "binder", tmp_path / "binder")
    dockerfile = run(
        "-m", "repo2docker", "--no-build", "--debug", "--user-id=1000", "--user-name=jovyan", ".", cwd=tmp_path
    )
    assert "python=3.12" in dockerfile
    assert '-r "binder/requirements.txt"' in dockerfile
    assert "./binder/postBuild" in dockerfile
    assert 'R2D_ENTRYPOINT="${REPO_DIR}/binder/start"' in dockerfile
    assert "torch==2.13.0+cpu" in (ROOT / "binder" / "requirements.txt").read_text(encoding="utf-8")


def test_continuous_integration_covers_what_the_project_claims():
    """All Pythons of the classifiers, and all lower bounds of the requirements, by the commands that everyone uses."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["tests"]
    assert "python tests/run.py" in [step.get("run") for step in job["steps"]]
    lanes_job = workflow["jobs"]["lanes"]
    assert "python tests/run.py --torch ${{ matrix.torch }}" in [step.get("run") for step in lanes_job["steps"]]
    tried = [".".join(version.split(".")[:2]) for version in lanes_job["strategy"]["matrix"]["torch"]]
    assert set(tried) <= set(lanes.OF_ITS_TIME)
    assert tried[-1] == [*lanes.OF_ITS_TIME][-1]

    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert job["strategy"]["matrix"]["python"] == pythons
    assert PROJECT["requires-python"] == f">={pythons[0]}"

    matrix = lanes_job["strategy"]["matrix"]
    assert {*matrix["python"], *(lane["python"] for lane in matrix["include"])} == set(pythons)
    oldest = lanes.environment(matrix["torch"][0]).constraints
    pins = {name: Version(pin) for name, pin in re.findall(r"([\w-]+)==([\d.]+)", oldest)}
    for name, bound in re.findall(r"([\w-]+)>=([\d.]+)", "\n".join(PROJECT["dependencies"])):
        assert pins[name].release[:2] == Version(bound).release[:2]


@pytest.fixture
def commands(tmp_path):
    """A copy of the two commands, with no environment beside it."""
    for folder in ("examples", "tests"):
        (tmp_path / folder).mkdir()
    for file in ("examples/environment.py", "examples/start.py", "tests/run.py", "tests/lanes.py"):
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "words"), [("examples/start.py", "JupyterLab"), ("tests/run.py", "style, types and tests")]
)
def test_help_says_what_a_command_does_and_does_nothing(commands, command, words):
    assert words in " ".join(run(commands / command, "--help").split())
    assert not (commands / ".venv").exists()


def test_the_commands_can_be_read_by_an_older_python_that_is_to_say_so():
    for file in ("examples/environment.py", "examples/start.py", "tests/run.py", "tests/lanes.py"):
        ast.parse((ROOT / file).read_text(encoding="utf-8"), feature_version=(3, 8))


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """The module that makes the environment, on a folder of its own; `environment.ran` lists what it would run."""
    monkeypatch.syspath_prepend(EXAMPLES)
    import environment

    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(environment, "ran", [], raising=False)
    kind = environment.Environment
    monkeypatch.setattr(kind, "python", Path(sys.executable))
    monkeypatch.setattr(kind, "_run", lambda _, *command: environment.ran.append(" ".join(map(str, command))))
    monkeypatch.delenv("TENSORNP_CONSTRAINTS", raising=False)
    return environment


def test_the_environment_installs_only_what_it_does_not_have(environment, monkeypatch):
    environment.ensure("test")
    assert environment.ran[-1].endswith("-e .[test]")
    environment.ran.clear()

    environment.ensure("examples")
    assert any(command.endswith("-e .[examples,test]") for command in environment.ran)
    environment.ran.clear()

    environment.ensure("test", "examples")
    assert not environment.ran

    monkeypatch.setenv("TENSORNP_CONSTRAINTS", "torch==2.14.* numpy==2.4.*")
    environment.ensure("test")
    assert (environment.VENV / "constraints.txt").read_text(encoding="utf-8") == "torch==2.14.*\nnumpy==2.4.*\n"


def test_a_failed_installation_is_not_taken_for_a_finished_one(environment, monkeypatch):
    monkeypatch.setattr(environment.Environment, "_run", lambda *_: sys.exit("pip failed"))
    for _ in range(2):
        with pytest.raises(SystemExit, match="pip failed"):
            environment.ensure("test")


def test_a_python_that_is_too_old_is_told_so_in_a_sentence(environment, monkeypatch):
    monkeypatch.setattr(environment, "OLDEST_PYTHON", (99, 0))
    with pytest.raises(SystemExit, match=r"needs Python 99\.0 or later, and this is 3\.\d+\."):
        environment.ensure("test")


def test_each_torch_has_an_environment_of_its_own_with_a_numpy_of_its_time(monkeypatch):
    """One for each Python, beside `.venv`; what is no version, or too old, is told in a sentence."""
    monkeypatch.setattr(sys, "version_info", (3, 99, 1))
    old, new = lanes.environment("2.7.1"), lanes.environment("2.99.0")
    assert (old.folder.parent, old.folder.name) == (ROOT, ".venv-torch-2.7.1-python-3.99")
    assert "torch==2.7.1\nnumpy==2.0.0\n" in old.constraints
    assert new.constraints == "torch==2.99.0\nnumpy==2.4.*\n"
    for version, says in ("2.3.1", "2.7 or later"), ("two", "a version like 2.7.0"):
        with pytest.raises(SystemExit, match=says):
            lanes.environment(version)
