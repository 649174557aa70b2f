"""``trionet bench``: measure the speed of a cluster, or of the network layer alone."""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trionet.errors import ConfigError, TrionetError

from ..arguments._parser import Subcommands
from ..clients._connection import (
    SERVERS,
    add_connection_arguments,
    client_settings,
    logging_to_stderr,
)
from ..terminal._output import add_format_arguments

if TYPE_CHECKING:
    from ._client_loads import Payloads
    from ._results import Result
    from ._runs import Run

COMMANDS: Final = Subcommands()

TIMEOUT_SECONDS: Final = 10.0
RECORD_BYTES: Final = 100
CONNECTIONS: Final = 64
REQUEST_BYTES: Final = 100
#: The prefix of the line in which an echo server reports its address.
READY: Final = "trionet bench echo ready: "
STOP_SECONDS: Final = 10.0
DEFAULT_SECONDS: Final = 10.0
#: The default interval between progress lines.
INTERVAL_SECONDS: Final = 1.0


def _add_produce_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write records to a topic of any Kafka cluster and time each until it is acknowledged. "
        "Without --records and --duration, run for ten seconds; Ctrl-C stops with the results so "
        "far. The exit status is 1 if a record was not written."
    )
    parser.add_argument("topic", metavar="TOPIC", help="topic to write to")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--record-size",
        type=natural_int,
        default=RECORD_BYTES,
        metavar="BYTES",
        help=f"size of the values, which are random letters (default: {RECORD_BYTES})",
    )
    what.add_argument(
        "--payload-file", metavar="FILE", help="use the values in this file, repeatedly"
    )
    parser.add_argument(
        "--payload-delimiter",
        default="\\n",
        metavar="TEXT",
        help="delimiter of the values in the file (default: \\n)",
    )
    parser.add_argument(
        "-p", "--partition", type=natural_int, metavar="N", help="write only to this partition"
    )
    _add_plan_arguments(parser, "records")
    _add_rate_argument(parser, "records")
    parser.add_argument(
        "--warmup-records",
        type=positive_int,
        default=0,
        metavar="N",
        help="write N records before measuring",
    )
    _add_result_arguments(parser, has_metrics=True)
    add_connection_arguments(parser)


@COMMANDS.command(
    "produce", "write records and time each until it is acknowledged", _add_produce_arguments
)
def _produce(arguments: argparse.Namespace) -> int:
    from trionet.client.config._keys import PRODUCER_KEYS

    from ._client_loads import ProduceLoad

    with logging_to_stderr(arguments, holds=True):
        payloads = _payloads(arguments)
        settings = client_settings(arguments, PRODUCER_KEYS)
        if "transactional.id" in settings:
            raise ConfigError("transactional.id: this command writes no transactions; leave it out")
        load = ProduceLoad(
            settings.pop(SERVERS),
            settings,
            topic=arguments.topic,
            partition=arguments.partition,
            payloads=payloads,
            warmup=arguments.warmup_records,
            with_metrics=arguments.print_metrics,
        )
        return _measure(arguments, "records", load.run)


def _payloads(arguments: argparse.Namespace) -> Payloads:
    from ._client_loads import payloads_of, random_payloads

    if arguments.payload_file is None:
        return random_payloads(arguments.record_size)
    path = Path(arguments.payload_file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--payload-file {path}: {error.strerror}") from error
    delimiter = arguments.payload_delimiter.encode().decode("unicode_escape").encode()
    found = payloads_of(content, delimiter) if delimiter else None
    if found is None:
        raise ConfigError(f"--payload-file {path}: the file contains no values")
    return found


def _add_consume_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Read a topic of any Kafka cluster. Without --records and --duration, read the records "
        "that exist at the start; Ctrl-C stops with the results so far. Latency is measured from a "
        "record's timestamp until it is received, which is meaningful only for records written "
        "during the run (--from-end) with a synchronised clock. The exit status is 1 if fewer "
        "records were read than --records or than the topic has."
    )
    parser.add_argument("topic", metavar="TOPIC", help="topic to read")
    parser.add_argument(
        "-p", "--partition", type=natural_int, metavar="N", help="read only this partition"
    )
    parser.add_argument(
        "-G",
        "--group",
        metavar="NAME",
        help="join this group, start at its committed offsets, and commit",
    )
    parser.add_argument(
        "--from-end", action="store_true", help="read only records written from now on"
    )
    _add_plan_arguments(parser, "records")
    parser.add_argument(
        "--timeout",
        type=positive_float,
        default=TIMEOUT_SECONDS,
        metavar="SECONDS",
        help="stop when no record has arrived for this long (default: 10)",
    )
    _add_result_arguments(parser, has_metrics=True)
    add_connection_arguments(parser)


@COMMANDS.command("consume", "read records and measure their age", _add_consume_arguments)
def _consume(arguments: argparse.Namespace) -> int:
    with logging_to_stderr(arguments, holds=True):
        return _consume_topic(arguments)


def _consume_topic(arguments: argparse.Namespace) -> int:
    from trionet.client.config._keys import CONSUMER_KEYS

    from ._client_loads import ConsumeLoad

    settings = client_settings(arguments, CONSUMER_KEYS)
    if arguments.group is not None:
        settings["group.id"] = arguments.group
    is_group = "group.id" in settings
    if is_group and arguments.partition is not None:
        raise ConfigError(
            "--partition cannot be combined with a group, which assigns the partitions"
        )
    settings.setdefault("allow.auto.create.topics", "false")
    # Only for group members without a committed offset; others seek explicitly.
    settings.setdefault("auto.offset.reset", "latest" if arguments.from_end else "earliest")
    is_bounded = arguments.records_max is not None or arguments.duration is not None
    load = ConsumeLoad(
        settings.pop(SERVERS),
        settings,
        topic=arguments.topic,
        partition=arguments.partition,
        at_end=arguments.from_end,
        until_end=not (is_bounded or arguments.from_end or is_group),
        idle_seconds_max=arguments.timeout,
        with_metrics=arguments.print_metrics,
    )
    return _measure(arguments, "records", load.run, seconds=math.inf)


