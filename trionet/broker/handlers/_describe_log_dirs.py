"""Implements DescribeLogDirs, versions 0 to 4, which returns disk space and replica sizes.

(KIP-113, KIP-827.) A broker that keeps its data in memory reports a directory named ``memory`` with
an unknown amount of disk space.

Gap: there is a single directory, so replicas never move between directories.
"""

from __future__ import annotations

import os

from ...errors import ApiError
from ...protocol import api_keys
from ...protocol.error_codes import KAFKA_STORAGE_ERROR
from ...protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from ..api._call import Call
from ..api._dispatch import serves
from ..log.files._directory import run_blocking
from ..model._broker_state import BrokerState
from ..storage._storage_errors import storage_errors

IN_MEMORY = "memory"
NOT_KNOWN = -1


@serves(api_keys.DESCRIBE_LOG_DIRS, 0, 4, only_responds=True)
async def handle(
    broker: BrokerState, request: DescribeLogDirsRequest, call: Call
) -> DescribeLogDirsResponse:
    call.expect(len(broker.folder.logs))
    directory = broker.folder.directory
    result = DescribeLogDirsResult(log_dir=directory.path or IN_MEMORY)
    try:
        with storage_errors():
            result.total_bytes, result.usable_bytes = await run_blocking(
                directory, _disk_usage, directory.path
            )
        result.topics = await _topics(broker, request, call)
    except ApiError:
        result.error_code = KAFKA_STORAGE_ERROR
    return DescribeLogDirsResponse(results=[result])


def _disk_usage(path: str | None) -> tuple[int, int]:
    """Return the file system's size and the space available to this user, in bytes."""
    if path is None or not hasattr(os, "statvfs"):
        return NOT_KNOWN, NOT_KNOWN
    found = os.statvfs(path)
    return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


async def _topics(
    broker: BrokerState, request: DescribeLogDirsRequest, call: Call
) -> list[DescribeLogDirsTopic]:
    """Return the requested partitions (by default, all) that have a replica on this node."""
    logs = broker.folder.logs
    keys = dict.fromkeys(logs)
    if request.topics is not None:
        keys = {}
        for requested in request.topics:
            for partition in requested.partitions:
                if call.must_pause():
                    await call.pause()
                if (requested.topic, partition) in logs:
                    keys[requested.topic, partition] = None
    topics: dict[str, DescribeLogDirsTopic] = {}
    for name, partition in keys:
        if call.must_pause():
            await call.pause()
        log = broker.folder.logs.get((name, partition))
        replicas = broker.cluster.leadership.get((name, partition)).replicas
        if log is None or broker.node_id not in replicas:
            continue
        topic = topics.setdefault(name, DescribeLogDirsTopic(name=name))
        topic.partitions.append(
            DescribeLogDirsPartition(
                partition_index=partition, partition_size=log.size, offset_lag=0
            )
        )
    return list(topics.values())
