"""Plays scenarios against a broker, and writes down what it responds, a line for each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import attrs
import trio

from support.client import Client, connect
from support.eventually import eventually
from support.group_calls import join_alone
from support.transaction_rules.names import Names
from trionet.protocol import error_codes
from trionet.protocol._codec import Message
from trionet.protocol.error_codes import name_of
from trionet.protocol.messages.api_versions import ApiVersionsRequest
from trionet.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from trionet.protocol.messages.describe_transactions import DescribeTransactionsRequest
from trionet.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

#: Errors of a moment: a client tries again, and so does a step unless they are what it is about.
_OF_A_MOMENT: Final = (
    "CONCURRENT_TRANSACTIONS",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "NOT_ENOUGH_REPLICAS",
    "NOT_LEADER_OR_FOLLOWER",
    # Where a state is shown: the markers are being written.
    " PrepareAbort ",
    " PrepareCommit ",
)
_TRIES: Final = 200
_ENDINGS: Final = 30
_AT_ONCE: Final = 100


class Play:
    """One scenario on one connection.

    Args:
        client: the connection.
        names: of the scenario.

    Attributes:
        lines: what was written down so far.
    """

    def __init__(self, client: Client, names: Names) -> None:
        self.client = client
        self.names = names
        self.lines: list[str] = []


class Step(Protocol):
    """Part of a scenario."""

    async def play(self, play: Play) -> None:
        """Do it, and add lines to those of `play`."""


Scenario = Sequence[Step]
Scenarios = Mapping[str, Scenario]


@attrs.frozen
class Call:
    """A request and its response.

    Args:
        text: describes the request.
        version: of the request.
        make: makes the request.
        show: describes the response.
        is_patient: whether errors of a moment are tried again.
        is_quiet: whether no line is written: what failed to be prepared shows in what follows.
        completes: the transactional id whose transaction is waited for after success.
    """

    text: Callable[[Names], str]
    version: int
    make: Callable[[Names], Message]
    show: Callable[[Names, Any], str]
    is_patient: bool = True
    is_quiet: bool = False
    completes: str | None = None

    @property
    def at_once(self) -> Call:
        """The same, once: an error of a moment is what the step is about."""
        return attrs.evolve(self, is_patient=False, completes=None)

    @property
    def quiet(self) -> Call:
        """The same as a preparation of what follows."""
        return attrs.evolve(self, is_quiet=True)

    async def play(self, play: Play) -> None:
        text, request = self.text(play.names), self.make(play.names)
        shown = self.show(play.names, await play.client.call(request, self.version))
        tries = 1
        while self.is_patient and tries < _TRIES and any(each in shown for each in _OF_A_MOMENT):
            await trio.sleep(0.02)
            shown = self.show(play.names, await play.client.call(request, self.version))
            tries += 1
        if not self.is_quiet:
            play.lines.append(f"{text}: {shown}")
        if self.completes is not None and shown.startswith("NONE"):
            await _completed(play, self.completes)


async def _state(play: Play, transactional_id: str) -> str:
    full = play.names.full(transactional_id)
    response = await play.client.call(DescribeTransactionsRequest(transactional_ids=[full]), 0)
    [found] = response.transaction_states
    return str(found.transaction_state)


async def _completed(play: Play, transactional_id: str) -> None:
    """Wait until every partition has its marker: EndTxn is responded to before that."""
    await eventually(
        lambda: _state(play, transactional_id), lambda state: not state.startswith("Prepare")
    )


@attrs.frozen
class Until:
    """Waits for a state that the broker reaches by itself."""

    transactional_id: str
    state: str

    async def play(self, play: Play) -> None:
        await eventually(
            lambda: _state(play, self.transactional_id), lambda state: state == self.state
        )
        play.lines.append(f"in a while {self.transactional_id} is {self.state}")


@attrs.frozen
class WhileEnding:
    """A call that comes after an EndTxn, and before its markers are all written.

    Where these are written too soon it is repeated with another transactional id.

    Args:
        transactional_id: of the transaction.
        before: begins it.
        end: ends it.
        probe: what comes meanwhile.
    """

    transactional_id: str
    before: Sequence[Step]
    end: Call
    probe: Call

    async def play(self, play: Play) -> None:
        line_count = len(play.lines)
        for _ in range(_ENDINGS):
            del play.lines[line_count:]
            play.names.begin_again(self.transactional_id)
            for step in self.before:
                await step.play(play)
            full = play.names.full(self.transactional_id)
            calls = self.end, self.probe
            texts = [call.text(play.names) for call in calls]
            requests = [call.make(play.names) for call in calls]
            for call, request in zip(calls, requests, strict=True):
                await play.client.send(request, call.version)
            await play.client.send(DescribeTransactionsRequest(transactional_ids=[full]), 0)
            for call, text in zip(calls, texts, strict=True):
                shown = call.show(play.names, await play.client.receive())
                play.lines.append(f"{text}: {shown}")
            [found] = (await play.client.receive()).transaction_states
            if found.transaction_state.startswith("Prepare"):
                return


@attrs.frozen
class Again:
    """The same call so many times, of which the last is written down."""

    call: Call
    times: int

    async def play(self, play: Play) -> None:
        left = self.times - 1
        while left:
            size = min(left, _AT_ONCE)
            for _ in range(size):
                await play.client.send(self.call.make(play.names), self.call.version)
            for _ in range(size):
                # What it gives is the identity that the next is made with.
                shown = self.call.show(play.names, await play.client.receive())
                assert shown.startswith("NONE"), shown
            left -= size
        await self.call.play(play)


async def _first_offset_errors(play: Play, full: str, partitions: int) -> set[int]:
    """What a broker says of the partitions of a topic: 0 where it leads them."""
    wanted = [
        ListOffsetsPartition(partition_index=index, timestamp=-2) for index in range(partitions)
    ]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=full, partitions=wanted)]
    )
    [topic] = (await play.client.call(request, 6)).topics
    return {each.error_code for each in topic.partitions}


@attrs.frozen
class Topic:
    """A new topic; those who follow find it led."""

    name: str
    partitions: int = 1
    configs: Mapping[str, str] = attrs.field(factory=dict)

    async def play(self, play: Play) -> None:
        full = play.names.full(self.name)
        wanted = CreatableTopic(
            name=full,
            num_partitions=self.partitions,
            replication_factor=1,
            configs=[CreatableTopicConfig(name=k, value=v) for k, v in self.configs.items()],
        )
        [created] = (await play.client.call(CreateTopicsRequest(topics=[wanted]), 7)).topics
        assert created.error_code == 0, (name_of(created.error_code), created.error_message)
        play.names.topic_ids[self.name] = created.topic_id
        await eventually(
            lambda: _first_offset_errors(play, full, self.partitions), lambda errors: errors == {0}
        )


@attrs.frozen
class Gone:
    """Waits until the broker has forgotten a topic that was deleted."""

    name: str

    async def play(self, play: Play) -> None:
        full = play.names.full(self.name)
        await eventually(lambda: _first_offset_errors(play, full, 1), lambda errors: errors != {0})


@attrs.frozen
class Joined:
    """A new member, the only one of its classic group, in generation 1."""

    group: str
    member: str
    instance: str | None = None

    async def play(self, play: Play) -> None:
        joined = await join_alone(
            play.client, group=play.names.full(self.group), instance=self.instance
        )
        play.names.members[self.member] = joined.member_id
        play.lines.append(f"{self.member} joins {self.group} in {joined.generation_id}")


@attrs.frozen
class Finalized:
    """Waits until the broker advertises a level of transaction.version; 0 is none."""

    level: int

    async def play(self, play: Play) -> None:
        await eventually(lambda: self._level(play), lambda level: level == self.level)

    @staticmethod
    async def _level(play: Play) -> int:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        response = await play.client.call(request, 4)
        levels = {each.name: each.max_version_level for each in response.finalized_features}
        return int(levels.get("transaction.version", 0))


async def play_scenario(
    address: str, prefix: str, coordinator_epoch: int, scenario: Scenario
) -> list[str]:
    """What a broker responds to a scenario, a line for each step.

    Args:
        address: of the broker.
        prefix: of the scenario's names; each has another one.
        coordinator_epoch: what `Names` says.
        scenario: its steps.
    """
    async with connect(address) as client:
        play = Play(client, Names(prefix, coordinator_epoch))
        for step in scenario:
            try:
                await step.play(play)
            except EOFError:
                play.lines.append("the connection is closed")
                break
        return play.lines


def error(code: int) -> str:
    """An error by its name, as everywhere in the lines."""
    return "NONE" if code == error_codes.NONE else name_of(code)
