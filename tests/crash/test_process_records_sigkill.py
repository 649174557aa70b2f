"""Programs that handle records concurrently are killed: every record is handled all the same."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.processes import SAME_TRIONET, running
from trionet.testing import ThreadedBroker, broker

WORKER = Path(__file__).parents[1] / "support" / "record_worker.py"
KILLS = 2
SEEDS = 15
PARTITIONS = 3
RECORDS = 400


@contextlib.contextmanager
def worker(servers: str, path: Path, seed: str) -> Iterator[subprocess.Popen[bytes]]:
    command: list[str | Path] = [sys.executable, WORKER, servers, path, seed]
    with running(command, env=SAME_TRIONET, stderr=path.with_suffix(".log")) as process:
        yield process


def handled(path: Path) -> set[tuple[int, int]]:
    """The places of the records that workers have noted."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {(int(partition), int(offset)) for partition, offset in map(str.split, lines)}


def until_handled(process: subprocess.Popen[bytes], path: Path, count: int) -> None:
    """Wait for records that no worker had handled before."""
    assert process.stdout is not None
    while len(handled(path)) < count:
        assert process.stdout.read(1), "the worker has ended"


def check_commits(running: ThreadedBroker, path: Path) -> None:
    """What is committed was handled; read in this order, since workers go on."""
    for (_, partition), committed in running.group("g").offsets.items():
        assert {(partition, each) for each in range(committed)} <= handled(path)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(each, marks=pytest.mark.crash) for each in range(1, SEEDS))]
)
def test_no_record_is_lost_when_workers_are_killed(seed: int, tmp_path: Path) -> None:
    rng, path, total = random.Random(seed), tmp_path / "handled", PARTITIONS * RECORDS
    with broker() as server:
        server.create_topic("t", PARTITIONS)
        records = [
            {"partition": partition, "value": b"%d" % number, "key": b"%d" % (number % 7)}
            for partition in range(PARTITIONS)
            for number in range(RECORDS)
        ]
        server.seed("t", records)
        with contextlib.ExitStack() as stack:
            for kill in range(KILLS):
                name = f"{seed}-{kill}"
                process = stack.enter_context(worker(server.bootstrap_servers, path, name))
                until_handled(
                    process, path, len(handled(path)) + rng.randint(1, total // (KILLS + 1))
                )
                check_commits(server, path)
                process.kill()
                process.wait()
                check_commits(server, path)
                server.expire_members("g")
            process = stack.enter_context(worker(server.bootstrap_servers, path, f"{seed}-last"))
            until_handled(process, path, total)
            check_commits(server, path)
