"""A broker under test in a trio program: the same words, some of them awaited.

Waits of a test: woken by what they wait for, and by nothing on a clock.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

import trionet
from support.calls import batch, produce_request
from support.transactional import end, identity, initialize, produce_in
from trionet import ApiError, LocalProtocolError
from trionet.broker.log import Log
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from trionet.testing import (
    BrokerControl,
    MemoryNetwork,
    Record,
    ThreadedBroker,
    control,
    open_raw_peer,
    run_virtual,
)
from trionet.testing._controls import Controls
from trionet.testing._records import records_in


@pytest.fixture
async def kit() -> AsyncIterator[BrokerControl]:
    async with trionet.open_broker() as broker:
        yield control(broker)


async def test_topics_are_made_filled_and_deleted(tmp_path: Path, kit: BrokerControl) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"topic": "t", "value": "b"}\n', "utf-8")
    await kit.create_topic("t", 2, retention_ms=1000)
    await kit.seed("t", [{"partition": 1, "value": "a", "timestamp": 1}])
    await kit.load(file)
    both = kit.values("t")
    await kit.apply_retention()
    one = kit.values("t")
    await kit.delete_topic("t")

    assert [b"b", b"a"] == both
    assert [b"b"] == one
    assert {} == kit.topics()
    with pytest.raises(ApiError, match="topic t does not exist"):
        await kit.delete_topic("t")


async def test_what_is_waited_for_comes(autojump_clock: trio.testing.MockClock) -> None:
    async with (
        trionet.open_broker() as broker,
        open_raw_peer(broker.bootstrap_servers) as peer,
        trio.open_nursery() as nursery,
    ):
        kit = control(broker)
        await kit.create_topic("t")

        async def produce() -> None:
            await trio.sleep(1)
            await peer.call(produce_request("t", batch(b"a", b"b")), 12)

        nursery.start_soon(produce)
        records = await kit.wait_for_records("t", 2)
        [request] = await kit.wait_for_requests("Produce", topic="t")

        assert [b"a", b"b"] == [record.value for record in records]
        assert (("t", 0),) == request.topics


async def test_a_wait_ends_with_its_cancel_scope(
    autojump_clock: trio.testing.MockClock, kit: BrokerControl
) -> None:
    with trio.move_on_after(5) as scope:
        await kit.wait_for_records("t")

    assert scope.cancelled_caught


async def test_every_coroutine_is_a_checkpoint(kit: BrokerControl) -> None:
    await kit.create_topic("t")
    await kit.seed("t", ["a"])

    with trio.testing.assert_checkpoints():
        await kit.wait_for_records("t")
    with trio.testing.assert_checkpoints():
        await kit.apply_retention()
    with trio.testing.assert_checkpoints():
        await kit.seed("t", ["b"])


async def test_a_broker_with_calls_that_are_held_stops_at_once() -> None:
    async with trio.open_nursery() as nursery:
        async with trionet.open_broker() as broker:
            kit = control(broker)
            fault = kit.faults.hold("Metadata")
            answered = trio.Event()
            connected = trio.Event()

            async def ask() -> None:
                async with open_raw_peer(broker.bootstrap_servers) as peer:
                    await peer.send(MetadataRequest(topics=[]), 12)
                    connected.set()
                    await peer.receive()
                    answered.set()

            nursery.start_soon(ask)
            await kit.wait_for_requests("Metadata")
            assert not answered.is_set()

        assert 1 == fault.hits
        await answered.wait()


async def test_a_broker_is_taken_under_test_once() -> None:
    async with trionet.open_broker() as broker:
        control(broker)

        with pytest.raises(LocalProtocolError, match="already under control"):
            control(broker)


def test_both_kinds_of_program_use_the_same_words() -> None:
    def words(cls: type[Controls]) -> dict[str, list[str]]:
        return {
            name: [each for each in inspect.signature(value).parameters if each != "seconds"]
            for name, value in vars(cls).items()
            if inspect.isfunction(value) and not name.startswith("_")
        }

    in_trio, elsewhere = words(BrokerControl), words(ThreadedBroker)

    assert in_trio == {name: elsewhere[name] for name in in_trio}
    of_the_broker = {name for name in elsewhere if hasattr(trionet.Broker, name)}
    assert {"client_config"} == elsewhere.keys() - in_trio.keys() - of_the_broker


METADATA = MetadataRequest(topics=[])
MINUTE = 60.0


class CountingInstrument(trio.abc.Instrument):
    """Counts the passes of the loop."""

    passes = 0

    def before_io_wait(self, timeout: float) -> None:
        self.passes += 1


@pytest.mark.parametrize(
    "wait",
    [
        lambda kit: kit.wait_for_records("t", 1),
        lambda kit: kit.wait_for_requests("Fetch"),
        lambda kit: kit.wait_for_group("g"),
        lambda kit: kit.wait_for_offset("g", "t", 1),
        lambda kit: kit.wait_for_transaction("x", "Ongoing"),
    ],
    ids=["records", "requests", "group", "offset", "transaction"],
)
def test_a_minute_of_waiting_is_no_work(wait: object) -> None:
    counting = CountingInstrument()

    async def main(network: MemoryNetwork) -> None:
        async with trionet.open_broker(network=network) as broker:
            kit = control(broker)
            await kit.create_topic("t")
            trio.lowlevel.add_instrument(counting)
            with trio.move_on_after(MINUTE):
                await wait(kit)  # type: ignore[operator]
            trio.lowlevel.remove_instrument(counting)

    run_virtual(main)

    assert counting.passes < 1_000  # those of the broker's own timers


async def test_records_are_not_decoded_until_there_may_be_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded = []

    def decode(log: Log) -> list[Record]:
        decoded.append(log)
        return records_in(log)

    monkeypatch.setattr("trionet.testing._conditions.records_in", decode)
    async with (
        trionet.open_broker() as broker,
        open_raw_peer(broker.bootstrap_servers) as peer,
        trio.open_nursery() as nursery,
    ):
        kit = control(broker)
        await kit.create_topic("t", 1)

        async def produce() -> None:
            for value in (b"a", b"b", b"c"):
                await peer.call(produce_request("t", batch(value)), 12)
                await peer.call(METADATA, 12)

        nursery.start_soon(produce)
        records = await kit.wait_for_records("t", 3)

        assert [b"a", b"b", b"c"] == [record.value for record in records]
        assert 1 == len(decoded)


async def test_requests_that_are_forgotten_do_not_count_any_more() -> None:
    async with (
        trionet.open_broker() as broker,
        open_raw_peer(broker.bootstrap_servers) as peer,
        trio.open_nursery() as nursery,
    ):
        kit = control(broker)
        await peer.call(METADATA, 12)
        found = []

        async def wait() -> None:
            found.extend(await kit.wait_for_requests("Metadata", 2))

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        kit.forget_requests()
        await peer.call(METADATA, 12)
        await trio.testing.wait_all_tasks_blocked()
        assert [] == found
        await peer.call(METADATA, 12)
        await trio.testing.wait_all_tasks_blocked()

        assert 2 == len(found)


async def commit(kit: BrokerControl) -> None:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    async with open_raw_peer(kit.broker.bootstrap_servers) as peer:
        await peer.call(OffsetCommitRequest(group_id="g", topics=[topic]), 7)


async def seed(kit: BrokerControl) -> None:
    await kit.seed("t", ["a"])


async def transact(kit: BrokerControl) -> None:
    async with open_raw_peer(kit.broker.bootstrap_servers) as peer:
        producer = identity(await peer.call(*initialize("x")))
        await peer.call(*produce_in("x", producer, "t", b"a"))
        await peer.call(*end("x", producer))


@pytest.mark.parametrize(
    ("wait", "do"),
    [
        (lambda kit: kit.wait_for_transaction("x", "CompleteCommit"), transact),
        (lambda kit: kit.wait_for_records("t", 1), seed),
        (lambda kit: kit.wait_for_offset("g", "t", 1), commit),
        (lambda kit: kit.wait_for_group("g", "Empty"), commit),
    ],
    ids=["transaction", "seed", "offset", "group"],
)
async def test_a_wait_is_woken_by_what_it_is_for(
    autojump_clock: trio.testing.MockClock, wait: object, do: object
) -> None:
    async with trionet.open_broker() as broker, trio.open_nursery() as nursery:
        kit = control(broker)
        await kit.create_topic("t")
        nursery.start_soon(do, kit)  # type: ignore[arg-type]
        with trio.fail_after(60):
            await wait(kit)  # type: ignore[operator]


def test_a_file_is_loaded_in_virtual_time_without_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"topic": "t", "value": "a"}\n', "utf-8")

    def no_thread(*_: object) -> None:
        raise AssertionError("a thread takes part")

    async def main(network: MemoryNetwork) -> None:
        async with trionet.open_broker(network=network) as broker:
            kit = control(broker)
            monkeypatch.setattr(trio.to_thread, "run_sync", no_thread)
            await kit.load(file)
            assert [b"a"] == kit.values("t")

    run_virtual(main)
