"""A broker under test in a trio program: the same words, some of them awaited."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import trio

import trionet
from support.calls import batch, produce_request
from trionet import ApiError, LocalProtocolError
from trionet.protocol.messages.metadata import MetadataRequest
from trionet.testing import BrokerControl, ThreadedBroker, control, open_raw_peer
from trionet.testing.brokers._controls import Controls


async def test_topics_are_made_filled_and_deleted(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"topic": "t", "value": "b"}\n', "utf-8")
    async with trionet.open_broker() as broker:
        kit = control(broker)

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


async def test_a_wait_ends_with_its_cancel_scope(autojump_clock: trio.testing.MockClock) -> None:
    async with trionet.open_broker() as broker:
        kit = control(broker)

        with trio.move_on_after(5) as scope:
            await kit.wait_for_records("t")

        assert scope.cancelled_caught


async def test_every_coroutine_is_a_checkpoint() -> None:
    async with trionet.open_broker() as broker:
        kit = control(broker)
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
