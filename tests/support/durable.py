"""A broker with a data directory that can be stopped and started again on the same port."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from support.cache import Unavailable
from support.kafka_node import kafka_folder
from support.ports import free_ports
from support.trionet_process import trionet_broker_process

OTHER = os.environ.get("TRIONET_TEST_BOOTSTRAP", "")
"""Which broker the interop tests talk to instead of trionet's: an address, `kafka` or `kfake`."""


@attrs.frozen
class Durable:
    """A broker that is not running yet.

    Attributes:
        bootstrap: where it will listen, every time.
        data: its data directory.
        running: a context manager in which it runs.
    """

    bootstrap: str
    data: Path
    running: Callable[[], contextlib.AbstractContextManager[object]]


@contextlib.contextmanager
def durable_broker(folder: Path) -> Iterator[Durable]:
    """One that keeps its data in `folder` (Kafka: in memory), as `OTHER` wants it.

    Raises `Unavailable` where it cannot be stopped and started from here.
    """
    if not OTHER:
        (port,) = free_ports(1)
        data = folder / "data"
        yield Durable(f"127.0.0.1:{port}", data, lambda: trionet_broker_process(data, port=port))
    elif OTHER == "kafka":
        with kafka_folder() as kafka:
            yield Durable(kafka.bootstrap_servers, kafka.data, kafka.broker)
    else:
        raise Unavailable(f"{OTHER} cannot be stopped and started again from here")
