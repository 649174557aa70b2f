"""The API versions in which the client must enforce the throttle time itself (KIP-219).

In older versions, the broker delays the response instead; a client that also waited would be
throttled twice.
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import Any, Final

from ...protocol import api_keys
from ...protocol._codec import ApiVersionCodec

#: For APIs that are not listed here, the client enforces the throttle time in all versions.
_FIRST_VERSION: Final = {
    api_keys.PRODUCE: 6,
    api_keys.FETCH: 8,
    api_keys.LIST_OFFSETS: 3,
    api_keys.METADATA: 6,
    api_keys.OFFSET_COMMIT: 4,
    api_keys.OFFSET_FETCH: 4,
    api_keys.FIND_COORDINATOR: 2,
    api_keys.JOIN_GROUP: 3,
    api_keys.HEARTBEAT: 2,
    api_keys.LEAVE_GROUP: 2,
    api_keys.SYNC_GROUP: 2,
    api_keys.DESCRIBE_GROUPS: 2,
    api_keys.LIST_GROUPS: 2,
    api_keys.API_VERSIONS: 2,
    api_keys.CREATE_TOPICS: 3,
    api_keys.DELETE_TOPICS: 2,
    api_keys.DELETE_RECORDS: 1,
    api_keys.INIT_PRODUCER_ID: 1,
    api_keys.ADD_PARTITIONS_TO_TXN: 1,
    api_keys.ADD_OFFSETS_TO_TXN: 1,
    api_keys.END_TXN: 1,
    api_keys.TXN_OFFSET_COMMIT: 1,
    api_keys.DESCRIBE_ACLS: 1,
    api_keys.CREATE_ACLS: 1,
    api_keys.DELETE_ACLS: 1,
    api_keys.DESCRIBE_CONFIGS: 2,
    api_keys.ALTER_CONFIGS: 1,
    api_keys.ALTER_REPLICA_LOG_DIRS: 1,
    api_keys.DESCRIBE_LOG_DIRS: 1,
    api_keys.CREATE_PARTITIONS: 1,
    api_keys.CREATE_DELEGATION_TOKEN: 1,
    api_keys.RENEW_DELEGATION_TOKEN: 1,
    api_keys.EXPIRE_DELEGATION_TOKEN: 1,
    api_keys.DESCRIBE_DELEGATION_TOKEN: 1,
    api_keys.DELETE_GROUPS: 1,
}


def throttle_seconds(codec: ApiVersionCodec, body: Any) -> float:
    """Return how long the client must throttle itself after a response, in seconds."""
    if codec.version < _FIRST_VERSION.get(codec.api_key, 0):
        return 0.0
    return max(0, getattr(body, "throttle_time_ms", 0)) / 1000
