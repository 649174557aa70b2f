"""Jafka, the Java port of Kafka 0.7: its protocol on the same SocketServer, and its log on disk."""

from __future__ import annotations

from .._util._imports import lazy_exports

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from ._broker import JafkaBroker, open_jafka_broker
    from ._client import FetchedMessages, JafkaClient, open_jafka_client
    from ._codec import EARLIEST, LATEST, RANDOM_PARTITION
    from ._requests import FetchRequest, Message

__all__ = [
    "EARLIEST",
    "LATEST",
    "RANDOM_PARTITION",
    "FetchRequest",
    "FetchedMessages",
    "JafkaBroker",
    "JafkaClient",
    "Message",
    "open_jafka_broker",
    "open_jafka_client",
]

_HOMES = {
    "_broker": "JafkaBroker open_jafka_broker",
    "_client": "FetchedMessages JafkaClient open_jafka_client",
    "_codec": "EARLIEST LATEST RANDOM_PARTITION",
    "_requests": "FetchRequest Message",
}

if not TYPE_CHECKING:  # a type checker would take every misspelt name for a loadable one
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
