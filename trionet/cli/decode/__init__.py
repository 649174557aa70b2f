"""``trionet decode``: show the contents of Kafka protocol frames and record batches.

``_sources`` opens inputs, and ``_split`` detects what they contain and splits them into frames and
batches. ``_conversation`` matches responses with requests. ``_messages`` and ``_record_batches``
decode to trees of plain values (``_tree``), which ``_output`` writes as text or JSON. ``_jafka``
does the same for Jafka's frames and message sets.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from trionet._util._text import printable, single_line
from trionet.errors import ConfigError

from ._sources import AUTO, FORMATS, Kind, Source, open_sources

if TYPE_CHECKING:
    from ._conversation import Expected
    from ._tree import Entry

#: The maximum number of bytes or characters shown per value without ``--full``.
BYTES_SHOWN: Final = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.description = (
        "Show Kafka requests, responses and record batches field by field. The input may be hex, "
        "hex dumps, escapes, base64, raw frames or log segments; the detected form is reported on "
        "standard error. The exit status is 1 if something is malformed."
    )
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="*",
        help="a file, - for standard input (the default), or literal hex or base64",
    )
    parser.add_argument(
        "--format", choices=FORMATS, default=AUTO, help="encoding of the bytes (default: auto)"
    )
    what = parser.add_mutually_exclusive_group()
    for kind, option, text in (
        (Kind.FRAMES, "--frames", "frames, each prefixed with its size"),
        (Kind.BARE, "--bare", "one request or response without a size prefix"),
        (Kind.BATCHES, "--batches", "record batches, as in a log segment"),
    ):
        what.add_argument(
            option, dest="kind", action="store_const", const=kind, help=f"the bytes are {text}"
        )
    parser.add_argument(
        "--jafka", action="store_true", help="the bytes are Jafka's (Kafka 0.7): frames, or a log"
    )
    parser.add_argument(
        "--response",
        metavar="API[:VERSION]",
        help="the frames are responses of this API, by name or key; without a version, all that "
        "fit are tried (default: match responses to preceding requests)",
    )
    parser.add_argument("--api", action="append", default=[], help="show only frames of this API")
    parser.add_argument(
        "--skip", type=_count, default=0, metavar="N", help="skip the first N entries"
    )
    parser.add_argument("--limit", type=_count, metavar="N", help="show at most N entries")
    parser.add_argument(
        "--full", action="store_true", help=f"do not truncate text and bytes after {BYTES_SHOWN}"
    )
    parser.add_argument(
        "--json", action="store_true", help="write each entry as a JSON document on its own line"
    )
    parser.add_argument("--list", action="store_true", help="list the known APIs and versions")


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0, 1 on malformed input, 2 on invalid usage."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:  # escape characters that the encoding lacks
        reconfigure(errors="backslashreplace")
    if arguments.list:
        (_list_jafka if arguments.jafka else _list)(as_json=arguments.json)
        return 0
    try:
        return 0 if _decode(arguments) else 1
    except BrokenPipeError:
        raise
    except OSError as error:
        about = f"{printable(str(error.filename))}: " if error.filename else ""
        print(
            f"trionet decode: {about}{single_line(error.strerror or str(error))}", file=sys.stderr
        )
        return 2


def _decode(arguments: argparse.Namespace) -> bool:
    # Imported here, because they load codecs and error codes, which --help does not need.
    from ._output import write_entries

    found = _jafka_entries(arguments) if arguments.jafka else _entries(arguments)
    shown = islice(found, arguments.limit)
    return write_entries(shown, None if arguments.full else BYTES_SHOWN, as_json=arguments.json)


def _entries(arguments: argparse.Namespace) -> Iterator[Entry]:
    from ._conversation import entries
    from ._split import recognise

    expected = _expected(arguments.response)
    keys = frozenset(map(_api_key, arguments.api))
    key = None if expected is None else expected.api_key
    sources = _sources(arguments, lambda peek: recognise(peek, key))
    return entries(sources, expected, keys, arguments.skip)


def _jafka_entries(arguments: argparse.Namespace) -> Iterator[Entry]:
    from ._jafka import jafka_entries, recognise_jafka, type_number

    expected = None if arguments.response is None else type_number(arguments.response)
    types = frozenset(map(type_number, arguments.api))
    return jafka_entries(_sources(arguments, recognise_jafka), expected, types, arguments.skip)


def _sources(
    arguments: argparse.Namespace, recognise: Callable[[Callable[[int], bytes]], Kind]
) -> Iterator[tuple[Source, Kind]]:
    for source in open_sources(arguments.inputs, arguments.format):
        kind: Kind = arguments.kind or recognise(source.peek)
        if kind is Kind.BATCHES and (arguments.response is not None or arguments.api):
            raise ConfigError(f"{source.name}: --response and --api do not apply to record batches")
        what = "a message set" if arguments.jafka and kind is Kind.BATCHES else kind.value
        what = what if source.peek(1) else "empty"
        name = printable(source.name)
        print(f"trionet decode: {name}: {source.form}, {what}", file=sys.stderr)
        yield source, kind


def _expected(text: str | None) -> Expected | None:
    from trionet.protocol._codec import schema_versions

    from ..arguments._values import api_name
    from ._conversation import Expected

    if text is None:
        return None
    name, colon, number = text.partition(":")
    key = _api_key(name)
    if not colon:
        return Expected(key, None)
    versions = schema_versions(key)
    if not number.isdecimal() or int(number) not in versions:
        raise ConfigError(
            f"--response {text}: unsupported version of {api_name(key)}; expected {versions[0]} to"
            f" {versions[-1]}"
        )
    return Expected(key, int(number))


def _api_key(name: str) -> int:
    from ..arguments._values import api_key

    return api_key(name, "--list shows the known ones")


def _list(*, as_json: bool) -> None:
    from trionet.protocol.messages.registry import APIS

    for key, (_, name, first, last, first_flexible) in sorted(APIS.items()):
        flexible = first_flexible if first_flexible <= last else None
        if as_json:
            fields = {"api": name, "api_key": key, "first_version": first, "last_version": last}
            print(json.dumps({**fields, "first_flexible_version": flexible}))
        else:
            versions = f"{first}-{last}" if last > first else f"{first}"
            tail = "" if flexible is None else f"  flexible from {flexible}"
            print(f"{key:3}  {name:<32} {versions:>5}{tail}")


def _list_jafka(*, as_json: bool) -> None:
    from ._jafka import NAMES

    for key, name in enumerate(NAMES):
        print(json.dumps({"api": name, "api_key": key}) if as_json else f"{key:3}  {name}")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"invalid count {text!r}: expected an integer of at least 0"
        )
    return int(text)
