"""An administrator at work meanwhile: each call succeeds, and what it is told is true."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import trio

import trionet
from ordeal.ledger import Ledger
from trionet import TopicPartition
from trionet.client.admin import Admin, ConfigResource, ConfigResourceType, NewTopic, OffsetSpec
from trionet.errors import ApiError
from trionet.protocol import error_codes

_PAUSE_SECONDS = (0.05, 0.5)
_LOOK_AGAIN_SECONDS = 0.05
#: All brokers know of a change soon after it was made.
_KNOWN_SECONDS = 60.0
_RETENTION = "retention.ms"
_REPLICAS_MAX = 2  # one broker may be away
_TOO_FEW_BROKERS = error_codes.INVALID_REPLICATION_FACTOR


class Administrator:
    """What one of them does in one run.

    Args:
        admin: what it works with.
        topic: of the run; its group has the same name.
        partitions: of the topic.
        replicas: of each partition.
        ledger: what is told is compared with.
    """

    def __init__(
        self, admin: Admin, topic: str, partitions: int, replicas: int, ledger: Ledger
    ) -> None:
        self._admin = admin
        self._topic = topic
        self._partitions = [TopicPartition(topic, each) for each in range(partitions)]
        self._replicas = replicas
        self._ledger = ledger
        self._topics_made = 0

    async def create_topic(self) -> None:
        """Make the topic of the run."""
        await self._create(self._topic, len(self._partitions), self._replicas)

    async def run(self, seed: int, is_over: Callable[[], bool]) -> None:
        """Do one thing after the other until it is over."""
        rng = random.Random(f"{seed} administrator")
        works = (self._look_at_ends, self._look_at_commits, self._look_at_group, self._change)
        while not is_over():
            await rng.choice(works)()
            await trio.sleep(rng.uniform(*_PAUSE_SECONDS))

    async def look_at_end(self, lengths: dict[int, int]) -> None:
        """Compare with the log as it was read: its ends, and how far the group has come."""
        told = await self._ends(OffsetSpec.LATEST)
        begun = await self._ends(OffsetSpec.EARLIEST)
        for partition, length in lengths.items():
            if (begun[partition], told[partition]) != (0, length):
                self._ledger.wrong.append(
                    f"partition {partition} is told to be from {begun[partition]} to"
                    f" {told[partition]}, its length is {length}"
                )
        await self._look_at_commits()

    async def _look_at_ends(self) -> None:
        before = self._ledger.ends()
        self._ledger.ended(before, await self._ends(OffsetSpec.LATEST))

    async def _ends(self, spec: OffsetSpec) -> dict[int, int]:
        found = await self._admin.list_offsets(dict.fromkeys(self._partitions, spec))
        self._ledger.counts["admin calls"] += 1
        return {place.partition: end.offset or 0 for place, end in found.checked().items()}

    async def _look_at_commits(self) -> None:
        found = await self._admin.list_group_offsets([self._topic])
        self._ledger.counts["admin calls"] += 1
        offsets = found.checked()[self._topic].checked()
        self._ledger.committed(
            {place.partition: each.offset for place, each in offsets.items() if each is not None}
        )

    async def _look_at_group(self) -> None:
        has_met = self._ledger.counts["rebalances"] > 0
        found = (await self._admin.describe_groups([self._topic]))[self._topic]
        self._ledger.counts["admin calls"] += 1
        if isinstance(found, ApiError):
            if has_met or found.error_code != error_codes.GROUP_ID_NOT_FOUND:
                raise found
            return
        assert not isinstance(found, trionet.TrionetError), found
        given = [place for member in found.members for place in member.assignment]
        if len(given) != len(set(given)):
            self._ledger.wrong.append(f"a partition is given twice: {found}")

    async def _change(self) -> None:
        """A topic of its own is made, set, enlarged and deleted."""
        name = f"{self._topic}-{self._topics_made}"
        self._topics_made += 1
        replicas = min(_REPLICAS_MAX, self._replicas)
        await self._create(name, 1, replicas)
        await self._set(name, str(1000 * (1 + self._topics_made)))
        await self._enlarge(name, 3, replicas)
        found = (await self._admin.delete_topics([name]))[name]
        self._ledger.counts["admin calls"] += 1
        self._allow(found, error_codes.UNKNOWN_TOPIC_OR_PARTITION)

        async def is_gone() -> bool:
            return name not in await self._admin.list_topics()

        await self._until(is_gone)

    async def _create(self, name: str, partitions: int, replicas: int) -> None:
        topic = NewTopic(name, partitions=partitions, replication_factor=replicas)

        async def is_made() -> bool:
            found = (await self._admin.create_topics([topic]))[name]
            return self._allow(found, error_codes.TOPIC_ALREADY_EXISTS)

        await self._until(is_made)
        await self._until_it_has(name, partitions, replicas)

    async def _set(self, name: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        found = await self._admin.incremental_alter_configs({resource: {_RETENTION: value}})
        self._ledger.counts["admin calls"] += 1
        self._allow(found[resource])

        async def is_set() -> bool:
            found = (await self._admin.describe_configs([resource]))[resource]
            if isinstance(found, ApiError):
                if found.error_code == error_codes.UNKNOWN_TOPIC_OR_PARTITION:
                    return False  # not yet, by the broker that was asked
                raise found
            assert not isinstance(found, trionet.TrionetError), found
            return found[_RETENTION].value == value

        await self._until(is_set)

    async def _enlarge(self, name: str, total: int, replicas: int) -> None:
        async def is_larger() -> bool:
            found = (await self._admin.create_partitions({name: total}))[name]
            return self._allow(found, error_codes.INVALID_PARTITIONS)

        await self._until(is_larger)
        await self._until_it_has(name, total, replicas)

    async def _until_it_has(self, name: str, partitions: int, replicas: int) -> None:
        async def has() -> bool:
            found = (await self._admin.describe_topics([name]))[name]
            return (
                not isinstance(found, trionet.TrionetError)
                and len(found.partitions) == partitions
                and all(len(each.replicas) == replicas for each in found.partitions.values())
            )

        await self._until(has)

    def _allow(self, found: object, code: int = error_codes.NONE) -> bool:
        """Whether it is done; an error of this code tells that an attempt before has done it.

        Any other is raised, unless too few brokers are up for now.
        """
        if isinstance(found, ApiError) and found.error_code == code:
            self._ledger.counts["admin calls done before"] += 1
            return True
        if isinstance(found, ApiError) and found.error_code == _TOO_FEW_BROKERS:
            self._ledger.counts["too few brokers"] += 1
            return False
        if isinstance(found, BaseException):
            raise found
        return True

    async def _until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        """Ask until it is so: a broker may know of a change a moment later."""
        with trio.fail_after(_KNOWN_SECONDS):
            while True:
                self._ledger.counts["admin calls"] += 1
                if await is_so():
                    return
                await trio.sleep(_LOOK_AGAIN_SECONDS)
