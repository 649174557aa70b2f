"""Sends what the accumulator has ready to the leaders of its partitions (Kafka: Sender).

One task runs :meth:`Sender.keep_sending`, a turn of which is Kafka's: settle what is due about
numbers, ask which nodes are ready, drain, send, poll. An append of a record that may be sent at
once does not wait for that task's next turn: :meth:`Sender.kick` makes the first half of one, which
never waits. And a task that waits for one record's response makes whole turns, if no other does so
just then: :meth:`Sender.delivered`. The :class:`.Baton` knows whose turn it is.
"""

# Compiled by mypyc.

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from functools import partial

import trio

from ...._util._raising import again
from ....errors import DeliveryAbortedError, TrionetError
from ....protocol.messages.produce import ProduceRequest
from ..._node import Node
from ..._topic_partition import TopicPartition
from ...metrics._statistics import ClientStatistics
from ...network._kafka_client import KafkaClient
from ..batching._accumulator import RecordAccumulator
from ..batching._batch import ProducerBatch
from ..delivery._delivery import Delivery, RecordMetadata
from ..transactions._init_producer_id import ProducerIdAsker
from ..transactions._transaction_manager import Idempotence
from ._baton import Baton
from ._completion import Completion
from ._produce_requests import produce_request
from ._producer_metadata import UsedTopics

logger = logging.getLogger("trionet.client")


