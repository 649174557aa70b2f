"""What the tests ask of every foreign client: write, read, find by time; and administer."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs

Headers = tuple[tuple[str, bytes | None], ...]

PATIENCE_SECONDS = 20
"""How long a client may wait for one answer before a test gives up."""


@attrs.frozen
class Record:
    """One record to write, or as it was read.

    Attributes:
        key: None is no key, which is not the empty key.
        value: None is a tombstone.
        headers: in order; names may repeat.
        timestamp: milliseconds since the epoch; None where a client cannot set or does not tell it.
        partition: where it goes.
    """

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    partition: int = 0


@attrs.frozen
class Arrived:
    """A record as a client read it.

    Attributes:
        offset: where it was.
        record: what it was.
        is_log_append_time: whether the broker set the timestamp; None where a client does not tell.
    """

    offset: int
    record: Record
    is_log_append_time: bool | None


class Client(abc.ABC):
    """A foreign client that writes and reads single partitions; groups are never used."""

    name: ClassVar[str]

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.resources = contextlib.ExitStack()

    def writable(self, records: Sequence[Record]) -> list[Record]:
        """What of the records this client is able to write, changed where it must be."""
        return list(records)

    def shown(self, record: Record) -> Record:
        """A record in the form in which this client shows it."""
        return record

    @abc.abstractmethod
    def write(
        self, topic: str, records: Sequence[Record], *, codec: str, is_idempotent: bool
    ) -> list[int] | None:
        """Write everything with acks=all, in batches as large as they get.

        Returns:
            The offsets that were acknowledged, in the records' order; None where it does not tell.
        """

    @abc.abstractmethod
    def read(self, topic: str, counts: Mapping[int, int], start: int = 0) -> list[Arrived]:
        """Read so many records of each partition, from one explicit offset on."""

    @abc.abstractmethod
    def offset_for_time(self, topic: str, timestamp: int) -> int | None:
        """The first offset of partition 0 whose timestamp is at least this one; None is "none"."""

    def close(self) -> None:
        """End what the client keeps between calls."""
        self.resources.close()


class Admin(abc.ABC):
    """The administrative side of a foreign client."""

    @abc.abstractmethod
    def create_topic(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        """Create a topic; the client's own error if that is refused."""

    @abc.abstractmethod
    def delete_topic(self, name: str) -> None:
        """Delete a topic; the client's own error if that is refused."""

    @abc.abstractmethod
    def topics(self) -> dict[str, int]:
        """All topics and how many partitions each has."""

    @abc.abstractmethod
    def topic_config(self, name: str) -> dict[str, str | None]:
        """All configuration keys of a topic and their values."""

    @abc.abstractmethod
    def cluster(self) -> tuple[str | None, list[str]]:
        """The cluster's id (None where the client does not tell) and the brokers' addresses."""
