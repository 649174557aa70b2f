"""The list of served APIs; each handler declares its key and versions beside its code."""

from __future__ import annotations

from typing import Final

from .apis import API_VERSIONS, Api, Apis
from .handlers import (
    alter_configs,
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

APIS: Final[tuple[Api, ...]] = (
    API_VERSIONS,
    alter_configs.handle,
    create_partitions.handle,
    create_topics.handle,
    delete_groups.handle,
    delete_records.handle,
    delete_topics.handle,
    describe_cluster.handle,
    describe_configs.handle,
    describe_groups.handle,
    describe_log_dirs.handle,
    describe_topic_partitions.handle,
    fetch.handle,
    find_coordinator.handle,
    heartbeat.handle,
    incremental_alter_configs.handle,
    init_producer_id.handle,
    join_group.handle,
    leave_group.handle,
    list_config_resources.handle,
    list_groups.handle,
    list_offsets.handle,
    metadata.handle,
    offset_commit.handle,
    offset_delete.handle,
    offset_fetch.handle,
    offset_for_leader_epoch.handle,
    produce.handle,
    sasl_authenticate.handle,
    sasl_handshake.handle,
    sync_group.handle,
)


def served_apis(state: BrokerState) -> Apis:
    """Create the request dispatcher of one node."""
    return Apis(
        [api.bind(state) for api in APIS if api is not API_VERSIONS],
        LongCalls(
            state.nursery,
            state.config.integer("response.max.bytes"),
            is_virtual=state.cluster.network.is_virtual,
        ),
        state.config.integer("request.max.elements"),
        state.request_log_topic,
    )
