"""What ``trionet broker`` does once its arguments are known."""

from __future__ import annotations

import argparse
import gc
import getpass
import logging
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import trio

from ..._util._single_error import raise_single_error
from ...broker.config._broker_config import BrokerConfig
from ...broker.config._dynamic_config_store import reset_altered
from ...broker.config._properties import read_properties
from ...broker.run._broker import Broker, open_broker
from ...broker.security._scram_credentials import add_scram_user
from ...errors import ConfigError, TrionetError
from ...net.sasl._scram import HASHES
from ..arguments._secret_files import first_line_of
from ..clients._connection import DEFAULT_SERVERS

# The keys of TLS and SASL, but for those of the metrics alone.
_SECURING = re.compile(
    r"(?:listener\.name\.(?!metrics\.)[^.]+\.(?:[^.]+\.)?)?(?:ssl|sasl)\.", re.IGNORECASE
)
Show = Callable[[Broker], Awaitable[object]]
"""Shows a broker until somebody wants it stopped."""

# A broker that serves others does as Kafka does where open_broker alone is quicker.
_DEFAULTS = {"auto.create.topics.ready.at.once": False, "group.initial.rebalance.delay.ms": 3000}


def run_broker(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code.

    0 stopped, 1 could not start, 2 wrong settings, 3 not everything is on the disk.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=arguments.log_level.upper(),
        format="%(asctime)s %(levelname)s %(message)s",
    )
    try:
        settings = _settings(arguments)
        show = _dashboard(arguments)
    except (TrionetError, ValueError) as error:
        print(f"trionet broker: {error}", file=sys.stderr)
        return 2
    _raise_descriptor_limit()
    try:
        if arguments.add_scram is not None:
            _add_scram(arguments, settings)
        elif arguments.reset_altered_settings:
            _reset_altered(settings)
        else:
            stop_failed = trio.run(_serve, settings, arguments.brokers, show)
            return 3 if stop_failed else 0
    except TrionetError as error:  # before OSError, which those of time limits are as well
        print(f"trionet broker: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    except OSError as error:
        print(f"trionet broker: {_sentence(error)}", file=sys.stderr)
        return 1
    return 0


def _dashboard(arguments: argparse.Namespace) -> Show | None:
    """What is to be shown of the broker on this terminal, if anything.

    Raises:
        ConfigError: there is no terminal, or no broker to be run.
    """
    if not arguments.dashboard:
        return None
    if arguments.add_scram is not None or arguments.reset_altered_settings:
        raise ConfigError("--dashboard shows a broker that runs; with this option none does")
    # Imported only here: brokers without it do not need what it takes.
    from ._dashboard import BrokerDashboard

    return BrokerDashboard(logging.getLogger().level)


def _sentence(error: OSError) -> str:
    """An error of the system without its number, and with what it is about."""
    about = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{about}"


def _settings(arguments: argparse.Namespace) -> dict[str, object]:
    settings: dict[str, object] = {}
    if arguments.config is not None:
        settings.update(read_properties(arguments.config))
    for text in arguments.set:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise ValueError(f"--set {text}: must have the form KEY=VALUE")
        settings[key.strip()] = value.strip()
    if arguments.listen is not None:
        settings["listeners"] = _listener(arguments.listen, settings)
    if arguments.password_file is not None and arguments.add_scram is None:
        raise ValueError("--password-file belongs to --add-scram NAME")
    settings.setdefault("listeners", f"PLAINTEXT://{DEFAULT_SERVERS}")
    if arguments.memory:
        settings.pop("log.dirs", None)
        settings.pop("log.dir", None)
    elif arguments.data is not None:
        settings.pop("log.dir", None)
        settings["log.dirs"] = arguments.data
    return settings


def _listener(text: str, settings: dict[str, object]) -> str:
    """The listener that ``--listen`` asks for, in place of those in the settings."""
    protocol, _, address = text.rpartition("://")
    _, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(
            f"--listen {text}: must have the form HOST:PORT, as in {DEFAULT_SERVERS}; [::1]:9092 "
            "for IPv6; port 0 takes a free one; SSL://HOST:PORT for another protocol"
        )
    if protocol:
        return text
    # Whoever sets up TLS or SASL must not get a listener without, only because of an option.
    securing = next(filter(_SECURING.match, settings), None)
    if securing is not None:
        raise ValueError(
            f"--listen {text} would listen without TLS and SASL, but {securing} is set; name the "
            f"protocol, as in SSL://{text} or, if that is what you want, PLAINTEXT://{text}"
        )
    return f"PLAINTEXT://{text}"


def _folder(option: str, settings: dict[str, object]) -> str:
    folder = BrokerConfig.from_settings(settings).log_dir
    if folder is None:
        raise ConfigError(f"{option} needs the folder of a broker: --data DIR")
    return folder


def _reset_altered(settings: dict[str, object]) -> None:
    forgotten = trio.run(reset_altered, _folder("--reset-altered-settings", settings))
    for each in forgotten:
        print(f"trionet broker: forgotten: {each}")
    if not forgotten:
        print("trionet broker: no settings were altered")


def _add_scram(arguments: argparse.Namespace, settings: dict[str, object]) -> None:
    folder = _folder("--add-scram", settings)
    name = arguments.add_scram
    try:
        password = _read_password(name, arguments.password_file)
    except UnicodeDecodeError:
        raise ConfigError(f"the password of {name!r} is not UTF-8") from None
    trio.run(add_scram_user, folder, name, password.rstrip("\r\n"))
    print(f"trionet broker: {name} may log in by {', '.join(HASHES)}")


def _read_password(name: str, path: str | None) -> str:
    """The first line of a file, or of standard input, where somebody may have to be asked."""
    if path is not None:
        return first_line_of(path)
    if sys.stdin.isatty():
        return getpass.getpass(f"password of {name}: ")
    return sys.stdin.readline()


async def _serve(settings: dict[str, object], brokers: int, show: Show | None) -> bool:
    """Serve until a signal; whether something could not be put on the disk then."""
    stop_failed = False
    with (
        raise_single_error(),
        trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals,
    ):
        async with trio.open_nursery() as nursery:
            ready, stop = trio.Event(), trio.Event()
            nursery.start_soon(_watch_signals, signals, ready, stop, nursery.cancel_scope)
            async with open_broker({**_DEFAULTS, **settings}, brokers=brokers) as broker:
                # Nobody is told of a broker that was given up in the last moment of its start.
                await trio.lowlevel.checkpoint_if_cancelled()
                # This process is the broker's alone: what is there now stays, and a full collection
                # that looked at all of it would hold the loop for 30 ms with 10,000 partitions.
                gc.freeze()
                ready.set()
                _report(broker)
                await (stop.wait() if show is None else show(broker))
            stop_failed = broker.stop_failed
            nursery.cancel_scope.cancel(reason="the broker has stopped")
    return stop_failed


async def _watch_signals(
    signals: AsyncIterator[int], ready: trio.Event, stop: trio.Event, scope: trio.CancelScope
) -> None:
    """One signal stops a broker that is ready gracefully; all others do not wait for anything."""
    log = logging.getLogger("trionet.broker")
    async for number in signals:
        log.info("%s: stopping", signal.Signals(number).name)
        if stop.is_set() or not ready.is_set():
            scope.cancel(reason="a second signal, or one while the broker starts")
            return
        stop.set()


def _report(broker: Broker) -> None:
    addresses = ",".join(
        str(endpoint) for node in broker.node_ids for endpoint in broker.endpoints_of(node)
    )
    print(f"trionet broker ready: {addresses}", flush=True)


def _raise_descriptor_limit() -> None:
    """Connections and segments are descriptors; take as many as the system allows, as Java does."""
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        pass  # the limit stays as it is; accepting says so when it is reached
