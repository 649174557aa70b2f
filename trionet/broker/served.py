"""Which APIs are served, in which versions, and by which handlers."""

from __future__ import annotations

from functools import partial
from types import ModuleType

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
from .state import BrokerState

# (key, lowest version, highest version, handler, lowest version that is advertised)
_SERVED: list[tuple[int, int, int, ModuleType, int]] = [
    (api_keys.PRODUCE, 3, 13, produce, 0),
    (api_keys.FETCH, 4, 18, fetch, 4),
    (api_keys.LIST_OFFSETS, 1, 11, list_offsets, 1),
    (api_keys.METADATA, 0, 13, metadata, 0),
    (api_keys.OFFSET_COMMIT, 2, 10, offset_commit, 2),
    (api_keys.OFFSET_FETCH, 1, 10, offset_fetch, 1),
    (api_keys.FIND_COORDINATOR, 0, 6, find_coordinator, 0),
    (api_keys.JOIN_GROUP, 0, 9, join_group, 0),
    (api_keys.HEARTBEAT, 0, 4, heartbeat, 0),
    (api_keys.LEAVE_GROUP, 0, 5, leave_group, 0),
    (api_keys.SYNC_GROUP, 0, 5, sync_group, 0),
    (api_keys.DESCRIBE_GROUPS, 0, 6, describe_groups, 0),
    (api_keys.LIST_GROUPS, 0, 5, list_groups, 0),
    (api_keys.SASL_HANDSHAKE, 0, 1, sasl_handshake, 0),
    (api_keys.API_VERSIONS, 0, 4, api_versions, 0),
    (api_keys.CREATE_TOPICS, 2, 7, create_topics, 2),
    (api_keys.DELETE_TOPICS, 1, 6, delete_topics, 1),
    (api_keys.DELETE_RECORDS, 0, 2, delete_records, 0),
    (api_keys.INIT_PRODUCER_ID, 0, 5, init_producer_id, 0),
    (api_keys.OFFSET_FOR_LEADER_EPOCH, 2, 4, offset_for_leader_epoch, 2),
    (api_keys.DESCRIBE_CONFIGS, 1, 4, describe_configs, 1),
    (api_keys.ALTER_CONFIGS, 0, 2, alter_configs, 0),
    (api_keys.DESCRIBE_LOG_DIRS, 1, 4, describe_log_dirs, 1),
    (api_keys.SASL_AUTHENTICATE, 0, 2, sasl_authenticate, 0),
    (api_keys.CREATE_PARTITIONS, 0, 3, create_partitions, 0),
    (api_keys.DELETE_GROUPS, 0, 2, delete_groups, 0),
    (api_keys.INCREMENTAL_ALTER_CONFIGS, 0, 1, incremental_alter_configs, 0),
    (api_keys.OFFSET_DELETE, 0, 0, offset_delete, 0),
    (api_keys.DESCRIBE_CLUSTER, 0, 2, describe_cluster, 0),
    (api_keys.LIST_CONFIG_RESOURCES, 0, 1, list_config_resources, 0),
    (api_keys.DESCRIBE_TOPIC_PARTITIONS, 0, 0, describe_topic_partitions, 0),
]


def served_apis(state: BrokerState) -> Apis:
    """The APIs of one node."""
    return Apis(
        [
            Api(key, low, high, partial(module.handle, state), advertised)
            for key, low, high, module, advertised in _SERVED
        ],
        partial(api_versions.unsupported_version, state),
    )
