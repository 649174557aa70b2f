"""A producer's settings, and how they are built from Kafka's keys.

(Kafka: ProducerConfig, KafkaProducer.configureDeliveryTimeout.) Times are in seconds, sizes in
bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..._util._logging import get_logger
from ...errors import ConfigError
from .._backoff import ExponentialBackoff
from ..config._client_config import ClientConfig, check_nothing_beside, read_config
from ..config._client_settings import client_settings, retry_backoff
from ..config._keys import IN_FLIGHT_MAX, PRODUCER_KEYS
from ..network._open_client import ClientSettings
from ..security._settings import TokenProvider

logger = get_logger("trionet.client")


@attrs.frozen(kw_only=True)
class ProducerSettings:
    """The settings of a producer, with Kafka's defaults.

    Attributes:
        client: the connection and request settings; ``client.requests.timeout_seconds`` is
            ``request.timeout.ms``, and ``client.requests.in_flight_max`` is
            ``max.in.flight.requests.per.connection``.
        acks: which replicas must acknowledge a record: -1 for all in-sync replicas, 1 for only the
            leader, 0 for none (``acks``).
        linger_seconds: how long a batch that is not full waits for more records (``linger.ms``).
        batch_bytes: the maximum size of a batch before compression (``batch.size``).
        buffer_bytes: the maximum memory for batches that are queued or in flight
            (``buffer.memory``).
        max_block_seconds: how long a call may wait for memory, or for a topic's metadata
            (``max.block.ms``).
        request_bytes_max: the maximum size of a request, and therefore of a record
            (``max.request.size``).
        delivery_timeout_seconds: the maximum time from the creation of a batch to its outcome
            (``delivery.timeout.ms``).
        retries: the maximum number of retries of a batch (``retries``).
        retry: the backoff before a retry (``retry.backoff.ms``, ``retry.backoff.max.ms``).
        compression: the name of the codec (``compression.type``).
        compression_level: the compression level (``compression.gzip.level``,
            ``compression.lz4.level``, ``compression.zstd.level``); None for the codec's default.
        idempotence: whether exactly one copy of each record is written, in order
            (``enable.idempotence``).
        adaptive_partitioning: whether records without a key prefer faster brokers
            (``partitioner.adaptive.partitioning.enable``).
        partitioner_availability_timeout_seconds: how long a broker may accept no request for
            ready batches before the partitioner skips it (``partitioner.availability.timeout.ms``);
            0 never skips a broker.
        partitioner_ignores_keys: whether the partitioner ignores keys
            (``partitioner.ignore.keys``).
        metadata_idle_seconds: how long a topic may go unused before its metadata is dropped
            (``metadata.max.idle.ms``).
        transactional_id: identifies the producer across restarts, and makes it transactional
            (``transactional.id``); None without transactions.
        transaction_timeout_seconds: how long a transaction may stay open before its coordinator
            aborts it (``transaction.timeout.ms``).
    """

    client: ClientSettings = attrs.field(factory=ClientSettings)
    acks: int = -1
    linger_seconds: float = 0.005
    batch_bytes: int = 16_384
    buffer_bytes: int = 33_554_432
    max_block_seconds: float = 60.0
    request_bytes_max: int = 1_048_576
    delivery_timeout_seconds: float = 120.0
    retries: int = 2**31 - 1
    retry: ExponentialBackoff = attrs.field(default=ExponentialBackoff(0.1, 1.0))
    compression: str = "none"
    compression_level: int | None = None
    idempotence: bool = True
    adaptive_partitioning: bool = True
    partitioner_availability_timeout_seconds: float = 0.0
    partitioner_ignores_keys: bool = False
    metadata_idle_seconds: float = 300.0
    transactional_id: str | None = None
    transaction_timeout_seconds: float = 60.0

    def __attrs_post_init__(self) -> None:
        if self.transactional_id is not None and not self.idempotence:
            raise ConfigError(
                "transactional.id requires enable.idempotence; set enable.idempotence = true"
            )


def producer_settings(
    config: Mapping[str, object] | ProducerSettings | None,
    keywords: Mapping[str, object],
    token_provider: TokenProvider | None = None,
) -> ProducerSettings:
    """Build and check the settings of a producer.

    Args:
        config: see :func:`.read_config`; or a settings object, which cannot be combined with other
            settings.
        keywords: see :func:`.read_config`.
        token_provider: returns the tokens for OAUTHBEARER.

    Raises:
        TypeError: ``config`` is not settings, or is a settings object beside other settings.
        ConfigError: a key is unknown, a value is not allowed, or values are inconsistent; the
            message names the keys and the allowed values.
    """
    if isinstance(config, ProducerSettings):
        check_nothing_beside(keywords, token_provider)
        return config
    read = read_config(PRODUCER_KEYS, config, keywords)
    settings = ProducerSettings(
        client=client_settings(
            read,
            in_flight_max=read.integer("max.in.flight.requests.per.connection"),
            token_provider=token_provider,
        ),
        acks=_acks(read),
        linger_seconds=read.seconds("linger.ms"),
        batch_bytes=read.integer("batch.size"),
        buffer_bytes=read.integer("buffer.memory"),
        max_block_seconds=read.seconds("max.block.ms"),
        request_bytes_max=read.integer("max.request.size"),
        delivery_timeout_seconds=_delivery_timeout_seconds(read),
        retries=read.integer("retries"),
        retry=retry_backoff(read),
        compression=read.text("compression.type"),
        compression_level=_compression_level(read),
        idempotence=_idempotence(read),
        adaptive_partitioning=read.flag("partitioner.adaptive.partitioning.enable"),
        partitioner_availability_timeout_seconds=read.seconds(
            "partitioner.availability.timeout.ms"
        ),
        partitioner_ignores_keys=read.flag("partitioner.ignore.keys"),
        metadata_idle_seconds=read.seconds("metadata.max.idle.ms"),
        transactional_id=_transactional_id(read),
        transaction_timeout_seconds=read.seconds("transaction.timeout.ms"),
    )
    read.report()
    return settings


def _acks(config: ClientConfig) -> int:
    acks = config.text("acks")
    return -1 if acks == "all" else int(acks)


def _delivery_timeout_seconds(config: ClientConfig) -> float:
    """Return ``delivery.timeout.ms`` in seconds; the default is raised if it is too low.

    The timeout must be at least ``linger.ms`` + ``request.timeout.ms``, the time that one attempt
    may take.

    Raises:
        ConfigError: the timeout was set explicitly, and is too low.
    """
    least = config.integer("linger.ms") + config.integer("request.timeout.ms")
    delivery = config.integer("delivery.timeout.ms")
    if delivery >= least:
        return delivery / 1000
    if "delivery.timeout.ms" in config.given:
        raise ConfigError(
            f"delivery.timeout.ms = {delivery} must be at least linger.ms +"
            f" request.timeout.ms ({least})"
        )
    logger.info("raising delivery.timeout.ms to %d (linger.ms + request.timeout.ms)", least)
    return least / 1000


def _compression_level(config: ClientConfig) -> int | None:
    key = f"compression.{config.text('compression.type')}.level"
    return config.integer(key) if key in config.given else None


def _transactional_id(config: ClientConfig) -> str | None:
    if config["transactional.id"] == "":
        raise ConfigError(
            "transactional.id = '' must not be empty; leave it out for a producer without"
            " transactions"
        )
    return config.optional("transactional.id")


def _idempotence(config: ClientConfig) -> bool:
    """Return whether the producer is idempotent.

    Unless ``enable.idempotence`` or ``transactional.id`` is set explicitly, incompatible values of
    ``retries`` or ``acks`` disable idempotence. An incompatible
    ``max.in.flight.requests.per.connection`` is always an error, as in Kafka, because a user who
    raises it is unlikely to want to give up idempotence.

    Raises:
        ConfigError: the settings are incompatible with idempotence.
    """
    needs = [key for key in ("transactional.id", "enable.idempotence") if key in config.given]
    if not config.flag("enable.idempotence"):
        return False
    if config.integer("max.in.flight.requests.per.connection") > IN_FLIGHT_MAX:
        raise ConfigError(
            "max.in.flight.requests.per.connection ="
            f" {config['max.in.flight.requests.per.connection']} must be at most {IN_FLIGHT_MAX}"
            " with enable.idempotence; lower it, or set enable.idempotence = false"
        )
    for key, allowed, rules_out in (
        ("retries", "1 or more", config["retries"] == 0),
        ("acks", "all", _acks(config) != -1),
    ):
        if rules_out and needs:
            instead = "set enable.idempotence = false"
            if needs[0] == "transactional.id":
                instead = "leave transactional.id out"
            raise ConfigError(
                f"{key} = {config[key]!r} is not allowed with {needs[0]}; set it to {allowed},"
                f" or {instead}"
            )
        if rules_out:
            logger.info("disabling enable.idempotence, since %s is %s", key, config[key])
            return False
    return True
