"""A broker whose folder lacks something: what clients and operators see of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from support.brokers import broker_client
from support.calls import append, create_topic, fetch, produce, values_of
from support.calls import batch as batch_of
from support.client import connect
from trionet import open_broker, open_consumer
from trionet.broker.log.recovery._missing_records import MissingRecordsError
from trionet.errors import ConfigError
from trionet.protocol import error_codes

VALUES = [b"%d" % number * 400 for number in range(8)]
LAST = f"{6:020d}.log"


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A folder with eight records in segments of two."""
    data = tmp_path / "data"
    async with broker_client(log_dirs=str(data)) as client:
        await create_topic(client, "t", internal_segment_bytes=1000)
        await append(client, *VALUES)
    return data


async def test_a_consumer_passes_over_what_is_missing(data: Path) -> None:
    (data / "t-0" / f"{2:020d}.log").unlink()
    (data / "t-0" / LAST).unlink()
    async with open_broker(log_dirs=str(data)) as broker:
        async with connect(broker.bootstrap_servers) as client:
            answer = await produce(client, "t", batch_of(b"new"))
            assert 8 == answer.base_offset
        found = []
        async with open_consumer(
            broker.bootstrap_servers, topics="t", group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            async for record in consumer:
                found.append((record.offset, record.value))
                if record.value == b"new":
                    break

    assert [(0, VALUES[0]), (1, VALUES[1]), (4, VALUES[4]), (5, VALUES[5]), (8, b"new")] == found


async def test_a_fetch_of_what_is_missing_gets_a_batch_without_records(data: Path) -> None:
    (data / "t-0" / LAST).unlink()
    async with broker_client(log_dirs=str(data)) as client:
        for version in (4, 12):
            found = await fetch(client, "t", 6, version=version)

            assert (error_codes.NONE, 8, []) == (
                found.error_code,
                found.high_watermark,
                values_of(found),
            )


@pytest.mark.parametrize("gone", ["t-0", f"t-0/{LAST}"])
async def test_a_broker_that_may_lack_nothing_does_not_start(data: Path, gone: str) -> None:
    path = data / gone
    (shutil.rmtree if path.is_dir() else os.unlink)(path)

    with pytest.raises(MissingRecordsError, match="records of t-0 are missing"):
        async with open_broker(log_dirs=str(data), log_missing_records_allowed=False):
            pass
    assert not path.exists()


async def test_a_broker_that_may_lack_nothing_sets_no_records_aside(data: Path) -> None:
    os.rename(data / "t-0", data / "other-0")

    with pytest.raises(MissingRecordsError, match="t-0"):
        async with open_broker(log_dirs=str(data), log_missing_records_allowed=False):
            pass
    os.rename(data / "other-0", data / "t-0")
    shutil.copytree(data / "t-0", data / "other-0")
    with pytest.raises(
        MissingRecordsError, match=r"1 partitions with records belong to no topic, .* other-0"
    ):
        async with open_broker(log_dirs=str(data), log_missing_records_allowed=False):
            pass


async def test_a_database_that_has_lost_its_content_is_not_taken_for_a_new_one(data: Path) -> None:
    (data / "trionet.sqlite").write_bytes(b"")

    with pytest.raises(ConfigError, match=r"trionet\.sqlite is empty; .* backup"):
        async with open_broker(log_dirs=str(data)):
            pass
    os.unlink(data / "trionet.sqlite")
    os.mkfifo(data / "trionet.sqlite")
    with pytest.raises(ConfigError, match=r"trionet\.sqlite is not a regular file; .* backup"):
        async with open_broker(log_dirs=str(data)):
            pass
    assert (data / "t-0").is_dir()


@pytest.mark.parametrize("is_there", [True, False])
async def test_what_was_committed_last_may_be_missing_of_the_database(
    data: Path, is_there: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_broker(log_dirs=str(data)):
        # As a kill would leave it, without the changes in the write-ahead log.
        killed = (data / "trionet.sqlite").read_bytes()
    (data / ".kafka_cleanshutdown").unlink()
    (data / "trionet.sqlite").write_bytes(killed)
    if is_there:
        (data / "trionet.sqlite-wal").write_bytes(b"")
    async with open_broker(log_dirs=str(data)):
        pass

    what = "empty" if is_there else "missing"
    assert f"trionet.sqlite-wal is {what} after an unclean shutdown" in caplog.text


async def test_a_database_that_was_closed_before_the_logs_could_not_be_lacks_nothing(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    async with open_broker(log_dirs=str(data)):
        pass

    assert "may be lost" not in caplog.text
