"""``trionet produce``: send records from standard input or files to a topic."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trionet.errors import ConfigError

from ..arguments._values import checked_topic
from ..clients._connection import (
    SERVERS,
    add_connection_arguments,
    client_settings,
    logging_to_stderr,
)
from ..clients._first_response import REACH_SECONDS
from ..records._options import (
    NEWLINE,
    add_record_arguments,
    headers,
    number,
    number_from_1,
    optional_delimiter,
    shows_bar,
)
from ..terminal._output import print_message
from ..terminal._streams import check_input

if TYPE_CHECKING:
    from trionet.client.producer._settings import ProducerSettings

    from ..records._lines import Input, Shape
    from ._record_sender import ProduceOptions

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
#: The defaults for pipes: batches up to the maximum request size, as in librdkafka, and a
#: ``max.block.ms`` longer than the default delivery timeout.
_DEFAULTS: Final = {"batch.size": "1000000", "max.block.ms": "130000"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Send records to a topic: one per line of standard input, or one per FILE. The exit status "
        "is 0 if the brokers have acknowledged all of them."
    )
    parser.add_argument(
        "name", metavar="TOPIC", nargs="?", help="the topic, unless -t or %%t in -f gives it"
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="a file to send as one record; - is standard input"
    )
    parser.add_argument("-t", "--topic", help="the topic; all positional arguments are then files")
    parser.add_argument(
        "-l",
        "--lines",
        metavar="FILE",
        action="append",
        default=[],
        help="a file with one record per line; may be repeated",
    )
    parser.add_argument("-k", "--key", metavar="TEXT", help="key for records without one")
    parser.add_argument(
        "-H",
        "--header",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a header for each record; without = its value is null; may be repeated",
    )
    parser.add_argument(
        "-p", "--partition", metavar="N", type=_partition, help="the partition; -1 for any"
    )
    parser.add_argument("-z", "--compression", choices=CODECS, help="compress batches")
    parser.add_argument(
        "--acks", choices=["all", "-1", "1", "0"], help="acknowledgements to wait for"
    )
    parser.add_argument(
        "-Z", "--null", action="store_true", help="send empty keys and values as null (tombstones)"
    )
    parser.add_argument(
        "-f",
        "--format",
        metavar="FORMAT",
        help="format of the input, such as '%%k %%v\\n'; the verbs are those of trionet consume -f",
    )
    parser.add_argument(
        "-c", "-n", "--count", metavar="N", type=number_from_1, help="send at most N records"
    )
    parser.add_argument(
        "--transactional-id",
        metavar="ID",
        help="send all records in one transaction of this transactional.id, or none",
    )
    parser.add_argument(
        "-T", "--tee", action="store_true", help="also write what is sent to standard output"
    )
    parser.add_argument(
        "-o",
        "--output-format",
        metavar="FORMAT",
        help="write this for each acknowledged record, such as '%%t [%%p] at offset %%o\\n'",
    )
    add_record_arguments(
        parser, "continue after a record that cannot be sent; the exit status is still 1"
    )
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status."""
    import trio

    from ._send_input import produce

    with logging_to_stderr(arguments, holds=True):
        return trio.run(produce, _options(arguments))


def _partition(text: str) -> int:
    return -1 if text == "-1" else number(text)


def _options(arguments: argparse.Namespace) -> ProduceOptions:
    from ..terminal._progress import Progress
    from ._record_sender import ProduceOptions
    from ._send_input import STDIN

    servers, settings = _settings(arguments)
    topic, files = _topic_and_files(arguments)
    shape = _shape(arguments)
    lines = list(arguments.lines)
    if not lines and not files:
        lines = [STDIN]
    if not lines:
        _check_whole(arguments)
    reads_input = STDIN in {*lines, *files}
    if reads_input:
        check_input()
    writes_output = arguments.tee or arguments.output_format is not None
    is_typed = (reads_input and sys.stdin.isatty()) or (writes_output and sys.stdout.isatty())
    return ProduceOptions(
        servers=servers,
        settings=settings,
        topic=topic,
        partition=None if arguments.partition == -1 else arguments.partition,
        lines=lines,
        files=files,
        input=_input(arguments, shape, settings.request_bytes_max),
        shape=shape,
        records_max=arguments.count,
        keeps_going=arguments.keep_going,
        timeout_seconds=arguments.timeout or REACH_SECONDS,
        waits=arguments.timeout is not None,
        tee=optional_delimiter(arguments.delimiter) if arguments.tee else None,
        written=_written(arguments),
        progress=Progress(),
        is_quiet=arguments.quiet,
        shows_bar=shows_bar(arguments, is_typed=is_typed),
        report=partial(print_message, arguments),
    )


