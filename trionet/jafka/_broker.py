"""``open_jafka_broker`` and :class:`JafkaBroker`: Jafka's protocol on a SocketServer of its own."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import cache
from typing import TYPE_CHECKING, Final

import attrs
import trio

from .._util._logging import get_logger
from .._util._raising import raise_single_error
from .._util._trio_task import check_trio
from .._util.files._descriptors import descriptor_limit
from ..metrics._log_ring import BackgroundLogRing
from ..metrics._loop import LoopMonitor
from ..net.wire._endpoint import Endpoint, SecurityProtocol
from ..server._server_config import ServerConfig
from ..server._server_statistics import ServerStatistics
from ..server._socket_server import SocketServer
from ..server.metrics._local_listener import open_local_sockets, serve_locally
from ..server.quotas._connection_limits import UNLIMITED, ServerLimits
from ._config import JafkaConfig
from ._frames import JAFKA_FRAMES
from ._handlers import Handlers
from ._topics import Topics

if TYPE_CHECKING:
    from ..server.metrics._metrics_listener import FindPage

logger = get_logger("trionet.jafka")

# The module of the metrics, loaded when they are needed.
_METRICS: Final = "trionet.jafka._metrics"

# How long a graceful stop waits for pending responses to be sent.
STOP_GRACE_SECONDS: Final = 5.0


@attrs.frozen(eq=False)
class JafkaBroker:
    """A running broker, from :func:`open_jafka_broker`.

    Attributes:
        address: where it listens, such as ``127.0.0.1:9092``.
        metrics_url: the base URL of its metrics listener; None without one.
    """

    address: str
    metrics_url: str | None
    _server: SocketServer
    _topics: Topics

    def statistics(self) -> ServerStatistics:
        """Return the totals and current sizes of the network layer."""
        return self._server.statistics()

    def ends(self) -> dict[tuple[str, int], int]:
        """Return the position of the end of each partition that has a log."""
        return {(topic, partition): log.end for topic, partition, log in self._topics}


@asynccontextmanager
async def open_jafka_broker(
    settings: Mapping[str, object] | None = None, /, **keywords: object
) -> AsyncIterator[JafkaBroker]:
    """Run a Jafka broker within the context.

    By default, it listens on a free port of 127.0.0.1, and keeps its data in a temporary folder
    that is removed at the end. Set ``log_dir`` to keep the data.

    Args:
        settings: Jafka's settings by their dotted keys.
        keywords: the same with underscores instead of dots, such as ``num_partitions=3``; they take
            precedence.

    Raises:
        ConfigError: a setting is unknown or not allowed, or another broker uses the data folder.
        TrionetError: the data folder misses a part of a log.
        OSError: the address cannot be bound, or the data folder cannot be used. Within the context:
            what was appended could not be flushed.
        RuntimeError: trio does not run the calling task.

    On exit, pending responses have 5 s to be sent. Then all logs are flushed and marked as closed.

    Cancellation: closes everything at once. The logs are not flushed, so the next start checks
    them; what was appended is lost only if the machine fails before the system has written it.
    """
    check_trio("brokers")
    config = JafkaConfig({"port": 0, **(settings or {}), **keywords})
    if config.without_effect:
        logger.info("settings without effect: %s", ", ".join(config.without_effect))
    with raise_single_error() as caller:
        async with AsyncExitStack() as stack:
            path = config.log_dir
            if path is None:
                path = stack.enter_context(tempfile.TemporaryDirectory(prefix="trionet-jafka-"))
            topics = Topics(config, path)
            stack.callback(topics.release)
            await trio.to_thread.run_sync(topics.load)
            stack.push_async_callback(trio.to_thread.run_sync, topics.close)
            monitor = stack.enter_context(LoopMonitor())
            log = BackgroundLogRing()
            logger.addHandler(log)
            stack.callback(logger.removeHandler, log)
            last = stack.enter_context(ExitStack())  # what ends after all tasks
            nursery = await stack.enter_async_context(trio.open_nursery())
            stack.callback(nursery.cancel_scope.cancel, reason="the broker is stopping")
            nursery.start_soon(topics.flush_in_time, name="jafka-flusher")
            nursery.start_soon(topics.remove_in_time, name="jafka-retention")
            handlers = Handlers(config, topics)
            endpoint = Endpoint(
                "PLAINTEXT", SecurityProtocol.PLAINTEXT, config.host, config["port"]
            )
            server = SocketServer(
                handlers.handle,
                [endpoint],
                _server_config(config),
                dialect=JAFKA_FRAMES,
                never_waits=handlers.never_waits,
            )
            [bound] = await nursery.start(server.run, name="socket-server")
            stack.push_async_callback(_stop, server)
            url = None

            @cache  # both listeners show the same
            def find_page() -> FindPage:
                from ..server.metrics._server_metrics import take_snapshots
                from ._metrics import make_metrics

                registry, find = make_metrics(server, handlers, topics, monitor, log)
                nursery.start_soon(take_snapshots, registry, name="metrics")
                return find

            if config.metrics_listener is not None:
                # Imported here, since it takes milliseconds to load.
                from ._metrics import serve

                url = await nursery.start(serve, config.metrics_listener, find_page())
            if config["metrics.local.enable"]:
                sockets = last.enter_context(open_local_sockets("jafka", [bound]))
                if sockets:
                    nursery.start_soon(serve_locally, sockets, find_page, [_METRICS])
            with caller.block():
                yield JafkaBroker(bound.address, url, server, topics)


def _server_config(config: JafkaConfig) -> ServerConfig:
    return ServerConfig(
        num_network_threads=config["num.threads"],
        socket_request_max_bytes=config["max.socket.request.bytes"],
        socket_send_buffer_bytes=config["socket.send.buffer"],
        socket_receive_buffer_bytes=config["socket.receive.buffer"],
        connections_max_idle_ms=config["connections.max.idle.ms"],
        # By address, because connections above that limit are closed at once, where in Jafka they
        # wait. Half of the file descriptors are left to segments; above, connections do wait.
        limits=ServerLimits(
            connections_max=min(descriptor_limit() // 2, UNLIMITED),
            connections_per_ip_max=config["max.connections"],
        ),
    )


async def _stop(server: SocketServer) -> None:
    with trio.move_on_after(STOP_GRACE_SECONDS):
        await server.stop()
