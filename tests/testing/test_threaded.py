"""A broker of several nodes in a thread, and what tests see and do of all of them."""

from __future__ import annotations

import logging
import re
import signal
import socket
import threading
from collections import UserDict
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

import trionet
from support.brokers import log_of
from support.calls import (
    batch,
    fetch_request,
    only_partition,
    produce_request,
    values_of,
)
from support.client import BlockingClient
from support.leaks import nothing_left_behind
from trionet import ConfigError
from trionet.protocol import error_codes
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from trionet.testing import ThreadedBroker

FOREVER_MS = 2**31 - 1


def produce(client: BlockingClient, *values: bytes) -> None:
    """Append to topic t, which is made where it is missing."""
    client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    [answer] = client.call(produce_request("t", batch(*values)), 9).responses
    assert 0 == answer.partition_responses[0].error_code


def read(client: BlockingClient, offset: int = 0, max_wait_ms: int = 0) -> list[bytes | None]:
    request = fetch_request({"t": {0: offset}}, max_wait_ms=max_wait_ms)
    return values_of(only_partition(client.call(request, 12)))


@pytest.fixture
def broker(trionet_broker: ThreadedBroker) -> ThreadedBroker:
    return trionet_broker


@pytest.fixture
def client(broker: ThreadedBroker) -> Iterator[BlockingClient]:
    with BlockingClient(broker.bootstrap_servers) as connected:
        yield connected


def test_a_synchronous_program_uses_a_broker(
    broker: ThreadedBroker, client: BlockingClient
) -> None:
    produce(client, b"a", b"b")

    assert [b"a", b"b"] == read(client)


def test_a_client_that_blocks_for_ever_does_not_block_the_broker() -> None:
    received: list[list[bytes | None]] = []

    def consume(address: str) -> None:
        with BlockingClient(address) as client:
            received.append(read(client, max_wait_ms=FOREVER_MS))

    with (
        trionet.testing.broker() as broker,
        BlockingClient(broker.bootstrap_servers) as producer,
    ):
        producer.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        consumer = threading.Thread(target=consume, args=[broker.bootstrap_servers])
        consumer.start()

        produce(producer, b"a")
        consumer.join()

    assert [[b"a"]] == received


def test_it_has_an_address_a_cluster_and_statistics(
    broker: ThreadedBroker, client: BlockingClient
) -> None:
    produce(client, b"a")

    assert re.fullmatch(r"127\.0\.0\.1:\d+", broker.bootstrap_servers)
    assert re.fullmatch(r"[\w-]{22}", broker.cluster_id)
    assert {"Metadata": 1, "Produce": 1} == broker.statistics().calls
    assert f"<ThreadedBroker at {broker.bootstrap_servers}>" == repr(broker)


def test_settings_are_those_of_open_broker(tmp_path: Path) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])

    with (
        trionet.testing.broker({"num.partitions": 9}, num_partitions=3) as broker,
        BlockingClient(broker.bootstrap_servers) as client,
    ):
        [topic] = client.call(request, 9).topics

    assert 3 == len(topic.partitions)


def test_records_in_a_folder_are_there_for_the_next_broker(tmp_path: Path) -> None:
    with (
        trionet.testing.broker(log_dirs=str(tmp_path)) as broker,
        BlockingClient(broker.bootstrap_servers) as client,
    ):
        produce(client, b"a")

    with (
        trionet.testing.broker(log_dirs=str(tmp_path)) as broker,
        BlockingClient(broker.bootstrap_servers) as client,
    ):
        assert [b"a"] == read(client)


def test_several_brokers_are_strangers_to_each_other() -> None:
    with (
        trionet.testing.broker() as one,
        trionet.testing.broker() as other,
        BlockingClient(one.bootstrap_servers) as client,
        BlockingClient(other.bootstrap_servers) as stranger,
    ):
        produce(client, b"a")

        assert one.cluster_id != other.cluster_id
        assert [] == stranger.call(MetadataRequest(topics=None), 9).topics


def test_a_wrong_setting_is_raised_where_the_broker_was_asked_for() -> None:
    with (
        nothing_left_behind(),
        pytest.raises(ConfigError, match=r"closest.*num\.partitions"),
        trionet.testing.broker(num_partition=3),
    ):
        pass


def test_an_address_in_use_is_raised_there_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        with (
            nothing_left_behind(),
            pytest.raises(OSError, match="cannot listen on"),
            trionet.testing.broker(listeners=listener),
        ):
            pass


