"""The coordinator: which group a call is for, when groups are woken, and restarts."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from support.coordinating import EPOCH_MS, Coordinating, coordinating, coordinating_in, virtual_ms
from support.groups import RANGE
from trionet.broker.config._broker_config import BrokerConfig
from trionet.broker.groups._group import GroupState
from trionet.broker.groups._group_coordinator import GroupCoordinator
from trionet.broker.groups._members import Caller, Join
from trionet.broker.storage._database import DATABASE_NAME, IN_MEMORY, open_database
from trionet.protocol import error_codes
from trionet.protocol._wire import TEXT_BYTES_MAX
from trionet.protocol.messages.join_group import JoinGroupResponse
from trionet.protocol.messages.sync_group import SyncGroupResponse

STRANGER = JoinGroupResponse(member_id="nobody", generation_id=1)
UNKNOWN_MEMBER_ID = error_codes.UNKNOWN_MEMBER_ID


async def test_the_first_who_joins_makes_the_group() -> None:
    async with coordinating() as it:
        before = it.state()
        answer = await it.join().answer()

        assert (None, GroupState.COMPLETING) == (before, it.state())
        assert (0, 1) == (answer.error_code, answer.generation_id)
        assert answer.member_id.startswith("c-")
        assert len("c-") + 36 == len(answer.member_id)


async def test_ids_are_never_given_twice() -> None:
    async with coordinating() as it:
        ids = {it.join(must_know_id=True).answers[0].member_id for _ in range(100)}

        assert 100 == len(ids)


@pytest.mark.parametrize("name", ["n" * TEXT_BYTES_MAX, "\u00e9" * (TEXT_BYTES_MAX // 2)])
async def test_an_id_is_never_longer_than_a_response_can_say(name: str) -> None:
    async with coordinating() as it:
        answer = await it.join(instance=name).answer()

        before, after = answer.member_id[:-37], answer.member_id[-37:]
        assert "-" == after[0]
        assert name.startswith(before)
        assert TEXT_BYTES_MAX - 1 <= len(answer.member_id.encode()) <= TEXT_BYTES_MAX


async def test_groups_know_nothing_of_each_other() -> None:
    async with coordinating() as it:
        first, second = await it.stable("a"), await it.stable("b")

        assert [0, UNKNOWN_MEMBER_ID] == [it.heartbeat(first, group=each) for each in "ab"]
        assert [UNKNOWN_MEMBER_ID, 0] == [it.heartbeat(second, group=each) for each in "ab"]


async def test_a_group_must_have_a_name_to_have_members() -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5), group="").answer()  # it may have offsets
        invalid = error_codes.INVALID_GROUP_ID

        assert invalid == it.join(group="").answers[0].error_code
        assert invalid == it.join("c-1", group="").answers[0].error_code
        assert invalid == it.sync(STRANGER, group="").answers[0].error_code
        assert invalid == it.heartbeat(STRANGER, group="")
        assert [invalid] * 2 == it.coordinator.leave("", [("a", None), ("", "b")])


async def test_a_group_that_is_not_there_has_no_members() -> None:
    async with coordinating() as it:
        assert UNKNOWN_MEMBER_ID == it.join("c-1").answers[0].error_code
        assert UNKNOWN_MEMBER_ID == it.sync(STRANGER).answers[0].error_code
        assert UNKNOWN_MEMBER_ID == it.heartbeat(STRANGER)
        assert [UNKNOWN_MEMBER_ID] * 2 == it.coordinator.leave("g", [("a", None), ("", "b")])
        assert it.state() is None


@pytest.mark.parametrize(
    ("session_ms", "is_allowed"),
    [(5999, False), (6000, True), (8191, True), (8192, False), (0, False), (-1, False)],
)
async def test_a_session_has_bounds(session_ms: int, is_allowed: bool) -> None:
    async with coordinating(group_max_session_timeout_ms=8191) as it:
        [answer] = it.join(session=session_ms / 1000, must_know_id=True).answers

        expected = (
            error_codes.MEMBER_ID_REQUIRED if is_allowed else error_codes.INVALID_SESSION_TIMEOUT
        )
        assert expected == answer.error_code
        assert is_allowed == (it.state() is not None)


async def test_a_bound_itself_is_allowed_however_seconds_are_rounded() -> None:
    awkward = [ms for ms in range(6000, 70_000) if ms / 1000 * 1000 != ms]
    assert awkward
    for ms in awkward[:3]:
        async with coordinating(
            group_min_session_timeout_ms=ms, group_max_session_timeout_ms=ms
        ) as it:
            [answer] = it.join(session=ms / 1000, must_know_id=True).answers
            assert error_codes.MEMBER_ID_REQUIRED == answer.error_code


# Time.


async def test_members_are_waited_for_as_the_settings_say(autojump_clock: MockClock) -> None:
    async with coordinating(group_initial_rebalance_delay_ms=3000) as it:
        began = trio.current_time()
        first = it.join()
        await trio.sleep(2)
        second = it.join()

        answers = [await first.answer(), await second.answer()]

        assert 6 == pytest.approx(trio.current_time() - began)
        assert [1, 1] == [answer.generation_id for answer in answers]


async def test_silent_members_are_dropped_although_no_member_calls(
    autojump_clock: MockClock,
) -> None:
    async with coordinating() as it:
        await it.stable(session=10.0)

        await trio.sleep(9.9)
        before = it.state()
        await trio.sleep(0.1)
        await wait_all_tasks_blocked()

        # The rebalance ends at once, as nobody is left.
        assert (GroupState.STABLE, GroupState.EMPTY) == (before, it.state())


async def test_every_group_is_woken_in_its_own_time(autojump_clock: MockClock) -> None:
    sessions = {"a": 30.0, "b": 10.0, "c": 20.0, "d": 10.0, "e": 7.0}
    async with coordinating() as it:
        began = trio.current_time()
        for group, session in sessions.items():
            await it.stable(group, session=session)
        ended: dict[str, float] = {}
        while len(ended) < len(sessions):
            await trio.sleep(0.25)
            for group in sessions:
                if it.state(group) is GroupState.EMPTY and group not in ended:
                    ended[group] = trio.current_time() - began

        assert sessions == pytest.approx(ended, abs=0.26)


async def test_a_failure_in_one_group_leaves_the_others_their_timers(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(answer: JoinGroupResponse) -> None:
        raise ZeroDivisionError("ours")

    async with coordinating(group_initial_rebalance_delay_ms=1000) as it:
        join = Join("", None, "c", "", 10.0, 60.0, "consumer", RANGE)
        it.coordinator.join("bad", join, fail)

        assert 1 == (await it.join(group="good").answer()).generation_id

    [record] = caplog.records
    assert "'bad'" in record.message
    assert record.exc_info is not None


async def test_a_member_that_is_heard_of_in_time_stays(autojump_clock: MockClock) -> None:
    async with coordinating() as it:
        answer = await it.stable(session=10.0)
        for _ in range(20):
            await trio.sleep(9)
            assert error_codes.NONE == it.heartbeat(answer)

        assert GroupState.STABLE is it.state()


class Steps(trio.abc.Instrument):
    """Counts how often any task ran."""

    count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.count += 1


async def test_an_idle_coordinator_sleeps() -> None:
    steps = Steps()
    async with coordinating() as it:
        await it.stable()
        await wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(steps)
        await trio.sleep(0.05)
        trio.lowlevel.remove_instrument(steps)

    assert 1 == steps.count  # this test itself


async def test_wakes_of_a_group_that_was_deleted_do_no_harm(autojump_clock: MockClock) -> None:
    async with coordinating() as it:
        answer = await it.stable(session=10.0)
        it.coordinator.leave("g", [(answer.member_id, None)])
        assert 0 == await it.delete().answer()
        await trio.sleep(5)
        again = await it.stable(session=10.0)
        await trio.sleep(6)  # past what was planned for the first one

        assert error_codes.NONE == it.heartbeat(again)
        await trio.sleep(10.1)
        assert GroupState.EMPTY is it.state()


async def test_plans_that_were_changed_do_not_pile_up(autojump_clock: MockClock) -> None:
    async with coordinating() as it:
        answer = await it.stable(session=10.0)
        for _ in range(1000):
            await trio.sleep(1)
            it.heartbeat(answer)

        assert 10 >= len(it.coordinator._timers.heap)


# Storing.


async def test_assignments_that_cannot_be_stored_are_not_handed_out() -> None:
    async with coordinating() as it:
        answer = await it.join().answer()
        async with it.broken("consumer_group"):
            synced = await it.sync(answer, {answer.member_id: b"x"}).answer()

        assert SyncGroupResponse(error_code=error_codes.COORDINATOR_NOT_AVAILABLE) == synced
        assert GroupState.PREPARING is it.state()
        again = await it.join(answer.member_id).answer()
        assert 2 == again.generation_id
        assert b"y" == (await it.sync(again, {answer.member_id: b"y"}).answer()).assignment


async def test_a_static_member_learns_its_new_id_when_that_is_stored() -> None:
    async with coordinating() as it:
        await it.stable(instance="i")

        asked = it.join(instance="i")

        assert [] == asked.answers
        answer = await asked.answer()
        assert (0, 1) == (answer.error_code, answer.generation_id)
        assert 0 == it.heartbeat(answer, instance="i")


async def test_it_has_to_ask_again_if_its_new_id_cannot_be_stored() -> None:
    async with coordinating() as it:
        await it.stable(instance="i")
        async with it.broken("consumer_group"):
            refused = await it.join(instance="i").answer()
        answer = await it.join(instance="i").answer()

        assert (error_codes.COORDINATOR_NOT_AVAILABLE, "") == (
            refused.error_code,
            refused.member_id,
        )
        assert 0 == it.heartbeat(answer, instance="i")


async def test_others_may_have_agreed_on_a_protocol_of_it_before_that_is_known(
    autojump_clock: MockClock,
) -> None:
    async with coordinating() as it:
        first = await it.join(
            instance="i", session=300.0, protocols={"range": b"", "sticky": b""}
        ).answer()
        joining = it.join(session=300.0, protocols={"range": b"", "lag": b""})
        leader = it.join(
            first.member_id, instance="i", session=300.0, protocols={"range": b"", "sticky": b""}
        )
        other = await joining.answer()
        it.sync(await leader.answer(), instance="i")
        await it.sync(other).answer()
        async with it.broken("consumer_group"):
            refused = it.join(instance="i", session=300.0, protocols={"range": b"", "lag": b""})
            asked = it.join(other.member_id, session=300.0, protocols={"lag": b""})
            assert error_codes.COORDINATOR_NOT_AVAILABLE == (await refused.answer()).error_code

        assert "lag" == (await asked.answer()).protocol_name


# The end.


async def test_a_closed_one_keeps_no_task_waiting() -> None:
    async with coordinating(group_initial_rebalance_delay_ms=60_000) as it:
        joining = it.join(must_know_id=False)
        await wait_all_tasks_blocked()
        assert [] == joining.answers

        it.coordinator.close()
        later = it.join()
        synced = it.sync(STRANGER)

        closed = error_codes.COORDINATOR_NOT_AVAILABLE
        assert [closed] * 3 == [
            joining.answers[0].error_code,
            later.answers[0].error_code,
            synced.answers[0].error_code,
        ]


async def test_it_takes_commits_to_its_end() -> None:
    """Consumers that are told of the end want to keep what they have read."""
    async with coordinating() as it:
        answer = await it.stable()
        it.coordinator.close()

        caller = Caller(answer.member_id, None, answer.generation_id)
        assert 0 == await it.commit(("t", 0, 7), caller=caller).answer()
        assert 0 == it.heartbeat(answer)
        assert [0] == it.coordinator.leave("g", [(answer.member_id, None)])


async def test_a_callback_of_a_response_may_call_again(autojump_clock: MockClock) -> None:
    """A reply that joins at once, as no socket does, finds a group that is whole."""
    async with coordinating(group_initial_rebalance_delay_ms=1000) as it:
        answers: list[JoinGroupResponse] = []
        are_all_there = trio.Event()

        def again(answer: JoinGroupResponse) -> None:
            answers.append(answer)
            if len(answers) < 3:
                join(answer.member_id)
            else:
                are_all_there.set()

        def join(id: str) -> None:
            it.coordinator.join("g", Join(id, None, "c", "", 10.0, 60.0, "consumer", RANGE), again)

        join("")
        await are_all_there.wait()

        assert [1, 1, 1] == [answer.generation_id for answer in answers]


async def test_no_member_is_silent_while_no_node_can_hear(autojump_clock: MockClock) -> None:
    async with coordinating() as it:
        joined = await it.stable(session=10.0)
        await it.commit(("t", 0, 5)).answer()
        it.coordinator.hand_over(lambda _: None)
        await trio.sleep(3600)
        await it.coordinator.expire_offsets(1)
        assert GroupState.STABLE is it.state()

        it.coordinator.hand_over(lambda _: it.coordinator)

        await trio.sleep(9)  # the session begins with the node that can hear again
        assert 0 == it.heartbeat(joined)
        await trio.sleep(11)
        assert GroupState.EMPTY is it.state()


async def test_a_group_that_no_node_coordinates_is_woken_by_no_write(
    autojump_clock: MockClock,
) -> None:
    async with coordinating() as it:
        joined = await it.join(session=10.0).answer()
        it.sync(joined, {joined.member_id: b"assigned"})
        it.coordinator.hand_over(lambda _: None)
        await it.writes.flush()

        assert {} == it.coordinator._timers.scheduled


async def test_a_group_that_goes_to_another_node_while_it_is_stored_leaves_no_timer_behind() -> (
    None
):
    async with coordinating() as it:
        joined = await it.join().answer()
        synced = it.sync(joined, {joined.member_id: b"assigned"})
        other = GroupCoordinator(BrokerConfig.from_settings({}), it.coordinator._store, virtual_ms)
        it.coordinator.hand_over(lambda _: other)
        await it.writes.flush()

        assert SyncGroupResponse(error_code=error_codes.NOT_COORDINATOR) == await synced.answer()
        assert {} == it.coordinator._timers.scheduled
        assert ["g"] == list(other.groups) == list(other._timers.scheduled)


def next_node(it: Coordinating) -> Coordinating:
    """The coordinator of another node, to which all groups move."""
    config = BrokerConfig.from_settings({"group.initial.rebalance.delay.ms": 0})
    other = GroupCoordinator(config, it.store, virtual_ms)
    it.coordinator.hand_over(lambda _: other)
    return Coordinating(other, it.database, it.store, it.writes)


async def test_who_starts_anew_before_the_first_generation_can_join_at_the_next_node() -> None:
    """A static member that was in no generation is not stored, and so is unknown there."""
    async with coordinating(group_initial_rebalance_delay_ms=60_000) as it:
        it.join(instance="i")
        again = it.join(instance="i")
        there = next_node(it)

        joined = await there.join(instance="i").answer()

        assert error_codes.NOT_COORDINATOR == (await again.answer()).error_code
        assert (0, 1) == (joined.error_code, joined.generation_id)
        assert [joined.member_id] == [each.id for each in there.coordinator.groups["g"].members]


async def test_who_starts_anew_before_its_first_generation_is_dropped_by_the_next_node() -> None:
    async with coordinating() as it:
        known = await it.stable(instance="known")
        it.join(instance="new", protocols={"range": b"", "other": b""})
        it.join(instance="new", protocols={"range": b"", "other": b""})

        there = next_node(it)

        assert [known.member_id] == [each.id for each in there.coordinator.groups["g"].members]


async def test_the_retention_of_an_empty_group_goes_on_at_the_next_node(
    autojump_clock: MockClock,
) -> None:
    async with coordinating() as it:
        joined = await it.stable()
        caller = Caller(joined.member_id, None, joined.generation_id)
        await it.commit(("t", 0, 5), caller=caller).answer()
        it.coordinator.leave("g", [(joined.member_id, None)])
        await trio.sleep(40_000)

        there = next_node(it)
        await trio.sleep(40_000)
        await there.coordinator.expire_offsets(86_400_000)
        await it.writes.flush()
        assert {("t", 0): 5} == there.offsets()

        await trio.sleep(7_000)
        await there.coordinator.expire_offsets(86_400_000)
        await it.writes.flush()
        assert {} == there.offsets()
        assert there.state() is None


@pytest.mark.parametrize("is_broken", [False, True])
async def test_a_group_that_moves_while_it_is_deleted_does_not_come_back(is_broken: bool) -> None:
    """Else it would take the place of a new one of its name at the next move."""
    async with coordinating() as it, contextlib.AsyncExitStack() as stack:
        await it.commit(("t", 0, 5)).answer()
        if is_broken:
            await stack.enter_async_context(it.broken("committed_offset"))
        deleted = it.delete()
        there = next_node(it)
        refused = await there.join().answer()
        code = await deleted.answer()
        await it.writes.flush()
        await stack.aclose()

        assert error_codes.COORDINATOR_NOT_AVAILABLE == refused.error_code
        assert {} == it.coordinator.groups
        if is_broken:
            assert error_codes.COORDINATOR_NOT_AVAILABLE == code
            assert GroupState.EMPTY is there.state()
            assert {("t", 0): 5} == there.offsets()
        else:
            assert 0 == code
            assert there.state() is None
        joined = await there.stable()
        it.coordinator.hand_over(lambda _: there.coordinator)
        assert 0 == there.heartbeat(joined)


async def test_a_group_that_could_not_be_deleted_while_it_had_no_node_is_there_again() -> None:
    async with coordinating() as it:
        await it.commit(("t", 0, 5)).answer()
        async with it.broken("committed_offset"):
            deleted = it.delete()
            it.coordinator.hand_over(lambda _: None)
            assert error_codes.COORDINATOR_NOT_AVAILABLE == await deleted.answer()

        there = next_node(it)

        assert GroupState.EMPTY is there.state()
        assert 0 == await there.delete().answer()


# Groups that Kafka could not write: the figures are those of a real Apache Kafka 4.3.1.


@pytest.mark.parametrize(("size", "is_stored"), [(1_048_000, True), (1_048_588, False)])
async def test_an_assignment_that_no_record_holds_is_refused_as_kafka_does(
    size: int, is_stored: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with coordinating() as it:
        joined = await it.join().answer()
        synced = await it.sync(joined, {joined.member_id: bytes(size)}).answer()

        if is_stored:
            assert (0, bytes(size)) == (synced.error_code, synced.assignment)
            assert GroupState.STABLE is it.state()
            return
        assert (error_codes.UNKNOWN_SERVER_ERROR, b"") == (synced.error_code, synced.assignment)
        assert GroupState.PREPARING is it.state()
        assert error_codes.REBALANCE_IN_PROGRESS == (await it.sync(joined).answer()).error_code
        assert "more than message.max.bytes=1048588" in caplog.text

        again = await it.join(joined.member_id).answer()
        synced = await it.sync(again, {again.member_id: b"small"}).answer()
        assert (0, b"small") == (synced.error_code, synced.assignment)


async def test_what_members_say_of_themselves_counts_too() -> None:
    async with coordinating(message_max_bytes=1000) as it:
        joined = await it.join(protocols={"range": bytes(900)}).answer()
        assert 0 == joined.error_code

        synced = await it.sync(joined, {joined.member_id: bytes(100)}).answer()

        assert error_codes.UNKNOWN_SERVER_ERROR == synced.error_code


DAY_MS = 24 * 3_600_000


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / DATABASE_NAME)


async def expire(it: Coordinating) -> None:
    """One round, with a retention of a day."""
    await it.coordinator.expire_offsets(DAY_MS)
    await it.writes.flush()


async def test_a_member_goes_on_where_it_was(path: str) -> None:
    async with coordinating(path) as it:
        answer = await it.stable()
        caller = Caller(answer.member_id, None, answer.generation_id)
        await it.commit(("t", 0, 5), ("t", 1, 6), caller=caller).answer()

    async with coordinating(path) as it:
        assert 0 == it.heartbeat(answer)
        assert (
            SyncGroupResponse(
                protocol_type="consumer", protocol_name="range", assignment=b"assigned"
            )
            == await it.sync(answer).answer()
        )
        assert {("t", 0): 5, ("t", 1): 6} == it.offsets()
        assert 0 == await it.commit(("t", 0, 7), caller=caller).answer()
        assert {("t", 0): 7, ("t", 1): 6} == it.offsets()


async def test_who_never_comes_back_is_dropped(autojump_clock: MockClock) -> None:
    async with open_database(IN_MEMORY) as database:
        async with coordinating_in(database) as it:
            await it.stable(session=10.0)
        async with coordinating_in(database) as it:
            began = trio.current_time()
            assert GroupState.STABLE is it.state()

            await trio.sleep(9.9)
            before = it.state()
            await trio.sleep(0.1)
            await wait_all_tasks_blocked()

            assert (GroupState.STABLE, GroupState.EMPTY) == (before, it.state())
            assert 10 == pytest.approx(trio.current_time() - began)


async def test_a_static_member_keeps_its_last_id(path: str) -> None:
    async with coordinating(path) as it:
        first = await it.stable(instance="i")
        second = await it.join(instance="i").answer()

    async with coordinating(path) as it:
        assert error_codes.FENCED_INSTANCE_ID == it.heartbeat(first, instance="i")
        assert 0 == it.heartbeat(second, instance="i")


async def test_a_group_that_only_has_offsets_is_there(path: str) -> None:
    async with coordinating(path) as it:
        await it.commit(("t", 0, 5)).answer()

    async with coordinating(path) as it:
        assert (GroupState.EMPTY, {("t", 0): 5}) == (it.state(), it.offsets())
        assert 0 == await it.commit(("t", 0, 6)).answer()
        assert 0 == await it.delete().answer()

    async with coordinating(path) as it:
        assert (None, {}) == (it.state(), it.offsets())


async def test_its_offsets_expire_in_the_end(path: str) -> None:
    async with coordinating(path, now_ms=lambda: EPOCH_MS) as it:
        await it.commit(("t", 0, 5)).answer()

    async with coordinating(path, now_ms=lambda: EPOCH_MS + DAY_MS) as it:
        await expire(it)
        assert (None, {}) == (it.state(), it.offsets())


async def test_the_retention_goes_on_while_the_broker_is_down(path: str) -> None:
    async with coordinating(path, now_ms=lambda: EPOCH_MS) as it:
        answer = await it.stable()
        caller = Caller(answer.member_id, None, answer.generation_id)
        await it.commit(("t", 0, 5), caller=caller).answer()
        it.coordinator.leave("g", [(answer.member_id, None)])
        await it.writes.flush()

    # Two seconds are more than this test takes.
    async with coordinating(path, now_ms=lambda: EPOCH_MS + DAY_MS - 2000) as it:
        await expire(it)
        assert {("t", 0): 5} == it.offsets()
    async with coordinating(path, now_ms=lambda: EPOCH_MS + DAY_MS) as it:
        await expire(it)
        assert (None, {}) == (it.state(), it.offsets())


async def test_a_clock_that_was_set_back_makes_nothing_old(path: str) -> None:
    async with coordinating(path, now_ms=lambda: EPOCH_MS) as it:
        answer = await it.stable()
        caller = Caller(answer.member_id, None, answer.generation_id)
        await it.commit(("t", 0, 5), caller=caller).answer()
        it.coordinator.leave("g", [(answer.member_id, None)])
        await it.writes.flush()

    async with coordinating(path, now_ms=lambda: EPOCH_MS - 10 * DAY_MS) as it:
        await expire(it)
        assert {("t", 0): 5} == it.offsets()


async def test_a_group_that_all_have_left_goes_on_counting(path: str) -> None:
    async with coordinating(path) as it:
        answer = await it.stable()
        caller = Caller(answer.member_id, None, answer.generation_id)
        await it.commit(("t", 0, 5), caller=caller).answer()
        it.coordinator.leave("g", [(answer.member_id, None)])
        await it.writes.flush()

    async with coordinating(path) as it:
        assert GroupState.EMPTY is it.state()
        assert 3 == (await it.join().answer()).generation_id


async def test_a_group_that_has_become_too_large_has_all_join_again(path: str) -> None:
    async with coordinating(path) as it:
        first = await it.stable(rebalance=60.0)
        second = it.join()
        again = await it.join(first.member_id).answer()
        await it.sync(again).answer()
        other = await second.answer()

    async with coordinating(path, group_max_size=1) as it:
        assert error_codes.REBALANCE_IN_PROGRESS == it.heartbeat(again)
        joined = it.join(other.member_id)
        refused = it.join(first.member_id)

        assert [error_codes.GROUP_MAX_SIZE_REACHED] == [a.error_code for a in refused.answers]
        assert 3 == (await joined.answer()).generation_id


async def test_an_id_that_was_given_is_not_kept(path: str) -> None:
    async with coordinating(path) as it:
        [given] = it.join(must_know_id=True).answers

    async with coordinating(path) as it:
        [refused] = it.join(given.member_id).answers
        assert error_codes.UNKNOWN_MEMBER_ID == refused.error_code
        assert it.state() is None
