"""The sender, which sends ready batches to partition leaders (Kafka: Sender).

The sending task runs :meth:`Sender.run`, which calls :meth:`Sender.run_once` in a loop: settle
sequence numbers, find ready nodes, drain, send, poll. Two shortcuts reduce the latency of single
records, most of which is the cost of waking another task:

* A record that can be sent immediately does not wait for the sending task.
  :meth:`Sender.send_now` executes the first half of a run, which never waits, in the calling task.
* A task that waits for the response to a single record runs the sender itself, unless another task
  is running it (:meth:`Sender.wait_for`). The :class:`Baton` decides which task runs the sender.

Rejected: a separate sender thread, as in Kafka, which would require locks around the accumulator
and a wake-up across threads for each record. Also rejected: sending only in the sending task, which
costs two scheduler passes per single record. Reconsider if a pass of trio's scheduler ever costs
less than a microsecond.
"""

# Compiled by mypyc.

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import trio

from ...._util._logging import get_logger
from ...._util._raising import again
from ....errors import DeliveryAbortedError, DisconnectedError, TrionetError
from ....protocol.messages.produce import ProduceRequest
from ..._client_metrics import ClientStatistics
from ..._topic_partition import TopicPartition
from ...network._cluster import Node
from ...network._kafka_client import KafkaClient
from ...network._open_client import until_connected
from .._delivery import Delivery, RecordMetadata
from .._metadata import ProducerMetadata
from .._settings import ProducerSettings
from ..batching._batch import ProducerBatch
from ..batching._batch_queues import BatchQueues
from ..transactions._transaction_manager import InitProducerIdHandler, TransactionManager
from ..transactions._transaction_requests import TransactionRequests
from ..transactions._transaction_state import TransactionState
from ..transactions._verdicts import abortable
from ._completion import Completion
from ._counters import SenderCounters
from ._produce_requests import FIRST_WITH_TRANSACTIONS, LAST_OF_TV1, produce_request

logger = get_logger("trionet.client")

#: The time for which the sending task sleeps after an awaited record, unless new work wakes it.
PAUSE_SECONDS: Final = 0.05
#: The time after which the sending task runs if nothing follows a record of a transaction. It is
#: less than any round trip to another machine costs with the work around it.
TRANSACTION_PAUSE_SECONDS: Final = 0.001


class Baton:
    """The right to run a sender, which passes from task to task.

    Only one task at a time runs the sender, normally the *sending task*. A task that waits for the
    response to a single record runs the sender in the meantime, because being woken by another task
    costs a scheduler pass, a fifth of the latency of such a record. The right to run the sender is
    passed like a baton:

    * While another task holds the baton, the sending task *stands by*, asleep.
    * A task releases the baton when it has its result. The sending task is then woken immediately
      if there is work to do, and otherwise after a pause, because the next record will most likely
      be awaited in the same way. Waking the sending task in between costs a sixth of a record's
      latency.
    * New work wakes the sending task, unless the sender is already running and will notice the
      work.

    Rejected: a lock, which would impose an unnecessary order on the waiting tasks, and waking a
    task for every record. Reconsider if a pass of trio's scheduler ever costs less than a
    microsecond.

    Args:
        clock: returns the current time on the event loop's clock, in seconds.

    Attributes:
        is_held: whether a task is running the sender.
        has_ended: whether the sender has stopped permanently.
        waiting: the number of tasks waiting for a response while another task runs the sender.
    """

    __slots__ = ("_clock", "_is_called", "_stand_by", "has_ended", "is_held", "waiting")

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._stand_by: trio.CancelScope | None = None
        self._is_called = False
        self.is_held = self.has_ended = False
        self.waiting = 0

    async def stand_by(self) -> None:
        """Put the sending task to sleep until it must run the sender again."""
        self._is_called = False
        with trio.CancelScope() as self._stand_by:
            await trio.sleep_forever()
        self._stand_by = None

    def call(self) -> None:
        """Wake the sending task if it is standing by and the sender is not running."""
        if self._stand_by is not None and not self.is_held:
            self._stand_by.cancel()

    def call_later(self) -> None:
        """Wake the sending task soon, unless a task takes the baton before.

        A record of a transaction is normally followed by its commit, whose task runs the sender
        itself.
        """
        stand_by = self._stand_by
        if stand_by is not None and not self.is_held and not self._is_called:
            self._is_called = True
            stand_by.deadline = self._clock() + TRANSACTION_PAUSE_SECONDS

    def leave(self, *, has_work: bool) -> None:
        """Wake the sending task, immediately if there is work, otherwise after a pause."""
        stand_by = self._stand_by
        if stand_by is None:
            return
        if has_work or self.has_ended:
            stand_by.cancel()
        elif stand_by.deadline == math.inf or self._is_called:
            self._is_called = False
            stand_by.deadline = self._clock() + PAUSE_SECONDS

    def end(self) -> None:
        """Stop the sender permanently, and wake the sending task so that it returns."""
        self.has_ended = True
        self.call()


