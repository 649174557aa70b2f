from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from support.brokers import broker_and_client, log_of
from support.calls import append, batch, create_topic, produce
from support.small_disk import small_disk
from trionet import open_broker
from trionet.protocol import error_codes

RECOVERY_POINTS = "recovery-point-offset-checkpoint"


@pytest.fixture
def clock() -> MockClock:
    """Virtual time, which jumps when nothing has happened for a moment: threads may be at work."""
    return MockClock(autojump_threshold=0.001)


def checkpointing(path: Path, interval_ms: int) -> dict[str, object]:
    return {"log.dirs": str(path), "log.flush.offset.checkpoint.interval.ms": interval_ms}


async def until(is_so: Callable[[], bool]) -> None:
    """Let virtual time pass until something is so; fail if it never is."""
    for _ in range(10_000):
        if is_so():
            return
        await trio.sleep(1)
    raise AssertionError("it never came to pass")


async def test_records_are_on_the_disk_when_flush_ms_has_passed(
    clock: MockClock, tmp_path: Path
) -> None:
    async with broker_and_client(log_dirs=str(tmp_path)) as (broker, client):
        await create_topic(client, "t", flush_ms=0)
        await create_topic(client, "other")
        await append(client, b"a", b"b")
        await append(client, b"a", topic="other")

        await until(lambda: log_of(broker).recovery_point == 2)

        assert 0 == log_of(broker, "other").recovery_point


async def test_rolled_segments_are_on_the_disk_soon(clock: MockClock, tmp_path: Path) -> None:
    async with broker_and_client(log_dirs=str(tmp_path)) as (broker, client):
        await create_topic(client, "t", internal_segment_bytes=100)
        await append(client, b"a", b"b", b"c")

        await until(lambda: log_of(broker).recovery_point >= 2)


async def test_that_they_are_is_written_down_at_once(clock: MockClock, tmp_path: Path) -> None:
    """A start after a crash scans from the recovery point that is in the file."""
    settings = {
        "log.dirs": str(tmp_path),
        "log.flush.offset.checkpoint.interval.ms": 2**31 - 1,
        "log.initial.task.delay.ms": 2**31 - 1,
    }
    async with broker_and_client(settings) as (_, client):
        await create_topic(client, "t", internal_segment_bytes=100)
        await append(client, b"a", b"b", b"c")

        path = tmp_path / RECOVERY_POINTS
        await until(lambda: "t 0 3" in path.read_text().splitlines())


async def test_logs_that_nothing_is_to_be_done_for_are_not_looked_at_again(
    clock: MockClock, tmp_path: Path
) -> None:
    async with broker_and_client(log_dirs=str(tmp_path)) as (broker, client):
        await create_topic(client, "t", flush_ms=0)
        await append(client, b"a")
        assert [log_of(broker)] == list(broker._state.unflushed)

        await until(lambda: not broker._state.unflushed)

        assert 1 == log_of(broker).recovery_point


@pytest.mark.parametrize("where", ["memory", "disk"])
async def test_retention_removes_old_segments_and_says_so(
    clock: MockClock, tmp_path: Path, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "trionet.broker")
    settings: dict[str, object] = {"log.retention.check.interval.ms": 1000}
    if where == "disk":
        settings["log.dirs"] = str(tmp_path)
    async with broker_and_client(settings) as (broker, client):
        await create_topic(
            client, "t", internal_segment_bytes=100, retention_bytes=300, retention_ms=-1
        )
        await append(client, *[b"x" * 20] * 10)
        log = log_of(broker)

        await until(lambda: "t-0: retention moved the start offset from 0 to " in caplog.text)

        assert 0 < log.start_offset < 10
        assert log.size <= 400


async def test_retention_removes_what_is_older_than_a_week(clock: MockClock) -> None:
    async with broker_and_client(log_retention_check_interval_ms=1000) as (broker, client):
        await create_topic(client, "t")
        await append(client, b"of 2023", b"of 2023 too")

        await until(lambda: log_of(broker).start_offset == 2)


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({}, 30),
        ({"log.initial.task.delay.ms": 5000}, 5),
        ({"log.retention.check.interval.ms": 2000}, 2),
    ],
)
async def test_old_segments_are_looked_for_soon_after_the_start(
    clock: MockClock, settings: dict[str, object], seconds: float
) -> None:
    async with broker_and_client(settings) as (broker, client):
        started = trio.current_time()
        await create_topic(client, "t")
        await append(client, b"of 2023")

        await until(lambda: log_of(broker).start_offset == 1)

        # Virtual time goes on by itself while threads are at work, by little.
        assert seconds - 1 <= trio.current_time() - started <= seconds + 10


