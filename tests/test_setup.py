"""`python3 tests` and `python3 demo` before their environment exists: small, plain, and exact."""

from __future__ import annotations

import ast
import io
import os
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
BOOTSTRAP = [
    ROOT / ".ci/environment.py",
    ROOT / ".ci/compiled_package.py",
    ROOT / "tests/__main__.py",
    ROOT / "demo/__init__.py",
    ROOT / "demo/__main__.py",
    ROOT / "demo/java.py",
]


def load(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"loaded_{path.parent.name.strip('.')}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with nothing but what the set-up looks at."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/environment.py", tmp_path / ".ci")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.fixture
def environment(checkout: Path) -> ModuleType:
    """The bootstrap of that checkout."""
    return load(checkout / ".ci/environment.py")


def pretend_to_be_set_up(environment: ModuleType, extra: str) -> None:
    environment.PYTHON.parent.mkdir(parents=True)
    environment.PYTHON.symlink_to(sys.executable)
    environment.write(environment._stamp_file(extra), environment._expected_stamp())


def is_set_up(environment: ModuleType, extra: str) -> bool:
    return bool(environment.is_ready(extra))


@pytest.mark.parametrize("path", BOOTSTRAP, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_bootstrap_needs_only_an_old_python(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"), feature_version=(3, 7))

    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }

    assert set() == imported - sys.stdlib_module_names - {"compiled_package", "environment", "demo"}


def test_help_needs_no_environment_and_names_every_job(tmp_path: Path) -> None:
    tests = load(ROOT / "tests/__main__.py")
    # In isolated mode, without site-packages: as bare as a Python gets.
    command = [sys.executable, "-I", "-S", str(ROOT / "tests"), "--help"]

    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)

    jobs = [*tests.PROGRAMS, *tests.SELECTIONS, "compiled"]
    assert [] == [job for job in jobs if f"\n  {job} " not in done.stdout]


def test_every_job_that_is_a_program_exists() -> None:
    tests = load(ROOT / "tests/__main__.py")

    places = [ROOT / "tests" / name.replace(".", "/") for _, name in tests.PROGRAMS.values()]

    missing = [
        place
        for place in places
        if not (place / "__main__.py").exists() and not place.with_suffix(".py").exists()
    ]
    assert [] == missing


def test_a_finished_set_up_is_not_repeated(environment: ModuleType) -> None:
    pretend_to_be_set_up(environment, "test")

    environment.prepare("test")

    assert is_set_up(environment, "test")


def test_another_extra_is_not_set_up_by_the_first(environment: ModuleType) -> None:
    pretend_to_be_set_up(environment, "test")

    assert not is_set_up(environment, "demo")


def test_a_changed_pyproject_is_set_up_again(environment: ModuleType, checkout: Path) -> None:
    pretend_to_be_set_up(environment, "test")

    with (checkout / "pyproject.toml").open("a") as file:
        file.write("# another line\n")

    assert not is_set_up(environment, "test")


def test_an_environment_whose_python_is_gone_is_made_again(environment: ModuleType) -> None:
    pretend_to_be_set_up(environment, "test")

    environment.PYTHON.unlink()
    environment.PYTHON.symlink_to("/nowhere/python")

    assert not is_set_up(environment, "test")


def test_a_moved_checkout_is_set_up_again(
    environment: ModuleType, checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    pretend_to_be_set_up(environment, "test")

    moved = checkout.rename(tmp_path_factory.mktemp("elsewhere") / "trionet")

    assert not is_set_up(load(moved / ".ci/environment.py"), "test")


@pytest.fixture
def compiled_package(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The other half of that bootstrap; what it builds is a folder with nothing in it."""
    shutil.copy(ROOT / ".ci/compiled_package.py", checkout / ".ci")
    (checkout / "trionet").mkdir()
    (checkout / "trionet/__init__.py").write_text("first = 1\n", "utf-8")
    monkeypatch.delitem(sys.modules, "environment", raising=False)
    monkeypatch.syspath_prepend(str(checkout / ".ci"))
    monkeypatch.setenv("PYTHONPATH", "mine")
    monkeypatch.setenv("PYTHONSAFEPATH", "")
    module = load(checkout / ".ci/compiled_package.py")
    module.VENV.mkdir()
    monkeypatch.setattr(module, "_build", lambda home, _: home.mkdir())
    return module


def test_the_compiled_package_is_built_once_for_each_state_of_the_sources(
    compiled_package: ModuleType, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = checkout / "trionet/__init__.py"
    for text in ("first = 1\n", "first = 1\n", "second = 2\n", "first = 1\n"):
        source.write_text(text, "utf-8")
        compiled_package.put_in_front()

    assert 2 == len(list(compiled_package.FOLDER.iterdir()))
    assert 2 == capsys.readouterr().err.count("trionet: compiling (once for each change) ... done")


def test_the_compiled_package_is_in_front_of_the_sources(compiled_package: ModuleType) -> None:
    compiled_package.put_in_front()

    [home] = compiled_package.FOLDER.iterdir()
    assert f"{home / 'package'}{os.pathsep}mine" == os.environ["PYTHONPATH"]
    assert "1" == os.environ["PYTHONSAFEPATH"]


def test_no_tool_sees_what_lies_in_front_of_the_environment(
    environment: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "mine")
    monkeypatch.setenv("HOME", "also mine")
    program = (
        "import os; assert ('also mine', None) == tuple(map(os.getenv, ('HOME', 'PYTHONPATH')))"
    )

    with environment.Progress("setting up", io.StringIO()) as progress:
        progress.run([sys.executable, "-c", program])


def test_a_tool_that_fails_says_everything_and_one_that_works_nothing(
    environment: ModuleType,
) -> None:
    line = io.StringIO()
    fails = [sys.executable, "-c", "print('first'); print('why'); raise SystemExit(3)"]

    with environment.Progress("setting up", line) as progress:
        progress.run([sys.executable, "-c", "print('never seen')"])
        with pytest.raises(environment.SetupFailed, match=r"status 3\):\nfirst\nwhy"):
            progress.run(fails)

    assert line.getvalue() == "setting up ... done after 0 s\n"