class Sender:
    """Sends the batches of one producer.

    Args:
        client: the client, which is not shared with other producers.
        queues: the batches waiting to be sent.
        completion: handles responses and expiry.
        topics: the topics whose metadata the producer needs.
        settings: the settings of the producer.
        transaction_manager: assigns sequence numbers to batches, which are not sent before the
            producer id is known; None without idempotence.
        rng: jitters the backoff of requests for a producer id.

    Attributes:
        error: the error that ended the producer; None while the producer works.
        transaction_requests: sends the requests of transactions; None without transactions.
        counters: the counters of requests and batches.
    """

    def __init__(
        self,
        client: KafkaClient,
        queues: BatchQueues,
        completion: Completion,
        topics: ProducerMetadata,
        settings: ProducerSettings,
        transaction_manager: TransactionManager | None,
        rng: random.Random,
    ) -> None:
        self.error: Exception | None = None
        self._was_raised = False
        self.counters: SenderCounters = completion.counters
        self._client = client
        self._queues = queues
        self._completion = completion
        self._topics = topics
        self._transaction_manager = transaction_manager
        self._init_producer_id: InitProducerIdHandler | None = None
        self._transaction: TransactionState | None = None
        self.transaction_requests: TransactionRequests | None = None
        if transaction_manager is not None and transaction_manager.transaction is not None:
            self._transaction = transaction_manager.transaction
            self.transaction_requests = TransactionRequests(
                client,
                transaction_manager,
                self._transaction,
                settings.transaction_timeout_seconds,
                settings.retry,
                rng,
            )
        elif transaction_manager is not None:
            self._init_producer_id = InitProducerIdHandler(
                client, transaction_manager, settings.retry, rng, self._producer_id_refused
            )
        self._acks = settings.acks
        self._request_bytes_max = settings.request_bytes_max
        # Also how long a leader waits for the in-sync replicas.
        self._timeout_ms = round(settings.client.requests.timeout_seconds * 1000)
        self._clock = trio.lowlevel.current_clock().current_time
        self._next_run_at = -math.inf
        self._baton = Baton(self._clock)

    async def run(self) -> None:
        """Run the sender until it ends or is cancelled, standing by while other tasks run it.

        An unexpected error ends the producer; the next call to a producer method raises it.
        """
        baton = self._baton
        await trio.lowlevel.checkpoint()
        while not baton.has_ended:
            if baton.is_held:
                await baton.stand_by()
            elif await self.run_once() and baton.waiting:
                # Yield to the task whose response has arrived. If it sends another record
                # immediately, it takes the baton, and this task need not be woken.
                await trio.lowlevel.checkpoint()

    async def run_once(self) -> bool:
        """Send ready batches and poll the client. Returns whether any response was handled."""
        self._baton.is_held = True
        try:
            now = self._clock()
            self._next_run_at = self._send_ready(now)
            return bool(await self._client.poll(max(0.0, self._next_run_at - now)))
        except Exception as error:  # boundary: any task that runs the sender of one producer
            # The client is closed at the end, even while another task runs the sender.
            if not self._baton.has_ended:
                logger.exception("the producer has failed")
                self.fail(error)
                self._baton.has_ended = True
            return False  # noqa: ASYNC910 -- no run follows
        finally:
            self._baton.is_held = False

    async def wait_for(self, delivery: Delivery) -> RecordMetadata:
        """Wait for the outcome of one record; see :meth:`.Delivery.result`.

        The calling task runs the sender itself unless another task is running it; see
        :class:`Baton`.

        Cancellation: stops the wait; the sending task continues.
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

    async def run_until(  # noqa: ASYNC910 -- what holds already is not waited for
        self, is_done: Callable[[], bool]
    ) -> None:
        """Run the sender until a condition holds, or until the producer has ended.

        The calling task runs the sender itself unless another task is running it, as in
        :meth:`wait_for`. If the condition holds already, this is no checkpoint.

        Args:
            is_done: returns whether the condition holds. Only responses and the first half of a run
                may change the result.

        Cancellation: stops the wait; the sending task continues.
        """
        baton = self._baton
        has_run = False
        if baton.is_held:
            self.send_now(self._clock())
        try:
            while not is_done() and self.error is None and not baton.has_ended:
                if baton.is_held:
                    baton.waiting += 1
                    try:
                        await self._client.until_polled()
                    finally:
                        baton.waiting -= 1
                else:
                    has_run = True
                    await self.run_once()
        finally:
            if has_run:
                has_work = self._queues.has_undrained or self._client.in_flight_count() > 0
                baton.leave(has_work=has_work)

    def wake(self) -> None:
        """Wake the sending task to send batches or requests."""
        self._baton.call()

    def wake_for_new_batch(self) -> None:
        """Wake the sending task to send a batch that has just begun, and to await its response."""
        if self._transaction is None:
            self._baton.call()
        else:
            self._baton.call_later()

    def send_now(self, now: float, *, is_awaited: bool = True) -> None:
        """Send ready batches without waiting, and schedule the next check of all other batches.

        Args:
            now: the current time on the event loop's clock, in seconds.
            is_awaited: whether the responses are needed at once; see :meth:`wake_for_new_batch`.
        """
        self._run_by(self._send_ready(now))
        if is_awaited:
            self.wake()
        else:
            self.wake_for_new_batch()

    def batch_began(self, partition: TopicPartition, now: float) -> None:
        """Send a partition's ready batches, now that a record has begun a new batch.

        Other partitions are checked only if this partition's leader can accept a request, since the
        cost of a new batch would otherwise grow with the number of waiting partitions. A caller
        that does not continue with :meth:`wait_for` must call :meth:`wake`.
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
                # A request of the transaction may have taken the connection's last place.
                if self.error is None and (self._transaction is None or self._client.ready(node)):
                    self._drain({leader: node}, now)
                if self._queues.has_undrained:
                    self.send_now(now)
                    return
            else:
                delay = self._client.connection(node).poll_delay(now)
                # Without a delay the connection is being opened; a poll reports the result.
                at = now + delay if delay > 0 else math.inf
        self._run_by(min(at, self._completion.expiry_of_new(now)))

    def _run_by(self, at: float) -> None:
        if at < self._next_run_at:
            self._next_run_at = at
            self._client.wakeup()

    def check_thread(self) -> None:
        """See :meth:`.KafkaClient.check_thread`."""
        self._client.check_thread()

    def check(self) -> None:
        """Raise the error that has ended the producer, if any.

        Raises:
            Exception: the error that ended the producer; any type, if the sender had a bug.
        """
        if self.error is not None:
            self._was_raised = True
            raise again(self.error)

    def check_unraised(self) -> None:
        """Raise the error that has ended the producer, unless an earlier call has raised it."""
        if not self._was_raised:
            self.check()

    @property
    def has_ended(self) -> bool:
        """Whether the sender was stopped permanently."""
        return self._baton.has_ended

    @property
    def raised_error(self) -> Exception | None:
        """The error that has ended the producer, if a call has raised it."""
        return self.error if self._was_raised else None

    def fail(self, error: Exception) -> None:
        """End the producer with an error, which fails all buffered records and all later calls."""
        if self.error is None:
            self.error = error
            self._completion.aborted(self._queues.abort_incomplete(error))
            self._client.wake_waiting()  # the metadata of a topic may never arrive

    def _producer_id_refused(self, error: TrionetError) -> None:
        """Fail the queued records, since no producer id was assigned; new records request one."""
        refused = self._queues.abort_undrained(error)
        self._completion.aborted(refused)
        for batch in refused:
            if self._transaction_manager is not None:
                self._transaction_manager.failed(batch)

    def end(self) -> None:
        """Stop the sender permanently, and fail all records that have no outcome yet."""
        aborted = self._queues.abort_incomplete(
            DeliveryAbortedError("the producer was closed before the record was sent"),
            DeliveryAbortedError("the producer was closed before the response arrived"),
        )
        self._completion.aborted(aborted)
        if aborted and self._transaction is not None:
            error = aborted[0].outcome.error(0)
            assert error is not None
            self._transaction.fail(abortable(error))  # a call of another task may be ending it
        self._baton.end()
        self._client.wakeup()  # another task may be polling, and must return

    def statistics(self) -> ClientStatistics:
        """See :meth:`.Producer.statistics`."""
        return self._client.metrics.statistics(self._clock())

    def connection_problem(self) -> str:
        """See :meth:`.Producer.connection_problem`."""
        return self._client.connection_problem()

    def connection_error(self) -> DisconnectedError | None:
        """See :meth:`.KafkaClient.connection_error`."""
        return self._client.connection_error()

    async def until_connected(self) -> None:
        """See :meth:`.Producer.until_connected`."""
        self.check()
        await until_connected(self._client)

    # The half of a run that does not wait.

    def _send_ready(self, now: float) -> float:
        """Send all ready batches. Returns the time of the next check if nothing else happens."""
        had_error = self.error is not None
        next_run_at = self._prepare(now)
        if self.error is not None:
            # The first time, a task that runs the sender must notice what has failed.
            return math.inf if had_error else now
        if self._completion.expire(now):
            next_run_at = now  # a task that runs the sender may wait for one of these batches
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
        manager = self._transaction_manager
        if manager is None:
            return math.inf
        if self._transaction is not None:
            return self._prepare_transaction(manager, self._transaction, now)
        assert self._init_producer_id is not None
        manager.settle()
        if manager.error is not None:
            self.fail(manager.error)
        return self._init_producer_id.send_if_due(now)

    def _prepare_transaction(
        self, manager: TransactionManager, transaction: TransactionState, now: float
    ) -> float:
        """Fail the records of a failed transaction, and send its next request.

        Returns:
            When to call this again; at once if the state has changed or a record has failed
            without a response, since a task that runs the sender may wait for that.
        """
        requests = self.transaction_requests
        assert requests is not None
        if manager.error is not None:
            self.fail(manager.error)
            return now
        before = transaction.state
        has_failed = self._completion.expire(now)
        if transaction.drops_records and self._queues.has_undrained:
            why = transaction.error or DeliveryAbortedError(
                "the transaction was aborted before the record was sent"
            )
            dropped = self._queues.abort_undrained(why)
            self._completion.aborted(dropped)
            for batch in dropped:
                manager.failed(batch)
            has_failed = True
        at = requests.send_if_due(now, has_incomplete=self._queues.has_incomplete)
        return now if has_failed or transaction.state is not before else at

    def _ready_nodes(self, now: float) -> tuple[dict[int, Node], float]:
        """Return the nodes that can accept ready batches, and the time of the next check."""
        cluster = self._client.metadata.cluster
        check = self._queues.ready(cluster, now)
        next_at = check.next_check_at
        if check.unknown_leaders:
            self._topics.request(check.unknown_leaders, now)
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
        version_min = 0
        if self._transaction is not None:
            version_min = FIRST_WITH_TRANSACTIONS
            if self._transaction.is_v2:
                version_min = LAST_OF_TV1 + 1
            else:
                version_max = LAST_OF_TV1
        self.counters.requests_sent += 1
        for batch in batches:
            topic = batch.topic_partition.topic
            self._topics.use(topic, now)
            self.counters.sent(batch, now)
        self._completion.sent(batches)
        on_response = partial(self._completion.handle_response, batches=batches)
        self._client.send(
            node, request, on_response, version_min=version_min, version_max=version_max
        )

    def _request(self, batches: Sequence[ProducerBatch]) -> tuple[ProduceRequest, int | None]:
        cluster = self._client.metadata.cluster
        transaction = self._transaction
        return produce_request(
            batches,
            cluster,
            acks=self._acks,
            timeout_ms=self._timeout_ms,
            transactional_id=None if transaction is None else transaction.transactional_id,
        )
