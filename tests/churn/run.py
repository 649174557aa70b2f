"""One run: members of three libraries come, leave and crash, while records are written and read.

Storms, in which somebody comes, leaves or crashes all the time, alternate with quiet in which the
group has to settle: it is Stable, and has exactly the members that live. That is counted from when
the broker last saw a member come or go: how long a client takes to start is its own affair, and one
that has crashed goes when its session ends. (If it waited for a response when it crashed, its
session begins when the response is sent, as in Kafka.)
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs
import trio

from churn.ledger import Ledger, NotesReader
from churn.libraries import LIBRARIES, Settings
from churn.processes import Crowd, MemberProcess
from churn.producing import Producing
from trionet.broker.groups._group import Group, GroupState
from trionet.broker.run._broker import Broker, open_broker

GROUP, TOPIC = "churn", "churned"
#: How long a group may take to settle.
SETTLE_SECONDS_MAX = 2.0
#: How late a member that has crashed may be dropped.
EXPIRY_SECONDS_MAX = 0.5
#: Given up after this, in a run that is bad anyway.
PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.005
_CHECK_SECONDS = 0.2
_STORM_SECONDS = (1.0, 5.0)
_PAUSE_SECONDS = (0.02, 0.4)
_KILL_SHARE = 0.06


@attrs.frozen
class Wanted:
    """What to run.

    Attributes:
        seconds: of storms and quiet.
        members: how many there are when all are there.
        processes: for each library.
        session_ms: after which silent members are dropped.
        records_per_second: to be written.
        seed: of what is drawn.
    """

    seconds: float
    members: int
    processes: int
    session_ms: int
    records_per_second: int
    seed: int

    @property
    def partitions(self) -> int:
        """Everybody has something to read."""
        return self.members + self.members // 5


@attrs.define
class Outcome:
    """What came of a run.

    Attributes:
        settled: seconds that each quiet took to settle.
        changes: how often what happened.
        written: records.
        processed: records, those that were read again included.
        wrong: in words.
        late: when the group took too long to settle, in words.
    """

    settled: list[float] = attrs.field(factory=list)
    changes: dict[str, int] = attrs.field(
        factory=lambda: dict.fromkeys(("came", "left", "crashed"), 0)
    )
    generations: int = 0
    written: int = 0
    processed: int = 0
    wrong: list[str] = attrs.field(factory=list)
    late: list[str] = attrs.field(factory=list)

    def complaints(self) -> list[str]:
        return self.late + list(dict.fromkeys(self.wrong))


class Churn:
    """The run while it goes on."""

    def __init__(
        self, wanted: Wanted, broker: Broker, crowd: Crowd, notes: NotesReader, outcome: Outcome
    ) -> None:
        self.outcome = outcome
        self.ledger = Ledger(wanted.partitions)
        self._wanted = wanted
        self._chance = random.Random(wanted.seed)
        self._groups = broker._state.groups
        self._crowd = crowd
        self._notes = notes
        self._changed_at = 0.0
        self._seen: set[str] = set()  # the ids of the members when it last looked

    @property
    def _group(self) -> Group | None:
        return self._groups.groups.get(GROUP)

    def line(self) -> str:
        """Where it is, for whoever watches."""
        group = self._group
        state = "none" if group is None else f"{group.state.value}, generation {group.generation}"
        outcome = self.outcome
        return (
            f"{state}, {len(self._crowd.members)} members; {outcome.changes};"
            f" {self.ledger.distinct:,} of {outcome.written:,} records processed;"
            f" settled {len(outcome.settled)} times, max {max(outcome.settled, default=0):.2f} s"
        )

    # Those who come and go.

    async def begin(self) -> None:
        """All processes and all members are there."""
        async with trio.open_nursery() as nursery:
            for library in LIBRARIES:
                for _ in range(self._wanted.processes):
                    nursery.start_soon(self._crowd.start, library)
        for number in range(self._wanted.members):
            await self._crowd.join(self._crowd.processes[number % len(self._crowd.processes)])
        await self._wait_until(self._is_settled, "settled at the start")

    async def keep_watching(self) -> None:
        """Note when members come and go, and that those who have crashed go in time."""
        while True:
            self._watch()
            await trio.sleep(_LOOK_SECONDS)

    def _watch(self) -> None:
        now = trio.current_time()
        members = {} if self._group is None else {each.id: each for each in self._group.members}
        if members.keys() != self._seen:
            self._seen = set(members)
            self._changed_at = now
        for member in members.values():
            waits = member.is_joining or member.is_syncing  # for a response, which begins a session
            if member.expires_at < now - EXPIRY_SECONDS_MAX and not waits:
                self.outcome.wrong.append(f"{member.client_id} is not dropped when it is time")

    async def storm(self) -> None:
        """Somebody comes, leaves or crashes, again and again."""
        with trio.move_on_after(self._chance.uniform(*_STORM_SECONDS)):
            while True:
                await trio.sleep(self._chance.uniform(*_PAUSE_SECONDS))
                with trio.CancelScope(shield=True):  # a change is made wholly or not at all
                    await self._change()

    async def _change(self) -> None:
        crowd, rng, changes = self._crowd, self._chance, self.outcome.changes
        process = rng.choice(crowd.processes)
        count = len(crowd.members)
        if rng.random() < _KILL_SHARE and count > self._wanted.members // 2:
            await self.crash(process)
        elif count < self._wanted.members and rng.random() < 0.6:
            emptiest = min(crowd.processes, key=lambda each: len(each.members))
            changes["came"] += 1
            await crowd.join(emptiest)
        elif process.members and count > self._wanted.members // 2:
            changes["left"] += 1
            await crowd.leave(process, rng.choice(sorted(process.members)))

    async def crash(self, process: MemberProcess | None = None) -> None:
        """A process is killed; another takes its place, and members come to it one by one."""
        process = process or self._chance.choice(self._crowd.processes)
        self.outcome.changes["crashed"] += len(process.members)
        self._crowd.kill(process)
        await self._crowd.start(process.library)

    # What has to be true.

    def _is_settled(self) -> bool:
        group = self._group
        return (
            group is not None
            and group.state is GroupState.STABLE
            and sorted(member.client_id for member in group.members) == sorted(self._crowd.members)
        )

    async def settle(self) -> None:
        """Wait until the group has settled, and note how long that took and what it waited for."""
        waits: Counter[str] = Counter()

        def look() -> bool:
            self._watch()
            waits[self._waits_for()] += 1
            return self._is_settled()

        await self._wait_until(look, "settled")
        seconds = trio.current_time() - self._changed_at
        self.outcome.settled.append(seconds)
        if seconds > SETTLE_SECONDS_MAX:
            longest = "; ".join(what for what, _ in waits.most_common(3))
            self.outcome.late.append(f"the group took {seconds:.2f} s to settle: {longest}")

    def _waits_for(self) -> str:
        """Whom the group waits for now, in words."""
        group = self._group
        assert group is not None
        have = {member.client_id: member for member in group.members}
        match group.state:
            case GroupState.PREPARING:
                slow = [name for name, member in have.items() if not member.is_joining]
                return f"for {_counted(slow)} to join again"
            case GroupState.COMPLETING:
                leader = group.members[group.members.leader_id or ""]
                return f"for {leader.client_id} to assign"
        live = self._crowd.members
        missing, surplus = live - set(have), set(have) - live
        return f"{group.state.value}, for {_counted(missing)} to come, {_counted(surplus)} to go"

    async def _wait_until(self, condition: Callable[[], bool], what: str) -> None:
        until = trio.current_time() + PATIENCE_SECONDS
        while not condition():
            if trio.current_time() > until:
                raise TimeoutError(f"not {what} after {PATIENCE_SECONDS:.0f} s; {self.line()}")
            await trio.sleep(_LOOK_SECONDS)

    def committed(self) -> dict[int, int]:
        offsets = self._groups.offsets.of(GROUP)
        return {partition: each.offset for (_, partition), each in offsets.items()}

    def check(self) -> None:
        """Nothing that is committed passes over what nobody has processed."""
        committed = self.committed()  # before the notes, which are written before the commit
        self.ledger.add(self._notes.new())
        self.outcome.wrong += self.ledger.skipped(committed)
        self.outcome.processed = self.ledger.processed

    async def keep_checking(self) -> None:
        while True:
            self.check()
            await trio.sleep(_CHECK_SECONDS)

    async def finish(self, ends: dict[int, int]) -> None:
        """Everything is processed and committed, and everybody leaves."""

        def is_done() -> bool:
            self.check()
            return self.ledger.has_all(ends) and self.committed() == ends

        await self._wait_until(is_done, "done with all records")
        await self._crowd.end()
        group = self._group
        assert group is not None
        self.outcome.generations = group.generation
        if group.state is not GroupState.EMPTY:
            self.outcome.wrong.append(f"everybody has left, and the group is {group.state.value}")


def _counted(names: Iterable[str]) -> str:
    """How many members of each library these are."""
    counts = Counter(name.rpartition("-")[0] for name in names)
    return ", ".join(f"{count} of {library}" for library, count in counts.items()) or "nobody"


async def run(wanted: Wanted, folder: Path, show: Callable[[str], Any]) -> Outcome:
    """Run it.

    Args:
        folder: for what members note.
        show: called about once a second with where it is.

    Raises:
        TimeoutError: something did not come true for very long.
    """
    outcome = Outcome()
    async with (
        open_broker(group_min_session_timeout_ms=1000) as broker,
        trio.open_nursery() as nursery,
    ):
        settings = Settings(broker.bootstrap_servers, GROUP, TOPIC, wanted.session_ms)
        producing = Producing(broker.bootstrap_servers, TOPIC, wanted.partitions)
        await producing.create()
        crowd = Crowd(settings, folder, outcome.wrong.append, nursery)
        churn = Churn(wanted, broker, crowd, NotesReader(folder), outcome)
        try:
            await churn.begin()
            nursery.start_soon(churn.keep_watching)
            nursery.start_soon(churn.keep_checking)
            nursery.start_soon(_show, churn, show)
            nursery.start_soon(producing.run, wanted.records_per_second, outcome)
            await churn.crash()  # however short the run is
            until = trio.current_time() + wanted.seconds
            while trio.current_time() < until:
                await churn.storm()
                await churn.settle()
            ends = await producing.finish()
            await churn.finish(ends)
        except TimeoutError as error:
            outcome.wrong.append(str(error))
        nursery.cancel_scope.cancel()
    return outcome


async def _show(churn: Churn, show: Callable[[str], Any]) -> None:
    while True:
        show(churn.line())
        await trio.sleep(1)
