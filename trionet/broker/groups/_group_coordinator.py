"""The group coordinator of a node: routes calls to groups, runs their timers, stores their state.

(Kafka: GroupCoordinatorService.) The problem: joins and syncs wait for other members and for the
database, sometimes for minutes. Meanwhile they must not occupy a handler, and no response may be
lost.

The choice: :class:`Group` is a pure state machine, and every call changes it synchronously. Then
:meth:`GroupCoordinator._settle` sends the responses in the group's outbox, queues the group for
storing if it has changed, and schedules the group's next timeout. None of these calls wait. One
heap of timeouts serves all groups (:class:`GroupTimers`). A task per group was rejected, because
calls would also wait in its inbox, and idle groups would cost tasks.

Each node of a cluster coordinates the groups whose partition of ``__consumer_offsets`` it leads,
and returns NOT_COORDINATOR for other groups. When the leader of a partition changes, its groups
move as if the new leader had read them from that topic: waiting calls fail, members have one
session timeout to send a heartbeat, and a rebalance in progress restarts.

Reconsider for groups of other protocols (KIP-848, KIP-932), which would need their own classes
beside :class:`Group` but share the offsets.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import trio

from ..._util._logging import get_logger
from ...net._network import SYSTEM
from ...protocol import error_codes
from ...protocol._wire import TEXT_BYTES_MAX
from ...protocol.messages.join_group import JoinGroupResponse
from ...protocol.messages.sync_group import SyncGroupResponse
from ..config._broker_config import BrokerConfig
from ..config._limit import Limit
from ..storage._database import DatabaseError
from ..storage._storage_errors import commit_error
from ._committed_offsets import CommittedOffset, CommittedOffsets, Partition, expired
from ._group import Group, GroupSettings, GroupState, subscribed_topics
from ._group_store import GroupStore
from ._group_timeouts import GroupTimers
from ._members import Caller, Join, join_error
from ._pending_offsets import PendingOffsets
from ._stored_group import inherited, record_bytes, restored, snapshot

logger = get_logger("trionet.broker")


GROUPS_AT_ONCE: Final = 100
"""How many groups are checked for expired offsets before other tasks run."""


class GroupCoordinator:
    """The coordinator of a node's groups and committed offsets.

    Args:
        config: the node's settings.
        store: stores the groups and their offsets.
        now_ms: returns the current time, in ms since the epoch.
        coordinates: returns whether this node coordinates a group; None if it coordinates all
            groups.
        rng: the random generator for member ids.
        record_bytes_max: returns the current maximum size of a stored group; by default
            ``message.max.bytes`` of ``config``.

    Attributes:
        groups: the groups by id.
        offsets: the committed offsets of all groups, whichever node coordinates them.
        pending: the offsets of all groups that wait for the end of their transactions.
        on_change: called after a group or its offsets may have changed; for tests.
    """

    def __init__(
        self,
        config: BrokerConfig,
        store: GroupStore,
        now_ms: Callable[[], int],
        coordinates: Callable[[str], bool] | None = None,
        rng: random.Random = SYSTEM.rng,
        record_bytes_max: Callable[[], int] | None = None,
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets: CommittedOffsets = store.offsets
        self.pending: PendingOffsets = store.pending
        self.on_change: Callable[[], None] = lambda: None
        self._store = store
        self._now_ms = now_ms
        self._coordinates = coordinates
        self._record_bytes_max = record_bytes_max or partial(config.integer, "message.max.bytes")
        self._settings = GroupSettings(
            initial_delay=config.integer("group.initial.rebalance.delay.ms") / 1000,
            members_max=config.integer("group.max.size"),
            make_member_id=partial(_new_member_id, rng),
        )
        self._session_ms = (
            config.integer("group.min.session.timeout.ms"),
            config.integer("group.max.session.timeout.ms"),
        )
        self._limit = Limit("max.groups", config.integer("max.groups"))
        self._timers = GroupTimers()
        self._is_closed = False

    def coordinator_error(self, group_id: str) -> int:
        """Return NOT_COORDINATOR if another node coordinates the group, or NONE."""
        if self._coordinates is None or self._coordinates(group_id):
            return error_codes.NONE
        return error_codes.NOT_COORDINATOR

    async def load(self) -> None:
        """Load the groups and offsets that this node coordinates.

        Each member has one session timeout to send a heartbeat.

        Raises:
            DatabaseError: the database cannot be read.
        """
        groups, offsets = await self._store.load()
        now = trio.current_time()
        for stored in groups:
            if self.coordinator_error(stored.id):
                continue
            group = self.groups[stored.id] = restored(stored, self._settings, now)
            group.changed_at = now - max(self._now_ms() - stored.changed_at_ms, 0) / 1000
            self._timers.schedule(group.id, group.timeouts.wake_at)
        for group_id, each in offsets.items():
            self.offsets.put(group_id, each)
        for group_id in (*offsets, *self.pending.groups()):
            # Only the offsets of a group that never had members are stored.
            if group_id not in self.groups and not self.coordinator_error(group_id):
                self.groups[group_id] = Group(group_id, self._settings, now)

    async def run(self) -> None:
        """Process the groups' timeouts until cancelled. The store must be running, too."""
        await self._timers.run(self._expire)

    def _expire(self, group_id: str, now: float) -> None:
        group = self.groups[group_id]
        group.expire(now)
        self._settle(group)

    # Moving groups between nodes.

    def hand_over(self, coordinator_of: Callable[[str], GroupCoordinator | None]) -> None:
        """Move each group to its current coordinator.

        A group without a coordinator stays on this node until it has one. Meanwhile, its timeouts
        are suspended, because its members cannot send heartbeats.

        Args:
            coordinator_of: returns the coordinator of a group, or None.
        """
        for group in list(self.groups.values()):
            new = coordinator_of(group.id)
            if new is self and not self._timers.is_suspended(group.id):
                continue
            group.fail_waiting(error_codes.NOT_COORDINATOR)
            self._send_responses(group)
            if new is None:
                self._timers.suspend(group.id)
            else:
                self._timers.cancel(group.id)
                del self.groups[group.id]
                new.take_over(group)

    def take_over(self, old: Group) -> None:
        """Take over a group from another node."""
        group = inherited(old, self._settings, trio.current_time())
        self.groups[group.id] = group
        if old.state is GroupState.DEAD:
            # It is being deleted: after that, once more for this node, to which it is alive.
            self._delete(group, _ignore_error)
        else:
            self._settle(group)

    # Members.

    def join(self, group_id: str, join: Join, reply: Callable[[JoinGroupResponse], None]) -> None:
        """Handle a JoinGroup request, and call ``reply`` with the result, immediately or later."""
        error_code = self._check_join(group_id, join)
        if error_code:
            reply(join_error(join.member_id, error_code))
            return
        now = trio.current_time()
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, self._settings, now)
        group.join(join, reply, now)
        self._settle(group)

    def _check_new(self, group_id: str) -> int:
        """Return POLICY_VIOLATION if there may be no more groups than there are, or NONE."""
        error = self._limit.error(len(self.groups), f"group {group_id!r}")
        return error_codes.NONE if error is None else error.error_code

    def _check_join(self, group_id: str, join: Join) -> int:
        if self._is_closed:
            return error_codes.COORDINATOR_NOT_AVAILABLE
        error_code = self.coordinator_error(group_id)
        if error_code:
            return error_code
        lowest, highest = self._session_ms
        if not group_id:
            return error_codes.INVALID_GROUP_ID
        if not lowest <= round(join.session_seconds * 1000) <= highest:
            return error_codes.INVALID_SESSION_TIMEOUT
        if group_id in self.groups:
            return error_codes.NONE
        return error_codes.UNKNOWN_MEMBER_ID if join.member_id else self._check_new(group_id)

    def sync(
        self,
        group_id: str,
        caller: Caller,
        protocol: tuple[str | None, str | None],
        assignments: Mapping[str, bytes],
        reply: Callable[[SyncGroupResponse], None],
    ) -> None:
        """Handle a SyncGroup request, and call ``reply`` with the result, immediately or later."""
        group = self._group_with_members(group_id)
        if self._is_closed:
            reply(SyncGroupResponse(error_code=error_codes.COORDINATOR_NOT_AVAILABLE))
            return
        if group is None:
            reply(SyncGroupResponse(error_code=self._missing_group_error(group_id)))
            return
        group.sync(caller, assignments, reply, trio.current_time(), protocol)
        self._settle(group)

    def heartbeat(self, group_id: str, caller: Caller) -> int:
        """Handle a Heartbeat request, and return its error code."""
        group = self._group_with_members(group_id)
        if group is None:
            return self._missing_group_error(group_id)
        error_code = group.heartbeat(caller, trio.current_time())
        self._settle(group)
        return error_code

    def leave(self, group_id: str, leaving: Sequence[tuple[str, str | None]]) -> list[int]:
        """Handle a LeaveGroup request, and return the error code of each member.

        Args:
            group_id: the group id.
            leaving: pairs of member id and instance id.
        """
        group = self._group_with_members(group_id)
        if group is None:
            return [self._missing_group_error(group_id)] * len(leaving)
        codes = group.leave(leaving, trio.current_time())
        self._settle(group)
        return codes

    def expire_members(self, group_id: str, member_ids: Iterable[str] | None = None) -> None:
        """Expire the sessions of members of a group, as if they had sent no heartbeats.

        Members that are waiting for a response do not expire, unless they are new.

        Args:
            group_id: the group id.
            member_ids: the members to expire; by default all members of the group.
        """
        group = self.groups[group_id]
        now = trio.current_time()
        for member in group.members:
            if member_ids is None or member.id in member_ids:
                member.expires_at = now
        group.expire(now)
        self._settle(group)

    def fail_waiting(self, group_id: str, error_code: int) -> None:
        """Fail a group's waiting calls with an error, for example when its coordinator changes."""
        group = self.groups[group_id]
        group.fail_waiting(error_code)
        self._send_responses(group)

    def _group_with_members(self, group_id: str) -> Group | None:
        """Return the group; None if it has no name, is unknown, or has another coordinator."""
        return (
            self.groups.get(group_id) if group_id and not self.coordinator_error(group_id) else None
        )

    def _missing_group_error(self, group_id: str) -> int:
        """Return the error code for a request from a member of a group that is not on this node."""
        if not group_id:
            return error_codes.INVALID_GROUP_ID
        return self.coordinator_error(group_id) or error_codes.UNKNOWN_MEMBER_ID

    # Offsets.

    def commit(
        self,
        group_id: str,
        caller: Caller,
        offsets: Mapping[Partition, CommittedOffset],
        done: Callable[[int], None],
        *,
        missing: int = error_codes.ILLEGAL_GENERATION,
    ) -> None:
        """Handle an OffsetCommit request.

        Args:
            group_id: the group id.
            caller: the member and its generation.
            offsets: the offsets to commit.
            done: called with the error code, either immediately or once the offsets are stored.
            missing: the error code if the caller has a generation but the group does not exist.
        """
        error_code = self.coordinator_error(group_id) or self._check_commit(
            group_id, caller, missing
        )
        if error_code or not offsets:
            done(error_code)
            return
        self._store.commit(group_id, offsets, self._reporting(done))

    def commit_in_transaction(
        self,
        group_id: str,
        caller: Caller,
        producer_id: int,
        offsets: Mapping[Partition, CommittedOffset],
        done: Callable[[int], None],
    ) -> None:
        """Handle a TxnOffsetCommit request of a transaction that accepts offsets.

        Args:
            group_id: the group id.
            caller: the member and its generation, if the client has sent them.
            producer_id: the producer id of the transaction.
            offsets: the offsets to commit when the transaction is committed.
            done: called with the error code, either immediately or once the offsets are stored.
        """
        error_code = self.coordinator_error(group_id) or self._check_transactional_commit(
            group_id, caller
        )
        if error_code or not offsets:
            done(error_code)
            return
        self._store.pend(producer_id, group_id, offsets, self._reporting(done))

    def _check_transactional_commit(self, group_id: str, caller: Caller) -> int:
        group = self.groups.get(group_id)
        if group is not None:
            return group.check_transactional_commit(caller)
        if caller.generation >= 0:
            return error_codes.ILLEGAL_GENERATION
        # As with OffsetCommit, a consumer without group membership creates the group.
        error_code = self._check_new(group_id)
        if not error_code:
            self.groups[group_id] = Group(group_id, self._settings, trio.current_time())
        return error_code

    def delete_offsets(
        self, group_id: str, partitions: Collection[Partition], done: Callable[[int], None]
    ) -> None:
        """Delete a group's offsets for the given partitions, and then call ``done``."""
        self._store.delete_offsets(group_id, partitions, self._reporting(done))

    def _reporting(self, done: Callable[[int], None]) -> Callable[[int], None]:
        """Return a function that calls :attr:`on_change` and then ``done``."""

        def report(error_code: int) -> None:
            self.on_change()
            done(error_code)

        return report

    def _check_commit(self, group_id: str, caller: Caller, missing: int) -> int:
        now = trio.current_time()
        group = self.groups.get(group_id)
        if group is None:
            if caller.generation >= 0:
                return missing
            # A consumer without group membership creates the group by committing.
            error_code = self._check_new(group_id)
            if not error_code:
                self.groups[group_id] = Group(group_id, self._settings, now)
            return error_code
        error_code = group.check_commit(caller, now)
        self._settle(group)
        return error_code

    # Groups.

    def delete(self, group_id: str, done: Callable[[int], None]) -> None:
        """Delete an empty group and its offsets, and call ``done`` with the error code."""
        if self.coordinator_error(group_id):
            done(error_codes.NOT_COORDINATOR)
            return
        group = self.groups.get(group_id)
        if group is None or group.state is GroupState.DEAD:
            done(error_codes.GROUP_ID_NOT_FOUND)
            return
        if group.state is not GroupState.EMPTY:
            done(error_codes.NON_EMPTY_GROUP)
            return
        self._delete(group, done)

    def _delete(self, group: Group, done: Callable[[int], None]) -> None:
        # Joins and commits get a retriable error until the group is deleted.
        group.state = GroupState.DEAD

        def stored(error: DatabaseError | None) -> None:
            if error is None:
                if self.groups.get(group.id) is group:  # else a new one was moved here
                    del self.groups[group.id]
                    self._timers.cancel(group.id)
            else:
                group.state = GroupState.EMPTY
            self.on_change()
            done(commit_error(error))

        self._store.delete_group(group.id, stored)

    async def expire_offsets(self, retention_ms: int) -> None:
        """Delete expired offsets, and empty groups without offsets. Other tasks run in between.

        (KIP-211; Kafka: cleanupExpiredOffsets.) Pending offsets keep their group, and also the
        committed offset of their partition, which is needed if the transaction is aborted.
        """
        await trio.lowlevel.checkpoint()
        for number, group in enumerate(list(self.groups.values()), 1):
            if number % GROUPS_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            is_changing = self._store.commits[group.id] or group.state is GroupState.DEAD
            is_here = self.groups.get(group.id) is group
            if is_here and not is_changing and not self._timers.is_suspended(group.id):
                self._expire_offsets_of(group, self._now_ms(), retention_ms)

    def _expire_offsets_of(self, group: Group, now_ms: int, retention_ms: int) -> None:
        offsets = self.offsets.of(group.id)
        pending = self.pending.of(group.id)
        is_empty = group.state is GroupState.EMPTY
        is_stable = group.state is GroupState.STABLE
        empty_since_ms = None
        if is_empty and group.protocol_type is not None:
            empty_since_ms = now_ms - int((trio.current_time() - group.changed_at) * 1000)
        due = expired(
            offsets,
            now_ms,
            retention_ms,
            empty_since_ms=empty_since_ms,
            # During a rebalance, the subscriptions may change.
            in_use=subscribed_topics(group) if is_empty or is_stable else None,
            pending=pending,
        )
        is_unused = len(due) == len(offsets) and not pending
        if is_empty and is_unused and not group.members.pending:
            self._delete(group, _ignore_error)
        elif due:
            self.delete_offsets(group.id, due, _ignore_error)

    def close(self) -> None:
        """Fail waiting calls and all later joins and syncs with COORDINATOR_NOT_AVAILABLE."""
        self._is_closed = True
        for group in self.groups.values():
            group.fail_waiting(error_codes.COORDINATOR_NOT_AVAILABLE)
            self._send_responses(group)

    # Acting on a group's decisions, after each call.

    def _send_responses(self, group: Group) -> None:
        while group.outbox:
            outbox, group.outbox = group.outbox, []
            for reply, result in outbox:
                reply(result)  # type: ignore[operator]  # given to join() or sync(), with this type
        self.on_change()

    def _settle(self, group: Group) -> None:
        self._send_responses(group)
        if not group.is_stored:
            self._store_group(group)
        self._timers.schedule(group.id, group.timeouts.wake_at)

    def _store_group(self, group: Group) -> None:
        note_stored = group.begin_storing()
        snapshot_now = snapshot(group, self._now_ms())

        def stored(error: DatabaseError | None, error_code: int = error_codes.NONE) -> None:
            note_stored(error_code or commit_error(error), trio.current_time())
            if self.groups.get(group.id) is group:
                self._settle(group)
            else:
                self._send_responses(group)  # moved to another node, which runs its timeouts now

        size, most = record_bytes(snapshot_now), self._record_bytes_max()
        if size > most:
            logger.warning(
                "cannot store group %r, so its members must rejoin: their metadata and"
                " assignments take %d bytes, more than message.max.bytes=%d",
                group.id,
                size,
                most,
            )
            stored(None, error_codes.UNKNOWN_SERVER_ERROR)  # as Kafka does
            return
        self._store.put_group(snapshot_now, stored)


def _new_member_id(rng: random.Random, prefix: str) -> str:
    """Return a random member id that begins with ``prefix``, or with as much of it as fits.

    A client id or instance id may itself have the maximum length of a text.
    """
    suffix = f"-{uuid.UUID(bytes=rng.randbytes(16), version=4)}"
    kept = prefix.encode()[: TEXT_BYTES_MAX - len(suffix)]
    return kept.decode(errors="ignore") + suffix


def _ignore_error(error_code: int) -> None:
    """Ignore the result; the store has already logged any error."""
