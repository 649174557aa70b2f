"""The pytest plugin: the fixture ``trionet_broker``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .threaded import ThreadedBroker


@pytest.fixture
def trionet_broker() -> Iterator[ThreadedBroker]:
    """A running broker, fresh for this test, in memory, at ``.bootstrap_servers``."""
    from .threaded import broker

    with broker() as running:
        yield running
