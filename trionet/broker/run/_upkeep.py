"""The background tasks of a broker: flushes, retention, checkpoints, and expiration.

(Kafka: LogManager's scheduled tasks.) Each is a trio task that sleeps between rounds. An error in
one log is logged and does not affect other logs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import trio

from ..._util._logging import get_logger
from ...errors import ApiError
from ...protocol._codec import import_codecs
from ..api._dispatch import Apis
from ..log import Log
from ..log.folder._turns import in_turns
from ..model._cluster import Cluster

logger = get_logger("trionet.broker")

# How often unflushed logs are checked for flush.ms and for rolled segments.
FLUSH_CHECK_SECONDS = 1.0

# How often markers that could not be written are tried again. There is no such round otherwise: an
# idle broker does not wake up for it, nor does virtual time stop each second.
MARKER_RETRY_SECONDS = 1.0

# The number of logs in which retention deletes segments concurrently.
REMOVALS_AT_ONCE = 50

# Also run soon after startup, since a broker that is often restarted also has old segments.
SOON_AFTER_START = ("log-retention", "checkpoints")


# The delay after startup until unused codecs are loaded, and the pause between APIs.
CODECS_AFTER_SECONDS = 1.0
CODECS_PAUSE_SECONDS = 0.02


def start_upkeep(nursery: trio.Nursery, cluster: Cluster, apis: Iterable[Apis]) -> None:
    """Start the background tasks in ``nursery``; they run until the nursery is cancelled."""
    config = cluster.config
    nursery.start_soon(cluster.purgatory.run, name="delayed-operations")
    nursery.start_soon(cluster.writes.run, name="write-queue")
    for node in cluster.nodes.values():
        nursery.start_soon(node.groups.run, name="group-timers")
    if not cluster.network.is_virtual:
        for each in apis:
            nursery.start_soon(load_codecs, each, name="codecs")
    if not cluster.is_in_memory:
        nursery.start_soon(_every, FLUSH_CHECK_SECONDS, _flush, cluster, name="log-flusher")
    nursery.start_soon(cluster.cleaner.run, name="log-cleaner")
    nursery.start_soon(_retry_markers, cluster, name="transaction-markers")
    rounds: list[tuple[str, str, Callable[[Cluster], Awaitable[None]]]] = [
        ("log-retention", "log.retention.check.interval.ms", apply_retention),
        ("offset-expiry", "offsets.retention.check.interval.ms", _expire_offsets),
        ("producer-expiry", "producer.id.expiration.check.interval.ms", _expire_producers),
        (
            "transaction-timeouts",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms",
            lambda cluster: cluster.transactions.abort_overdue(),
        ),
        (
            "transactional-id-expiry",
            "transaction.remove.expired.transaction.cleanup.interval.ms",
            _expire_transactional_ids,
        ),
    ]
    if not cluster.is_in_memory:
        rounds.append(
            (
                "checkpoints",
                "log.flush.offset.checkpoint.interval.ms",
                lambda cluster: cluster.folder.write_checkpoints(),
            )
        )
    for name, key, work in rounds:
        seconds = config.integer(key) / 1000
        if not seconds:
            continue  # 0 disables the task
        first = seconds
        if name in SOON_AFTER_START:
            first = min(seconds, config.integer("log.initial.task.delay.ms") / 1000)
        nursery.start_soon(_every, seconds, work, cluster, first, name=name)


async def _every(
    seconds: float,
    work: Callable[[Cluster], Awaitable[None]],
    cluster: Cluster,
    first: float | None = None,
) -> None:
    await trio.sleep(seconds if first is None else first)
    while True:
        try:
            await work(cluster)
        except (ApiError, OSError) as error:
            logger.warning("background task failed: %s", error)
        await trio.sleep(seconds)


async def load_codecs(apis: Apis) -> None:
    """Import the codecs of all served APIs, in steps of a few milliseconds.

    They are also imported on demand, but that opens files, which may fail later if the process has
    run out of file descriptors.
    """
    await trio.sleep(CODECS_AFTER_SECONDS)
    for api in apis.advertised.ranges:
        try:
            import_codecs(api.api_key)
        except OSError as error:  # there is none left already
            logger.warning("codecs cannot be loaded before they are needed: %s", error)
            return
        await trio.sleep(CODECS_PAUSE_SECONDS)


async def _flush(cluster: Cluster) -> None:
    now_ms = cluster.now_ms()
    ends_segments = False
    for log in list(cluster.unflushed):
        due = log.flush_due(now_ms)
        if due is not None:
            ends_segments = ends_segments or log.has_unflushed_segments
            await _guarded(log, log.flush(due))
        if not log.unflushed_messages or log.is_offline:
            cluster.unflushed.pop(log, None)
    if ends_segments:
        # Written immediately, so that a start after a crash need not scan the flushed segments.
        await cluster.folder.write_checkpoints()


async def apply_retention(cluster: Cluster) -> None:
    """Delete the segments that exceed their topics' retention time or size."""
    now_ms = cluster.now_ms()
    due: list[tuple[Log, int]] = []
    for some in in_turns(cluster.folder.logs):
        for _, log in some:
            try:
                if log.retention_may_block:
                    offset = await log.directory.in_thread(partial(log.retention_due, now_ms))
                else:
                    offset = log.retention_due(now_ms)
            except (ApiError, OSError) as error:  # boundary: one log must not block the others
                logger.warning("%s-%d: retention: %s", log.topic, log.partition, error)
                continue
            if offset is not None:
                due.append((log, offset))
        await trio.lowlevel.checkpoint()
    for first in range(0, len(due), REMOVALS_AT_ONCE):
        # Concurrently, so that they share one write of the checkpoint of start offsets.
        async with trio.open_nursery() as nursery:
            for log, offset in due[first : first + REMOVALS_AT_ONCE]:
                nursery.start_soon(_remove_before, cluster, log, offset)


async def _remove_before(cluster: Cluster, log: Log, offset: int) -> None:
    before = log.start_offset
    await _guarded(log, cluster.delete_records(log, offset))
    if log.start_offset > before:
        logger.info(
            "%s-%d: retention moved the start offset from %d to %d",
            log.topic,
            log.partition,
            before,
            log.start_offset,
        )


async def _expire_producers(cluster: Cluster) -> None:
    now_ms = cluster.now_ms()
    for some in in_turns(cluster.folder.logs):
        for _, log in some:
            log.expire_producers(now_ms)
        await trio.lowlevel.checkpoint()


async def _expire_offsets(cluster: Cluster) -> None:
    for node in list(cluster.nodes.values()):
        retention_ms = cluster.config.integer("offsets.retention.minutes") * 60_000
        await node.groups.expire_offsets(retention_ms)


async def _retry_markers(cluster: Cluster) -> None:
    while True:
        await cluster.transactions.wait_for_missing_markers()
        await trio.sleep(MARKER_RETRY_SECONDS)
        await cluster.transactions.retry_markers()


async def _expire_transactional_ids(cluster: Cluster) -> None:
    await cluster.transactions.expire(cluster.config.integer("transactional.id.expiration.ms"))


async def _guarded(log: Log, work: Awaitable[None]) -> None:
    try:
        await work
    except (ApiError, OSError) as error:
        logger.warning("%s-%d: %s", log.topic, log.partition, error)
