"""The build hook, on a package of one module: what it compiles, and what it says when it cannot."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest
from compile_hot_path import MARK, HotPathHook, marked_files, obstacle
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parent.parent
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "trionet"
version = "1"
requires-python = ">=3.11"
dependencies = ["trio"]

[project.optional-dependencies]
test = ["pytest", "mypy>=2", "setuptools"]

[tool.hatch.build.targets.wheel.hooks.custom]
path = ".ci/compile_hot_path.py"
runtime-dependencies = ["librt>=0.16"]
"""
PURE = "trionet-1-py3-none-any.whl"

pytestmark = [pytest.mark.slow, pytest.mark.compiled]
needs_compiler = pytest.mark.skipif(obstacle() is not None, reason=str(obstacle()))


class Project:
    """A source tree with the hook and the module ``trionet.quick``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "trionet").mkdir(parents=True)
        (root / "trionet/__init__.py").touch()
        self.module = root / "trionet/quick.py"
        self.module.write_text(
            f"{MARK}\n\n\ndef doubled(number: int) -> int:\n    return 2 * number\n",
            "utf-8",
        )
        (root / "pyproject.toml").write_text(PROJECT, "utf-8")
        (root / ".ci").mkdir()
        for name in ("compile_hot_path.py", "mend_generated_c.py"):
            shutil.copy(ROOT / ".ci" / name, root / ".ci")

    def python(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run this Python in the tree, with no other settings than these."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.root,
            env={**kept, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def build(self, **variables: str) -> tuple[str, str]:
        """Build a wheel; its name, or nothing, and what was written to stderr."""
        command = ["-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
        done = self.python(*command, **variables)
        built = [path.name for path in self.root.glob("dist/*.whl")]
        assert (done.returncode == 0) == bool(built)
        name = "".join(built)
        return name, done.stderr.replace(f"dist/{name}\n", "")  # hatchling's own line


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "tree")


@needs_compiler
def test_the_module_is_compiled_and_its_source_stays(project: Project, tmp_path: Path) -> None:
    name, stderr = project.build()

    assert "" == stderr
    assert f"-cp{sys.version_info[0]}{sys.version_info[1]}-" in name
    with zipfile.ZipFile(project.root / "dist" / name) as wheel:
        wheel.extractall(tmp_path / "installed")
    packed = {
        path.relative_to(tmp_path / "installed").as_posix()
        for path in tmp_path.glob("installed/**/*")
        if path.is_file() and not path.parent.name.endswith(".dist-info")
    }
    suffix = EXTENSION_SUFFIXES[0]
    compiled = {f"trionet__mypyc{suffix}", f"trionet/quick{suffix}"}
    assert {"trionet/__init__.py", "trionet/quick.py", *compiled} == packed
    program = "import trionet.quick as quick; print(quick.doubled(21), quick.__file__)"
    done = project.python("-P", "-c", program, PYTHONPATH=str(tmp_path / "installed"))
    assert f"42 {tmp_path / 'installed/trionet/quick'}{suffix}\n" == done.stdout


def requirements(project: Project, name: str) -> str:
    with zipfile.ZipFile(project.root / "dist" / name) as wheel:
        return wheel.read("trionet-1.dist-info/METADATA").decode()


@needs_compiler
def test_a_compiled_wheel_requires_the_compilers_library(project: Project) -> None:
    name, _ = project.build()

    assert "Requires-Dist: librt>=0.16\n" in requirements(project, name)


def test_a_pure_wheel_does_not(project: Project) -> None:
    name, _ = project.build(TRIONET_PURE="1")

    assert "Requires-Dist: trio\n" in requirements(project, name)
    assert "librt" not in requirements(project, name)


@needs_compiler
def test_what_is_not_compiled_is_not_checked_either(project: Project) -> None:
    (project.root / "trionet/other.py").write_text("number: int = 'one'\n", "utf-8")
    project.module.write_text(f"{MARK}\nfrom .other import number\n", "utf-8")

    name, stderr = project.build()

    assert "" == stderr
    assert PURE != name


def test_without_a_compiler_the_wheel_is_pure_and_one_line_says_why(
    project: Project, tmp_path: Path
) -> None:
    name, stderr = project.build(PATH=str(tmp_path))

    assert PURE == name
    assert (
        "trionet: building pure Python, because there is no C compiler; "
        "it does the same, with fewer requests per second\n"
    ) == stderr


@needs_compiler
@pytest.mark.parametrize(
    ("source", "error"),
    [
        (f"number: int = 'one'\n{MARK}\n", "trionet/quick.py:1: error: Incompatible types"),
        (f"{MARK}\nraise RuntimeError('not this Python')\n", "RuntimeError: not this Python"),
    ],
    ids=["mypy refuses it", "it cannot be imported"],
)
def test_a_module_that_does_not_compile_is_one_line_too(
    project: Project, source: str, error: str
) -> None:
    project.module.write_text(source, "utf-8")

    name, stderr = project.build()

    assert PURE == name
    assert 1 == stderr.count("\n")
    assert f"because compiling failed: {error}" in stderr


@needs_compiler
def test_a_compiler_that_fails_is_one_line_too(project: Project) -> None:
    name, stderr = project.build(CC="false")

    assert PURE == name
    assert 1 == stderr.count("\n")
    assert "because compiling failed: " in stderr


def test_who_wants_pure_python_gets_it_without_a_word(project: Project) -> None:
    assert (PURE, "") == project.build(TRIONET_PURE="1")


def test_who_wants_it_compiled_gets_nothing_else(project: Project, tmp_path: Path) -> None:
    name, stderr = project.build(TRIONET_PURE="0", PATH=str(tmp_path))

    assert "" == name
    assert "TRIONET_PURE=0 asks for a compiled wheel, but there is no C compiler" in stderr


@needs_compiler
def test_a_compiled_build_that_was_asked_for_explains_everything(project: Project) -> None:
    project.module.write_text(f"one: int = ''\ntwo: str = 2\n{MARK}\n", "utf-8")

    _, stderr = project.build(TRIONET_PURE="0")

    assert "quick.py:1: error" in stderr
    assert "quick.py:2: error" in stderr


REQUIRED = "from hatchling.build import *; print(*sorted(get_requires_for_build_wheel()))"


@needs_compiler
def test_what_compiles_is_required_for_that(project: Project) -> None:
    done = project.python("-c", REQUIRED)

    assert "mypy>=2 setuptools trio\n" == done.stdout


@pytest.mark.parametrize("variables", [{"TRIONET_PURE": "1"}, {"PATH": "/nowhere"}], ids=str)
def test_nothing_is_required_where_nothing_is_compiled(
    project: Project, variables: dict[str, str]
) -> None:
    done = project.python("-c", REQUIRED, **variables)

    assert ("\n", "") == (done.stdout, done.stderr)


def test_an_editable_package_is_not_compiled(project: Project) -> None:
    builder = WheelBuilder(str(project.root))
    hook = HotPathHook(str(project.root), {}, builder.config, builder.metadata, "", "wheel")
    data: dict[str, Any] = {}

    hook.initialize("editable", data)

    assert {} == data


def test_a_missing_header_says_which_package_has_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TRIONET_PURE", raising=False)
    monkeypatch.setenv("CC", sys.executable)
    monkeypatch.setattr("compile_hot_path.sysconfig.get_path", lambda _: str(tmp_path))

    assert "Python.h is missing (Debian and Ubuntu: apt-get install python3-dev)" == obstacle()


def test_the_tests_of_what_is_compiled_run_compiled_too() -> None:
    tested = [
        Path(path) for path in runpy.run_path(str(ROOT / "tests/__main__.py"))["COMPILED_TESTS"]
    ]

    def is_tested(file: str) -> bool:
        room = Path(file.replace("trionet/", "tests/", 1)).parent
        return any(each in {room, *room.parents} or each.parent == room for each in tested)

    assert not [path for path in tested if not (ROOT / path).exists()]
    assert not [file for file in marked_files(ROOT) if not is_tested(file)]
