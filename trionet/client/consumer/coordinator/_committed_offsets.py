"""A group's committed offsets, stored by its coordinator (OffsetCommit, OffsetFetch)."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeVar

import trio

from ...._util._logging import get_logger
from ....errors import (
    CommitFailedError,
    DisconnectedError,
    FencedInstanceIdError,
    RebalanceInProgressError,
    RequestTimedOutError,
    TrionetError,
)
from ....protocol import error_codes
from ....protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ....protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from ..._api_errors import api_error, is_retriable
from ..._topic_partition import OffsetAndMetadata, TopicPartition, by_topic
from ..records._hooks import ConsumerHooks
from ._classic_member import ClassicMember, Generation, GroupSettings, MemberState
from ._coordinator_finder import CoordinatorFinder

LOGGER: Final = get_logger(__name__)

_COORDINATOR_MOVED: Final = frozenset(
    {
        error_codes.COORDINATOR_NOT_AVAILABLE,
        error_codes.NOT_COORDINATOR,
        error_codes.REQUEST_TIMED_OUT,
    }
)

T = TypeVar("T")

NAMES_VERSION_MAX: Final = 9
"""The newest version of both APIs that uses topic names. Names are used so that offsets can be
committed for topics whose ids this client does not know."""

_GROUPS_VERSION: Final = 8  # of OffsetFetch: from here on for several groups
_STABLE_VERSION: Final = 7  # of OffsetFetch: KIP-447
_NO_OFFSET: Final = -1

_ABOUT_GROUP: Final = frozenset(
    {
        error_codes.GROUP_AUTHORIZATION_FAILED,
        error_codes.COORDINATOR_LOAD_IN_PROGRESS,
        error_codes.COORDINATOR_NOT_AVAILABLE,
        error_codes.NOT_COORDINATOR,
        error_codes.UNKNOWN_MEMBER_ID,
        error_codes.ILLEGAL_GENERATION,
        error_codes.FENCED_INSTANCE_ID,
        error_codes.REBALANCE_IN_PROGRESS,
    }
)
"""Errors that concern the group, although the coordinator returns them for each partition."""


def commit_request(
    settings: GroupSettings,
    generation: Generation,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> OffsetCommitRequest:
    """Build an OffsetCommit request."""
    return OffsetCommitRequest(
        group_id=settings.group_id,
        generation_id_or_member_epoch=generation.id,
        member_id=generation.member_id,
        group_instance_id=settings.instance_id if generation.member_id else None,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    _partition(each, offsets[TopicPartition(topic, each)]) for each in partitions
                ],
            )
            for topic, partitions in by_topic(offsets).items()
        ],
    )


def _partition(number: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=offset.offset,
        committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def refusal(response: OffsetCommitResponse) -> tuple[int, str] | None:
    """Return an error code in an OffsetCommit response and its partition; None if there is none.

    Errors that concern the whole group take precedence over errors of single partitions.
    """
    found = [
        (each.error_code, str(TopicPartition(topic.name, each.partition_index)))
        for topic in response.topics
        for each in topic.partitions
        if each.error_code
    ]
    return min(found, key=lambda error: error[0] not in _ABOUT_GROUP, default=None)


def fetch_request(
    settings: GroupSettings, partitions: Iterable[TopicPartition], version: int
) -> OffsetFetchRequest:
    """Build an OffsetFetch request, which requires stable offsets from version 7 on (KIP-447)."""
    wanted = by_topic(partitions).items()
    if version >= _GROUPS_VERSION:
        topics = [OffsetFetchRequestTopics(name=t, partition_indexes=p) for t, p in wanted]
        group = OffsetFetchRequestGroup(group_id=settings.group_id, topics=topics)
        return OffsetFetchRequest(groups=[group], require_stable=True)
    return OffsetFetchRequest(
        group_id=settings.group_id,
        topics=[OffsetFetchRequestTopic(name=t, partition_indexes=p) for t, p in wanted],
        require_stable=version >= _STABLE_VERSION,
    )


def fetched(response: OffsetFetchResponse) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Return each partition's committed offset, or None.

    Raises:
        ApiError: the request or a partition was rejected.
    """
    group = response.groups[0] if response.groups else response
    if group.error_code:
        raise api_error(group.error_code, "committed offsets")
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
    for topic in group.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                raise api_error(each.error_code, f"committed offset of {partition}")
            if each.committed_offset <= _NO_OFFSET:
                offsets[partition] = None
            else:
                epoch = each.committed_leader_epoch
                offsets[partition] = OffsetAndMetadata(
                    each.committed_offset, each.metadata or "", epoch if epoch >= 0 else None
                )
    return offsets


def never(_: TopicPartition) -> bool:
    return False


