"""The list of served APIs, whose handlers declare their API keys and versions."""

from __future__ import annotations

from typing import Final

from ..api._dispatch import API_VERSIONS, Api, Apis
from ..api._long_calls import LongCalls
from ..handlers import _create_partitions as create_partitions
from ..handlers import _create_topics as create_topics
from ..handlers import _delete_records as delete_records
from ..handlers import _delete_topics as delete_topics
from ..handlers import _describe_cluster as describe_cluster
from ..handlers import _describe_log_dirs as describe_log_dirs
from ..handlers import _describe_topic_partitions as describe_topic_partitions
from ..handlers import _fetch as fetch
from ..handlers import _list_offsets as list_offsets
from ..handlers import _metadata as metadata
from ..handlers import _offset_for_leader_epoch as offset_for_leader_epoch
from ..handlers import _produce as produce
from ..handlers import _sasl as sasl
from ..handlers.configs import _alter_configs as alter_configs
from ..handlers.configs import _describe_configs as describe_configs
from ..handlers.configs import _list_config_resources as list_config_resources
from ..handlers.groups import _find_coordinator as find_coordinator
from ..handlers.groups import _group_admin as group_admin
from ..handlers.groups import _membership as membership
from ..handlers.groups import _offset_commit as offset_commit
from ..handlers.groups import _offset_delete as offset_delete
from ..handlers.groups import _offset_fetch as offset_fetch
from ..model._broker_state import BrokerState

APIS: Final[tuple[Api, ...]] = (
    API_VERSIONS,
    alter_configs.alter_configs,
    create_partitions.handle,
    create_topics.handle,
    group_admin.delete_groups,
    delete_records.handle,
    delete_topics.handle,
    describe_cluster.handle,
    describe_configs.handle,
    group_admin.describe_groups,
    describe_log_dirs.handle,
    describe_topic_partitions.handle,
    fetch.handle,
    find_coordinator.handle,
    membership.heartbeat,
    alter_configs.incremental_alter_configs,
    produce.init_producer_id,
    membership.join_group,
    membership.leave_group,
    list_config_resources.handle,
    group_admin.list_groups,
    list_offsets.handle,
    metadata.handle,
    offset_commit.handle,
    offset_delete.handle,
    offset_fetch.handle,
    offset_for_leader_epoch.handle,
    produce.produce,
    sasl.sasl_authenticate,
    sasl.sasl_handshake,
    membership.sync_group,
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
