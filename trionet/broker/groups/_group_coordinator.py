"""All groups of a node: finds them, keeps their time, stores what they decide, sends answers.

(Kafka: GroupCoordinatorService.) Every call changes a :class:`Group` at once and then lets go: what
the group wants told is told, what it wants stored is queued, and it is noted when it wants to be
woken. Nothing here waits, so no call holds a handler. Groups of other protocols (KIP-848, KIP-932)
would stand beside :class:`Group`, with the same offsets.

Each node of a cluster coordinates the groups whose partition of ``__consumer_offsets`` it leads,
and tells the members of others to look for their coordinator. When a partition gets another leader,
its groups go over as they would be read from that topic: calls that wait are turned away, members
have their session timeout to be heard of again, and a rebalance under way begins anew.
"""

from __future__ import annotations

import heapq
import logging
import math
import random
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import trio

from ...net._network import SYSTEM
from ...protocol import error_codes
from ._committed_offsets import CommittedOffset, Partition, expired
from ._group import Group
from ._group_record import record_bytes
from ._group_state import GroupSettings, GroupState
from ._group_store import GroupStore, put_group, put_offsets, remove_group, remove_offsets
from ._member import Caller, Join
from ._responses import JoinAnswer, SyncAnswer
from ._stored_group import restored, snapshot, taken_over
from ._subscribed_topics import subscribed_topics

if TYPE_CHECKING:
    from ..config._broker_config import BrokerConfig
    from ..storage._database import DatabaseError


logger = logging.getLogger("trionet.broker")


