"""``trionet pipeline run`` before Spark, and what it reports; the job itself is in tests/spark."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest

from trionet.cli.main import main
from trionet.cli.pipeline._run import duration

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

    monkeypatch.setattr("trionet.cli.pipeline._run.find_spec", find_spec)

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
    ("text", "seconds"), [("90s", 90.0), ("2m", 120.0), ("1h", 3600.0), ("250ms", 0.25), ("0s", 0)]
)
def test_a_time_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert seconds == duration(text)


@pytest.mark.parametrize("text", ["90", "s", "-1s", "1 day", "1e9s", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="90s"):
        duration(text)


@pytest.mark.parametrize(
    "wrong",
    [
        ["--set", "kafka.linger.ms"],
        ["--set", "linger.ms=5"],
        ["--set", "kafka.bootstrap.servers=x:1"],
        ["--set", "kafka.lingr.ms=5"],
        ["--results-topic", "requests"],
    ],
)
def test_a_wrong_setting_is_exit_status_2(
    wrong: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setattr("trionet.cli.pipeline._run.check_environment", lambda: None)

    assert 2 == main([*ARGUMENTS, *wrong])
    assert capsys.readouterr().err.startswith("trionet pipeline: ")


@pytest.fixture
def events() -> list[object]:
    """A micro-batch that has told of minutes, one that has not, and the end."""
    pytest.importorskip("pyspark")
    from trionet.spark.pipeline._batches import BatchResult
    from trionet.spark.pipeline._job import BatchDone, JobDone
    from trionet.spark.pipeline._storage import Intake

    intake = Intake(requests_read=1200, connections_read=3, late=2, malformed=1)
    return [
        "waiting for the topic requests",
        BatchDone(BatchResult(4, intake, {29_923_190: 700, 29_923_191: 500}, 29_923_192), 17),
        BatchDone(BatchResult(5, Intake(requests_read=5), {}, 29_923_192), 0),
        JobDone(intake, 2, 40, is_stopped=True),
    ]


def test_each_batch_of_finished_minutes_is_a_line(
    events: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    from trionet.cli.pipeline._pipeline_output import EventPrinter

    for event in events:
        EventPrinter(as_json=False)(event)  # type: ignore[arg-type]

    apart = ", 2 late (their minute was over), 1 malformed"
    span = "2026-11-22 23:50 to 2026-11-22 23:51, 2 minutes"
    assert [
        "waiting for the topic requests",
        f"{span}: 1,200 requests, lag 17 records{apart}",
        "stopped: 1,204 records read, 2 minutes finished, 40 records in unfinished minutes" + apart,
    ] == [line.removeprefix("trionet pipeline: ") for line in capsys.readouterr().err.splitlines()]


def test_scripts_get_json(events: list[object], capsys: pytest.CaptureFixture[str]) -> None:
    from trionet.cli.pipeline._pipeline_output import EventPrinter

    for event in events:
        EventPrinter(as_json=True)(event)  # type: ignore[arg-type]

    first, second, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert {"2026-11-22T23:50:00Z": 700, "2026-11-22T23:51:00Z": 500} == first["windows"]
    assert (17, 2, 1, 1204) == (first["lag"], first["late"], first["malformed"], first["records"])
    assert (5, {}) == (second["batch"], second["windows"])
    assert ("end", 1204, 40, True) == tuple(
        end[name] for name in ("event", "records", "open_records", "is_stopped")
    )
