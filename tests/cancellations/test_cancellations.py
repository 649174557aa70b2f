"""An excerpt of the job, and that it finds what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from cancellations.__main__ import main
from cancellations.run import PROGRAMS, run
from sim.planted import planted
from trionet import ConsumerRecord
from trionet.client.consumer.records._chunk import RecordLoop
from trionet.client.consumer.state._subscription_state import AssignedPartitions
from trionet.client.producer.batching._batch_queues import BatchQueues
from trionet.client.producer.transactions._transaction_state import State, TransactionState

NAMES = list(PROGRAMS)
#: Of the program with faults, whose seeds differ in these.
FIRST_BATCHES_SEEDS = range(NAMES.index("producing.first_batches"), 24 * len(NAMES), len(NAMES))
#: Of each program here; the job goes on until the program has no await point left.
SCHEDULES = 2


@pytest.mark.slow
def test_every_rule_holds_wherever_a_program_is_cancelled() -> None:
    for seed, name in enumerate(NAMES):
        outcome = run(seed, first=1 + 3 * (seed % 3), schedules_max=SCHEDULES)

        assert "" == outcome.violation, name
        assert SCHEDULES == outcome.schedules, name


@pytest.mark.slow
def test_every_rule_holds_for_first_batches_that_are_refused_or_lost() -> None:
    violations = [run(seed, schedules_max=SCHEDULES).violation for seed in FIRST_BATCHES_SEEDS]

    assert [] == list(filter(None, violations))


@pytest.mark.slow
def test_member_that_is_cancelled_while_it_joins_leaves_its_group() -> None:
    """Else the next one would wait until its session expires."""
    seed = NAMES.index("transacting.commit_in_rebalance") + 2 * len(NAMES)

    assert "" == run(seed, schedules_max=5).violation


@pytest.mark.slow
def test_first_batches_find_records_that_are_acknowledged_and_not_there() -> None:
    with planted("infer-written"):
        violations = (run(seed, schedules_max=1).violation for seed in FIRST_BATCHES_SEEDS)

        assert any("was acknowledged" in violation for violation in violations)


@pytest.mark.slow
def test_one_seed_gives_one_course_of_events() -> None:
    first, again = run(0, schedules_max=5), run(0, schedules_max=5)

    assert 5 == first.schedules == again.schedules
    assert first.virtual_seconds == again.virtual_seconds


def lose_a_record(next_record: Any) -> Any:
    """A wait comes after a record was taken."""

    async def losing(self: RecordLoop) -> ConsumerRecord:
        record: ConsumerRecord = await next_record(self)
        await trio.lowlevel.checkpoint()
        return record

    return losing


def commit_what_is_in_hand(_: Any) -> Any:
    return AssignedPartitions.positions


def forget_deliveries(_: Any) -> Any:
    return lambda *_: []


def commit_instead(_: Any) -> Any:
    def abort(self: TransactionState) -> None:
        self.state = State.COMMITTING

    return abort


#: In which program, what, how, and what is told of it.
PLANTED: list[tuple[str, type, str, Callable[[Any], Any], str]] = [
    ("consuming.records", RecordLoop, "wait", lose_a_record, "is next"),
    (
        "grouping.live",
        AssignedPartitions,
        "finished_positions",
        commit_what_is_in_hand,
        "committed",
    ),
    ("producing.live", BatchQueues, "abort_incomplete", forget_deliveries, "not decided"),
    ("transacting.fail", TransactionState, "abort", commit_instead, "was aborted"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "owner", "name", "change", "told"), PLANTED)
def test_what_is_planted_is_found(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    program: str,
    owner: type,
    name: str,
    change: Callable[[Any], Any],
    told: str,
) -> None:
    seed = NAMES.index(program)
    monkeypatch.setattr(owner, name, change(vars(owner)[name]))

    assert 1 == main(["--seed", str(seed), "--schedules", "1"])
    said = capsys.readouterr().out
    assert told in said
    assert f"python3 tests cancellations --seed {seed} --schedules 1" in said