class Sender:
    """See the module.

    Args:
        client: of this producer alone.
        accumulator: what waits to be sent.
        completion: what becomes of it.
        topics: what the producer needs to know about.
        acks: ``acks``; -1 for all.
        request_bytes_max: ``max.request.size``.
        timeout_ms: ``request.timeout.ms``, for which a leader waits for the others in sync.

    Attributes:
        error: why nothing can be sent any more; None while it can.
        counters: what was sent, and what became of it.
    """

    def __init__(
        self,
        client: KafkaClient,
        accumulator: RecordAccumulator,
        completion: Completion,
        topics: UsedTopics,
        *,
        acks: int,
        request_bytes_max: int,
        timeout_ms: int,
    ) -> None:
        self.error: Exception | None = None
        self._is_told = False
        self.counters = completion.counters
        self._client = client
        self._accumulator = accumulator
        self._completion = completion
        self._topics = topics
        self._idempotence: Idempotence | None = None
        self._asker: ProducerIdAsker | None = None
        self._acks = acks
        self._request_bytes_max = request_bytes_max
        self._timeout_ms = timeout_ms
        self._clock = trio.lowlevel.current_clock().current_time
        self._looks_at = -math.inf
        self._baton = Baton(self._clock)

    def number_batches(self, idempotence: Idempotence, asker: ProducerIdAsker) -> None:
        """Batches are numbered, and wait until there is an id for that."""
        self._idempotence = idempotence
        self._asker = asker

    async def keep_sending(self) -> None:
        """Make the turns, except those that others make, until cancelled.

        An error ends the producer, and is raised by its next call.
        """
        baton = self._baton
        await trio.lowlevel.checkpoint()
        while not baton.has_ended:
            if baton.is_held:
                await baton.stand_by()
            elif await self._turn() and baton.waiting:
                # A task that has its response now, and sends again at once, makes the next turn.
                await trio.lowlevel.checkpoint()

    async def _turn(self) -> bool:
        """One turn; whether it brought outcomes of requests."""
        self._baton.is_held = True
        try:
            now = self._clock()
            self._looks_at = self._send_ready(now)
            return bool(await self._client.poll(max(0.0, self._looks_at - now)))
        except Exception as error:  # boundary: whoever makes the turns of one producer
            if not self._baton.has_ended:  # else the client was closed below a task of the user's
                logger.exception("the producer has failed")
                self.fail(error)
                self._baton.has_ended = True
            return False  # noqa: ASYNC910 -- no turn follows
        finally:
            self._baton.is_held = False

    async def delivered(self, delivery: Delivery) -> RecordMetadata:
        """Wait for the outcome of one record; see :meth:`.Delivery.result`.

        The response is read here if it can be: see :mod:`._baton`.

        Cancellation: changes nothing; the sending task goes on.
        """
        baton, is_decided = self._baton, delivery.is_done
        if is_decided or baton.is_held:
            baton.waiting += 1
            try:
                return await delivery
            finally:
                baton.waiting -= 1
        try:
            while not delivery.is_done:
                await self._turn()
        finally:
            has_work = self._accumulator.has_undrained or self._client.in_flight_count() > 0
            baton.leave(has_work=has_work)
        return delivery.result()  # noqa: ASYNC910 -- what is not done was waited for

    def attend(self) -> None:
        """See to it that turns are made: there is something to be sent, or to be asked."""
        self._baton.call()

    def kick(self, now: float) -> None:
        """Send what is ready, and see to it that the rest is looked at in time."""
        self._look_by(self._send_ready(now))
        self.attend()

    def batch_began(self, partition: TopicPartition, now: float) -> None:
        """The same after a record began a batch: nothing has changed for other partitions.

        They are looked at only if something can be sent, or each record that begins a batch would
        cost as much as there are partitions that wait. Who does not go on with :meth:`delivered`
        calls :meth:`attend`.
        """
        leader, at = self._accumulator.next_of(partition, now)
        node = self._client.metadata.cluster.nodes.get(leader)
        if node is None:
            self.kick(now)
            return
        if at <= now:
            is_ready = self._client.ready(node)
            self._accumulator.update_node_latency(leader, now, can_drain=is_ready)
            if is_ready:
                at = self._prepare(now)
                if self.error is None:
                    self._drain({leader: node}, now)
                if self._accumulator.has_undrained:
                    self.kick(now)
                    return
            else:
                delay = self._client.poll_delay(node)
                at = now + delay if delay > 0 else math.inf  # what becomes of it, a poll tells
        self._look_by(min(at, self._completion.expiry_of_new(now)))

    def _look_by(self, at: float) -> None:
        if at < self._looks_at:
            self._looks_at = at
            self._client.wakeup()

    def check(self) -> None:
        """Raise what has ended the producer.

        Raises:
            Exception: that; of a fault of the sending task, any.
        """
        if self.error is not None:
            self._is_told = True
            raise again(self.error)

    def check_told(self) -> None:
        """Raise what has ended the producer, if no call has raised it yet."""
        if not self._is_told:
            self.check()

    @property
    def raised_error(self) -> Exception | None:
        """What has ended the producer, if a call has raised it."""
        return self.error if self._is_told else None

    def fail(self, error: Exception) -> None:
        """Nothing can be sent any more: what there is fails, and so does every later call."""
        if self.error is None:
            self.error = error
            self._completion.aborted(self._accumulator.abort_incomplete(error))

    def refused(self, error: TrionetError) -> None:
        """The producer may not have an id: what waits for one fails; what comes later may have."""
        refused = self._accumulator.abort_undrained(error)
        self._completion.aborted(refused)
        for batch in refused:
            if self._idempotence is not None:
                self._idempotence.failed(batch)

    def end(self) -> None:
        """Nothing is sent or waited for any more; what has no outcome fails."""
        aborted = self._accumulator.abort_incomplete(
            DeliveryAbortedError("the producer was closed before the record was sent"),
            DeliveryAbortedError("the producer was closed before the response"),
        )
        self._completion.aborted(aborted)
        self._baton.end()
        self._client.wakeup()  # a task that is not ours may make the turns, and has to leave

    def statistics(self) -> ClientStatistics:
        """See :meth:`.Producer.statistics`."""
        return self._client.statistics()

    def connection_problem(self) -> str:
        """See :meth:`.Producer.connection_problem`."""
        return self._client.connection_problem()

    # The half of a turn that does not wait.

    def _send_ready(self, now: float) -> float:
        """Send all that can be sent; returns when to look again, if nothing happens before."""
        looks_at = self._prepare(now)
        if self.error is not None:
            return math.inf
        self._completion.expire(now)
        self._topics.expire(now)
        self._accumulator.update(self._client.metadata.cluster)
        next_at = math.inf
        while self._accumulator.has_undrained:
            nodes, next_at = self._ready_nodes(now)
            if not nodes or not self._drain(nodes, now):
                break
            next_at = math.inf
        return min(looks_at, next_at, self._completion.next_expiry)

    def _prepare(self, now: float) -> float:
        if self._idempotence is None or self._asker is None:
            return math.inf
        self._idempotence.settle()
        if self._idempotence.error is not None:
            self.fail(self._idempotence.error)
        return self._asker.ask_if_due(now)

    def _ready_nodes(self, now: float) -> tuple[dict[int, Node], float]:
        """Who has something to get and can take it, and when that may be different."""
        cluster = self._client.metadata.cluster
        check = self._accumulator.ready(cluster, now)
        next_at = check.next_check_at
        if check.unknown_leaders:
            self._topics.use_without_leader(check.unknown_leaders, now)
        nodes: dict[int, Node] = {}
        for node_id in check.nodes:
            node = cluster.nodes[node_id]
            is_ready = self._client.ready(node)
            self._accumulator.update_node_latency(node_id, now, can_drain=is_ready)
            if is_ready:
                nodes[node_id] = node
            elif (delay := self._client.poll_delay(node)) > 0:
                next_at = min(next_at, now + delay)
        return nodes, next_at

    def _drain(self, nodes: dict[int, Node], now: float) -> bool:
        cluster = self._client.metadata.cluster
        drained = self._accumulator.drain(cluster, nodes, self._request_bytes_max, now)
        has_sent = False
        for node_id, batches in drained.items():
            if batches:
                self._send(nodes[node_id], batches, now)
                has_sent = True
        return has_sent

    def _send(self, node: Node, batches: Sequence[ProducerBatch], now: float) -> None:
        try:
            request, version_max = self._request(batches)
        except Exception:  # boundary: the records of single batches
            batches = self._completion.encodable(batches)
            if not batches:
                return
            request, version_max = self._request(batches)
        self.counters.requests_sent += 1
        for batch in batches:
            topic = batch.topic_partition.topic
            self._topics.use(topic, now)
            self.counters.sent(batch, now)
        self._completion.sent(batches)
        answered = partial(self._completion.answered, batches=batches)
        self._client.send(node, request, answered, version_max=version_max)

    def _request(self, batches: Sequence[ProducerBatch]) -> tuple[ProduceRequest, int | None]:
        cluster = self._client.metadata.cluster
        return produce_request(batches, cluster, acks=self._acks, timeout_ms=self._timeout_ms)
