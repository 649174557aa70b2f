"""``trionet consume``: write the records of topics to standard output."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trionet.errors import ConfigError

from ..arguments._values import allow_times, checked_topic
from ..clients._connection import (
    SERVERS,
    add_connection_arguments,
    logging_to_stderr,
    resolve_settings,
)
from ..clients._first_response import REACH_SECONDS
from ..records._options import (
    NEWLINE,
    add_record_arguments,
    number_from_1,
    optional_delimiter,
    shows_bar,
)
from ..terminal._output import print_message

if TYPE_CHECKING:
    from ..records._layout import Part
    from ._range import Span
    from ._read_topics import ConsumeOptions

GROUP: Final = "group.id"
#: The maximum number of records rendered and written together.
RECORDS_MAX: Final = 10_000
#: The settings used only by group members, dropped unless they are given with ``-X``.
_GROUP_KEYS: Final = (GROUP, "group.instance.id", "enable.auto.commit")
NULL: Final = b"NULL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Write the values of the records in topics to standard output, one per line, starting at "
        "the beginning of the topics, until Ctrl-C."
    )
    parser.add_argument(
        "topics", metavar="TOPIC", nargs="*", help="a topic, or a pattern if it begins with ^"
    )
    parser.add_argument("-t", "--topic", action="append", default=[], help="same as TOPIC")
    parser.add_argument("-r", "--regex", action="store_true", help="treat all topics as patterns")
    parser.add_argument(
        "-o",
        "--offset",
        metavar="WHERE",
        action="append",
        default=[],
        help="where to start and end: beginning (default), end, stored, 47, -10, +10, 47:100, "
        ":end, @2024-05-01, @1h, @1h:now, s@MILLISECONDS, e@MILLISECONDS",
    )
    parser.add_argument(
        "-e", "--exit", action="store_true", help="stop at the current end of the topics"
    )
    parser.add_argument(
        "-c", "-n", "--count", metavar="N", type=number_from_1, help="stop after N records"
    )
    parser.add_argument(
        "-p",
        "--partitions",
        metavar="N,...",
        action="append",
        default=[],
        help="read only these partitions",
    )
    parser.add_argument("-G", "-g", "--group", help="join this group and commit offsets")
    parser.add_argument(
        "--isolation",
        choices=["read_uncommitted", "read_committed"],
        help="whether to read records of open and aborted transactions",
    )
    _add_output_arguments(parser)
    add_record_arguments(parser, "skip records that cannot be decoded; the exit status is still 1")
    add_connection_arguments(parser)
    allow_times(parser)


def _add_output_arguments(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "-f",
        "--format",
        metavar="FORMAT",
        help=r"output format of a record, such as '%%t [%%p] at %%o: %%k %%s\n'; or json",
    )
    form.add_argument(
        "-J",
        "--json",
        action="store_true",
        help="write each record as a JSON document on its own line",
    )
    parser.add_argument(
        "--meta-only",
        action="store_true",
        help="with --json: write the size of values, not the values",
    )
    parser.add_argument(
        "-O",
        "--offsets",
        action="store_true",
        help="write the offset first, followed by the delimiter of -K",
    )
    parser.add_argument("-Z", "--null", action="store_true", help="write null as NULL")
    parser.add_argument(
        "--raw", action="store_true", help="do not escape control characters on a terminal"
    )
    parser.add_argument(
        "--lag", action="store_true", help="report the lag of each partition at the end"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    import trio

    from ._read_topics import consume

    with logging_to_stderr(arguments, holds=True):
        return trio.run(consume, _options(arguments))


def _options(arguments: argparse.Namespace) -> ConsumeOptions:
    from ..terminal._progress import Progress
    from ._range import partitions, span
    from ._read_topics import ConsumeOptions

    where = span(arguments.offset, datetime.now(UTC))
    servers, settings, admin_settings = _settings(arguments, where)
    topics, is_pattern = _topics(arguments)
    numbers = frozenset[int]().union(*map(partitions, arguments.partitions))
    if numbers and arguments.group is not None:
        raise ConfigError("-p cannot be combined with -G: the group assigns the partitions")
    return ConsumeOptions(
        servers=servers,
        settings=settings,
        admin_settings=admin_settings,
        topics=topics,
        is_pattern=is_pattern,
        partitions=numbers,
        group=arguments.group,
        span=where,
        stops=arguments.exit,
        records_max=arguments.count,
        keeps_going=arguments.keep_going,
        render=_render(arguments),
        timeout_seconds=arguments.timeout or REACH_SECONDS,
        waits=arguments.timeout is not None,
        shows_lag=arguments.lag,
        progress=Progress(records_total=arguments.count),
        shows_bar=shows_bar(arguments, is_typed=sys.stdout.isatty()),
        is_quiet=arguments.quiet,
        report=partial(print_message, arguments),
    )


def _topics(arguments: argparse.Namespace) -> tuple[list[str], bool]:
    """Return the topics, and whether they are patterns."""
    names = [*arguments.topics, *arguments.topic]
    if not names:
        raise ConfigError("no topic given: trionet consume TOPIC")
    is_pattern = arguments.regex or any(name.startswith("^") for name in names)
    if not is_pattern:
        return [checked_topic(name) for name in names], False
    if not arguments.regex and not all(name.startswith("^") for name in names):
        raise ConfigError("cannot mix topics and patterns; use -r to treat all as patterns")
    for name in names:
        try:
            re.compile(name)
        except re.error as error:
            raise ConfigError(f"invalid pattern {name!r}: {error}") from error
    # Like kcat's, a pattern with ^ matches a prefix of the name.
    return [name if arguments.regex else f"{name}.*" for name in names], True


def _settings(
    arguments: argparse.Namespace, where: Span
) -> tuple[str, dict[str, object], dict[str, object]]:
    """Return the bootstrap servers, the consumer settings and the admin client settings."""
    from trionet.client.config._keys import ADMIN_KEYS, CONSUMER_KEYS
    from trionet.client.consumer._range import From

    from ._range import reset_of

    given = resolve_settings(arguments, CONSUMER_KEYS)
    settings: dict[str, object] = {key: each.value for key, each in given.items()}
    servers = str(settings.pop(SERVERS))
    admin_settings = {key: value for key, value in settings.items() if ADMIN_KEYS.has(key)}
    settings.setdefault("max.poll.records", min(RECORDS_MAX, arguments.count or RECORDS_MAX))
    if arguments.isolation is not None:
        settings["isolation.level"] = arguments.isolation
    if arguments.group is not None:
        settings[GROUP] = arguments.group
        reset = reset_of(where) if arguments.offset else None
        if reset is not None:
            settings["auto.offset.reset"] = reset
    elif where.start.base is From.STORED:
        if GROUP not in settings:
            raise ConfigError("-o stored requires a group: use -G to join it, or -X group.id=...")
    else:
        _leave_group(settings, given)
    settings.setdefault("auto.offset.reset", "earliest")
    settings.setdefault("allow.auto.create.topics", "false")  # reading must not create topics
    return servers, settings, admin_settings


def _leave_group(settings: dict[str, object], given: dict[str, Any]) -> None:
    """Remove group settings that come from a file or the environment."""
    if GROUP in given and given[GROUP].origin == "-X":
        raise ConfigError(
            "-X group.id has no effect without -o stored; to join the group, use -G GROUP"
        )
    for key in _GROUP_KEYS:
        if key in given and given[key].origin != "-X":
            del settings[key]


def _render(arguments: argparse.Namespace) -> Callable[[Any], bytes]:
    from ..records._packing import packings
    from ..records._rendering import JsonLines, Rendering, Showing

    key, value = packings(arguments.serdes)
    showing = Showing(
        null=NULL if arguments.null else b"",
        is_terminal=sys.stdout.isatty() and not arguments.raw,
        key=key,
        value=value,
    )
    if arguments.json or arguments.format == "json":
        if arguments.offsets or arguments.key_delimiter is not None:
            raise ConfigError("--json cannot be combined with -K or -O")
        end = optional_delimiter(arguments.delimiter) or b"\n"
        return JsonLines(showing, with_value=not arguments.meta_only, end=end).render
    if arguments.meta_only:
        raise ConfigError("--meta-only requires --json")
    return Rendering(_parts(arguments), showing).render


def _parts(arguments: argparse.Namespace) -> list[Part]:
    from ..records._layout import Verb, delimiter, layout

    key_delimiter = optional_delimiter(arguments.key_delimiter)
    if arguments.format is not None:
        if key_delimiter is not None or arguments.offsets or arguments.delimiter != NEWLINE:
            raise ConfigError("-f cannot be combined with -K, -O or -D")
        return layout(arguments.format)
    parts: list[Part] = []
    if arguments.offsets:
        parts += [Verb("o"), key_delimiter or b"\t"]
    if key_delimiter is not None:
        parts += [Verb("k"), key_delimiter]
    return [*parts, Verb("s"), delimiter(arguments.delimiter)]
