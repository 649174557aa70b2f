"""Implements ``trionet broker``: runs a broker, or edits the data of a stopped broker."""

from __future__ import annotations

import getpass
import logging
import re
import signal
import sys
from argparse import Namespace
from collections.abc import Awaitable, Callable

import trio

from .._util._logging import get_logger
from .._util._raising import raise_single_error
from .._util._text import single_line
from .._util.files._descriptors import raise_descriptor_limit
from ..broker.config._broker_config import BrokerConfig
from ..broker.config._dynamic_config_store import altered_settings, reset_altered
from ..broker.config._properties import read_properties
from ..broker.run._broker import Broker, open_broker
from ..broker.security._scram_credentials import add_scram_user
from ..errors import ConfigError, TrionetError
from ..metrics._log_ring import LogRing
from ..net.sasl._scram import HASHES
from .arguments._values import key_value
from .clients._connection import DEFAULT_SERVERS, first_line_of
from .terminal._output import stdout
from .terminal._serving import announce, port_hint, start_logging, watch_signals
from .terminal._streams import check_input

# Keys of TLS and SASL, except those that apply only to the metrics listener.
_SECURITY_KEY = re.compile(
    r"(?:listener\.name\.(?!metrics\.)[^.]+\.(?:[^.]+\.)?)?(?:ssl|sasl)\.", re.IGNORECASE
)
Show = Callable[[Broker], Awaitable[object]]
"""A function that shows a broker until the user quits."""

# The options that edit the data of a stopped broker.
_OFFLINE = (
    "--add-scram",
    "--delete-altered-setting",
    "--describe-altered-settings",
    "--reset-altered-settings",
)


def run_broker(arguments: Namespace) -> int:
    """Run the command and return the exit status.

    The exit status is 0 after a clean stop, 1 if the broker could not start, and 3 if some data
    could not be flushed to disk.

    Raises:
        TrionetError: a setting is invalid, or the broker could not start.
    """
    start_logging(arguments.log_level)
    settings = _settings(arguments)
    show = _dashboard(arguments)
    raise_descriptor_limit()
    try:
        if arguments.add_scram is not None:
            _add_scram(arguments, settings)
        elif arguments.describe_altered_settings:
            _describe_altered(settings)
        elif arguments.delete_altered_setting is not None:
            _reset_altered("--delete-altered-setting", settings, arguments.delete_altered_setting)
        elif arguments.reset_altered_settings:
            _reset_altered("--reset-altered-settings", settings)
        else:
            return 3 if trio.run(_serve, settings, arguments.brokers, show, arguments.faults) else 0
    except TrionetError:  # before OSError: timeout errors are both
        raise
    except OSError as error:
        about = f": {error.filename}" if error.filename else ""
        hint = port_hint(error)
        reason = single_line(f"{error.strerror or error}{about}{hint}")
        print(f"trionet broker: {reason}", file=sys.stderr)
        return 1
    return 0


def _dashboard(arguments: Namespace) -> Show | None:
    """Return a function that shows the broker on the terminal, or None without ``--dashboard``.

    Raises:
        ConfigError: there is no terminal, or another option prevents the broker from running.
    """
    if not arguments.dashboard:
        return None
    for option in _OFFLINE:
        if getattr(arguments, option[2:].replace("-", "_")) not in (None, False):
            raise ConfigError(f"--dashboard cannot be combined with {option}")
    # Imported here so that a broker without a dashboard does not load rich.
    from ..dashboard._app import run_dashboard
    from ..dashboard.sources._open_source import watch_broker
    from ..dashboard.terminal._ansi import is_interactive

    if not is_interactive():
        raise ConfigError(
            "--dashboard requires a terminal on standard input and output; without one, connect"
            " from another terminal: trionet dashboard HOST:PORT"
        )
    # Log lines go to the dashboard. Standard error receives only errors, because the dashboard
    # draws over whatever is printed there.
    log = LogRing(logging.root.level)
    get_logger("trionet").addHandler(log)
    for handler in logging.root.handlers:
        handler.setLevel(logging.ERROR)

    async def show(broker: Broker) -> int:
        with watch_broker(broker, log=log) as source:
            return await run_dashboard(source)

    return show