class InterruptingSettings(UserDict[str, object]):
    """Settings that press Ctrl-C, in the thread that tests run in, when they are read."""

    def __iter__(self) -> Iterator[str]:
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
        return super().__iter__()


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_ctrl_c_ends_a_broker_that_starts(tmp_path: Path, where: str) -> None:
    settings = InterruptingSettings({"num.partitions": 3})
    if where == "disk":
        settings["log.dirs"] = str(tmp_path)

    with (
        nothing_left_behind(),
        pytest.raises(KeyboardInterrupt),
        trionet.testing.broker(settings),
    ):
        raise AssertionError("the block has begun")


def test_an_error_of_the_block_comes_out_as_it_is() -> None:
    error = LookupError("mine")

    with (
        nothing_left_behind(),
        pytest.raises(LookupError) as raised,
        trionet.testing.broker(),
    ):
        raise error

    assert error is raised.value


def test_nothing_is_left_when_the_block_has_ended() -> None:
    for _ in range(3):
        with (
            nothing_left_behind(),
            trionet.testing.broker() as broker,
            BlockingClient(broker.bootstrap_servers) as client,
        ):
            produce(client, b"x" * 100_000)
            read(client)


def test_a_call_that_waits_gets_a_response_at_the_end() -> None:
    with trionet.testing.broker() as broker:
        client = BlockingClient(broker.bootstrap_servers)
        produce(client, b"a")
        client.send(fetch_request({"t": {0: 1}}, max_wait_ms=FOREVER_MS), 12)
        while not broker.statistics().delayed:
            pass

    with client:
        assert [] == values_of(only_partition(client.receive()))


def test_a_failure_of_the_broker_is_raised_at_the_end() -> None:
    error = ZeroDivisionError("a bug")

    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise error

    def use_one_that_fails() -> None:
        with (
            trionet.testing.broker() as broker,
            BlockingClient(broker.bootstrap_servers) as client,
        ):
            inner = broker._broker
            broker._call(lambda: inner._state.nursery.start_soon(fail))
            with pytest.raises(EOFError):
                read(client, max_wait_ms=FOREVER_MS)

    with nothing_left_behind(), pytest.raises(ZeroDivisionError) as raised:
        use_one_that_fails()

    assert error is raised.value


def test_a_question_that_fails_is_the_askers_error_and_not_the_brokers() -> None:
    with trionet.testing.broker() as broker:
        with pytest.raises(KeyError):
            broker._call(lambda: log_of(broker._broker, "missing"))

        assert {} == broker.statistics().calls


def test_a_question_that_brings_the_broker_down_is_given_up() -> None:
    def exit_there() -> None:
        raise SystemExit

    with (
        nothing_left_behind(),
        pytest.raises(trio.TrioInternalError),
        trionet.testing.broker() as broker,
        pytest.raises(trio.RunFinishedError),
    ):
        broker._call(exit_there)


def test_a_broker_that_has_ended_handles_no_more_requests() -> None:
    with trionet.testing.broker() as broker:
        pass

    for ask in (
        broker.statistics,
        lambda: broker.records("t"),
        lambda: broker.wait_for_records("t"),
        lambda: broker.faults.fail("Metadata", "REQUEST_TIMED_OUT"),
    ):
        with pytest.raises(
            trio.RunFinishedError, match="the broker has stopped, because its with block"
        ):
            ask()


def test_faults_of_a_broker_that_has_ended_may_be_removed() -> None:
    with trionet.testing.broker() as broker:
        fault = broker.faults.hold("Metadata")

    fault.remove()
    broker.faults.clear()


def test_a_wait_that_is_in_vain_says_what_there_was() -> None:
    with trionet.testing.broker(topics=["t"]) as broker:
        broker.seed("t", ["a"])

        with pytest.raises(
            TimeoutError, match=r"after 0\.01 s waiting for 3 records in t; found 1"
        ):
            broker.wait_for_records("t", 3, seconds=0.01)
        with pytest.raises(TimeoutError, match=r"1 request of Fetch; received 0"):
            broker.wait_for_requests("Fetch", seconds=0.01)
        with pytest.raises(TimeoutError, match=r"group g in state Stable with 2 .*state='Dead'"):
            broker.wait_for_group("g", members=2, seconds=0.01)
        with pytest.raises(TimeoutError, match=r"offset 5 of t-0 committed by group g.*: \{\}"):
            broker.wait_for_offset("g", "t", 5, seconds=0.01)


