"""``trionet pipeline run`` before Spark, and what it reports; the job itself is in tests/spark.

``trionet pipeline report`` as its users start it: what it prints where, and how it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spark.pipeline.report.samples import sample
from spark.pipeline.results_folder import write_results
from streams.__main__ import started_with
from support.java import NO_JAVA, has_java
from support.processes import SAME_TRIONET
from trionet.cli._pipeline import days, duration, print_event
from trionet.cli.main import main

ARGUMENTS = ["pipeline", "run", "--topic", "requests", "--folder", "/nowhere"]


def test_without_java_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    status = main(ARGUMENTS)

    assert 2 == status
    error = capsys.readouterr().err
    assert error.startswith("trionet pipeline: no Java found on the PATH: ")
    assert "openjdk-17" in error


def test_a_wrong_java_home_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert 2 == main(ARGUMENTS)
    assert f"no Java found in JAVA_HOME, {tmp_path}" in capsys.readouterr().err


def test_without_pyspark_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_spec(name: str) -> object:
        return None if name == "pyspark" else object()

    monkeypatch.setattr("trionet.cli._pipeline.find_spec", find_spec)

    assert 2 == main(ARGUMENTS)
    expected = "trionet pipeline: pyspark not found: pip install 'trionet[pipeline]'\n"
    assert expected == capsys.readouterr().err


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from trionet.cli.main import main\n"
        "try: main(['pipeline', 'run', '--help'])\n"
        "except SystemExit: pass\n"
        "print({'pyspark', 'numpy', 'pyarrow', 'pandas', 'trio'} & set(sys.modules))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert "set()" == done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("2m", 120.0), ("1h", 3600.0), ("2d", 172_800.0), ("0s", 0)],
)
def test_a_time_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert seconds == duration(text)


@pytest.mark.parametrize("text", ["90", "s", "-1s", "1 day", "1e9s", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="90s"):
        duration(text)


def test_days_are_kept_from_one_to_a_hundred_years() -> None:
    assert (1, 36_500) == (days("1"), days("36500"))


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "1d", "36501", "9" * 5000, ""])
def test_what_is_no_number_of_days_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="integer"):
        days(text)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--set", "kafka.linger.ms"],
        ["--set", "linger.ms=5"],
        ["--set", "kafka.bootstrap.servers=x:1"],
        ["--set", "kafka.lingr.ms=5"],
        ["--results-topic", "requests"],
        ["--max-age", "59m"],
    ],
)
def test_a_wrong_setting_is_exit_status_2(
    wrong: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr("trionet.cli._pipeline.check_environment", lambda: None)

    assert 2 == main([*ARGUMENTS, *wrong])
    assert capsys.readouterr().err.startswith("trionet pipeline: ")


@pytest.fixture
def events() -> list[object]:
    """A micro-batch before a minute is over, one that has told of minutes, one not, and the end."""
    pytest.importorskip("pyspark")
    from trionet.spark.pipeline._batches import BatchResult
    from trionet.spark.pipeline._job import BatchDone, JobDone
    from trionet.spark.pipeline._storage import Intake

    intake = Intake(requests_read=1200, connections_read=3, late=2, malformed=1, old=7)
    windows = {29_923_190: 700, 29_923_191: 500}
    return [
        "waiting for the topic requests",
        BatchDone(BatchResult(3, Intake(requests_read=9), {}, 0), 4, 9, 0),
        BatchDone(BatchResult(4, intake, windows, 29_923_192, ahead={2: 59}), 17, 1220, 2),
        BatchDone(BatchResult(5, Intake(requests_read=5), {}, 29_923_192), 0, 1225, 2),
        JobDone(intake, 2, 40, is_stopped=True),
    ]


def test_each_batch_of_finished_minutes_is_a_line_and_those_before_the_first(
    events: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    for event in events:
        print_event(event, as_json=False)  # type: ignore[arg-type]

    apart = ", 2 late (their minute was over), 1 malformed, 7 too old"
    span = "2026-11-22 23:50 to 2026-11-22 23:51, 2 minutes"
    assert [
        "waiting for the topic requests",
        "no minute finished yet: 9 records read, lag 4 records",
        f"{span}: 1,200 requests, lag 17 records{apart}",
        "stopped: 1,211 records read, 2 minutes finished, 40 records in unfinished minutes" + apart,
    ] == [line.removeprefix("trionet pipeline: ") for line in capsys.readouterr().err.splitlines()]


def test_a_run_that_has_finished_no_minute_says_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("pyspark")
    from trionet.spark.pipeline._job import JobDone
    from trionet.spark.pipeline._storage import Intake

    print_event(JobDone(Intake(requests_read=9), 0, 9, is_stopped=False), as_json=False)
    fresh = capsys.readouterr().err.splitlines()
    print_event(JobDone(Intake(), 0, 0, is_stopped=False), as_json=False)
    empty = capsys.readouterr().err.splitlines()

    done, advice = fresh
    assert done.endswith(": 9 records read, 0 minutes finished, 9 records in unfinished minutes")
    assert advice == (
        "trionet pipeline: run it again when the log has later records; with --watermark 0s, the"
        " first record of a later minute is enough"
    )
    assert 1 == len(empty)


def test_scripts_get_json(events: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    for event in events:
        print_event(event, as_json=True)  # type: ignore[arg-type]

    _, first, second, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert {"2026-11-22T23:50:00Z": 700, "2026-11-22T23:51:00Z": 500} == first["windows"]
    assert (17, 2, 1, 1211) == (first["lag"], first["late"], first["malformed"], first["records"])
    assert (7, {"2": 59}) == (first["old"], first["clocks_ahead"])
    assert (5, {}) == (second["batch"], second["windows"])
    assert ("end", 1211, 40, True) == tuple(
        end[name] for name in ("event", "records", "open_records", "is_stopped")
    )


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
        (["--from", "tomorrow"], "--from: invalid time 'tomorrow': expected 2026-03-01, "),
        (["--from", "-1h", "--to", "-2h"], "--from -1h --to -2h: the range is empty"),
        (["--api", "Produse"], "Produse: unknown API; the closest match is Produce"),
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

    arguments = ("--folder", folder, "--master", "local[2]")
    assert "Spark requires Java 17 or newer" in refused(*arguments, capsys=capsys)


def test_a_small_local_folder_needs_no_java(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(folder))

    assert 0 == main(["pipeline", "report", "--folder", str(folder), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert 1025 == document["requests"]
    assert ["over", "open"] == [each["state"] for each in reversed(document["incidents"])]
    assert [33] == [each["bad"] for each in document["objectives"]]


def test_the_page_is_written_although_the_reader_of_the_tables_has_exited(
    folder: Path, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    command = [sys.executable, "-m", "trionet", "pipeline", "report"]

    done = started_with("stdout ended", [*command, "--folder", str(folder), "--html", str(page)])

    assert 0 == done.status, done.err
    assert page.read_text("utf-8").startswith("<!doctype html>")


def run(*arguments: str | Path, subcommand: str = "report") -> subprocess.CompletedProcess[str]:
    if not has_java():
        pytest.skip(NO_JAVA)
    return subprocess.run(
        [sys.executable, "-m", "trionet", "pipeline", subcommand, *arguments],
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

    done = run(
        "--folder",
        folder,
        "--html",
        page,
        "--from",
        "2026-03-01",
        "--top",
        "3",
        "--master",
        "local[1]",
    )

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


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_that_nothing_listens_is_one_line_before_spark_starts(tmp_path: Path) -> None:
    where: list[str | Path] = ["--bootstrap-server", "127.0.0.1:1", "--folder", tmp_path]

    done = run(*where, "--topic", "requests", subcommand="run")

    assert (1, "") == (done.returncode, done.stdout)
    assert (
        "trionet pipeline: nothing listens at 127.0.0.1:1 (connection refused); gave up after 2 s"
        " (--bootstrap-server sets the address)\n"
    ) == done.stderr
