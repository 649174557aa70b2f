"""What every foreign client is put through: it writes, and reads what all the others wrote."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import attrs
import pytest

from support.clients.client import Admin, Arrived, Client, Record
from support.clients.corpus import EPOCH, corpus, large_records, small_records

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NAMES = ("kcat", "confluent-kafka", "kafka-python", "aiokafka", "java")
BIG_BATCH = 10_000
PARTITIONS = 50

every_codec = pytest.mark.parametrize("codec", CODECS)
with_and_without_idempotence = pytest.mark.parametrize(
    "is_idempotent", [False, True], ids=["plain", "idempotent"]
)
every_writer = pytest.mark.parametrize("writer", NAMES)


class Exchange:
    """The clients of one test run, and what each of them has written so far.

    Args:
        client: gives a client by its name, or skips the test with a reason.
        new_topic: makes a topic with so many partitions and this configuration; gives its name.
    """

    def __init__(self, client: Callable[[str], Client], new_topic: Callable[..., str]) -> None:
        self.client = client
        self.new_topic = new_topic
        self._written: dict[tuple[str, str, bool], tuple[str, list[Record]]] = {}

    def admin(self, name: str) -> Admin:
        """A client's administrative side."""
        client = self.client(name)
        assert isinstance(client, Admin)
        return client

    def written(self, name: str, codec: str, is_idempotent: bool) -> tuple[str, list[Record]]:
        """The topic into which a client wrote the corpus in one of its ways, and the records."""
        way = name, codec, is_idempotent
        if way not in self._written:
            client = self.client(name)
            records = client.writable(corpus())
            topic = self.new_topic()
            acknowledged = client.write(topic, records, codec=codec, is_idempotent=is_idempotent)
            if acknowledged is not None:
                assert acknowledged == list(range(len(records)))
            self._written[way] = topic, records
        return self._written[way]

    def check_writes(self, name: str, codec: str, is_idempotent: bool) -> None:
        """It can write the corpus, gets every offset in order, and reads it back."""
        topic, records = self.written(name, codec, is_idempotent)
        reader = self.client(name)
        check_same(reader, records, reader.read(topic, {0: len(records)}))

    def check_reads(self, name: str, writer: str) -> None:
        """It reads what another client wrote in each of its ways, record by record."""
        reader = self.client(name)
        for codec, is_idempotent in itertools.product(CODECS, (False, True)):
            topic, records = self.written(writer, codec, is_idempotent)
            check_same(reader, records, reader.read(topic, {0: len(records)}))

    def check_starts_anywhere(self, name: str) -> None:
        """It begins at an offset in the middle of a compressed batch."""
        topic, records = self.written("confluent-kafka", "lz4", is_idempotent=True)
        reader = self.client(name)
        for start in (1, len(records) // 2, len(records) - 1):
            arrived = reader.read(topic, {0: len(records) - start}, start)
            check_same(reader, records[start:], arrived, start)

    def check_round_trip(self, name: str, records: Sequence[Record], codec: str = "none") -> None:
        """What it writes into a new topic is what it reads."""
        client = self.client(name)
        records = client.writable(records)
        topic = self.new_topic()
        client.write(topic, records, codec=codec, is_idempotent=True)
        check_same(client, records, client.read(topic, {0: len(records)}))

    def check_large_records(self, name: str) -> None:
        """Records of 900 KB, just below the default limit."""
        self.check_round_trip(name, large_records())

    def check_big_batches(self, name: str) -> None:
        """Ten thousand records that fit into one batch."""
        self.check_round_trip(name, small_records(BIG_BATCH))

    def check_many_partitions(self, name: str) -> None:
        """Records spread over many partitions; each has offsets of its own."""
        client = self.client(name)
        topic = self.new_topic(PARTITIONS)
        records = client.writable(
            [
                attrs.evolve(record, partition=index % PARTITIONS)
                for index, record in enumerate(small_records(3 * PARTITIONS))
            ]
        )
        client.write(topic, records, codec="none", is_idempotent=True)
        arrived = client.read(topic, dict.fromkeys(range(PARTITIONS), 3))
        for partition in range(PARTITIONS):
            check_same(
                client,
                [record for record in records if record.partition == partition],
                [each for each in arrived if each.record.partition == partition],
            )

    def check_log_append_time(self, name: str) -> None:
        """In a topic of that type the broker's clock replaces the writer's timestamp."""
        client = self.client(name)
        topic = self.new_topic(**{"message.timestamp.type": "LogAppendTime"})
        written = client.writable(small_records(10))
        client.write(topic, written, codec="gzip", is_idempotent=False)
        arrived = client.read(topic, {0: 10})

        assert [record.value for record in written] == [each.record.value for each in arrived]
        times = {each.record.timestamp for each in arrived}
        assert len(times) == 1
        (time,) = times
        assert time is not None
        assert time > EPOCH + 3_000_000
        assert {each.is_log_append_time for each in arrived} <= {True, None}

    def check_offsets_by_time(self, name: str) -> None:
        """The first record at or after a timestamp, also inside of a batch; none after the last."""
        topic = self.new_topic()
        records = small_records(20)
        self.client("confluent-kafka").write(topic, records, codec="none", is_idempotent=False)
        client = self.client(name)

        assert client.offset_for_time(topic, EPOCH - 1) == 0
        assert client.offset_for_time(topic, EPOCH + 7) == 7
        assert client.offset_for_time(topic, EPOCH + 19) == 19
        assert client.offset_for_time(topic, EPOCH + 20) is None

    def check_administers(self, name: str, topic: str) -> None:
        """It creates, lists, describes and deletes a topic, and describes the cluster."""
        admin = self.admin(name)
        admin.create_topic(topic, 3, {"retention.ms": "123456789", "cleanup.policy": "compact"})

        assert admin.topics()[topic] == 3
        config = admin.topic_config(topic)
        assert config["retention.ms"] == "123456789"
        assert config["cleanup.policy"] == "compact"
        assert config["segment.bytes"] == "1073741824"

        admin.delete_topic(topic)

        assert topic not in admin.topics()

    def check_refusals(self, name: str, topic: str) -> None:
        """What cannot be is refused: a topic twice, an unknown one deleted, a wrong setting."""
        admin = self.admin(name)
        admin.create_topic(topic, 1, {})
        with pytest.raises(Exception, match=r"(?i)exist|\b36\b"):
            admin.create_topic(topic, 1, {})
        admin.delete_topic(topic)
        with pytest.raises(Exception, match=r"(?i)unknown|not exist|host this topic|\b3\b"):
            admin.delete_topic(topic)
        with pytest.raises(Exception, match=r"(?i)config|\b40\b"):
            admin.create_topic(topic, 1, {"segment.bytes": "many"})


def check_same(
    reader: Client, written: Sequence[Record], arrived: Sequence[Arrived], start: int = 0
) -> None:
    """The offsets have no gap, and every record is what was written, as this reader shows it."""
    assert [each.offset for each in arrived] == list(range(start, start + len(written)))
    for expected, each in zip(written, arrived, strict=True):
        actual = each.record
        if expected.timestamp is None:
            assert actual.timestamp is not None
            assert actual.timestamp > EPOCH
            actual = attrs.evolve(actual, timestamp=None)
        else:
            assert each.is_log_append_time in {False, None}
        assert reader.shown(expected) == actual