class GroupCoordinator:
    """The groups of a node and their offsets.

    Args:
        config: the node's settings.
        store: where groups are kept.
        now_ms: the time in ms since the epoch.
        coordinates: whether this node is the coordinator of a group; None if it is of all.
        chance: what ids of members are drawn from.
        record_bytes_max: the most that is stored of a group, by the settings that count then; by
            default those of ``config`` (``message.max.bytes``).

    Attributes:
        groups: by their ids.
        offsets: what they have committed.
        on_change: called after a group or its offsets may have changed, for who watches them.
    """

    def __init__(
        self,
        config: BrokerConfig,
        store: GroupStore,
        now_ms: Callable[[], int],
        coordinates: Callable[[str], bool] | None = None,
        chance: random.Random = SYSTEM.chance,
        record_bytes_max: Callable[[], int] | None = None,
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = store.offsets
        self.on_change: Callable[[], None] = _nobody_watches
        self._store = store
        self._commits = store.commits
        self._now_ms = now_ms
        self._coordinates = coordinates
        self._record_bytes_max = record_bytes_max or partial(config.integer, "message.max.bytes")
        self._settings = GroupSettings(
            initial_delay=config.integer("group.initial.rebalance.delay.ms") / 1000,
            members_max=config.integer("group.max.size"),
            make_member_id=lambda prefix: (
                f"{prefix}-{uuid.UUID(bytes=chance.randbytes(16), version=4)}"
            ),
        )
        self._session_ms = (
            config.integer("group.min.session.timeout.ms"),
            config.integer("group.max.session.timeout.ms"),
        )
        self._wakes: list[tuple[float, str]] = []
        self._planned: dict[str, float] = {}
        self._waiting: set[str] = set()
        self._sleep = trio.CancelScope()
        self._is_closed = False

    @property
    def _closed_error(self) -> int:
        return error_codes.COORDINATOR_NOT_AVAILABLE if self._is_closed else error_codes.NONE

    def elsewhere(self, group_id: str) -> int:
        """NOT_COORDINATOR if a group is another node's, else NONE."""
        if self._coordinates is None or self._coordinates(group_id):
            return error_codes.NONE
        return error_codes.NOT_COORDINATOR

    async def load(self) -> None:
        """Take up what the database has; its members have their session timeout to come back.

        Raises:
            DatabaseError: it cannot be read.
        """
        groups, offsets = await self._store.load()
        now = trio.current_time()
        for stored in groups:
            if self.elsewhere(stored.id):
                continue
            group = self.groups[stored.id] = restored(stored, self._settings, now)
            group.changed_at = now - max(self._now_ms() - stored.changed_at_ms, 0) / 1000
            self._plan(group)
        for group_id, each in offsets.items():
            self.offsets.put(group_id, each)
            # One that never had members has nothing else stored.
            if group_id not in self.groups and not self.elsewhere(group_id):
                self.groups[group_id] = Group(group_id, self._settings, now)

    async def run(self) -> None:
        """Keep the groups' time, until cancelled; the store runs beside it."""
        wakes = self._wakes
        while True:
            now = trio.current_time()
            due = []
            while wakes and wakes[0][0] <= now:
                due.append(heapq.heappop(wakes))
            for at, group_id in due:
                if self._planned.get(group_id) == at:
                    del self._planned[group_id]
                    group = self.groups[group_id]
                    group.expire(now)
                    self._settle(group)
            self._sleep = trio.CancelScope(deadline=wakes[0][0] if wakes else math.inf)
            with self._sleep:
                await trio.sleep_forever()

    # From node to node.

    def hand_over(self, coordinator_of: Callable[[str], GroupCoordinator | None]) -> None:
        """Give groups to the nodes that coordinate them now.

        Those without one stay here, and nobody is served, until there is one. Their time stands
        still: who cannot be heard of is not silent.
        """
        for group in list(self.groups.values()):
            new = coordinator_of(group.id)
            if group.state is GroupState.DEAD or (new is self and group.id not in self._waiting):
                continue
            group.turn_away(error_codes.NOT_COORDINATOR)
            self._send_answers(group)
            self._planned.pop(group.id, None)
            if new is None:
                self._waiting.add(group.id)
            else:
                self._waiting.discard(group.id)
                del self.groups[group.id]
                new.take_over(group)

    def take_over(self, old: Group) -> None:
        """Go on with a group of another node."""
        now = trio.current_time()
        changed_at_ms = self._now_ms() - round(max(now - old.changed_at, 0) * 1000)
        group = taken_over(old, self._settings, changed_at_ms, now)
        self.groups[group.id] = group
        self._settle(group)

    # Members.

    def join(self, group_id: str, join: Join, reply: Callable[[JoinAnswer], None]) -> None:
        """A JoinGroup; ``reply`` is called with its answer, now or later."""
        error_code = (
            self._closed_error or self.elsewhere(group_id) or self._check_join(group_id, join)
        )
        if error_code:
            reply(JoinAnswer(join.member_id, error_code))
            return
        now = trio.current_time()
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, self._settings, now)
        group.join(join, reply, now)
        self._settle(group)

    def _check_join(self, group_id: str, join: Join) -> int:
        lowest, highest = self._session_ms
        if not group_id:
            return error_codes.INVALID_GROUP_ID
        if not lowest <= round(join.session_seconds * 1000) <= highest:
            return error_codes.INVALID_SESSION_TIMEOUT
        if join.member_id and group_id not in self.groups:
            return error_codes.UNKNOWN_MEMBER_ID
        return error_codes.NONE

    def sync(
        self,
        group_id: str,
        caller: Caller,
        protocol: tuple[str | None, str | None],
        assignments: Mapping[str, bytes],
        reply: Callable[[SyncAnswer], None],
    ) -> None:
        """A SyncGroup; ``reply`` is called with its answer, now or later."""
        group = self._group_with_members(group_id)
        if group is None or self._is_closed:
            reply(SyncAnswer(self._closed_error or self._missing(group_id)))
            return
        group.sync(caller, assignments, reply, trio.current_time(), protocol)
        self._settle(group)

    def heartbeat(self, group_id: str, caller: Caller) -> int:
        """A Heartbeat; its error code."""
        group = self._group_with_members(group_id)
        if group is None:
            return self._missing(group_id)
        error_code = group.heartbeat(caller, trio.current_time())
        self._settle(group)
        return error_code

    def leave(self, group_id: str, leaving: Sequence[tuple[str, str | None]]) -> list[int]:
        """A LeaveGroup of members by id and instance id; the error code of each."""
        group = self._group_with_members(group_id)
        if group is None:
            return [self._missing(group_id)] * len(leaving)
        codes = group.leave(leaving, trio.current_time())
        self._settle(group)
        return codes

    def expire_members(self, group_id: str, member_ids: Iterable[str] | None = None) -> None:
        """Take members, or all of a group, for silent since their session timeout.

        Who waits for an answer cannot be silent, and stays.
        """
        group = self.groups[group_id]
        now = trio.current_time()
        for member in group.members:
            if member_ids is None or member.id in member_ids:
                member.expires_at = now
        group.expire(now)
        self._settle(group)

    def turn_away(self, group_id: str, error_code: int) -> None:
        """Answer the calls that wait in a group with an error, as when its coordinator moves."""
        group = self.groups[group_id]
        group.turn_away(error_code)
        self._send_answers(group)

    def _group_with_members(self, group_id: str) -> Group | None:
        """A group that one can be a member of; the one without a name has offsets only."""
        return self.groups.get(group_id) if group_id and not self.elsewhere(group_id) else None

    def _missing(self, group_id: str) -> int:
        """Why nobody is a member here of a group that is not here."""
        if not group_id:
            return error_codes.INVALID_GROUP_ID
        return self.elsewhere(group_id) or error_codes.UNKNOWN_MEMBER_ID

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
        """An OffsetCommit; ``done`` is called with its error code when it is stored, or refused.

        Who says to be in a generation of a group that is not there is told ``missing``.
        """
        error_code = self.elsewhere(group_id) or self._check_commit(group_id, caller, missing)
        if error_code or not offsets:
            done(error_code)
            return

        def stored(error: DatabaseError | None) -> None:
            self._commits[group_id] -= 1
            if not self._commits[group_id]:
                del self._commits[group_id]
            if error is None:
                self.offsets.put(group_id, offsets)
            self.on_change()
            done(_storage_error(error))

        self._commits[group_id] += 1
        self._store.write(put_offsets(group_id, offsets), stored)

    def _check_commit(self, group_id: str, caller: Caller, missing: int) -> int:
        now = trio.current_time()
        group = self.groups.get(group_id)
        if group is None:
            if caller.generation >= 0:
                return missing
            # Who manages its partitions by itself keeps offsets under a group's name all the same.
            self.groups[group_id] = Group(group_id, self._settings, now)
            return error_codes.NONE
        error_code = group.check_commit(caller, now)
        self._settle(group)
        return error_code

    def delete_offsets(
        self, group_id: str, partitions: Iterable[Partition], done: Callable[[int], None]
    ) -> None:
        """Drop some offsets of a group; ``done`` is called with the error code."""
        dropped = list(partitions)

        def stored(error: DatabaseError | None) -> None:
            if error is None:
                self.offsets.remove(group_id, dropped)
            self.on_change()
            done(_storage_error(error))

        self._store.write(remove_offsets(group_id, dropped), stored)

    # Groups.

    def delete(self, group_id: str, done: Callable[[int], None]) -> None:
        """Delete an empty group and its offsets; ``done`` is called with the error code."""
        if self.elsewhere(group_id):
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
        # Dead from here on: who joins or commits now is told to try again.
        group.state = GroupState.DEAD

        def stored(error: DatabaseError | None) -> None:
            if error is None:
                self.offsets.remove_group(group.id)
                if self.groups.get(group.id) is group:  # and not a new one that has come over
                    del self.groups[group.id]
                    self._planned.pop(group.id, None)
            else:
                group.state = GroupState.EMPTY
            self.on_change()
            done(_storage_error(error))

        self._store.write(remove_group(group.id), stored)

    def expire_offsets(self, retention_ms: int) -> None:
        """Drop the offsets that nobody has needed for a while, and groups that nothing is left of.

        (KIP-211; Kafka: cleanupExpiredOffsets.)
        """
        now_ms = self._now_ms()
        for group in list(self.groups.values()):
            if self._commits[group.id] or group.state is GroupState.DEAD:
                continue  # what is known here of its offsets is about to change
            if group.id in self._waiting:
                continue
            offsets = self.offsets.of(group.id)
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
                # While members change, so may what they read.
                in_use=subscribed_topics(group) if is_empty or is_stable else None,
            )
            if is_empty and len(due) == len(offsets) and not group.has_pending:
                self._delete(group, _nobody_asked)
            elif due:
                self.delete_offsets(group.id, due, _nobody_asked)

    def close(self) -> None:
        """Answer all that waits, or would from now on, with COORDINATOR_NOT_AVAILABLE."""
        self._is_closed = True
        for group in self.groups.values():
            group.turn_away(error_codes.COORDINATOR_NOT_AVAILABLE)
            self._send_answers(group)

    async def flush(self) -> None:
        """Wait until everything that was decided so far is stored, or could not be."""
        await self._store.flush()

    # What a group wants after each call.

    def _send_answers(self, group: Group) -> None:
        while group.outbox:
            outbox, group.outbox = group.outbox, []
            for reply, answer in outbox:
                reply(answer)  # type: ignore[operator]  # it came through join() or sync()
        self.on_change()

    def _settle(self, group: Group) -> None:
        self._send_answers(group)
        if not group.is_stored:
            self._store_group(group)
        self._plan(group)

    def _store_group(self, group: Group) -> None:
        tell_group = group.being_stored()
        snapshot_now = snapshot(group, self._now_ms())

        def stored(error: DatabaseError | None, error_code: int = error_codes.NONE) -> None:
            tell_group(error_code or _storage_error(error), trio.current_time())
            if self.groups.get(group.id) is group:
                self._settle(group)
            else:
                self._send_answers(group)  # it is another node's by now, and so is its time

        size, most = record_bytes(snapshot_now), self._record_bytes_max()
        if size > most:
            logger.warning(
                "the group %r is not stored, and its members have to join again: what they say of"
                " themselves and their assignments take %d bytes; allowed: message.max.bytes, %d",
                group.id,
                size,
                most,
            )
            stored(None, error_codes.UNKNOWN_SERVER_ERROR)  # as Kafka's group coordinator
            return
        self._store.write(put_group(snapshot_now), stored)

    def _plan(self, group: Group) -> None:
        if group.id in self._waiting:
            return
        if group.wake_at < self._planned.get(group.id, math.inf):
            self._planned[group.id] = group.wake_at
            heapq.heappush(self._wakes, (group.wake_at, group.id))
            if self._wakes[0] == (group.wake_at, group.id):
                self._sleep.cancel(reason="a group wants to be woken earlier")


def _storage_error(error: DatabaseError | None) -> int:
    # Clients try again on this one; KAFKA_STORAGE_ERROR means nothing to a committing consumer.
    return error_codes.NONE if error is None else error_codes.COORDINATOR_NOT_AVAILABLE


def _nobody_asked(error_code: int) -> None:
    """The log of the store tells of the error."""


def _nobody_watches() -> None:
    """What :attr:`GroupCoordinator.on_change` is outside of tests."""
