"""Topics for benchmarks, made and removed by confluent-kafka's admin client."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic


@contextlib.contextmanager
def topic(bootstrap: str, name: str, partitions: int = 1) -> Iterator[str]:
    """A topic that is there while the block runs; deleted to free memory."""
    admin = AdminClient(
        {"bootstrap.servers": bootstrap, "enable.metrics.push": False, "log_level": 3}
    )
    for future in admin.create_topics([NewTopic(name, partitions, 1)]).values():
        future.result(30)
    try:
        yield name
    finally:
        for future in admin.delete_topics([name]).values():
            future.result(30)
