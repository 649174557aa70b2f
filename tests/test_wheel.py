"""What is installed by ``pip install trionet``: the package, and nothing that stays at home.

The wheel here is the pure one. The compiled one has the same and more: tests/test_compiled.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from configparser import ConfigParser
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import trionet

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.slow


def build(target: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    environment = {**os.environ, "TRIONET_PURE": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    [built] = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    return zipfile.Path(build("wheel", tmp_path_factory.mktemp("wheel")))


def test_a_wheel_in_which_nothing_is_compiled_is_for_every_python(wheel: zipfile.Path) -> None:
    assert f"trionet-{trionet.__version__}-py3-none-any.whl" == wheel.name


def metadata(wheel: zipfile.Path) -> zipfile.Path:
    return wheel / f"trionet-{trionet.__version__}.dist-info"


def described(wheel: zipfile.Path) -> Message:
    return Parser().parsestr((metadata(wheel) / "METADATA").read_text("utf-8"))


def test_a_wheel_is_the_package_its_metadata_and_a_module_for_spark(wheel: zipfile.Path) -> None:
    actual = {entry.name for entry in wheel.iterdir()}

    assert {"trionet", metadata(wheel).name, "pyspark_trionet.py"} == actual


def test_a_wheel_has_the_module_by_whose_name_spark_finds_the_source(wheel: zipfile.Path) -> None:
    expected = (ROOT / "trionet" / "spark" / "default_source.py").read_text("utf-8")

    assert expected == (wheel / "pyspark_trionet.py").read_text("utf-8")


def test_a_wheel_has_every_module_and_says_that_it_is_typed(wheel: zipfile.Path) -> None:
    expected = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "trionet").rglob("*")
        if path.name == "py.typed" or path.suffix in {".py", ".toml"}
    }
    expected.remove("trionet/spark/default_source.py")  # which lies beside the package, see below

    packed = {name for name in wheel.root.namelist() if not name.endswith("/")}
    actual = {name for name in packed if name.startswith("trionet/")}

    assert expected == actual


def test_a_wheel_brings_the_command_and_the_pytest_plugin(wheel: zipfile.Path) -> None:
    entry_points = ConfigParser()
    entry_points.read_string((metadata(wheel) / "entry_points.txt").read_text("utf-8"))

    scripts = {
        "trionet": "trionet.__main__:main",
        "trionet-spark-python": "trionet.spark._worker_python:main",
    }
    assert scripts == dict(entry_points["console_scripts"])
    assert {"trionet": "trionet.testing.plugin"} == dict(entry_points["pytest11"])


def test_a_user_gets_six_dependencies_and_the_licence(wheel: zipfile.Path) -> None:
    requirements = described(wheel).get_all("Requires-Dist", [])
    required = {re.split(r"\W", line)[0] for line in requirements if "extra ==" not in line}

    assert {"trio", "rich", "attrs", "fastcrc", "cramjam", "h11"} == required
    assert "Apache-2.0" == described(wheel)["License-Expression"]
    assert "Apache License" in (metadata(wheel) / "licenses" / "LICENSE").read_text("utf-8")


def test_the_source_distribution_can_test_itself(tmp_path: Path) -> None:
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"pyproject.toml", "README.md", "LICENSE", ".ci/environment.py"} <= names
    assert {".ci/compile_hot_path.py", ".ci/mend_generated_c.py"} <= names
    assert {"trionet/py.typed", "tests/__main__.py", "demo/__main__.py"} <= names
