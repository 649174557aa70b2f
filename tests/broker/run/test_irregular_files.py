"""Pipes in place of the files of a data directory: nothing waits for their other end."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import trio

from support.brokers import broker_and_client, read_all
from support.calls import append, batch, create_topic, produce
from trionet import open_broker
from trionet.broker.log.recovery._missing_records import MissingRecordsError
from trionet.broker.storage._database import DatabaseError
from trionet.errors import ConfigError

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


async def fill(folder: Path) -> None:
    """A topic of two segments, and one that was cleaned; their broker was stopped."""
    async with broker_and_client({"log.dirs": str(folder)}) as (broker, client):
        await create_topic(client, "t", internal_segment_bytes=80)
        await append(client, b"a", b"b", b"c")
        await create_topic(client, "c", cleanup_policy="compact")
        assert 0 == (await produce(client, "c", batch(b"value", key=b"key"))).error_code
        await broker.compact("c")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled") / "data"
    trio.run(fill, folder)
    return folder


# Relative to the data directory; some are missing there after a clean stop.
REBUILT = [
    ".kafka_cleanshutdown",
    ".lock",
    "cleaner-offset-checkpoint",
    "log-extent-checkpoint",
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "recovery-point-offset-checkpoint.tmp",
    "t-0/00000000000000000000.index",
    "t-0/00000000000000000000.timeindex",
    "t-0/00000000000000000002.index",
    "t-0/00000000000000000002.snapshot",
    "t-0/00000000000000000002.timeindex",
    "t-0/00000000000000000002.txnindex",
    "t-0/leader-epoch-checkpoint",
    "t-0/partition.metadata",
]


@pytest.mark.parametrize("name", REBUILT)
async def test_a_pipe_in_place_of_a_file_that_can_be_rebuilt_counts_as_missing(
    filled: Path, tmp_path: Path, name: str
) -> None:
    folder = with_pipe(filled, tmp_path, name)

    async with broker_and_client({"log.dirs": str(folder)}) as (_, client):
        assert [b"a", b"b", b"c"] == await read_all(client, "t")
        await append(client, b"d")
    async with broker_and_client({"log.dirs": str(folder)}) as (_, client):
        assert [b"a", b"b", b"c", b"d"] == await read_all(client, "t")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("meta.properties", "meta.properties is not a regular file; restore it from a backup"),
        ("trionet.sqlite", "trionet.sqlite"),
        ("trionet.sqlite-wal", "trionet.sqlite-wal: it is a pipe, not a regular file"),
        ("trionet.sqlite-shm", "trionet.sqlite-shm: it is a pipe, not a regular file"),
        ("trionet.sqlite-journal", "trionet.sqlite-journal: it is a pipe, not a regular file"),
        ("t-0/00000000000000000000.log", "records of t-0 are missing"),
    ],
)
async def test_a_pipe_in_place_of_a_file_that_cannot_be_rebuilt_is_reported(
    filled: Path, tmp_path: Path, name: str, problem: str
) -> None:
    folder = with_pipe(filled, tmp_path, name)

    with pytest.raises((ConfigError, DatabaseError, MissingRecordsError), match=problem):
        async with open_broker({"log.dirs": str(folder), "log.missing.records.allowed": "false"}):
            pass

    assert (folder / name).is_fifo()


def with_pipe(filled: Path, tmp_path: Path, name: str) -> Path:
    """A copy of the data directory, in which one file is a pipe."""
    folder = tmp_path / "data"
    shutil.copytree(filled, folder)
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    return folder
