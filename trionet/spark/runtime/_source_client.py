"""The client of a source: one for each configuration and process, kept by the loop's host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Final

import attrs
import trio

from ..._util._single_error import raise_single_error
from ...client.admin._admin import Admin
from ...client.admin.calls._calls import Calls
from ...client.admin.calls._settings import AdminSettings
from ...client.consumer._config import consumer_settings
from ...client.consumer._settings import ConsumerSettings
from ...client.network._kafka_client import KafkaClient
from ...client.network._opening import keep_polling, open_kafka_client
from ...net._network import SYSTEM
from ..options._client_options import BOOTSTRAP_SERVERS
from ..options._options import SourceOptions
from ._loop_host import host

#: Where a source differs from a consumer: it reads one partition at a time, and as fast as it can.
DEFAULTS: Final = MappingProxyType(
    {
        "max.partition.fetch.bytes": str(4 * 1024 * 1024),
        # The system makes room as it is needed: fewer and longer reads of an answer of megabytes.
        "receive.buffer.bytes": "-1",
    }
)

#: How long brokers have to say that there is no such partition, until it is believed: what is asked
#: about was there when a query was planned.
UNKNOWN_TOPIC_SECONDS: Final = 1.0


@attrs.frozen
class SourceClient:
    """A client and how it is used.

    Attributes:
        network: sends; it is polled.
        admin: asks about topics and offsets over the same connections.
        settings: those of a consumer.
    """

    network: KafkaClient
    admin: Admin
    settings: ConsumerSettings


def leased_client(options: SourceOptions) -> AbstractAsyncContextManager[SourceClient]:
    """The client of a source, for tasks of the loop; see :meth:`.LoopHost.lease`."""
    settings = _settings(options)
    return host().lease(_key(settings), partial(open_source_client, settings))


def drop_client(options: SourceOptions) -> None:
    """Have the next task open a new client, as the connector does for one that is tried again."""
    host().drop(_key(_settings(options)))


def _settings(options: SourceOptions) -> dict[str, str]:
    return {**DEFAULTS, "client.id": options.group_label, **options.client}


def _key(settings: Mapping[str, str]) -> Hashable:
    return "source", frozenset(settings.items())


@asynccontextmanager
async def open_source_client(settings: Mapping[str, str]) -> AsyncIterator[SourceClient]:
    """A client for the length of a block.

    Args:
        settings: keys of a consumer, ``bootstrap.servers`` among them.

    Raises:
        ConfigError: they do not fit each other.

    Cancellation: at the end of the block every connection is closed at once.
    """
    servers = settings[BOOTSTRAP_SERVERS]
    made = consumer_settings(
        {key: text for key, text in settings.items() if key != BOOTSTRAP_SERVERS}, {}
    )
    of_admin = AdminSettings(
        client=made.client,
        api_seconds=made.api_seconds,
        retry=made.client.metadata.retry,
        unknown_topic_seconds=UNKNOWN_TOPIC_SECONDS,
    )
    with raise_single_error() as caller:
        async with (
            open_kafka_client(servers, made.client, kind="consumer") as client,
            trio.open_nursery() as nursery,
        ):
            client.metadata.allow_auto_topic_creation = False
            nursery.start_soon(keep_polling, client)
            admin = Admin(Calls(client, of_admin, SYSTEM.chance))
            try:
                with caller.block():
                    yield SourceClient(client, admin, made)
            finally:
                nursery.cancel_scope.cancel(reason="the source's client is closed")
