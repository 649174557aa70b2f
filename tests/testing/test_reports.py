"""What pytest reports of a failing test: frames of the test, and none of trionet's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import trionet.testing
from support.processes import SAME_TRIONET

pytest_plugins = ["pytester"]

FAILING = """
import asyncio

import pytest
import trio
import trionet
from trionet.protocol.messages.produce import ProduceRequest
from trionet.testing import raw_peer


def test_wait(trionet_broker):
    trionet_broker.wait_for_records("t", seconds=0.01)


def test_asyncio(trionet_broker):
    async def wait():
        await trionet_broker.asyncio.wait_for_records("t", seconds=0.01)

    asyncio.run(wait())


def test_trio():
    async def main():
        async with trionet.open_broker() as broker:
            with pytest.raises(LookupError) as raised:
                trionet.testing.control(broker).records("t")
            return raised.value

    raise trio.run(main)


def test_topic(trionet_broker):
    trionet_broker.create_topic("no name")


def test_records(trionet_broker):
    trionet_broker.records("t")


def test_seed(trionet_broker):
    trionet_broker.seed("t", [object()])


def test_fault(trionet_broker):
    trionet_broker.faults.fail("Produce", "NO_ERROR_LIKE_THIS")


def test_peer(trionet_broker):
    with raw_peer(trionet_broker.bootstrap_servers) as peer:
        trionet_broker.stop(1)
        peer.receive()


def test_function_of_a_fault(trionet_broker):
    with raw_peer(trionet_broker.bootstrap_servers) as peer:
        with trionet_broker.faults.fail("Produce", "UNKNOWN_SERVER_ERROR", when=lambda _: 1 / 0):
            peer.call(ProduceRequest(acks=1, timeout_ms=1, topic_data=[]), 9)


def test_settings():
    with trionet.testing.broker(num_partition=3):
        pass


def test_topics():
    with trionet.testing.broker(topics=["no name"]):
        pass


def test_block():
    with trionet.testing.broker():
        assert False


@pytest.mark.trionet(num_partition=3)
def test_marker(trionet_broker):
    pass
"""


def test_a_failing_test_shows_no_frames_of_trionet(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", SAME_TRIONET["PYTHONPATH"])
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(FAILING)
    package = str(Path(trionet.__file__).resolve().parent)

    result = pytester.runpytest_inprocess("-p", "trionet.testing.plugin", "--tb=short")

    result.assert_outcomes(failed=12, errors=1)
    frames = [line for line in result.outlines if re.match(r"\S+\.py:\d+: in ", line)]
    assert len(frames) > 12
    assert [] == [line for line in frames if package in str(Path(line).resolve())]
