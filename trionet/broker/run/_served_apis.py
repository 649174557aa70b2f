"""The list of served APIs, whose handlers declare their API keys and versions."""

from __future__ import annotations

from typing import Final

from ..api._dispatch import API_VERSIONS, Api, Apis
from ..api._long_calls import LongCalls
from ..handlers import _acls as acls
from ..handlers import _configs as configs
from ..handlers import _features as features
from ..handlers import _fetch as fetch
from ..handlers import _groups as groups
from ..handlers import _logs as logs
from ..handlers import _metadata as metadata
from ..handlers import _offsets as offsets
from ..handlers import _produce as produce
from ..handlers import _sasl as sasl
from ..handlers import _topics as topics
from ..handlers import _transactions as transactions
from ..model._broker_state import BrokerState

APIS: Final[tuple[Api, ...]] = (
    API_VERSIONS,
    transactions.handle_add_offsets_to_txn,
    transactions.handle_add_partitions_to_txn,
    configs.handle_alter_configs,
    acls.handle_create_acls,
    topics.handle_create_partitions,
    topics.handle_create_topics,
    acls.handle_delete_acls,
    groups.handle_delete_groups,
    logs.handle_delete_records,
    topics.handle_delete_topics,
    acls.handle_describe_acls,
    metadata.handle_describe_cluster,
    configs.handle_describe_configs,
    groups.handle_describe_groups,
    logs.handle_describe_log_dirs,
    transactions.handle_describe_producers,
    metadata.handle_describe_topic_partitions,
    transactions.handle_describe_transactions,
    transactions.handle_end_txn,
    fetch.handle_fetch,
    groups.handle_find_coordinator,
    groups.handle_heartbeat,
    configs.handle_incremental_alter_configs,
    transactions.handle_init_producer_id,
    groups.handle_join_group,
    groups.handle_leave_group,
    configs.handle_list_config_resources,
    groups.handle_list_groups,
    logs.handle_list_offsets,
    transactions.handle_list_transactions,
    metadata.handle_metadata,
    offsets.handle_offset_commit,
    offsets.handle_offset_delete,
    offsets.handle_offset_fetch,
    logs.handle_offset_for_leader_epoch,
    produce.handle_produce,
    sasl.handle_sasl_authenticate,
    sasl.handle_sasl_handshake,
    groups.handle_sync_group,
    offsets.handle_txn_offset_commit,
    features.handle_update_features,
    transactions.handle_write_txn_markers,
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
        state.cluster.features,
    )