def test_a_wait_of_another_thread_ends_with_the_broker() -> None:
    errors: list[BaseException] = []

    def wait(broker: ThreadedBroker) -> None:
        try:
            broker.wait_for_records("t", seconds=60)
        except trio.RunFinishedError as error:
            errors.append(error)

    with nothing_left_behind():
        with trionet.testing.broker() as broker:
            thread = threading.Thread(target=wait, args=(broker,))
            thread.start()
            broker.topics()
        thread.join()

    assert 1 == len(errors)


def test_requests_and_log_can_be_read_when_the_broker_has_ended() -> None:
    with (
        trionet.testing.broker() as broker,
        BlockingClient(broker.bootstrap_servers) as client,
    ):
        client.call(MetadataRequest(topics=[]), 9)

    assert ["Metadata"] == [request.api for request in broker.requests()]
    assert "Metadata v9" in broker.log()


def test_the_log_has_what_this_broker_said_and_not_another() -> None:
    with trionet.testing.broker() as one, trionet.testing.broker() as other:
        one._call(lambda: logging.getLogger("trionet.broker").warning("something is wrong"))

        assert "WARNING trionet.broker: something is wrong" == one.log()
        assert "" == other.log()


def produce_to(address: str, partition: int, value: bytes) -> int:
    """The error code of a Produce to one node."""
    client = BlockingClient(address)
    try:
        response = client.call(produce_request("t", {partition: batch(value)}), 12)
        code = response.responses[0].partition_responses[0].error_code
        assert isinstance(code, int)
        return code
    finally:
        client.socket.close()


def test_nodes_stop_and_start_and_leaders_move() -> None:
    with nothing_left_behind(), trionet.testing.broker(brokers=3, topics={"t": 3}) as broker:
        addresses = broker.bootstrap_servers.split(",")
        assert [1, 2, 3] == broker.node_ids == broker.running_nodes
        assert [1, 2, 3] == [broker.leader("t", partition) for partition in range(3)]
        assert [0] * 3 == [produce_to(addresses[n], n, b"%d" % n) for n in range(3)]

        broker.stop(1)
        assert ([2, 3], 2) == (broker.running_nodes, broker.leader("t", 0))
        assert error_codes.NONE == produce_to(addresses[1], 0, b"after")
        broker.start(1)
        broker.move_leader("t", 1, 3)
        assert error_codes.NOT_LEADER_OR_FOLLOWER == produce_to(addresses[1], 1, b"wrong")
        broker.elect_preferred_leaders()

        assert [1, 2, 3] == [broker.leader("t", partition) for partition in range(3)]
        assert [b"0", b"after", b"1", b"2"] == broker.values("t")


def test_a_coordinator_moves() -> None:
    with trionet.testing.broker(brokers=2) as broker:
        other = 3 - broker.coordinator("g")

        broker.move_coordinator("g", other)

        assert other == broker.coordinator("g")


def test_a_transaction_coordinator_moves() -> None:
    with trionet.testing.broker(brokers=2) as broker:
        other = 3 - broker.transaction_coordinator("x")

        broker.move_transaction_coordinator("x", other)

        assert other == broker.transaction_coordinator("x")


def test_what_cannot_be_is_the_askers_error() -> None:
    with trionet.testing.broker(topics=["t"]) as broker:
        for ask in (broker.stop, broker.start):
            with pytest.raises(ValueError, match="node 7 does not exist; allowed: 1"):
                ask(7)
        with pytest.raises(ValueError, match="node 7 does not exist"):
            broker.move_coordinator("g", 7)
        with pytest.raises(ValueError, match="does not exist"):
            broker.leader("t", 1)
        with pytest.raises(ValueError, match="does not exist"):
            broker.move_leader("t", 1, 1)


def test_faults_meet_the_requests_of_all_nodes_or_of_one() -> None:
    with trionet.testing.broker(brokers=2, topics={"t": 2}) as broker:
        addresses = broker.bootstrap_servers.split(",")
        broker.faults.fail("Produce", "KAFKA_STORAGE_ERROR", node=2, times=None)

        codes = [produce_to(addresses[n], n, b"a") for n in range(2)]

        assert [error_codes.NONE, error_codes.KAFKA_STORAGE_ERROR] == codes
        assert [1, 2] == [request.node for request in broker.requests("Produce")]
