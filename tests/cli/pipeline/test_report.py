"""``trionet pipeline report`` as its users start it: what it prints where, and how it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spark.pipeline.report.samples import sample
from spark.pipeline.results_folder import write_results
from support.java import NO_JAVA, has_java
from support.processes import SAME_TRIONET
from trionet.cli.main import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_results(tmp_path / "results", **sample())


def refused(*arguments: str | Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of arguments that are wrong."""
    assert 2 == main(["pipeline", "report", *map(str, arguments)])
    printed = capsys.readouterr()
    assert not printed.out
    assert printed.err.startswith("trionet pipeline: ")
    assert 1 == len(printed.err.splitlines())
    return printed.err


def test_a_folder_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused("--folder", tmp_path / "nowhere", capsys=capsys)

    assert "nowhere: does not exist; give the directory of `trionet pipeline run --folder`" in said


def test_a_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()

    assert "is not a directory" in refused("--folder", tmp_path / "file", capsys=capsys)


def test_a_folder_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "planes").mkdir()

    said = refused("--folder", f"file://{tmp_path}", capsys=capsys)

    assert "no pipeline results (no directory windows)" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", "tomorrow"], "--from 'tomorrow': not a time; give a day (2026-03-01)"),
        (["--from", "-1h", "--to", "-2h"], "--from -1h --to -2h: the range is empty"),
        (["--api", "Produse"], "Produse: unknown API; did you mean Produce?"),
        (["--api", "999"], "`trionet decode --list` shows the known ones"),
        (
            ["--html", "/nowhere/report.html"],
            "--html /nowhere/report.html: the file cannot be written",
        ),
        (
            ["--master", "nonsense"],
            "--master nonsense: not a Spark master; use local[*], spark://HOST:PORT",
        ),
        (["--set", "kafka.x=1"], "--set kafka.x=1: must have the form spark.KEY=VALUE"),
    ],
)
def test_arguments_that_cannot_be_meant(
    folder: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused("--folder", folder, *arguments, capsys=capsys)


@pytest.mark.parametrize("top", ["0", "-3", "many"])
def test_a_table_has_a_row_at_least(
    folder: Path, top: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["pipeline", "report", "--folder", str(folder), "--top", top])

    assert 2 == stopped.value.code
    assert "expected an integer of at least 1" in capsys.readouterr().err


def test_without_java_it_is_said_what_to_install(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(folder))

    assert "Spark requires Java 17 or newer" in refused("--folder", folder, capsys=capsys)


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    if not has_java():
        pytest.skip(NO_JAVA)
    return subprocess.run(
        [sys.executable, "-m", "trionet", "pipeline", "report", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **SAME_TRIONET, "PYTHONIOENCODING": "utf-8"},
        timeout=280,
    )


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_tables_are_printed_and_a_page_is_written(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"

    done = run("--folder", folder, "--html", page, "--from", "2026-03-01", "--top", "3")

    assert 0 == done.returncode, done.stderr
    assert re.search(r"^Produce +1,000 +97\.6%", done.stdout, re.MULTILINE)
    assert f"trionet pipeline report: written to {page}\n" in done.stderr
    assert "Traceback" not in done.stderr
    assert " WARN " not in done.stderr
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert [page.name, "results"] == sorted(each.name for each in tmp_path.iterdir())


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_a_document_is_printed_and_nothing_else(folder: Path) -> None:
    done = run("--folder", folder, "--json", "--api", "fetch")

    assert 0 == done.returncode, done.stderr
    assert 25 == json.loads(done.stdout)["requests"]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_that_spark_does_not_start_is_one_line(folder: Path) -> None:
    done = run("--folder", folder, "--set", "spark.driver.memory=lots")

    assert 1 == done.returncode
    assert not done.stdout
    [line] = [each for each in done.stderr.splitlines() if each.startswith("trionet ")]
    assert "trionet pipeline: Spark: [JAVA_GATEWAY_EXITED]" in line
    assert "Traceback" not in done.stderr
