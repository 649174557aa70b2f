"""What tests of Spark do to a broker beside its seeds; nothing here needs PySpark."""

from __future__ import annotations

from collections.abc import Mapping

import trio

import trionet
from trionet.testing._threaded import ThreadedBroker

#: Of brokers. Records of tests have times of long ago, for which retention would delete them.
SETTINGS: Mapping[str, object] = {"auto.create.topics.enable": False, "log.retention.ms": -1}


def numbers(first: int, last: int) -> list[str]:
    """The numbers from the first to the last as texts, sorted as these."""
    return sorted(str(number) for number in range(first, last + 1))


def delete_records(broker: ThreadedBroker, topic: str, before: int) -> None:
    """Delete what is before an offset in every partition of a topic."""

    async def delete() -> None:
        async with trionet.open_admin(broker.bootstrap_servers) as admin:
            count = broker.topics()[topic]
            each = {trionet.TopicPartition(topic, number): before for number in range(count)}
            (await admin.delete_records(each)).checked()

    trio.run(delete)


def add_partitions(broker: ThreadedBroker, topic: str, count: int) -> None:
    """Give a topic so many partitions in all."""

    async def add() -> None:
        async with trionet.open_admin(broker.bootstrap_servers) as admin:
            (await admin.create_partitions({topic: count})).checked()

    trio.run(add)