class CommittedOffsets:
    """Reads and writes a group's committed offsets through its coordinator.

    Args:
        finder: finds the coordinator and sends requests to it.
        member: provides the generation for commits.
        settings: the group settings.
        rng: jitters backoffs.
        hooks: notified of committed offsets.
    """

    def __init__(
        self,
        finder: CoordinatorFinder,
        member: ClassicMember,
        settings: GroupSettings,
        rng: random.Random,
        hooks: ConsumerHooks,
    ) -> None:
        self._hooks = hooks
        self._finder = finder
        self._member = member
        self._settings = settings
        self._rng = rng

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        generation: Generation,
        *,
        is_gone: Callable[[TopicPartition], bool] = never,
    ) -> None:
        """Commit offsets, retrying after transient errors. Calls must not overlap.

        Args:
            offsets: the offset to commit for each partition.
            generation: the result of :meth:`generation`. If the generation has changed since,
                nothing is committed, because other members may have owned the partitions meanwhile.
            is_gone: returns whether a partition no longer exists; the offsets of such partitions
                are omitted.

        Raises:
            CommitFailedError: this consumer is no longer a member of the generation.
            RebalanceInProgressError: the group is rebalancing.
            FencedInstanceIdError: another consumer uses the same instance id.
            ApiError: the coordinator rejected the request or the offset of a partition.
            AuthenticationError: every node rejected the client's credentials.
            DisconnectedError: no coordinator responded within ``default.api.timeout.ms``.

        Cancellation: the offsets may have been committed.
        """

        async def attempt() -> None:
            there = {each: offset for each, offset in offsets.items() if not is_gone(each)}
            await self._commit_once(there, generation)

        await self._until_settled(attempt)

    async def _commit_once(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], generation: Generation
    ) -> None:
        if generation.member_id and self.generation(as_member=True) != generation:
            raise self._commit_failed()
        if not offsets:
            await trio.lowlevel.checkpoint()
            return
        response = await self._finder.request(
            OffsetCommitRequest,
            lambda _: commit_request(self._settings, generation, offsets),
            version_max=NAMES_VERSION_MAX,
        )
        refused = refusal(response)
        if refused is None:
            self._hooks.committed(offsets)
            return
        raise self._why_refused(*refused, generation)

    def generation(self, *, as_member: bool) -> Generation:
        """Return the generation in which to commit.

        Args:
            as_member: whether the group assigned the partitions, in which case the coordinator
                checks the generation.

        Raises:
            RebalanceInProgressError: the member is joining or waiting for its assignment.
            CommitFailedError: the member has not joined the group.
        """
        if not as_member:
            return Generation()
        match self._member.state:
            case MemberState.STABLE:
                return self._member.generation
            case MemberState.UNJOINED:
                raise self._commit_failed()
            case _:
                raise self._in_rebalance()

    def _why_refused(self, code: int, about: str, sent_as: Generation) -> TrionetError:
        member = self._member
        if code in _COORDINATOR_MOVED:
            self._finder.forget(self._finder.node, error_codes.name_of(code))
        elif code == error_codes.REBALANCE_IN_PROGRESS:
            member.request_rejoin("the group is rebalancing")
            return self._in_rebalance()
        elif code in {
            error_codes.UNKNOWN_MEMBER_ID,
            error_codes.ILLEGAL_GENERATION,
            error_codes.FENCED_INSTANCE_ID,
        }:
            if member.generation != sent_as:
                # Rejected for an older generation: the current one may succeed.
                is_joining = member.state is MemberState.PREPARING_REBALANCE
                return self._in_rebalance() if is_joining else self._commit_failed()
            if code == error_codes.FENCED_INSTANCE_ID:
                return FencedInstanceIdError(
                    self._settings.group_id, self._settings.instance_id or ""
                )
            if sent_as.member_id:
                member.dismissed(code)
            return self._commit_failed()
        return api_error(code, f"group {self._settings.group_id}: committing the offset of {about}")

    def _commit_failed(self) -> CommitFailedError:
        return CommitFailedError(
            f"group {self._settings.group_id}: no offset was committed, because this consumer is"
            " not currently a member of the group, and its partitions may have been assigned to"
            " another member. It may have sent no heartbeat for session.timeout.ms, or more than"
            " max.poll.interval.ms may have passed between two requests for a record. In the latter"
            " case, raise that limit, or do less work per record"
        )

    def _in_rebalance(self) -> RebalanceInProgressError:
        return RebalanceInProgressError(
            f"group {self._settings.group_id}: no offset was committed, because the group is"
            " rebalancing. Request the next record, then commit again"
        )

    async def fetch(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Fetch the group's last committed offsets, retrying after transient errors.

        Returns:
            The committed offset of each partition; None if there is none.

        Raises:
            ApiError: the coordinator rejected the request or a partition.
            AuthenticationError: every node rejected the client's credentials.
            DisconnectedError: no coordinator responded within ``default.api.timeout.ms``.
        """
        wanted = sorted(partitions)
        joining = {MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE}
        return await self._until_settled(
            lambda: self.fetch_once(wanted, is_apart=self._member.state in joining)
        )

    async def fetch_once(
        self, partitions: Iterable[TopicPartition], *, is_apart: bool = False
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Fetch the group's last committed offsets, without retries.

        Args:
            partitions: the partitions.
            is_apart: see :meth:`.CoordinatorFinder.request`.
        """
        partitions = sorted(partitions)
        response = await self._finder.request(
            OffsetFetchRequest,
            lambda version: fetch_request(self._settings, partitions, version),
            version_max=NAMES_VERSION_MAX,
            is_apart=is_apart,
        )
        group = response.groups[0] if response.groups else response
        if group.error_code in _COORDINATOR_MOVED:
            self._finder.forget(self._finder.node, error_codes.name_of(group.error_code))
        offsets = fetched(response)
        return {each: offsets.get(each) for each in partitions}

    async def _until_settled(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Call ``ask``, retrying after transient errors for up to ``default.api.timeout.ms``."""
        failures = 0
        last: TrionetError | None = None
        with trio.move_on_after(self._settings.api_timeout_seconds):
            while True:
                try:
                    return await ask()
                except TrionetError as error:
                    if not isinstance(error, DisconnectedError) and not is_retriable(error):
                        raise
                    last = error
                failures += 1
                await trio.sleep(self._settings.retry.seconds(failures, self._rng))
        if last is not None:
            raise last
        problem = self._finder.client.connection_problem()
        failure = RequestTimedOutError(
            f"group {self._settings.group_id}: no coordinator responded within"
            f" default.api.timeout.ms = {self._settings.api_timeout_seconds * 1000:.0f}"
            + (f": {problem}" if problem else "")
        )
        failure.__cause__ = self._finder.client.connection_error()
        raise failure
