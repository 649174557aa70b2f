"""The client of a source: one per configuration and process, kept open by the loop host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Final

import attrs
import trio

from ..._util._raising import raise_single_error
from ...client.admin._admin import Admin
from ...client.admin._calls import AdminSettings, Calls
from ...client.consumer._settings import ConsumerSettings, consumer_settings
from ...client.network._kafka_client import KafkaClient
from ...client.network._open_client import keep_polling, open_kafka_client
from ...net._network import SYSTEM
from ..options._client_options import BOOTSTRAP_SERVERS
from ..options._options import SourceOptions
from ._loop_host import host

#: Defaults that differ from a consumer's: a task reads only one partition, as fast as possible.
DEFAULTS: Final = MappingProxyType(
    {
        "max.partition.fetch.bytes": str(4 * 1024 * 1024),
        # The operating system's auto-tuning gives fewer and longer reads of responses of megabytes.
        "receive.buffer.bytes": "-1",
    }
)

#: How long UNKNOWN_TOPIC_OR_PARTITION is retried: the partitions existed when the query was
#: planned, so the broker's metadata may merely be stale.
UNKNOWN_TOPIC_SECONDS: Final = 1.0


@attrs.frozen
class SourceClient:
    """A network client, an admin client on the same connections, and a consumer's settings.

    Attributes:
        network: sends requests; polled by a background task.
        admin: queries topics and offsets over the same connections.
        settings: the settings of a consumer.
    """

    network: KafkaClient
    admin: Admin
    settings: ConsumerSettings


def leased_client(options: SourceOptions) -> AbstractAsyncContextManager[SourceClient]:
    """Lease the client of a source, in the trio loop; see :meth:`.LoopHost.lease`."""
    settings = _settings(options)
    return host().lease(_key(settings), partial(open_source_client, settings))


def drop_client(options: SourceOptions) -> None:
    """Drop the shared client, so that the next task opens a new one (as in the connector)."""
    host().drop(_key(_settings(options)))


def _settings(options: SourceOptions) -> dict[str, str]:
    return {**DEFAULTS, "client.id": options.group_label, **options.client}


def _key(settings: Mapping[str, str]) -> Hashable:
    return "source", frozenset(settings.items())


@asynccontextmanager
async def open_source_client(settings: Mapping[str, str]) -> AsyncIterator[SourceClient]:
    """Open a client for the duration of a block.

    Args:
        settings: consumer settings, including ``bootstrap.servers``.

    Raises:
        ConfigError: the settings conflict with each other.

    Cancellation: at the end of the block, all connections are closed immediately.
    """
    servers = settings[BOOTSTRAP_SERVERS]
    settings_of_consumer = consumer_settings(
        {key: text for key, text in settings.items() if key != BOOTSTRAP_SERVERS}, {}
    )
    of_admin = AdminSettings(
        client=settings_of_consumer.client,
        api_timeout_seconds=settings_of_consumer.api_timeout_seconds,
        retry=settings_of_consumer.client.metadata.retry,
        unknown_topic_seconds=UNKNOWN_TOPIC_SECONDS,
    )
    with raise_single_error() as caller:
        async with (
            open_kafka_client(servers, settings_of_consumer.client, kind="consumer") as client,
            trio.open_nursery() as nursery,
        ):
            client.metadata.allow_auto_topic_creation = False
            nursery.start_soon(keep_polling, client)
            admin = Admin._create(Calls(client, of_admin, SYSTEM.rng))  # noqa: SLF001
            try:
                with caller.block():
                    yield SourceClient(client, admin, settings_of_consumer)
            finally:
                nursery.cancel_scope.cancel(reason="the source's client is closing")
