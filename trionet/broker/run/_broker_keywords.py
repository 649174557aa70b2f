"""The typed keyword arguments of ``open_broker``: broker keys with underscores instead of dots.

Only keys that this version applies are listed, so that a type checker reports keywords without
effect. Other keys, and values of other types such as numbers as strings, can be passed in the
mapping ``settings``.
"""

from __future__ import annotations

from os import PathLike
from typing import Literal, TypeAlias, TypedDict

from ...protocol._config_types import Password

Names: TypeAlias = str | list[str] | tuple[str, ...]


class BrokerKeywords(TypedDict, total=False):
    """The keyword arguments of ``open_broker``."""

    advertised_listeners: Names
    auto_create_topics_enable: bool
    auto_create_topics_max: int
    auto_create_topics_ready_at_once: bool
    broker_id: int
    broker_rack: str
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: Literal["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]
    compression_zstd_level: int
    connection_failed_authentication_delay_ms: int
    connections_max_idle_ms: int
    connections_max_reauth_ms: int
    default_replication_factor: int
    delete_topic_enable: bool
    fetch_max_bytes: int
    file_descriptors_reserve: int
    group_initial_rebalance_delay_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_member_max_protocols: int
    group_min_session_timeout_ms: int
    inter_broker_listener_name: str
    listener_security_protocol_map: str
    listeners: Names
    log_cleaner_backoff_ms: int
    log_cleaner_dedupe_buffer_size: int
    log_cleaner_delete_retention_ms: int
    log_cleaner_enable: bool
    log_cleaner_io_buffer_load_factor: float
    log_cleaner_io_buffer_size: int
    log_cleaner_io_max_bytes_per_second: float
    log_cleaner_max_compaction_lag_ms: int
    log_cleaner_min_cleanable_ratio: float
    log_cleaner_min_compaction_lag_ms: int
    log_cleaner_threads: int
    log_cleanup_policy: Names
    log_dir: Names | PathLike[str]
    log_dirs: Names | PathLike[str]
    log_flush_interval_messages: int
    log_flush_interval_ms: int
    log_flush_offset_checkpoint_interval_ms: int
    log_flush_scheduler_interval_ms: int
    log_index_interval_bytes: int
    log_index_size_max_bytes: int
    log_initial_task_delay_ms: int
    log_message_timestamp_after_max_ms: int
    log_message_timestamp_before_max_ms: int
    log_message_timestamp_type: Literal["CreateTime", "LogAppendTime"]
    log_missing_records_allowed: bool
    log_retention_bytes: int
    log_retention_check_interval_ms: int
    log_retention_hours: int
    log_retention_minutes: int
    log_retention_ms: int
    log_roll_hours: int
    log_roll_jitter_hours: int
    log_roll_jitter_ms: int
    log_roll_ms: int
    log_segment_bytes: int
    max_connection_creation_rate: int
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: str
    max_groups: int
    max_incremental_fetch_session_cache_elements: int
    max_incremental_fetch_session_cache_slots: int
    max_request_partition_size_limit: int
    max_transactional_ids: int
    message_max_bytes: int
    metrics_listener: str
    metrics_listener_exclude: Names
    metrics_listener_token: str | Password
    metrics_local_enable: bool
    metrics_num_samples: int
    metrics_sample_window_ms: int
    min_insync_replicas: int
    node_id: int
    num_io_threads: int
    num_network_threads: int
    num_partitions: int
    num_recovery_threads_per_data_dir: int
    offset_metadata_max_bytes: int
    offsets_retention_check_interval_ms: int
    offsets_retention_minutes: int
    producer_id_expiration_check_interval_ms: int
    producer_id_expiration_ms: int
    queued_max_request_bytes: int
    queued_max_requests: int
    quota_window_num: int
    quota_window_size_seconds: int
    request_log_buffer_records: int
    request_log_exclusive: bool
    request_log_linger_ms: int
    request_log_partitions: int
    request_log_sample: float
    request_log_topic: str
    request_max_elements: int
    response_max_bytes: int
    sasl_enabled_mechanisms: Names
    sasl_jaas_config: str | Password
    sasl_oauthbearer_clock_skew_seconds: int
    sasl_oauthbearer_expected_audience: Names
    sasl_oauthbearer_expected_issuer: str
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int
    sasl_oauthbearer_jwks_endpoint_url: str
    sasl_oauthbearer_scope_claim_name: str
    sasl_oauthbearer_sub_claim_name: str
    sasl_server_callback_handler_class: str
    sasl_server_max_receive_size: int
    socket_listen_backlog_size: int
    socket_receive_buffer_bytes: int
    socket_request_max_bytes: int
    socket_send_buffer_bytes: int
    ssl_allow_dn_changes: bool
    ssl_allow_san_changes: bool
    ssl_cipher_suites: Names
    ssl_client_auth: Literal["required", "requested", "none"]
    ssl_enabled_protocols: Names
    ssl_key_password: str | Password
    ssl_keystore_certificate_chain: str | Password
    ssl_keystore_key: str | Password
    ssl_keystore_location: str | PathLike[str]
    ssl_keystore_password: str | Password
    ssl_keystore_type: str
    ssl_principal_mapping_rules: str
    ssl_store_max_bytes: int
    ssl_truststore_certificates: str | Password
    ssl_truststore_location: str | PathLike[str]
    ssl_truststore_password: str | Password
    ssl_truststore_type: str
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int
    transaction_max_timeout_ms: int
    transaction_partition_verification_enable: bool
    transaction_remove_expired_transaction_cleanup_interval_ms: int
    transactional_id_expiration_ms: int
