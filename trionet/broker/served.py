"""Which APIs are served, in which versions, and by which handlers."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Final

from ..protocol import api_keys
from .apis import Api, Apis
from .handlers import (
    alter_configs,
    api_versions,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
)
from .long_calls import LongCalls
from .state import BrokerState

# (key, lowest version, highest version, handler)
_SERVED: list[tuple[int, int, int, ModuleType]] = [
    (api_keys.PRODUCE, 0, 13, produce),
    (api_keys.FETCH, 0, 18, fetch),
    (api_keys.LIST_OFFSETS, 0, 11, list_offsets),
    (api_keys.METADATA, 0, 13, metadata),
    (api_keys.OFFSET_COMMIT, 0, 10, offset_commit),
    (api_keys.OFFSET_FETCH, 0, 10, offset_fetch),
    (api_keys.FIND_COORDINATOR, 0, 6, find_coordinator),
    (api_keys.JOIN_GROUP, 0, 9, join_group),
    (api_keys.HEARTBEAT, 0, 4, heartbeat),
    (api_keys.LEAVE_GROUP, 0, 5, leave_group),
    (api_keys.SYNC_GROUP, 0, 5, sync_group),
    (api_keys.DESCRIBE_GROUPS, 0, 6, describe_groups),
    (api_keys.LIST_GROUPS, 0, 5, list_groups),
    (api_keys.SASL_HANDSHAKE, 0, 1, sasl_handshake),
    (api_keys.API_VERSIONS, 0, 4, api_versions),
    (api_keys.CREATE_TOPICS, 0, 7, create_topics),
    (api_keys.DELETE_TOPICS, 0, 6, delete_topics),
    (api_keys.DELETE_RECORDS, 0, 2, delete_records),
    (api_keys.INIT_PRODUCER_ID, 0, 5, init_producer_id),
    (api_keys.OFFSET_FOR_LEADER_EPOCH, 0, 4, offset_for_leader_epoch),
    (api_keys.DESCRIBE_CONFIGS, 0, 4, describe_configs),
    (api_keys.ALTER_CONFIGS, 0, 2, alter_configs),
    (api_keys.DESCRIBE_LOG_DIRS, 0, 4, describe_log_dirs),
    (api_keys.SASL_AUTHENTICATE, 0, 2, sasl_authenticate),
    (api_keys.CREATE_PARTITIONS, 0, 3, create_partitions),
    (api_keys.DELETE_GROUPS, 0, 2, delete_groups),
    (api_keys.INCREMENTAL_ALTER_CONFIGS, 0, 1, incremental_alter_configs),
    (api_keys.OFFSET_DELETE, 0, 0, offset_delete),
    (api_keys.DESCRIBE_CLUSTER, 0, 2, describe_cluster),
    (api_keys.LIST_CONFIG_RESOURCES, 0, 1, list_config_resources),
    (api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, 0, describe_topic_partitions),
]
#: Whose handlers make no checkpoint.
_NEVER_WAIT: Final = frozenset({api_keys.PRODUCE})


def served_apis(state: BrokerState) -> Apis:
    """The APIs of one node."""
    return Apis(
        [
            Api(key, low, high, partial(module.handle, state), never_waits=key in _NEVER_WAIT)
            for key, low, high, module in _SERVED
        ],
        LongCalls(
            state.nursery,
            state.config.integer("response.max.bytes"),
            is_virtual=state.cluster.network.is_virtual,
        ),
        partial(api_versions.unsupported_version, state),
        state.config.integer("request.max.elements"),
    )
