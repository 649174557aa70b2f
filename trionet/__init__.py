"""trionet: Kafka's network layer on trio's structured concurrency.

The names that most programs need are exported here; the others are in the subpackages. Each name is
loaded on first use (PEP 562), so ``import trionet`` is cheap: it does not even import trio.
"""

from __future__ import annotations

import os

if os.environ.get("TRIONET_PURE", "0") not in {"", "0"}:  # before any other module of the package
    from trionet._util._imports import prefer_source

    prefer_source()
    _prefers_source = True
else:
    _prefers_source = False

from trionet.errors import (
    ApiError,
    AuthenticationError,
    BufferExhaustedError,
    CallTimedOutError,
    CommitFailedError,
    ConfigError,
    CorruptRecordError,
    DecompressionLimitError,
    DeliveryAbortedError,
    DeliveryTimeoutError,
    DisconnectedError,
    FencedInstanceIdError,
    FetchTooLargeError,
    InvalidReceiveError,
    LocalProtocolError,
    LogTruncationError,
    MetadataTimeoutError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    PartitionError,
    ProducerFencedError,
    RebalanceInProgressError,
    RecordTooLargeError,
    RecordWithdrawnError,
    RequestTimedOutError,
    ResponseTooLargeError,
    SendBatchError,
    TransactionAbortableError,
    TransactionError,
    TransactionOutcomeUnknownError,
    TrionetError,
    UndeliveredError,
    UnsupportedVersionError,
    WireFormatError,
)

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from trionet import testing as testing
    from trionet.broker import Broker, open_broker
    from trionet.client import ManualMetadataUpdater, NetworkClient, Node, open_network_client
    from trionet.client._topic_partition import OffsetAndMetadata, TopicPartition
    from trionet.client.admin import Admin, open_admin
    from trionet.client.consumer import (
        Consumer,
        ConsumerBatch,
        ConsumerRecord,
        open_consumer,
        open_reader,
        process_records,
        read_topic,
    )
    from trionet.client.producer import (
        Deliveries,
        Delivery,
        Producer,
        RecordMetadata,
        Transaction,
        open_producer,
    )
    from trionet.jafka import JafkaBroker, JafkaClient, open_jafka_broker, open_jafka_client
    from trionet.server import CloseConnection, Endpoint, Request, SocketServer, serve

__version__ = "0.1.0"

__all__ = [
    "Admin",
    "ApiError",
    "AuthenticationError",
    "Broker",
    "BufferExhaustedError",
    "CallTimedOutError",
    "CloseConnection",
    "CommitFailedError",
    "ConfigError",
    "Consumer",
    "ConsumerBatch",
    "ConsumerRecord",
    "CorruptRecordError",
    "DecompressionLimitError",
    "Deliveries",
    "Delivery",
    "DeliveryAbortedError",
    "DeliveryTimeoutError",
    "DisconnectedError",
    "Endpoint",
    "FencedInstanceIdError",
    "FetchTooLargeError",
    "InvalidReceiveError",
    "JafkaBroker",
    "JafkaClient",
    "LocalProtocolError",
    "LogTruncationError",
    "ManualMetadataUpdater",
    "MetadataTimeoutError",
    "NetworkClient",
    "NoOffsetForPartitionError",
    "Node",
    "OffsetAndMetadata",
    "OffsetOutOfRangeError",
    "PartitionError",
    "Producer",
    "ProducerFencedError",
    "RebalanceInProgressError",
    "RecordMetadata",
    "RecordTooLargeError",
    "RecordWithdrawnError",
    "Request",
    "RequestTimedOutError",
    "ResponseTooLargeError",
    "SendBatchError",
    "SocketServer",
    "TopicPartition",
    "Transaction",
    "TransactionAbortableError",
    "TransactionError",
    "TransactionOutcomeUnknownError",
    "TrionetError",
    "UndeliveredError",
    "UnsupportedVersionError",
    "WireFormatError",
    "is_compiled",
    "open_admin",
    "open_broker",
    "open_consumer",
    "open_jafka_broker",
    "open_jafka_client",
    "open_network_client",
    "open_producer",
    "open_reader",
    "process_records",
    "read_topic",
    "serve",
]

#: The module that defines each name; it is imported when the name is first used.
_HOMES = {
    "Admin": "trionet.client.admin",
    "Broker": "trionet.broker",
    "CloseConnection": "trionet.server",
    "Consumer": "trionet.client.consumer",
    "ConsumerBatch": "trionet.client.consumer",
    "ConsumerRecord": "trionet.client.consumer",
    "Deliveries": "trionet.client.producer",
    "Delivery": "trionet.client.producer",
    "Endpoint": "trionet.server",
    "JafkaBroker": "trionet.jafka",
    "JafkaClient": "trionet.jafka",
    "ManualMetadataUpdater": "trionet.client",
    "NetworkClient": "trionet.client",
    "Node": "trionet.client",
    "OffsetAndMetadata": "trionet.client._topic_partition",
    "Producer": "trionet.client.producer",
    "RecordMetadata": "trionet.client.producer",
    "Transaction": "trionet.client.producer",
    "Request": "trionet.server",
    "SocketServer": "trionet.server",
    "TopicPartition": "trionet.client._topic_partition",
    "open_admin": "trionet.client.admin",
    "open_broker": "trionet.broker",
    "open_consumer": "trionet.client.consumer",
    "open_jafka_broker": "trionet.jafka",
    "open_jafka_client": "trionet.jafka",
    "open_network_client": "trionet.client",
    "open_producer": "trionet.client.producer",
    "open_reader": "trionet.client.consumer",
    "process_records": "trionet.client.consumer",
    "read_topic": "trionet.client.consumer",
    "serve": "trionet.server",
}
#: Subpackages that are imported on first use, as in ``with trionet.testing.broker() as broker``.
_SUBPACKAGES = {"testing"}


def is_compiled() -> bool:
    """Return whether trionet's hot paths run as compiled modules rather than as pure Python."""
    from importlib.machinery import PathFinder

    # The library that holds all compiled code lies beside the package, and nowhere else: another
    # trionet on the path may have one too.
    folder = os.path.dirname(os.path.dirname(__file__))
    return not _prefers_source and PathFinder.find_spec("trionet__mypyc", [folder]) is not None


if not TYPE_CHECKING:  # a type checker would take every misspelt name for a loadable one

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in _SUBPACKAGES:
            return import_module(f"{__name__}.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES})