def _add_echo_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Send requests, each prefixed with its size in four bytes, and time each until it is "
        "echoed; one is in flight per connection. Without HOST:PORT the server is trionet's "
        "SocketServer in its own process. Without --requests and --duration, run for ten seconds; "
        "Ctrl-C stops with the results so far."
    )
    parser.add_argument("server", metavar="HOST:PORT", nargs="?", help="echo server to connect to")
    parser.add_argument(
        "--connections",
        type=positive_int,
        default=CONNECTIONS,
        metavar="N",
        help=f"number of connections (default: {CONNECTIONS})",
    )
    parser.add_argument(
        "--request-size",
        type=natural_int,
        default=REQUEST_BYTES,
        metavar="BYTES",
        help=f"size of each request (default: {REQUEST_BYTES})",
    )
    parser.add_argument(
        "--serve",
        metavar="HOST:PORT",
        help="run only such a server, until SIGTERM or Ctrl-C; port 0 picks a free one",
    )
    _add_plan_arguments(parser, "requests")
    _add_rate_argument(parser, "requests")
    _add_result_arguments(parser, has_metrics=False)


@COMMANDS.command(
    "echo", "time requests to the bare network layer or to any echo server", _add_echo_arguments
)
def _echo(arguments: argparse.Namespace) -> int:
    if arguments.serve is not None:
        from ._echo_load import run_server

        if arguments.server is not None:
            raise ConfigError("--serve cannot be combined with a server to connect to")
        return run_server(arguments.serve, READY)
    if arguments.server is not None:
        return _echo_from(arguments, arguments.server)
    with _own_server() as server:
        return _echo_from(arguments, server)


def _echo_from(arguments: argparse.Namespace, server: str) -> int:
    from trionet.client.network._addresses import parse_bootstrap_servers

    from ._echo_load import EchoLoad

    [(host, port), *others] = parse_bootstrap_servers(server, "HOST:PORT")
    if others:
        raise ConfigError(f"{server}: expected a single server")
    load = EchoLoad(
        host, port, connections=arguments.connections, request_bytes=arguments.request_size
    )
    return _measure(arguments, "requests", load.run)


@contextmanager
def _own_server() -> Iterator[str]:
    """Run an echo server in a separate process, and yield its address."""
    command = [sys.executable, "-m", "trionet", "bench", "echo", "--serve", "127.0.0.1:0"]
    # In its own session, so that Ctrl-C reaches only this process, which then stops the server.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        assert server.stdout is not None
        try:
            line = server.stdout.readline()
            if not line.startswith(READY):
                raise TrionetError("the echo server did not start")
            yield line.removeprefix(READY).strip()
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()


def _add_plan_arguments(parser: argparse.ArgumentParser, things: str) -> None:
    """Add the options that limit a run, where ``things`` is a plural noun such as ``records``."""
    group = parser.add_argument_group("load")
    group.add_argument(
        f"--{things}",
        dest="records_max",
        type=positive_int,
        metavar="N",
        help=f"stop after N {things}",
    )
    group.add_argument(
        "--duration", type=positive_float, metavar="SECONDS", help="stop after this time"
    )


def _add_rate_argument(parser: argparse.ArgumentParser, things: str) -> None:
    """Add ``--throughput``."""
    parser.add_argument(
        "--throughput",
        type=positive_float,
        metavar="N",
        help=f"limit to N {things} per second (default: unlimited); latency is measured from when "
        "each is due",
    )


def _measure(
    arguments: argparse.Namespace,
    things: str,
    load: Callable[[Run], Awaitable[Result]],
    *,
    seconds: float = DEFAULT_SECONDS,
) -> int:
    """Run a load, print its result, and return the exit status.

    Args:
        arguments: the parsed arguments.
        things: the plural noun for the counted items, such as ``records``.
        load: the load to run.
        seconds: the duration if neither a count nor a duration was given.
    """
    import trio

    from ._runs import Plan, finish

    records: int | None = arguments.records_max
    duration: float | None = arguments.duration
    if records is None and duration is None:
        duration = seconds
    plan = Plan(
        records_max=math.inf if records is None else records,
        seconds_max=math.inf if duration is None else duration,
        rate=getattr(arguments, "throughput", None) or 0.0,
    )
    return trio.run(finish, arguments, things, plan, load)


def positive_int(text: str) -> int:
    """Parse an integer of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return number


def natural_int(text: str) -> int:
    """Parse an integer of at least 0, for argparse."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, not {text}")
    return number


def positive_float(text: str) -> float:
    """Parse a positive number, for argparse."""
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text}")
    return number


def _add_result_arguments(parser: argparse.ArgumentParser, *, has_metrics: bool) -> None:
    """Add the options that control the output of results."""
    group = parser.add_argument_group("results")
    group.add_argument(
        "--reporting-interval",
        type=_interval,
        default=INTERVAL_SECONDS,
        metavar="SECONDS",
        help="interval of progress lines on standard error; 0 for none (default: 1)",
    )
    if has_metrics:
        group.add_argument(
            "--print-metrics", action="store_true", help="print the client's metrics, too"
        )
    add_format_arguments(parser)


def _interval(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be at least 0, not {text}")
    return seconds
