"""Sends records that were read, and knows what became of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from trionet._util._counted import counted
from trionet.client.producer.delivery._waiting import until_done
from trionet.errors import ApiError, CallTimedOutError, RecordTooLargeError, TrionetError
from trionet.net.tls._wall_clock import now_ms

from ..clients._connection_errors import is_answered, unreached
from ..records._columns import NO_TIMESTAMP, Taken
from ..records._splitting import InputError
from ..terminal._pipes import write_all
from ..terminal._progress import Progress

if TYPE_CHECKING:
    from trionet.client.consumer.records._record import ConsumerBatch
    from trionet.client.producer._producer import Producer
    from trionet.client.producer.delivery._deliveries import Deliveries

#: So many records that were not written are told of one by one.
TOLD_MAX: Final = 10


class _UnderWay(NamedTuple):
    """Records that a producer has."""

    topic: str
    taken: Taken
    deliveries: Deliveries


class Sending:
    """See the module.

    Args:
        producer: sends.
        topic: of records that name none; None if all have to.
        partition: of records that name none.
        servers: where the producer begins, for a message.
        known_seconds: how long a topic may take to be known.
        keeps_going: whether others are sent after one that was not.
        tell: writes a line for people.
        progress: counts what was written.
        written: makes text of records that were; None for none.
        output: where that goes, a descriptor.

    Attributes:
        failed: how many were not, or nobody knows.
        when_failed: called with the first of those, unless others are to be sent all the same.
    """

    def __init__(
        self,
        producer: Producer,
        *,
        topic: str | None,
        partition: int | None,
        servers: str,
        known_seconds: float,
        keeps_going: bool,
        tell: Callable[[str], None],
        progress: Progress,
        written: Callable[[ConsumerBatch], bytes] | None = None,
        output: int = 1,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._partition = partition
        self._servers = servers
        self._known_seconds = known_seconds
        self._partitions: dict[str, int] = {}
        self._keeps_going = keeps_going
        self._tell = tell
        self._progress = progress
        self._under_way: deque[_UnderWay] = deque()
        self._told = 0
        self._is_telling = False
        self._news = trio.Event()
        self._all_decided = trio.Event()
        self.when_failed: Callable[[], object] = _nothing
        self._written = written
        self._output = output
        self.failed = 0

    @property
    def may_go_on(self) -> bool:
        """Whether more is to be sent."""
        return self._keeps_going or not self.failed

    @property
    def under_way(self) -> int:
        """Of how many records it is not decided yet what becomes of them."""
        return sum(len(each.deliveries) for each in self._under_way)

    async def look_up(self, topic: str) -> int:
        """How many partitions a topic has; asked once.

        Raises:
            CallTimedOutError: nobody has told in time.
            TrionetError: there can be no such topic, or the brokers do not let us in.
        """
        await trio.lowlevel.checkpoint()
        if topic not in self._partitions:
            with trio.move_on_after(self._known_seconds) as late:
                self._partitions[topic] = await self._producer.key_partitions(topic)
            if late.cancelled_caught:
                if not is_answered(self._producer):
                    raise unreached(self._servers, self._known_seconds, self._producer, longer="-m")
                raise CallTimedOutError(
                    f"no broker at {self._servers} has told of topic {topic} within "
                    f"{self._known_seconds:g} seconds: is the address right (-b), and is there "
                    "such a topic? -m waits longer"
                )
        return self._partitions[topic]

    async def send(self, taken: Taken) -> int:
        """Have the producer take records.

        Returns:
            How many it has taken; of the others it was told.

        Raises:
            TrionetError: the producer can take no more.
        """
        await trio.lowlevel.checkpoint()
        topic = self._topic if taken.topic is None else taken.topic
        partition = self._partition if taken.partition is None else taken.partition
        try:
            if not topic:
                raise InputError("it has no topic")
            count = await self.look_up(topic)
            if partition is not None and partition >= count > 0:
                raise InputError(
                    f"topic {topic} has {counted(count, 'partition')}, and no {partition}"
                )
        except (ApiError, CallTimedOutError, InputError, ValueError) as error:
            for number in taken.numbers:
                self.refuse(number, error)
                if not self.may_go_on:
                    break
            return 0
        try:
            await self._enqueue(topic, taken)
        except (RecordTooLargeError, ValueError):
            return await self._one_by_one(topic, taken)
        return len(taken.values)

    async def _enqueue(self, topic: str, taken: Taken) -> None:
        deliveries = await self._producer.enqueue_batch(
            topic,
            taken.values,
            keys=taken.keys,
            headers=taken.headers,
            partition=self._partition if taken.partition is None else taken.partition,
            timestamps=taken.timestamps and _timestamps(taken.timestamps),
        )
        self._under_way.append(_UnderWay(topic, taken, deliveries))
        self._news.set()

    async def _one_by_one(self, topic: str, taken: Taken) -> int:
        """One of them cannot be sent: those before it are, and with -E those behind."""
        await trio.lowlevel.checkpoint()
        count = 0
        for place in range(len(taken.values)):
            try:
                await self._enqueue(topic, taken.some(place, place + 1))
                count += 1
            except (RecordTooLargeError, ValueError) as error:
                self.refuse(taken.numbers[place], error)
                if not self.may_go_on:
                    break
        return count

    def refuse(self, number: int | None, error: Exception) -> None:
        """A record was not sent, or not written.

        Args:
            number: which; None if the error says it.
            error: why.
        """
        self.failed += 1
        if not self._keeps_going:
            self.when_failed()
        if self._told < TOLD_MAX:
            self._told += 1
            self._tell(str(error) if number is None else f"record {number}: {error}")

    async def finish(self) -> None:
        """Wait until it is decided what became of all, and :meth:`keep_looking` has told it.

        Raises:
            TrionetError: the producer has failed.
        """
        await trio.lowlevel.checkpoint()
        failure: TrionetError | None = None
        try:
            await self._producer.flush()
        except TrionetError as error:
            failure = error  # it is decided all the same
        if self._under_way or self._is_telling:
            self._all_decided = trio.Event()
            await self._all_decided.wait()
        if failure is not None:
            raise failure

    async def keep_looking(self) -> None:
        """Tell of records when it is decided what became of them, in their order.

        Raises:
            OutputError, BrokenPipeError: what was written cannot be told.
        """
        while True:
            while self._under_way:
                batch = self._under_way[0]
                for outcome in batch.deliveries.outcomes:
                    await until_done(outcome)
                self._under_way.popleft()
                self._is_telling = True
                self._failures(batch)
                await self._tell_written(batch)
                self._is_telling = False
            self._all_decided.set()
            self._news = trio.Event()
            await self._news.wait()

    def give_up(self) -> None:
        """Count what was not looked at, after the end of the producer."""
        while self._under_way:
            self._failures(self._under_way.popleft())

    async def _tell_written(self, batch: _UnderWay) -> None:
        await trio.lowlevel.checkpoint()
        if self._written is not None:
            text = b"".join(map(self._written, _acknowledged(batch)))
            await write_all(self._output, text)

    def _failures(self, batch: _UnderWay) -> None:
        failures = batch.deliveries.failures()
        self._progress.records += len(batch.deliveries) - len(failures)
        for place, error in failures:
            self.refuse(batch.taken.numbers[place], error)


def _timestamps(timestamps: list[int]) -> list[int]:
    """Those of records; it is now for one that has none, as it is for Kafka's own copiers.

    (Kafka: ConnectUtils.checkAndConvertTimestamp.)
    """
    if min(timestamps) > NO_TIMESTAMP:
        return timestamps
    now = now_ms()
    return [now if each == NO_TIMESTAMP else each for each in timestamps]


def _nothing() -> None:
    pass


def _acknowledged(batch: _UnderWay) -> list[ConsumerBatch]:
    """The records that were written, as a consumer would get them."""
    # Here, since a consumer takes long to import, and few want this.
    from trionet.client.consumer.records._record import ConsumerBatch

    found = []
    taken = batch.taken
    for place, delivery in enumerate(batch.deliveries):
        try:
            written = delivery.result()
        except TrionetError:
            continue
        found.append(
            ConsumerBatch(
                topic=written.topic,
                partition=written.partition,
                offsets=[written.offset],
                timestamps=[written.timestamp],
                keys=[None if taken.keys is None else taken.keys[place]],
                values=[taken.values[place]],
                headers=[() if taken.headers is None else taken.headers[place]],
                timestamp_type=0,
                leader_epoch=-1,
            )
        )
    return found
