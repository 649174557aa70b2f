"""``trionet dashboard`` where there is no terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.command_runs import Run
from support.processes import SAME_TRIONET
from trionet.testing import broker as running_broker

DASHBOARD = [sys.executable, "-m", "trionet", "dashboard"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--view", "none"], "--view none: unknown view; choose from overview, connections, apis"),
        (
            ["--view", "conections"],
            "unknown view; the closest match is connections; choose from overview, connections",
        ),
        (["--refresh", "0.01"], "--refresh 0.01: must be 0.2 to 60 seconds"),
        (["--refresh", "nan"], "--refresh nan: must be 0.2 to 60 seconds"),
        (["--count", "3"], "--count requires --interval"),
        (["--interval", "0"], "--interval 0: must be 0.2 to 86,400 seconds"),
        (["--interval", "1", "--count", "0"], "--count 0: must be at least 1"),
        (["--interval", "1", "--once"], "cannot be combined"),
        (["--interval", "1", "--format", "svg"], "--interval supports text, json, csv"),
        (["--interval", "1", "--view", "topics"], "--view has no effect on --interval"),
        (["--interval", "1", "--filter", "a"], "--filter has no effect on --interval"),
        (["--interval", "1", "--size", "80x24"], "--size has no effect on --interval"),
        (["--interval", "1", "--refresh", "5"], "--refresh has no effect on --interval"),
        (["--format", "csv", "--size", "80x24"], "--size has no effect on --format csv"),
        (["--once", "--refresh", "5"], "--refresh has no effect on a view that is printed once"),
        (["a:1", "-b", "b:1", "--once"], "a:1 and --brokers b:1: give one of them"),
        (
            ["--once", "--size", "0x10"],
            "--size 0x10: must have the form COLUMNSxLINES, such as 120x40",
        ),
        (["--metrics-token-file", "x"], "--metrics-token-file requires --metrics URL"),
        (["--metrics-ca-file", "x"], "--metrics-ca-file requires --metrics URL"),
        (["--metrics", "https://a:1", "--metrics-ca-file", "/nowhere"], "No such file"),
        (["--once", "--metrics", "localhost"], "invalid metrics listener URL 'localhost'"),
        (["--metrics", "http://a:1", "--metrics-token-file", "/nowhere"], "No such file"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, arguments: list[str], said: str) -> None:
    done = run("dashboard", *arguments)

    assert (2, "") == (done.status, done.out)
    assert said in done.err


@pytest.mark.slow
def test_without_a_terminal_a_view_is_printed(run: Run) -> None:
    with running_broker() as broker:
        done = run("dashboard", broker.bootstrap_servers, "--view", "brokers")

    assert (0, "") == (done.status, done.err)
    assert "127.0.0.1" in done.out
    assert "\x1b" not in done.out


@pytest.mark.slow
def test_the_faults_of_a_test_are_seen_from_another_process(run: Run) -> None:
    with running_broker() as broker:
        broker.faults.hold("Fetch", client_id="app")
        done = run(
            "dashboard", broker.bootstrap_servers, "--view", "faults", "--once", "--format", "json"
        )

    assert (0, "") == (done.status, done.err)
    [fault] = json.loads(done.out)
    assert ("armed", "hold", "Fetch, client_id app", 0) == (
        fault["state"],
        fault["action"],
        fault["which"],
        fault["hits"],
    )


@pytest.mark.slow
def test_a_table_is_no_overview(run: Run) -> None:
    with running_broker() as broker:
        done = run("dashboard", broker.bootstrap_servers, "--format", "json")

    assert (2, "") == (done.status, done.out)
    assert "--format json: the view overview has no table" in done.err


@pytest.mark.slow
def test_a_pipe_gets_no_escapes_whatever_the_environment_says(tmp_path: Path) -> None:
    with running_broker(metrics_local_enable=False) as broker:
        done = subprocess.run(
            [*DASHBOARD, broker.bootstrap_servers, "--interval", "0.2", "--count", "2"],
            env={**SAME_TRIONET, "FORCE_COLOR": "1", "TERM": "xterm", "PATH": "/usr/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
        )

    assert 3 == len(done.stdout.splitlines())
    assert "\x1b" not in done.stdout
    assert "" == done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_silence_is_no_response(run: Run, form: str) -> None:
    with running_broker() as broker:
        gone = broker.bootstrap_servers
    done = run("dashboard", gone, "--once", "--view", "topics", "--format", form)

    assert (1, "") == (done.status, done.out)
    assert f"trionet dashboard: nothing listens at {gone} (connection refused)\n" == done.err


@pytest.mark.slow
def test_nor_what_is_not_reported(run: Run) -> None:
    with running_broker(metrics_local_enable=False) as broker:
        done = run("dashboard", broker.bootstrap_servers, "--view", "log", "--format", "csv")

    assert (1, "") == (done.status, done.out)
    assert "not available over the Kafka protocol" in done.err


@pytest.mark.slow
def test_the_inside_of_a_broker_of_this_machine_is_seen_with_nothing_set(run: Run) -> None:
    with running_broker() as broker:
        done = run("dashboard", broker.bootstrap_servers, "--view", "apis")

    assert (0, "") == (done.status, done.err)
    assert "ApiVersions" in done.out
