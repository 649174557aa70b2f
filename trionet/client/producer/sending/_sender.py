"""Sends the ready batches of the accumulator to the leaders of partitions (Kafka: Sender).

One task runs :meth:`Sender.run`, which calls :meth:`Sender.run_once` as Kafka's does: settle the
sequence numbers, find the nodes that are ready, drain, send, poll. Two shortcuts keep the latency
of lone records low, where being woken by another task is the main cost:

* An append of a record that may be sent at once does not wait for that task:
  :meth:`Sender.send_now` does the first half of a run, which never waits, in the caller's task.
* A task that waits for the response to one record runs the sender itself, unless another task is
  running it (:meth:`Sender.wait_for`). The :class:`.Baton` decides whose turn it is.

Rejected: a sender in a thread of its own, as Kafka's, which would need locks around the accumulator
and a wake-up across threads for each record; and only the sending task, which costs two passes of
the scheduler per lone record. Reconsider if a pass of trio's scheduler ever costs less than a
microsecond.
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
from ..batching._batch import ProducerBatch
from ..batching._batch_queues import BatchQueues
from ..delivery._delivery import Delivery, RecordMetadata
from ..transactions._init_producer_id import InitProducerIdHandler
from ..transactions._transaction_manager import TransactionManager
from ._baton import Baton
from ._completion import Completion
from ._counters import SenderCounters
from ._produce_requests import produce_request
from ._producer_metadata import ProducerMetadata

logger = logging.getLogger("trionet.client")


class Sender:
    """The sending side of one producer.

    Args:
        client: used by this producer alone.
        queues: the batches waiting to be sent.
        completion: handles responses and expiry.
        topics: the topics whose metadata the producer needs.
        acks: the ``acks`` setting; -1 for all.
        request_bytes_max: ``max.request.size``.
        timeout_ms: ``request.timeout.ms``, for which a leader waits for the in-sync replicas.

    Attributes:
        error: why nothing can be sent any more; None while sending is possible.
        counters: counters of requests and batches.
    """

    def __init__(
        self,
        client: KafkaClient,
        queues: BatchQueues,
        completion: Completion,
        topics: ProducerMetadata,
        *,
        acks: int,
        request_bytes_max: int,
        timeout_ms: int,
    ) -> None:
        self.error: Exception | None = None
        self._was_raised = False
        self.counters: SenderCounters = completion.counters
        self._client = client
        self._queues = queues
        self._completion = completion
        self._topics = topics
        self._transaction_manager: TransactionManager | None = None
        self._init_producer_id: InitProducerIdHandler | None = None
        self._acks = acks
        self._request_bytes_max = request_bytes_max
        self._timeout_ms = timeout_ms
        self._clock = trio.lowlevel.current_clock().current_time
        self._next_run_at = -math.inf
        self._baton = Baton(self._clock)

    def enable_idempotence(
        self, transaction_manager: TransactionManager, handler: InitProducerIdHandler
    ) -> None:
        """Assign sequence numbers to batches, and hold them until there is a producer id."""
        self._transaction_manager = transaction_manager
        self._init_producer_id = handler

    async def run(self) -> None:
        """Run the sender, except while other tasks do, until cancelled.

        An error ends the producer, and is raised by the next call of a user.
        """
        baton = self._baton
        await trio.lowlevel.checkpoint()
        while not baton.has_ended:
            if baton.is_held:
                await baton.stand_by()
            elif await self.run_once() and baton.waiting:
                # Let a task run that has its response now: if it sends again at once, it takes the
                # baton, and no wake-up of this task is needed for its next record.
                await trio.lowlevel.checkpoint()

    async def run_once(self) -> bool:
        """Send the ready batches, and poll. Returns whether responses were handled."""
        self._baton.is_held = True
        try:
            now = self._clock()
            self._next_run_at = self._send_ready(now)
            return bool(await self._client.poll(max(0.0, self._next_run_at - now)))
        except Exception as error:  # boundary: any task that runs the sender of one producer
            # After the end the client is closed, also while a task of the user's runs the sender.
            if not self._baton.has_ended:
                logger.exception("the producer has failed")
                self.fail(error)
                self._baton.has_ended = True
            return False  # noqa: ASYNC910 -- no run follows
        finally:
            self._baton.is_held = False

    async def wait_for(self, delivery: Delivery) -> RecordMetadata:
        """Wait for the outcome of one record; see :meth:`.Delivery.result`.

        If no other task runs the sender, this one does, and reads the response itself; see
        :mod:`._baton`.

        Cancellation: changes nothing; the sending task continues.
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
                await self.run_once()
        finally:
            has_work = self._queues.has_undrained or self._client.in_flight_count() > 0
            baton.leave(has_work=has_work)
        return delivery.result()  # noqa: ASYNC910 -- what is not done was waited for

    def wake(self) -> None:
        """Wake the sending task, since there are batches to send or requests to make."""
        self._baton.call()

    def send_now(self, now: float) -> None:
        """Send the ready batches, and have the rest checked in time."""
        self._run_by(self._send_ready(now))
        self.wake()

    def batch_began(self, partition: TopicPartition, now: float) -> None:
        """Send after a record began a batch, which changes nothing for other partitions.

        Other partitions are checked only if something can be sent; otherwise the cost of a record
        that begins a batch would grow with the number of waiting partitions. A caller that does
        not continue with :meth:`wait_for` calls :meth:`wake`.
        """
        leader, at = self._queues.next_of(partition, now)
        node = self._client.metadata.cluster.nodes.get(leader)
        if node is None:
            self.send_now(now)
            return
        if at <= now:
            is_ready = self._client.ready(node)
            self._queues.topics.update_node_latency(leader, now, can_drain=is_ready)
            if is_ready:
                at = self._prepare(now)
                if self.error is None:
                    self._drain({leader: node}, now)
                if self._queues.has_undrained:
                    self.send_now(now)
                    return
            else:
                delay = self._client.connection(node).poll_delay(now)
                # Without a delay it is connecting: a poll reports the result.
                at = now + delay if delay > 0 else math.inf
        self._run_by(min(at, self._completion.expiry_of_new(now)))

    def _run_by(self, at: float) -> None:
        if at < self._next_run_at:
            self._next_run_at = at
            self._client.wakeup()

    def check(self) -> None:
        """Raise the error that has ended the producer, if any.

        Raises:
            Exception: that error; of any type if the sending task had a bug.
        """
        if self.error is not None:
            self._was_raised = True
            raise again(self.error)

    def check_unraised(self) -> None:
        """Raise the error that has ended the producer, if no call has raised it yet."""
        if not self._was_raised:
            self.check()

    @property
    def raised_error(self) -> Exception | None:
        """The error that has ended the producer, if a call has raised it."""
        return self.error if self._was_raised else None

    def fail(self, error: Exception) -> None:
        """End the producer: all buffered records fail, and so does every later call."""
        if self.error is None:
            self.error = error
            self._completion.aborted(self._queues.abort_incomplete(error))

    def producer_id_refused(self, error: TrionetError) -> None:
        """Fail the records that wait for a producer id, which was denied; later ones may get it."""
        refused = self._queues.abort_undrained(error)
        self._completion.aborted(refused)
        for batch in refused:
            if self._transaction_manager is not None:
                self._transaction_manager.failed(batch)

    def end(self) -> None:
        """Stop sending and waiting; all records without an outcome fail."""
        aborted = self._queues.abort_incomplete(
            DeliveryAbortedError("the producer was closed before the record was sent"),
            DeliveryAbortedError("the producer was closed before the response arrived"),
        )
        self._completion.aborted(aborted)
        self._baton.end()
        self._client.wakeup()  # a task of the user's may be polling, and has to return

    def statistics(self) -> ClientStatistics:
        """See :meth:`.Producer.statistics`."""
        return self._client.metrics.statistics(self._clock())

    def connection_problem(self) -> str:
        """See :meth:`.Producer.connection_problem`."""
        return self._client.connection_problem()

    # The half of a run that does not wait.

    def _send_ready(self, now: float) -> float:
        """Send all batches that can be sent. Returns when to check again if nothing happens."""
        next_run_at = self._prepare(now)
        if self.error is not None:
            return math.inf
        self._completion.expire(now)
        self._topics.expire(now)
        self._queues.topics.update(self._client.metadata.cluster)
        next_at = math.inf
        while self._queues.has_undrained:
            nodes, next_at = self._ready_nodes(now)
            if not nodes or not self._drain(nodes, now):
                break
            next_at = math.inf
        return min(next_run_at, next_at, self._completion.next_expiry)

    def _prepare(self, now: float) -> float:
        if self._transaction_manager is None or self._init_producer_id is None:
            return math.inf
        self._transaction_manager.settle()
        if self._transaction_manager.error is not None:
            self.fail(self._transaction_manager.error)
        return self._init_producer_id.send_if_due(now)

    def _ready_nodes(self, now: float) -> tuple[dict[int, Node], float]:
        """Return the nodes that have batches and can accept them, and when that may change."""
        cluster = self._client.metadata.cluster
        check = self._queues.ready(cluster, now)
        next_at = check.next_check_at
        if check.unknown_leaders:
            self._topics.use_without_leader(check.unknown_leaders, now)
        nodes: dict[int, Node] = {}
        for node_id in check.nodes:
            node = cluster.nodes[node_id]
            is_ready = self._client.ready(node)
            self._queues.topics.update_node_latency(node_id, now, can_drain=is_ready)
            if is_ready:
                nodes[node_id] = node
            elif (delay := self._client.connection(node).poll_delay(now)) > 0:
                next_at = min(next_at, now + delay)
        return nodes, next_at

    def _drain(self, nodes: dict[int, Node], now: float) -> bool:
        cluster = self._client.metadata.cluster
        drained = self._queues.drain(cluster, nodes, self._request_bytes_max, now)
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
        on_response = partial(self._completion.handle_response, batches=batches)
        self._client.send(node, request, on_response, version_max=version_max)

    def _request(self, batches: Sequence[ProducerBatch]) -> tuple[ProduceRequest, int | None]:
        cluster = self._client.metadata.cluster
        return produce_request(batches, cluster, acks=self._acks, timeout_ms=self._timeout_ms)
