"""A broker's start and stop, its data folder, and what it does to its logs in time."""

from __future__ import annotations

import gzip
import logging
import os
import random
import shutil
import stat
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

import trionet
from support.crash import power_cut, recording, write_tree
from support.jafka_wire import connect, entry, messages
from support.leaks import nothing_left_behind
from support.limits import descriptor_limit, file_size_limit
from trionet._util._wall_clock import now_ms
from trionet.errors import ConfigError, TrionetError
from trionet.jafka import open_jafka_broker
from trionet.jafka._codec import GZIP, encode_messages, encode_request
from trionet.jafka._config import JafkaConfig
from trionet.jafka._log import PartitionLog
from trionet.jafka._requests import (
    CreaterRequest,
    DeleterRequest,
    MultiFetchRequest,
    MultiProducerRequest,
    ProducerRequest,
)
from trionet.jafka._topics import CLEAN_STOP, Topics

HELLO = messages(b"hello")
SIZE = len(HELLO)
FIRST = f"{0:020}.jafka"


async def produce(path: Path, *payloads: bytes, **settings: object) -> None:
    """Start a broker on a folder, append messages one by one, and stop it."""
    async with open_jafka_broker(log_dir=path, **settings) as broker:
        with await connect(broker) as peer:
            for payload in payloads:
                await peer.produce(messages(payload))


async def test_a_broker_needs_nothing_and_leaves_nothing() -> None:
    with nothing_left_behind():
        async with trionet.open_jafka_broker() as broker:
            with await connect(broker) as peer:
                await peer.produce(HELLO)
                assert {("demo", 0): SIZE} == broker.ends()


async def test_data_survives_a_restart(tmp_path: Path) -> None:
    await produce(tmp_path, b"hello")
    await produce(tmp_path, b"world!")

    assert messages(b"hello", b"world!") == (tmp_path / "demo-0" / FIRST).read_bytes()


async def test_a_clean_stop_is_marked_and_the_mark_is_taken_away_by_the_start(
    tmp_path: Path,
) -> None:
    """6: a marker file lets the next start skip recovery; its name is the original's."""
    await produce(tmp_path, b"hello")
    marker = tmp_path / ".jafka_cleanshutdown"
    assert marker.exists()
    (tmp_path / "demo-0" / FIRST).write_bytes(HELLO[:-1])
    async with open_jafka_broker(log_dir=tmp_path) as broker:
        assert not marker.exists()
        assert {("demo", 0): SIZE - 1} == broker.ends()


async def test_without_the_mark_the_logs_are_checked(tmp_path: Path) -> None:
    """7: recovery truncates at the first entry that is not valid."""
    await produce(tmp_path, b"hello")
    (tmp_path / CLEAN_STOP).unlink()
    with (tmp_path / "demo-0" / FIRST).open("ab") as file:
        file.write(entry(b"x", crc=1))
    async with open_jafka_broker(log_dir=tmp_path) as broker:
        assert {("demo", 0): SIZE} == broker.ends()


