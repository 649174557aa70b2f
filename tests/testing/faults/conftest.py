"""A broker whose faults are tested, and peers by hand that speak to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import trionet
from trionet.testing import BlockingRawPeer, ThreadedBroker, raw_peer


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with trionet.testing.broker(topics={"t": 2}) as running:
        yield running


@pytest.fixture
def peer(broker: ThreadedBroker) -> Iterator[BlockingRawPeer]:
    with raw_peer(broker.bootstrap_servers, "me") as connected:
        yield connected
