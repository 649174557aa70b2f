"""``trionet decode``: show what is in frames of Kafka's protocol, and in record batches."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice

from trionet._util.printable import printable
from trionet.errors import ConfigError
from trionet.protocol.codec import schema_versions
from trionet.protocol.messages.registry import APIS

from .api_names import api_key, api_name
from .decoding.conversation import Expected
from .decoding.entries import Selection, entries
from .decoding.openings import AUTO, FORMATS, open_sources
from .decoding.recognition import Kind, recognise
from .decoding.shown import BYTES_SHOWN
from .decoding.source import Source
from .decoding.writing import write_documents, write_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.description = (
        "Show requests, responses and record batches of Kafka's protocol, field by field. Hex, hex "
        "dumps, escapes, base64, raw frames and Kafka's log segments are recognised, and standard "
        "error says as what. The exit status is 1 if something is malformed."
    )
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="*",
        help="a file, - for standard input (the default), or hex or base64 itself",
    )
    parser.add_argument(
        "--format", choices=FORMATS, default=AUTO, help="how the bytes are written (default: auto)"
    )
    what = parser.add_mutually_exclusive_group()
    for kind, option, text in (
        (Kind.FRAMES, "--frames", "frames, each with its size in front"),
        (Kind.BARE, "--bare", "one request or response without its size in front"),
        (Kind.BATCHES, "--batches", "record batches, as in a log segment"),
    ):
        what.add_argument(
            option, dest="kind", action="store_const", const=kind, help=f"the bytes are {text}"
        )
    parser.add_argument(
        "--response",
        metavar="API[:VERSION]",
        help="the frames are responses of this API, by name or key; without a version those that "
        "fit are found (default: responses are known by the requests before them)",
    )
    parser.add_argument("--api", action="append", default=[], help="only frames of this API")
    parser.add_argument("--skip", type=_count, default=0, metavar="N", help="leave out the first N")
    parser.add_argument("--limit", type=_count, metavar="N", help="show at most N")
    parser.add_argument(
        "--full", action="store_true", help=f"show texts and bytes beyond the first {BYTES_SHOWN}"
    )
    parser.add_argument("--json", action="store_true", help="a JSON document a line, for each")
    parser.add_argument("--list", action="store_true", help="list the known APIs and versions")


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit code: 0 all well, 1 something malformed, 2 wrong usage."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:  # a terminal that lacks a character gets its number
        reconfigure(errors="backslashreplace")
    if arguments.list:
        _list(as_json=arguments.json)
        sys.stdout.flush()
        return 0
    try:
        return 0 if _decode(arguments) else 1
    except BrokenPipeError:
        raise
    except OSError as error:
        about = f"{printable(str(error.filename))}: " if error.filename else ""
        print(f"trionet decode: {about}{error.strerror or error}", file=sys.stderr)
        return 2


def _decode(arguments: argparse.Namespace) -> bool:
    expected = _expected(arguments.response)
    keys = frozenset(map(_api_key, arguments.api))
    found = entries(_sources(arguments, expected), Selection(expected, keys, arguments.skip))
    write = write_documents if arguments.json else write_lines
    well = write(islice(found, arguments.limit), None if arguments.full else BYTES_SHOWN)
    sys.stdout.flush()
    return well


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return int(text)


def _sources(
    arguments: argparse.Namespace, expected: Expected | None
) -> Iterator[tuple[Source, Kind]]:
    for source in open_sources(arguments.inputs, arguments.format):
        key = None if expected is None else expected.api_key
        kind: Kind = arguments.kind or recognise(source.peek, key)
        if kind is Kind.BATCHES and (expected is not None or arguments.api):
            raise ConfigError(f"{source.name}: --response and --api are not for record batches")
        what = kind.value if source.peek(1) else "nothing in it"
        name = printable(source.name)
        print(f"trionet decode: {name}: {source.form}, {what}", file=sys.stderr)
        yield source, kind


def _expected(text: str | None) -> Expected | None:
    if text is None:
        return None
    name, colon, number = text.partition(":")
    key = _api_key(name)
    if not colon:
        return Expected(key, None)
    versions = schema_versions(key)
    if not number.isdecimal() or int(number) not in versions:
        raise ConfigError(
            f"--response {text}: {api_name(key)} has versions {versions[0]} to {versions[-1]} here"
        )
    return Expected(key, int(number))


def _api_key(name: str) -> int:
    return api_key(name, "--list shows those that are")


def _list(*, as_json: bool) -> None:
    for key, (_, name, first, last, first_flexible) in sorted(APIS.items()):
        flexible = first_flexible if first_flexible <= last else None
        if as_json:
            fields = {"api": name, "api_key": key, "first_version": first, "last_version": last}
            print(json.dumps({**fields, "first_flexible_version": flexible}))
        else:
            versions = f"{first}-{last}" if last > first else f"{first}"
            tail = "" if flexible is None else f"  flexible from {flexible}"
            print(f"{key:3}  {name:<32} {versions:>5}{tail}")
