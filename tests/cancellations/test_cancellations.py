"""An excerpt of the job, and that it finds what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio

from cancellations.__main__ import main
from cancellations.run import PROGRAMS, run
from trionet import ConsumerRecord
from trionet.client.consumer.record_loop import RecordLoop
from trionet.client.consumer.subscription_state import SubscriptionState
from trionet.client.producer.batch_queues import BatchQueues

NAMES = list(PROGRAMS)
#: Of each program here; the job goes on until the program has no await point left.
SCHEDULES = 2


@pytest.mark.slow
def test_every_rule_holds_wherever_a_program_is_cancelled() -> None:
    for seed, name in enumerate(NAMES):
        outcome = run(seed, first=1 + 3 * (seed % 3), schedules_max=SCHEDULES)

        assert "" == outcome.violation, name
        assert SCHEDULES == outcome.schedules, name


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
    return SubscriptionState.positions


def forget_deliveries(_: Any) -> Any:
    return lambda *_: []


#: In which program, what, how, and what is told of it.
PLANTED: list[tuple[str, type, str, Callable[[Any], Any], str]] = [
    ("consuming.records", RecordLoop, "__anext__", lose_a_record, "is next"),
    (
        "grouping.live",
        SubscriptionState,
        "finished_positions",
        commit_what_is_in_hand,
        "committed",
    ),
    ("producing.live", BatchQueues, "abort_incomplete", forget_deliveries, "not decided"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "owner", "name", "planted", "told"), PLANTED)
def test_what_is_planted_is_found(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    program: str,
    owner: type,
    name: str,
    planted: Callable[[Any], Any],
    told: str,
) -> None:
    seed = NAMES.index(program)
    monkeypatch.setattr(owner, name, planted(vars(owner)[name]))

    assert 1 == main(["--seed", str(seed), "--schedules", "1"])
    said = capsys.readouterr().out
    assert told in said
    assert f"python3 tests cancellations --seed {seed} --schedules 1" in said
