"""Kafka's keys as typed keyword arguments, with underscores for dots.

Only keys that have an effect are listed, so that a type checker reports any other key. Equivalent
values of other types, such as numbers given as strings, must be passed in the settings mapping.
"""

from __future__ import annotations

from os import PathLike
from typing import Literal, TypeAlias, TypedDict

from ...protocol._config_types import Password

Names: TypeAlias = str | list[str] | tuple[str, ...]


class ClientKeywords(TypedDict, total=False):
    """The keyword settings of every client."""

    client_dns_lookup: Literal["use_all_dns_ips"]
    client_id: str
    connections_max_idle_ms: int
    enable_metrics_push: bool
    metadata_max_age_ms: int
    metadata_recovery_rebootstrap_trigger_ms: int
    metadata_recovery_strategy: Literal["rebootstrap", "none"]
    metrics_num_samples: int
    metrics_sample_window_ms: int
    receive_buffer_bytes: int
    receive_message_max_bytes: int
    reconnect_backoff_max_ms: int
    reconnect_backoff_ms: int
    request_timeout_ms: int
    retry_backoff_max_ms: int
    retry_backoff_ms: int
    sasl_jaas_config: str | Password
    sasl_login_connect_timeout_ms: int
    sasl_login_read_timeout_ms: int
    sasl_login_refresh_buffer_seconds: int
    sasl_login_refresh_min_period_seconds: int
    sasl_login_refresh_window_factor: float
    sasl_login_refresh_window_jitter: float
    sasl_login_retry_backoff_max_ms: int
    sasl_login_retry_backoff_ms: int
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM"]
    sasl_oauthbearer_client_credentials_client_id: str
    sasl_oauthbearer_client_credentials_client_secret: str | Password
    sasl_oauthbearer_header_urlencode: bool
    sasl_oauthbearer_scope: str
    sasl_oauthbearer_token_endpoint_url: str
    sasl_password: str | Password
    sasl_username: str
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    send_buffer_bytes: int
    socket_connection_setup_timeout_max_ms: int
    socket_connection_setup_timeout_ms: int
    ssl_ca_location: str | PathLike[str]
    ssl_ca_pem: str | Password
    ssl_certificate_location: str | PathLike[str]
    ssl_certificate_pem: str | Password
    ssl_cipher_suites: Names
    ssl_enabled_protocols: Names
    ssl_endpoint_identification_algorithm: Literal["https", ""]
    ssl_key_location: str | PathLike[str]
    ssl_key_password: str | Password
    ssl_key_pem: str | Password
    ssl_keystore_certificate_chain: str | Password
    ssl_keystore_key: str | Password
    ssl_keystore_location: str | PathLike[str]
    ssl_keystore_password: str | Password
    ssl_keystore_type: Literal["JKS", "PKCS12", "PEM"]
    ssl_truststore_certificates: str | Password
    ssl_truststore_location: str | PathLike[str]
    ssl_truststore_password: str | Password
    ssl_truststore_type: Literal["JKS", "PKCS12", "PEM"]


class ProducerKeywords(ClientKeywords, total=False):
    """The keyword settings of a producer."""

    acks: Literal["all", -1, 0, 1]
    batch_size: int
    buffer_memory: int
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: Literal["none", "gzip", "snappy", "lz4", "zstd"]
    compression_zstd_level: int
    delivery_timeout_ms: int
    enable_idempotence: bool
    linger_ms: int
    max_block_ms: int
    max_in_flight_requests_per_connection: int
    max_request_size: int
    metadata_max_idle_ms: int
    partitioner_adaptive_partitioning_enable: bool
    partitioner_availability_timeout_ms: int
    partitioner_ignore_keys: bool
    retries: int
    transaction_timeout_ms: int
    transactional_id: str


class ConsumerKeywords(ClientKeywords, total=False):
    """The keyword settings of a consumer."""

    allow_auto_create_topics: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    check_crcs: bool
    client_rack: str
    default_api_timeout_ms: int
    enable_auto_commit: bool
    exclude_internal_topics: bool
    fetch_max_bytes: int
    fetch_max_decompressed_bytes: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    group_id: str
    group_instance_id: str
    heartbeat_interval_ms: int
    isolation_level: Literal["read_committed", "read_uncommitted"]
    max_partition_fetch_bytes: int
    max_poll_interval_ms: int
    max_poll_records: int
    partition_assignment_strategy: Names
    session_timeout_ms: int


class AdminKeywords(ClientKeywords, total=False):
    """The keyword settings of an admin client."""

    bootstrap_controllers: Names
    default_api_timeout_ms: int
    retries: int