def _settings(arguments: Namespace) -> dict[str, object]:
    settings: dict[str, object] = {}
    if arguments.config is not None:
        settings.update(read_properties(arguments.config))
    settings.update(key_value(text, "--set") for text in arguments.set)
    if arguments.listen is not None:
        settings["listeners"] = _listener(arguments.listen, settings)
    if arguments.password_file is not None and arguments.add_scram is None:
        raise ConfigError("--password-file requires --add-scram NAME")
    settings.setdefault("listeners", f"PLAINTEXT://{DEFAULT_SERVERS}")
    if arguments.memory:
        settings.pop("log.dirs", None)
        settings.pop("log.dir", None)
    elif arguments.data is not None:
        settings.pop("log.dir", None)
        settings["log.dirs"] = arguments.data
    return settings


def _listener(text: str, settings: dict[str, object]) -> str:
    """Return the listener given by ``--listen``, which replaces the listeners in the settings."""
    protocol, _, address = text.rpartition("://")
    _, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise ConfigError(
            f"--listen {text}: must have the form HOST:PORT, such as {DEFAULT_SERVERS}; [::1]:9092 "
            "for IPv6; port 0 picks a free one; SSL://HOST:PORT for another protocol"
        )
    if protocol:
        return text
    # A configuration with TLS or SASL must not lose it silently through an option.
    security_key = next(filter(_SECURITY_KEY.match, settings), None)
    if security_key is not None:
        raise ConfigError(
            f"--listen {text} would listen without TLS or SASL, but {security_key} is set; name "
            f"the protocol: SSL://{text}, SASL_SSL://{text} for SASL, or PLAINTEXT://{text} if no "
            "security is intended"
        )
    return f"PLAINTEXT://{text}"


def _folder(option: str, settings: dict[str, object]) -> str:
    folder = BrokerConfig.from_settings(settings).log_dir
    if folder is None:
        raise ConfigError(f"{option} requires the broker's data directory: --data DIR")
    return folder


def _describe_altered(settings: dict[str, object]) -> None:
    found = trio.run(altered_settings, _folder("--describe-altered-settings", settings))
    for each in found:
        print(each, file=stdout())
    if not found:
        print("trionet broker: no altered settings", file=sys.stderr)


def _reset_altered(option: str, settings: dict[str, object], key: str | None = None) -> None:
    removed = trio.run(reset_altered, _folder(option, settings), key)
    for each in removed:
        print(f"trionet broker: reset: {each}", file=stdout())
    if not removed:
        print("trionet broker: no altered settings to reset")


def _add_scram(arguments: Namespace, settings: dict[str, object]) -> None:
    folder = _folder("--add-scram", settings)
    name = arguments.add_scram
    try:
        password = _read_password(name, arguments.password_file)
    except UnicodeDecodeError:
        raise ConfigError(f"the password of {name!r} is not valid UTF-8") from None
    trio.run(add_scram_user, folder, name, password.rstrip("\r\n"))
    print(f"trionet broker: {name} can now log in with {', '.join(HASHES)}", file=stdout())


def _read_password(name: str, path: str | None) -> str:
    """Read a password from the first line of a file or standard input, or prompt for it."""
    if path is not None:
        return first_line_of(path)
    check_input()
    if sys.stdin.isatty():
        return getpass.getpass(f"password of {name}: ")
    return sys.stdin.readline()


async def _serve(
    settings: dict[str, object], brokers: int, show: Show | None, has_faults: bool
) -> bool:
    """Run the broker until a signal, and return whether flushing some data to disk failed."""
    stop_failed = False
    log = get_logger("trionet.broker")
    stopping = trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT)
    with raise_single_error(), stopping as signals:
        async with trio.open_nursery() as nursery:
            ready, stop = trio.Event(), trio.Event()
            nursery.start_soon(watch_signals, signals, log, ready, stop, nursery.cancel_scope)
            async with open_broker(settings, brokers=brokers) as broker:
                # A broker cancelled at the end of its start must not report itself ready.
                await trio.lowlevel.checkpoint_if_cancelled()
                with broker.own_process():
                    if has_faults:
                        # Imported here, since other brokers need none of it.
                        from ..testing import control

                        control(broker)
                    ready.set()
                    _report(broker)
                    await (stop.wait() if show is None else show(broker))
            stop_failed = broker.stop_failed
            nursery.cancel_scope.cancel(reason="the broker has stopped")
    return stop_failed


def _report(broker: Broker) -> None:
    addresses = ",".join(
        str(endpoint) for node in broker.node_ids for endpoint in broker.endpoints_of(node)
    )
    announce(f"trionet broker ready: {addresses}")
