"""A broker with 10,000 partitions in 1,000 topics, and 2,000 groups with offsets."""

from __future__ import annotations

import trio

import trionet
from trionet.client._topic_partition import TopicPartition
from trionet.client.admin import NewTopic

TOPICS, PARTITIONS, GROUPS = 1000, 10, 2000


async def _main() -> None:
    async with (
        trionet.open_broker(metrics_listener="http://127.0.0.1:0") as broker,
        trionet.open_admin(broker.bootstrap_servers) as admin,
    ):
        for first in range(0, TOPICS, 100):
            topics = [NewTopic(f"topic-{n:04}", PARTITIONS) for n in range(first, first + 100)]
            (await admin.create_topics(topics)).checked()
        for number in range(GROUPS):
            topic = f"topic-{number % TOPICS:04}"
            offsets = {TopicPartition(topic, each): 0 for each in range(PARTITIONS)}
            (await admin.alter_group_offsets(f"group-{number:04}", offsets)).checked()
        assert broker.metrics is not None
        print(broker.bootstrap_servers, broker.metrics.url, flush=True)
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(_main)