def _check_whole(arguments: argparse.Namespace) -> None:
    """Reject options that split the input if each file is sent as one record."""
    is_divided = arguments.format is not None or arguments.key_delimiter is not None
    if is_divided or (arguments.delimiter != NEWLINE and not arguments.tee):
        raise ConfigError("-f, -K and -D apply to lines, but a FILE is one record; use -l FILE")


def _settings(arguments: argparse.Namespace) -> tuple[str, ProducerSettings]:
    from trionet.client.config._keys import PRODUCER_KEYS
    from trionet.client.producer._settings import producer_settings

    given = client_settings(arguments, PRODUCER_KEYS)
    servers = given.pop(SERVERS)
    if arguments.transactional_id is not None:
        given["transactional.id"] = arguments.transactional_id
    if "transactional.id" in given and arguments.keep_going:
        raise ConfigError(
            "-E cannot be combined with a transactional.id: all records are committed, or none"
        )
    if arguments.compression is not None:
        given["compression.type"] = arguments.compression
    if arguments.acks is not None:
        given["acks"] = arguments.acks
    return servers, producer_settings({**_DEFAULTS, **given}, {})


def _topic_and_files(arguments: argparse.Namespace) -> tuple[str | None, list[str]]:
    from ..records._layout import Verb, layout

    names = [arguments.name, *arguments.files] if arguments.name is not None else []
    if arguments.topic is not None:
        topic, files = arguments.topic, names
    elif names:
        topic, *files = names
    else:
        topic, files = None, []
    if topic is not None:
        return checked_topic(topic), files
    parts = layout(arguments.format or "")
    if not any(isinstance(part, Verb) and part.letter == "t" for part in parts):
        raise ConfigError("no topic given: trionet produce TOPIC")
    return None, []


def _shape(arguments: argparse.Namespace) -> Shape:
    from ..records._layout import as_bytes
    from ..records._lines import Shape
    from ..records._packing import packings

    key, value = packings(arguments.serdes)
    return Shape(
        key=None if arguments.key is None else as_bytes(arguments.key),
        headers=headers(arguments.header),
        is_empty_null=arguments.null,
        key_packing=key,
        value_packing=value,
    )


def _input(arguments: argparse.Namespace, shape: Shape, size_max: int) -> Input:
    from ..records._layout import Verb, delimiter, layout
    from ..records._lines import LineInput
    from ..records._parsing import FormatInput

    key_delimiter = optional_delimiter(arguments.key_delimiter)
    if arguments.format is None:
        return LineInput(delimiter(arguments.delimiter), key_delimiter, shape, size_max)
    if key_delimiter is not None or arguments.delimiter != NEWLINE:
        raise ConfigError("-f cannot be combined with -K or -D")
    parts = layout(arguments.format)
    match parts:
        case [Verb("v" | "s", None), bytes() as end]:
            return LineInput(end, None, shape, size_max)
    return FormatInput(parts, shape, size_max)


def _written(arguments: argparse.Namespace) -> Callable[[Any], bytes] | None:
    if arguments.output_format is None:
        return None
    from ..records._layout import layout
    from ..records._rendering import Rendering, Showing

    showing = Showing(is_terminal=sys.stdout.isatty())
    return Rendering(layout(arguments.output_format), showing).render
