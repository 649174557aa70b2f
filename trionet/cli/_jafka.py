"""``trionet jafka``: run a Jafka broker until SIGTERM or Ctrl-C."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, Namespace

from .._util._logging import get_logger
from .arguments._parser import add_all, log_level, option, repeatable


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Run a broker that speaks the protocol of Jafka and Kafka 0.7. When it accepts connections "
        "it prints one line, 'trionet jafka ready: HOST:PORT', on standard output; log lines go to "
        "standard error. SIGTERM or Ctrl-C stops it gracefully; a second one stops it at once."
    )
    add_all(
        parser,
        option(
            "--listen HOST:PORT",
            "address to listen on; port 0 picks a free one (default: 127.0.0.1 and the port of "
            "--config or --set, or 9092)",
        ),
        option("--data DIR", "keep topics in this folder (default: a temporary one)"),
        option("--config FILE", "a Jafka server.properties file"),
        repeatable("--set KEY=VALUE", "one Jafka setting; may be repeated; overrides --config"),
        log_level(),
    )


def run(arguments: Namespace) -> int:
    """Run the command, and return the exit status: 0 after a stop, 1 if it could not run.

    Raises:
        TrionetError: a setting is not allowed, or the broker could not start.
    """
    import trio  # here, as all that is imported below: --help must be fast

    from .._util._text import single_line
    from .._util.files._descriptors import raise_descriptor_limit
    from .terminal._serving import port_hint, start_logging

    start_logging(arguments.log_level)
    settings = _settings(arguments)
    raise_descriptor_limit()
    try:
        trio.run(_serve, settings)
    except OSError as error:
        print(f"trionet jafka: {single_line(f'{error}{port_hint(error)}')}", file=sys.stderr)
        return 1
    return 0


def _settings(arguments: Namespace) -> dict[str, object]:
    from ..broker.config._properties import read_properties
    from ..errors import ConfigError
    from .arguments._values import key_value

    settings: dict[str, object] = {"port": 9092}
    if arguments.config is not None:
        settings.update(read_properties(arguments.config))
    settings.update(key_value(text, "--set") for text in arguments.set)
    if arguments.data is not None:
        settings["log.dir"] = arguments.data
    if arguments.listen is not None:
        host, _, port = arguments.listen.rpartition(":")
        if not host or not port.isdecimal():
            raise ConfigError(f"--listen {arguments.listen}: must have the form HOST:PORT")
        settings |= {"host": host.strip("[]"), "port": port}
    return settings


async def _serve(settings: dict[str, object]) -> None:
    import trio

    from .._util._raising import raise_single_error
    from ..jafka._broker import open_jafka_broker
    from .terminal._serving import announce, watch_signals

    log = get_logger("trionet.jafka")
    stopping = trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT)
    with raise_single_error(), stopping as signals:
        async with trio.open_nursery() as nursery:
            ready, stop = trio.Event(), trio.Event()
            nursery.start_soon(watch_signals, signals, log, ready, stop, nursery.cancel_scope)
            async with open_jafka_broker(settings) as broker:
                # A broker cancelled at the end of its start must not report itself ready.
                await trio.lowlevel.checkpoint_if_cancelled()
                ready.set()
                announce(f"trionet jafka ready: {broker.address}")
                await stop.wait()
            nursery.cancel_scope.cancel(reason="the broker has stopped")