async def test_one_unreadable_log_stops_the_retention_of_no_other(
    clock: MockClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Or the disk would fill, round after round."""
    topics = ("before", "it", "then")
    never = {"log.dirs": str(tmp_path), "log.retention.check.interval.ms": 2**31 - 1}
    never["log.initial.task.delay.ms"] = 2**31 - 1
    async with broker_and_client(never) as (broker, client):
        for topic in topics:
            await create_topic(client, topic, internal_segment_bytes=100)
            await append(client, b"a", b"b", b"of 2023", topic=topic)
    async with open_broker(log_dirs=str(tmp_path), log_initial_task_delay_ms=5000) as broker:
        for path in (tmp_path / "it-0").glob("0" * 20 + ".*"):
            path.unlink()

        await until(lambda: log_of(broker, "before").start_offset == 3)
        await until(lambda: log_of(broker, "then").start_offset == 3)

    assert "it-0: retention: " in caplog.text


async def test_retention_that_fails_does_not_say_that_it_moved_anything(
    clock: MockClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "trionet.broker")
    settings: dict[str, object] = {
        "log.dirs": str(tmp_path / "data"),
        "log.retention.check.interval.ms": 1000,
    }
    async with broker_and_client(settings) as (_, client):
        await create_topic(client, "t")
        await append(client, b"of 2023")
        # Without its folder no new segment can be made, and the active one has to stay.
        (tmp_path / "data" / "t-0").rename(tmp_path / "elsewhere")

        await until(lambda: "t-0: cannot create a new segment" in caplog.text)
        (tmp_path / "elsewhere").rename(tmp_path / "data" / "t-0")
        assert "moved the start offset" not in caplog.text

        await until(lambda: "t-0: retention moved the start offset from 0 to 1" in caplog.text)


async def test_idle_producers_are_forgotten(clock: MockClock) -> None:
    settings: dict[str, object] = {
        "producer.id.expiration.ms": 1000,
        "producer.id.expiration.check.interval.ms": 1000,
    }
    async with broker_and_client(settings) as (_, client):
        await create_topic(client, "t")
        first = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0)
        ninth = batch(b"b", producer_id=1, producer_epoch=0, base_sequence=9)
        await produce(client, "t", first)
        refused = await produce(client, "t", ninth)

        await trio.sleep(1.5)
        accepted = await produce(client, "t", ninth)

    assert error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER == refused.error_code
    assert error_codes.NONE == accepted.error_code


async def test_checkpoints_are_written_at_their_interval(clock: MockClock, tmp_path: Path) -> None:
    settings = checkpointing(tmp_path, 2000)
    async with broker_and_client(settings) as (_, client):
        await create_topic(client, "t", flush_messages=1)
        await append(client, b"a", b"b", b"c")
        path = tmp_path / RECOVERY_POINTS

        await until(lambda: "t 0 3" in path.read_text().splitlines())


async def test_an_interval_of_0_is_never(clock: MockClock, tmp_path: Path) -> None:
    settings = checkpointing(tmp_path, 0)
    async with broker_and_client(settings) as (broker, client):
        await create_topic(client, "t", flush_messages=1)
        await append(client, b"a")
        before = (tmp_path / RECOVERY_POINTS).read_text()
        passes = broker.statistics().loop.passes

        await trio.sleep(600)

        assert before == (tmp_path / RECOVERY_POINTS).read_text()
        assert broker.statistics().loop.passes - passes < 5000


async def test_a_failed_round_is_logged_and_the_next_one_comes(
    clock: MockClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = checkpointing(tmp_path, 1000)
    path = tmp_path / RECOVERY_POINTS
    draft = path.with_name(path.name + ".tmp")
    async with broker_and_client(settings) as (broker, client):
        await create_topic(client, "t", flush_messages=1)
        await append(client, b"a")
        async with broker._cluster.folder._checkpointing._writing:  # or it is just being used
            draft.unlink()
            draft.mkdir()
        await until(lambda: "background task failed: " in caplog.text)
        assert str(draft) in caplog.text

        draft.rmdir()
        await until(lambda: "t 0 1" in path.read_text().splitlines())


async def test_checkpoints_are_written_on_a_full_disk(clock: MockClock, tmp_path: Path) -> None:
    settings = checkpointing(tmp_path, 1000)
    path = tmp_path / RECOVERY_POINTS
    with small_disk(tmp_path, 4 * 1024 * 1024) as disk:
        async with broker_and_client(settings) as (_, client):
            await create_topic(client, "t", flush_messages=1)
            await append(client, b"a")
            disk.fill()
            await until(lambda: "t 0 1" in path.read_text().splitlines())
            disk.give_back()


WITHOUT_DESCRIPTORS = """
import os, resource
from contextlib import suppress
import trio
from trio.testing import MockClock
from trionet import open_broker

async def main():
    async with open_broker():
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (os.dup(0) + 10, limits[1]))
        with suppress(OSError):
            while True:
                os.dup(0)
        await trio.sleep(60)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        print("it runs")

trio.run(main, clock=MockClock(autojump_threshold=0))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors have no limit")
async def test_a_broker_goes_on_without_descriptors_to_load_codecs() -> None:
    command = [sys.executable, "-c", WITHOUT_DESCRIPTORS]

    done = await trio.run_process(command, capture_stdout=True, capture_stderr=True)

    assert b"it runs\n" == done.stdout
    assert b"codecs cannot be loaded before they are needed: " in done.stderr


async def test_an_idle_broker_in_memory_hardly_wakes_up(clock: MockClock) -> None:
    async with open_broker() as broker:
        await trio.sleep(60)
        passes = broker.statistics().loop.passes

        await trio.sleep(3600)

        # Transactions are looked for that have reached their timeout, every ten seconds.
        assert broker.statistics().loop.passes - passes < 1500