async def test_a_cancelled_broker_is_not_marked(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        async with open_jafka_broker(log_dir=tmp_path) as broker:
            with await connect(broker) as peer:
                await peer.produce(HELLO)
            scope.cancel()
            await trio.lowlevel.checkpoint()

    assert not (tmp_path / CLEAN_STOP).exists()
    assert HELLO == (tmp_path / "demo-0" / FIRST).read_bytes()


async def test_an_error_of_the_user_is_raised_as_it_is_after_a_clean_stop(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        async with open_jafka_broker(log_dir=tmp_path):
            raise KeyError

    assert (tmp_path / CLEAN_STOP).exists()


async def test_a_folder_has_one_broker(tmp_path: Path) -> None:
    async with open_jafka_broker(log_dir=tmp_path):
        with pytest.raises(ConfigError, match="in use by another broker"):
            async with open_jafka_broker(log_dir=tmp_path):
                pass
    async with open_jafka_broker(log_dir=tmp_path):
        pass


@pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes")
async def test_only_the_owner_can_open_the_lock(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch(0o644)
    async with open_jafka_broker(log_dir=tmp_path):
        assert 0o600 == stat.S_IMODE((tmp_path / ".lock").stat().st_mode)


async def test_a_gap_in_a_log_is_an_error_at_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "demo-0"
    folder.mkdir()
    (folder / FIRST).write_bytes(HELLO)
    (folder / f"{99:020}.jafka").write_bytes(HELLO)
    with pytest.raises(TrionetError, match="restore what is between"):
        async with open_jafka_broker(log_dir=tmp_path):
            pass


async def test_partitions_come_from_the_folders(tmp_path: Path) -> None:
    """7: folders `<topic>-<partition>`; a name may contain `-` itself."""
    await produce(tmp_path, num_partitions=1)
    for name in ("a-b-2", "a-b-0", "other", "-1", "x-y", "demo-", "demo-07"):
        (tmp_path / name).mkdir()
    (tmp_path / "a-1").touch()
    async with open_jafka_broker(log_dir=tmp_path) as broker:
        assert {("a-b", 0), ("a-b", 2)} == set(broker.ends())
        with await connect(broker) as peer:
            assert 3 == await peer.create(0, "a-b")
            assert (0, b"") == await peer.fetch(topic="a-b", partition=1)


async def test_partition_counts_by_topic() -> None:
    """7: `topic.partition.count.map`."""
    async with open_jafka_broker(topic_partition_count_map="demo:3") as broker:
        with await connect(broker) as peer:
            assert [3, 1] == [await peer.create(0), await peer.create(0, "other")]


@pytest.mark.parametrize("topic", ["../out", "..", "a/../../out", "/tmp/out", "a\0b"])
async def test_no_name_leads_out_of_the_folder(tmp_path: Path, topic: str) -> None:
    """8.1: produce validates names as the other requests do, and closes."""
    data = tmp_path / "data"
    async with open_jafka_broker(log_dir=data) as broker:
        with await connect(broker) as peer:
            assert await peer.is_closed_by(ProducerRequest(topic, 0, HELLO))

    assert ["data"] == os.listdir(tmp_path)
    assert {".lock", CLEAN_STOP} == set(os.listdir(data))


TOO_LONG = "would have names of up to 256 bytes; allowed: 255"


@pytest.mark.parametrize(
    "request_",
    [
        *(CreaterRequest("a" * 254, count, 1) for count in (0, 1)),
        CreaterRequest("a" * 253, 11, 1),
        CreaterRequest("主" * 84 + "ab", 1, 1),
        ProducerRequest("a" * 254, 0, HELLO),
    ],
    ids=["0 partitions", "1 partition", "11 partitions", "bytes, not characters", "produce"],
)
async def test_a_topic_whose_folders_could_not_be_created_is_refused(
    request_: CreaterRequest | ProducerRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """7: 255 characters are legal, but not as the name of a folder; the broker goes on."""
    async with open_jafka_broker() as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            assert await peer.is_closed_by(request_)
            await other.produce(HELLO)

    assert TOO_LONG in caplog.text


@pytest.mark.parametrize(
    ("topic", "partitions"), [("a" * 253, 10), ("a" * 252, 11), ("主" * 84 + "a", 1)]
)
async def test_the_longest_names_of_folders_can_be_written(topic: str, partitions: int) -> None:
    async with open_jafka_broker() as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            assert partitions == await peer.create(partitions, topic)
            await peer.produce(HELLO, topic, partitions - 1)
            assert (0, HELLO) == await peer.fetch(topic=topic, partition=partitions - 1)
            more = 1001 if partitions == 11 else 101
            assert await other.is_closed_by(CreaterRequest(topic, more, 1))


async def test_a_setting_cannot_give_a_topic_folders_that_could_not_be_created(
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic = "a" * 253
    async with open_jafka_broker(topic_partition_count_map=f"{topic}:11") as broker:
        with await connect(broker) as peer:
            assert await peer.is_closed_by(ProducerRequest(topic, 0, HELLO))
        assert {} == broker.ends()

    assert TOO_LONG in caplog.text


RARELY = {"log.default.flush.scheduler.interval.ms": 3_600_000}


@asynccontextmanager
async def flushed_log(
    path: Path, settings: Mapping[str, object]
) -> AsyncIterator[tuple[PartitionLog, Callable[[int], None]]]:
    """A log that is flushed in time, and a function that appends so many messages as one set."""
    topics = Topics(JafkaConfig(settings), str(path))
    topics.load()
    log = await topics.log_of("demo", 0)

    def append(count: int) -> None:
        log.append([(HELLO, count)])
        topics.appended("demo", log)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(topics.flush_in_time)
        yield log, append
        nursery.cancel_scope.cancel()
    topics.close()


async def test_logs_are_flushed_by_count_and_in_time(tmp_path: Path) -> None:
    """7: `log.flush.interval` messages, or the interval of the scheduler."""
    settings = {"log.flush.interval": 3, "log.default.flush.scheduler.interval.ms": 1}
    async with flushed_log(tmp_path, settings) as (log, append):
        append(1)
        while log.unflushed:
            await trio.lowlevel.checkpoint()


async def test_enough_messages_are_flushed_without_waiting_for_the_time(tmp_path: Path) -> None:
    async with flushed_log(tmp_path, {"log.flush.interval": 3, **RARELY}) as (log, append):
        append(2)
        await trio.testing.wait_all_tasks_blocked()
        assert 2 == log.unflushed
        append(1)
        while log.unflushed:
            await trio.lowlevel.checkpoint()


async def test_a_flush_that_fails_ends_the_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing proves then what is on disk: the user's block is cancelled, and nothing is marked."""

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("trionet._util.files._log_file.sync_descriptor", fail)

    async def produce_for_ever() -> None:
        async with open_jafka_broker(log_dir=tmp_path, log_flush_interval=1) as broker:
            with await connect(broker) as peer:
                await peer.send(encode_request(ProducerRequest("demo", 0, HELLO)))
                await trio.sleep_forever()

    with pytest.raises(OSError, match="Input/output error"):
        await produce_for_ever()

    assert not (tmp_path / CLEAN_STOP).exists()


async def test_a_torn_end_is_not_marked_as_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an append left behind is removed at the stop, or the next start checks the log."""
    topics = Topics(JafkaConfig({}), str(tmp_path))
    topics.load()
    log = await topics.log_of("demo", 0)
    log.append([(HELLO, 1)])

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "ftruncate", refuse)
    with file_size_limit(SIZE + 5), pytest.raises(OSError, match="ends with a part of an append"):
        log.append([(HELLO, 1)])
    with pytest.raises(OSError, match="ends with a part of an append"):
        topics.close()

    assert not (tmp_path / CLEAN_STOP).exists()


async def test_a_delete_that_fails_leaves_what_it_did_not_delete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partitions before are gone, and those after it are as they were; it can be repeated."""

    def refuse(path: str) -> None:
        if path.endswith("demo-1"):
            raise OSError(16, "Device or resource busy")
        remove(path)

    remove = shutil.rmtree
    async with open_jafka_broker(log_dir=tmp_path / "data", num_partitions=3) as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            for partition in range(3):
                await peer.produce(HELLO, partition=partition)
            monkeypatch.setattr(shutil, "rmtree", refuse)
            assert await peer.is_closed_by(DeleterRequest("demo", None))
            monkeypatch.undo()

            found = [await other.fetch(partition=partition) for partition in range(3)]
            assert [(0, b""), (0, b""), (0, HELLO)] == found
            assert {("demo", 1): 0, ("demo", 2): SIZE} == broker.ends()
            await other.produce(HELLO, partition=0)
            assert (0, HELLO) == await other.fetch(partition=0)
            assert 3 == await other.delete()

    assert [] == list((tmp_path / "data").glob("demo-*"))


async def test_a_topic_whose_folders_were_removed_by_hand_can_be_deleted(tmp_path: Path) -> None:
    async with open_jafka_broker(log_dir=tmp_path) as broker:
        with await connect(broker) as peer:
            await peer.produce(HELLO)
            shutil.rmtree(tmp_path / "demo-0")
            assert 1 == await peer.delete()
            await peer.produce(HELLO)
            assert (0, HELLO) == await peer.fetch()


async def test_a_partition_that_a_failed_delete_leaves_unusable_is_not_served(
    tmp_path: Path,
) -> None:
    async with open_jafka_broker(log_dir=tmp_path) as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            await peer.produce(HELLO)
            segment = tmp_path / "demo-0" / FIRST
            segment.unlink()
            segment.mkdir()

            assert await peer.is_closed_by(DeleterRequest("demo", None))
            assert (0, b"") == await other.fetch()
            assert await other.is_closed_by(ProducerRequest("demo", 0, HELLO))


async def with_segments(path: Path, **settings: object) -> Topics:
    """Topics of three segments of one entry each, and an empty one."""
    topics = Topics(JafkaConfig({"log.file.size": 6, **settings}), str(path))
    topics.load()
    log = await topics.log_of("demo", 0)
    for _ in range(3):
        log.append([(HELLO, 1)])
        await log.flush()
    return topics


@pytest.mark.parametrize(
    ("settings", "hours", "start"),
    [
        ({}, 167, 0),
        ({}, 169, 2),
        ({"log.retention.hours": 1}, 0, 0),
        ({"log.retention.hours": 1}, 2, 2),
        ({"topic.log.retention.hours": "demo:1"}, 2, 2),
        ({"topic.log.retention.hours": "other:1"}, 2, 0),
        ({"log.retention.size": 3 * SIZE}, 0, 0),
        ({"log.retention.size": 2 * SIZE}, 0, 1),
        ({"log.retention.size": 2 * SIZE - 1}, 0, 1),
        ({"log.retention.size": SIZE}, 0, 2),
    ],
    ids=str,
)
async def test_retention(
    tmp_path: Path, settings: dict[str, object], hours: float, start: int
) -> None:
    """7: by hours since a segment was modified, for two of three here; or by the size of a log."""
    topics = await with_segments(tmp_path, **settings)
    log = topics.logs["demo"][0]
    now = 10**9
    for segment in log.segments[:2]:
        os.utime(segment.path, (now, now))
    for segment in log.segments[2:]:
        os.utime(segment.path, (now + 10**7, now + 10**7))
    await topics.remove_old(int((now + hours * 3600) * 1000))

    assert (start * SIZE, 3 * SIZE) == (log.start, log.end)
    assert 4 - start == len(list((tmp_path / "demo-0").iterdir()))
    topics.close()


async def test_the_position_of_the_end_is_on_disk_before_the_last_segment_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else, a power failure could leave a log that begins at 0 again."""
    topics = Topics(JafkaConfig({"log.retention.size": 0}), str(tmp_path))
    topics.load()
    log = await topics.log_of("demo", 0)
    log.append([(HELLO, 1)])
    await log.flush()
    found: list[set[str]] = []

    def sync(path: str) -> None:
        found.append(set(os.listdir(path)))

    monkeypatch.setattr("trionet.jafka._log.sync_folder", sync)
    await topics.remove_old(0)
    monkeypatch.undo()

    assert {FIRST, f"{SIZE:020}.jafka"} == found[0]
    assert [f"{SIZE:020}.jafka"] == os.listdir(tmp_path / "demo-0")
    topics.close()


@pytest.mark.parametrize("removes_topic", [False, True], ids=["retention", "deletion"])
async def test_a_power_failure_leaves_no_gap_among_the_segments(
    tmp_path: Path, *, removes_topic: bool
) -> None:
    """Else, the broker would not start again."""
    (tmp_path / "data").mkdir()
    topics = await with_segments(tmp_path / "data", **{"log.retention.size": 0})
    with recording(tmp_path / "data") as recorder:
        if removes_topic:
            await topics.delete("demo")
        else:
            await topics.remove_old(0)
    topics.release()
    rng = random.Random(1)
    for until in range(len(recorder.operations) + 1):
        for number in range(10):
            left = tmp_path / f"{until}-{number}"
            write_tree(left, power_cut(recorder, until, rng))
            again = Topics(JafkaConfig({}), str(left))
            again.load()
            again.release()


async def test_what_retention_cannot_remove_stays_until_it_can_be_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topics = await with_segments(tmp_path, **{"log.retention.size": 0})
    log = topics.logs["demo"][0]
    for segment in log.segments[:2]:
        os.unlink(segment.path)
    os.mkdir(log.segments[1].path)
    await topics.remove_old(0)
    assert "cannot remove a segment: " in caplog.text
    assert SIZE == log.start  # the first was removed by hand, which is as good

    os.rmdir(log.segments[0].path)
    await topics.remove_old(0)
    assert [f"{3 * SIZE:020}.jafka"] == os.listdir(tmp_path / "demo-0")
    assert (3 * SIZE, 3 * SIZE) == (log.start, log.end)
    topics.close()


async def test_settings_without_effect_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with open_jafka_broker({"brokerid": 1, "http.port": 0}):
        pass

    assert 1 == caplog.text.count("settings without effect: brokerid, http.port")


async def test_its_metrics_are_those_of_a_broker() -> None:
    """The dashboard reads connections, requests, topics and bytes from the metrics listener."""
    async with open_jafka_broker(metrics_listener="http://127.0.0.1:0") as broker:
        assert broker.metrics_url is not None
        with await connect(broker) as peer:
            await peer.produce(HELLO)
            assert (3, b"") == await peer.fetch(partition=7)
            page = await http_get(broker.metrics_url, "/metrics")
            rows = await http_get(broker.metrics_url, "/snapshot")

    for line in (
        "kafka_controller_kafkacontroller_globaltopiccount 1",
        "kafka_controller_kafkacontroller_globalpartitioncount 1",
        f"trionet_log_bytes {SIZE}",
        f'trionet_jafka_log_bytes{{topic="demo",partition="0"}} {SIZE}',
    ):
        assert line in page
    assert '"name":"ProducerRequest"' in rows
    assert f"127.0.0.1:{peer_port(rows)}" in rows


def peer_port(rows: str) -> str:
    return rows.partition('"peer":"127.0.0.1:')[2].partition('"')[0]


async def http_get(url: str, path: str) -> str:
    host, _, port = url.removeprefix("http://").rpartition(":")
    async with await trio.open_tcp_stream(host, int(port)) as stream:
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", "Connection: close", "", ""]
        await stream.send_all("\r\n".join(lines).encode())
        return b"".join([data async for data in stream]).decode()


@pytest.mark.parametrize(
    "url",
    [
        "http://0.0.0.0:1",
        "https://127.0.0.1:1",
        "127.0.0.1:1",
        "http://127.0.0.1",
        "http://127.0.0.1:65536",
    ],
)
async def test_metrics_are_for_this_machine(url: str) -> None:
    with pytest.raises(ConfigError, match=r"allowed: http://127\.0\.0\.1:PORT"):
        async with open_jafka_broker(metrics_listener=url):
            pass


async def test_logs_leave_descriptors_for_connections(caplog: pytest.LogCaptureFixture) -> None:
    """A client may ask for any number of partitions: it is closed, and the topic stays usable."""
    async with open_jafka_broker() as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            await other.produce(HELLO)
            with descriptor_limit(50):
                assert await peer.is_closed_by(CreaterRequest("demo", 10_000, 1))
            assert 1 == await other.create(0)
            await other.produce(HELLO)
            assert (0, HELLO + HELLO) == await other.fetch()

    assert "raise the limit (ulimit -n)" in caplog.text


async def test_a_configured_number_of_partitions_leaves_descriptors_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_jafka_broker(topic_partition_count_map="many:100") as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            await other.produce(HELLO)
            with descriptor_limit(50):
                assert await peer.is_closed_by(ProducerRequest("many", 0, HELLO))
            await other.produce(HELLO)

    assert "raise the limit (ulimit -n)" in caplog.text


async def test_settings_may_give_a_topic_more_partitions_than_a_client_may() -> None:
    async with open_jafka_broker(num_partitions=10_001) as broker:
        with await connect(broker) as peer:
            assert [10_001] * 2 == [await peer.create(count) for count in (0, 10_001)]
            assert await peer.is_closed_by(CreaterRequest("demo", 10_002, 1))


async def test_a_segment_is_flushed_when_it_is_followed_by_another(tmp_path: Path) -> None:
    """The next append need not wait then for the disk."""
    async with flushed_log(tmp_path, {"log.file.size": 6, **RARELY}) as (log, append):
        append(1)
        assert 2 == len(log.segments)
        while log.needs_flush:
            await trio.lowlevel.checkpoint()


async def test_a_topic_may_be_deleted_and_created_again_during_retention(tmp_path: Path) -> None:
    names = [f"a-0/{number * SIZE:020}.jafka" for number in range(200)] + [f"b-0/{FIRST}"]
    for each in names:
        (tmp_path / each).parent.mkdir(exist_ok=True)
        (tmp_path / each).write_bytes(HELLO)
        os.utime(tmp_path / each, (1, 1))
    topics = Topics(JafkaConfig({}), str(tmp_path))
    topics.load()

    async def replace() -> None:
        await topics.delete("b")
        (await topics.log_of("b", 0)).append([(HELLO * 2, 2)])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(topics.remove_old, now_ms())
        nursery.start_soon(replace)
    topics.close()

    assert HELLO * 2 == (tmp_path / "b-0" / FIRST).read_bytes()
    assert [f"{200 * SIZE:020}.jafka"] == os.listdir(tmp_path / "a-0")


async def test_a_partition_that_cannot_be_appended_to_does_not_affect_the_others(
    tmp_path: Path,
) -> None:
    """The connection is closed; what is for other partitions is appended, as if it came alone."""
    parts = [ProducerRequest("demo", partition, HELLO) for partition in (0, 1, 0, 2)]
    async with open_jafka_broker(log_dir=tmp_path, num_partitions=3) as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            await other.produce(HELLO * 9, partition=0)
            with file_size_limit(10 * SIZE + 5):
                assert await peer.is_closed_by(MultiProducerRequest(tuple(parts)))
            found = [(await other.fetch(partition=partition))[1] for partition in range(3)]

    assert [HELLO * 9, HELLO, HELLO] == found


async def test_checking_a_compressed_set_is_cancelled_with_the_broker(tmp_path: Path) -> None:
    """A few kilobytes hold millions of messages; none is appended, and no thread goes on."""
    many = entry(gzip.compress(messages(b"") * 5_000_000, 1), attributes=1)
    with nothing_left_behind(), trio.CancelScope() as scope:
        async with open_jafka_broker(log_dir=tmp_path) as broker:
            with await connect(broker) as peer, await connect(broker) as other:
                await peer.send(encode_request(ProducerRequest("demo", 0, many)))
                while not broker.ends():
                    await trio.lowlevel.checkpoint()
                assert (0, b"") == await other.fetch()  # which is answered while it is checked
                scope.cancel()
                await trio.lowlevel.checkpoint()

    assert scope.cancelled_caught
    assert b"" == (tmp_path / "demo-0" / FIRST).read_bytes()


async def test_a_message_is_never_appended_to_a_log_that_is_gone(tmp_path: Path) -> None:
    """Else, it would begin a segment in the folder of the topic that was created since."""
    slow = encode_messages([bytes(1000)] * 5000, GZIP)
    async with open_jafka_broker(log_dir=tmp_path, log_file_size=SIZE) as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            await other.produce(HELLO)
            await peer.send(encode_request(ProducerRequest("demo", 0, slow)))
            assert 1 == await other.delete()
            await other.produce(HELLO)
            await peer.ask(MultiFetchRequest(()))
            ends = broker.ends()
    async with open_jafka_broker(log_dir=tmp_path) as broker:
        assert ends == broker.ends()


async def test_a_topic_that_cannot_be_created_leaves_nothing(tmp_path: Path) -> None:
    """Else, each of them would take descriptors from the next start."""
    topics = Topics(JafkaConfig({"num.partitions": 3}), str(tmp_path))
    topics.load()
    with descriptor_limit(2), pytest.raises(OSError, match="file descriptors"):
        await topics.log_of("demo", 0)
    assert [".lock"] == os.listdir(tmp_path)
    topics.close()
