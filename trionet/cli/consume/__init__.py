"""``trionet consume``: records of topics to standard output."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trionet.errors import ConfigError

from ..arguments._times import allow_times
from ..clients._connection import (
    SERVERS,
    add_connection_arguments,
    given_settings,
    logging_to_stderr,
)
from ..records._options import (
    NEWLINE,
    add_record_arguments,
    check_open,
    number_from_1,
    optional_delimiter,
    shows_bar,
)
from ..terminal._output import tell

if TYPE_CHECKING:
    from ..records._layout import Part
    from ._ranges import Span
    from ._run import Consumption

GROUP: Final = "group.id"
#: So many records are written at once.
RECORDS_MAX: Final = 10_000
#: What only members of a group have, from a file that others share.
_OF_GROUPS: Final = (GROUP, "group.instance.id", "enable.auto.commit")
NULL: Final = b"NULL"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Write the records of topics to standard output, each value in a line by itself, from the "
        "beginning of the topics on, until Ctrl-C."
    )
    parser.add_argument(
        "topics", metavar="TOPIC", nargs="*", help="a topic; one that begins with ^ is a pattern"
    )
    parser.add_argument("-t", "--topic", action="append", default=[], help="the same")
    parser.add_argument("-r", "--regex", action="store_true", help="all topics are patterns")
    parser.add_argument(
        "-o",
        "--offset",
        metavar="WHERE",
        action="append",
        default=[],
        help="where to begin, and to end: beginning (default), end, stored, 47, -10, +10, 47:100, "
        ":end, @2024-05-01, @1h, @1h:now, s@MILLISECONDS, e@MILLISECONDS",
    )
    parser.add_argument("-e", "--exit", action="store_true", help="end where the topics end now")
    parser.add_argument(
        "-c", "-n", "--count", metavar="N", type=number_from_1, help="end after N records"
    )
    parser.add_argument(
        "-p", "--partitions", metavar="N,...", action="append", default=[], help="only these"
    )
    parser.add_argument("-G", "-g", "--group", help="read as a member of this group, and commit")
    parser.add_argument(
        "--isolation",
        choices=["read_uncommitted", "read_committed"],
        help="whether records of transactions that are undecided or were aborted are read",
    )
    _add_output_arguments(parser)
    add_record_arguments(
        parser, "leave out records that cannot be read; the exit status is 1 all the same"
    )
    add_connection_arguments(parser)
    allow_times(parser)


def _add_output_arguments(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "-f",
        "--format",
        metavar="FORMAT",
        help=r"how a record is written, as in '%%t [%%p] at %%o: %%k %%s\n'; or json",
    )
    form.add_argument(
        "-J", "--json", action="store_true", help="a JSON document a line, for each record"
    )
    parser.add_argument(
        "--meta-only", action="store_true", help="of values only their size, with --json"
    )
    parser.add_argument(
        "-O", "--offsets", action="store_true", help="write the offset in front, and -K behind it"
    )
    parser.add_argument("-Z", "--null", action="store_true", help="write NULL for null")
    parser.add_argument(
        "--raw", action="store_true", help="escape nothing on a terminal, whatever it may obey"
    )
    parser.add_argument(
        "--lag", action="store_true", help="tell at the end how far behind each partition is"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code."""
    import trio

    from ._run import consume

    with logging_to_stderr(arguments):
        return trio.run(consume, _wanted(arguments))


def _wanted(arguments: argparse.Namespace) -> Consumption:
    from ..terminal._progress import Progress
    from ._ranges import partitions, span
    from ._run import Consumption

    check_open(sys.stdout, "output")
    where = span(arguments.offset, datetime.now(UTC))
    servers, settings, admin_settings = _settings(arguments, where)
    topics, is_pattern = _topics(arguments)
    numbers = frozenset[int]().union(*map(partitions, arguments.partitions))
    if numbers and arguments.group is not None:
        raise ConfigError("-p is for reading without a group; with -G the group divides them")
    return Consumption(
        servers=servers,
        settings=settings,
        admin_settings=admin_settings,
        topics=topics,
        is_pattern=is_pattern,
        partitions=numbers,
        group=arguments.group is not None,
        span=where,
        stops=arguments.exit,
        records_max=arguments.count,
        keeps_going=arguments.keep_going,
        render=_render(arguments),
        known_seconds=arguments.timeout,
        tells_lag=arguments.lag,
        progress=Progress(records_total=arguments.count),
        shows_bar=shows_bar(arguments, is_typed=sys.stdout.isatty()),
        is_quiet=arguments.quiet,
        tell=partial(tell, arguments),
    )


