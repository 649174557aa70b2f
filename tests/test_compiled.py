"""The compiled package, as `python3 tests compiled` has built it: all of it, and nothing more."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from pathlib import Path

import pytest
from compile_hot_path import marked_files

import trionet
from support.trionet_process import trionet_broker_process

ROOT = Path(__file__).resolve().parent.parent
MODULES = [file.removesuffix(".py").replace("/", ".") for file in marked_files(ROOT)]
SUFFIX = EXTENSION_SUFFIXES[0]
LIBRARY = f"trionet__mypyc{SUFFIX}"

pytestmark = pytest.mark.compiled


def python(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A child in the repository, where the sources lie, with a program about ``MODULES``."""
    program = f"import sys\nMODULES = {MODULES}\n{program}"
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", program]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", MODULES)
def test_a_marked_module_is_compiled(name: str) -> None:
    module = import_module(name)

    expected = Path(trionet.__file__).parents[1] / f"{name.replace('.', '/')}{SUFFIX}"
    assert module.__spec__ is not None
    assert isinstance(module.__spec__.loader, ExtensionFileLoader)
    assert str(expected) == module.__file__


def test_the_modules_of_a_child_process_are_compiled() -> None:
    done = python(
        "from importlib import import_module\n"
        f"print({{import_module(name).__file__.endswith({SUFFIX!r}) for name in MODULES}})"
    )

    assert ("{True}\n", "") == (done.stdout, done.stderr)


def test_the_command_says_that_it_is_compiled() -> None:
    command = [sys.executable, "-m", "trionet", "--version"]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert f"trionet {trionet.__version__} (compiled)\n" == done.stdout


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="asks Linux for the libraries")
def test_a_broker_that_the_tests_start_is_compiled() -> None:
    with trionet_broker_process() as (_, process):
        maps = Path(f"/proc/{process.pid}/maps").read_text()

    assert str(Path(trionet.__file__).parents[1] / LIBRARY) in maps


def test_pure_python_takes_no_compiled_module() -> None:
    done = python(
        "import pkgutil, trionet\n"
        "for module in pkgutil.walk_packages(trionet.__path__, 'trionet.'):\n"
        "    if not module.name.endswith(('__main__', '.plugin')): __import__(module.name)\n"
        "files = [module.__file__ for name, module in sys.modules.items() if 'trionet' in name]\n"
        "print(trionet.is_compiled(), [file for file in files if not file.endswith('.py')])\n"
        "print(set(MODULES) <= set(sys.modules))",
        TRIONET_PURE="1",
    )

    assert ("False []\nTrue\n", "") == (done.stdout, done.stderr)


def test_what_compiled_them_is_not_needed_to_run_them() -> None:
    done = python(
        "for name in ('hatchling', 'mypy', 'mypy_extensions', 'mypyc', 'setuptools'):\n"
        "    sys.modules[name] = None  # an ImportError for whoever wants it\n"
        "for name in MODULES: __import__(name)"
    )

    assert (0, "") == (done.returncode, done.stderr)


def test_the_wheel_has_every_source_and_every_compiled_module() -> None:
    [path] = (Path(trionet.__file__).parents[2] / "wheel").glob("*.whl")
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "trionet").rglob("*")
        if path.name == "py.typed" or path.suffix in {".py", ".toml"}
    }
    # Spark finds it by another name, in front of the package.
    sources = sources - {"trionet/spark/default_source.py"} | {"pyspark_trionet.py"}
    compiled = {f"{name.replace('.', '/')}{SUFFIX}" for name in MODULES}

    with zipfile.ZipFile(path) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert f"-cp{sys.version_info[0]}{sys.version_info[1]}-" in path.name
    assert {LIBRARY, *sources, *compiled} == packed


def test_nothing_shows_where_it_was_built() -> None:
    package = Path(trionet.__file__).parents[1]
    libraries = [path.read_bytes() for path in package.rglob(f"*{SUFFIX}")]

    assert len(MODULES) + 1 == len(libraries)
    assert [] == [1 for data in libraries if bytes(ROOT) in data or b"trionet-compiled-" in data]


def test_a_traceback_shows_the_source() -> None:
    done = python("from trionet.protocol.records._batch import read_header; read_header(b'')")

    assert 'File "trionet/protocol/records/_batch.py", line ' in done.stderr
    assert 'raise_from(WireFormatError("truncated batch header"), error)' in done.stderr
