"""Which Java the demo takes for one that Spark can use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from demo.java import WHAT_TO_DO, no_java


def put_java(home: Path, script: str) -> Path:
    """A program that calls itself Java."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java


def telling(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2024-10-15' >&2"


@pytest.mark.parametrize("version", ["17.0.13", "21", "25-ea"])
def test_a_java_is_found_where_spark_looks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    java = put_java(tmp_path, telling(version))

    monkeypatch.setenv("PATH", f"{java.parent}{os.pathsep}{os.defpath}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert no_java() == ""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "elsewhere"))
    assert f"there is no Java; {WHAT_TO_DO}" == no_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert no_java() == ""


@pytest.mark.parametrize(("version", "told"), [("1.8.0_432", "8"), ("11.0.25", "11")])
def test_one_that_is_too_old_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, told: str
) -> None:
    java = put_java(tmp_path, telling(version))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert f"{java} is Java {told}; {WHAT_TO_DO}" == no_java()


def test_one_that_only_says_where_to_get_one_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = put_java(tmp_path, "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert f"{java} does not run; {WHAT_TO_DO}" == no_java()


def test_a_file_of_that_name_that_is_no_program_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = put_java(tmp_path, "")
    java.write_bytes(b"\x00")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert f"{java} does not run; {WHAT_TO_DO}" == no_java()