def _topics(arguments: argparse.Namespace) -> tuple[list[str], bool]:
    """The topics, and whether they are patterns."""
    names = [*arguments.topics, *arguments.topic]
    if not names:
        raise ConfigError("there is no topic: trionet consume TOPIC")
    is_pattern = arguments.regex or any(name.startswith("^") for name in names)
    if not is_pattern:
        return names, False
    if not arguments.regex and not all(name.startswith("^") for name in names):
        raise ConfigError("either all topics are patterns, or none is; -r makes them all patterns")
    for name in names:
        try:
            re.compile(name)
        except re.error as error:
            raise ConfigError(f"{name} is no pattern: {error}") from error
    # As elsewhere for kcat's patterns, what follows need not be matched to its end.
    return [name if arguments.regex else f"{name}.*" for name in names], True


def _settings(
    arguments: argparse.Namespace, where: Span
) -> tuple[str, dict[str, object], dict[str, object]]:
    """Where to begin, and the settings of a consumer and of an admin client."""
    from trionet.client.config._keys import ADMIN_KEYS, CONSUMER_KEYS

    from ._bounds import reset_of
    from ._ranges import From

    given = given_settings(arguments, CONSUMER_KEYS)
    settings: dict[str, object] = {key: each.value for key, each in given.items()}
    servers = str(settings.pop(SERVERS))
    admin_settings = {key: value for key, value in settings.items() if ADMIN_KEYS.has(key)}
    settings["max.poll.records"] = _poll_records(arguments, settings)
    if arguments.isolation is not None:
        settings["isolation.level"] = arguments.isolation
    if arguments.group is not None:
        settings[GROUP] = arguments.group
        reset = reset_of(where) if arguments.offset else None
        if reset is not None:
            settings["auto.offset.reset"] = reset
    elif where.start.base is From.STORED:
        if GROUP not in settings:
            raise ConfigError("-o stored needs a group: -G to join it, or -X group.id=...")
    else:
        _leave_group(settings, given)
    settings.setdefault("auto.offset.reset", "earliest")
    settings.setdefault("allow.auto.create.topics", "false")  # who reads makes nothing
    return servers, settings, admin_settings


def _poll_records(arguments: argparse.Namespace, settings: dict[str, object]) -> object:
    most = min(RECORDS_MAX, arguments.count or RECORDS_MAX)
    return settings.get("max.poll.records", most)


def _leave_group(settings: dict[str, object], given: dict[str, Any]) -> None:
    """Take no part in a group that a file names for other programs."""
    if GROUP in given and given[GROUP].origin == "-X":
        raise ConfigError("-X group.id needs -G, to join the group, or -o stored")
    for key in _OF_GROUPS:
        if key in given and given[key].origin != "-X":
            del settings[key]


def _render(arguments: argparse.Namespace) -> Callable[[Any], bytes]:
    from ..records._json_lines import JsonLines
    from ..records._packing import packings
    from ..records._rendering import Rendering, Showing

    key, value = packings(arguments.serdes)
    showing = Showing(
        null=NULL if arguments.null else b"",
        is_terminal=sys.stdout.isatty() and not arguments.raw,
        key=key,
        value=value,
    )
    if arguments.json or arguments.format == "json":
        if arguments.offsets or arguments.key_delimiter is not None:
            raise ConfigError("--json says what is written; leave out -K and -O")
        end = optional_delimiter(arguments.delimiter) or b"\n"
        return JsonLines(showing, with_value=not arguments.meta_only, end=end).render
    if arguments.meta_only:
        raise ConfigError("--meta-only belongs to --json")
    return Rendering(_parts(arguments), showing).render


def _parts(arguments: argparse.Namespace) -> list[Part]:
    from ..records._layout import Verb, delimiter, layout

    key_delimiter = optional_delimiter(arguments.key_delimiter)
    if arguments.format is not None:
        if key_delimiter is not None or arguments.offsets or arguments.delimiter != NEWLINE:
            raise ConfigError("-f says what is written; leave out -K, -O and -D")
        return layout(arguments.format)
    parts: list[Part] = []
    if arguments.offsets:
        parts += [Verb("o"), key_delimiter or b"\t"]
    if key_delimiter is not None:
        parts += [Verb("k"), key_delimiter]
    return [*parts, Verb("s"), delimiter(arguments.delimiter)]
