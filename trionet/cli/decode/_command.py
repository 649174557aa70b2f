"""Implements ``trionet decode``: detects the kind of input, decodes it and prints the entries."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from itertools import islice

from trionet._util._text import printable
from trionet.errors import ConfigError
from trionet.protocol._codec import schema_versions
from trionet.protocol.messages.registry import APIS

from ..arguments._values import api_key, api_name
from ._conversation import Expected
from ._entries import Selection, entries
from .input._inputs import open_sources
from .input._recognition import recognise
from .input._source import Kind, Source
from .output._documents import BYTES_SHOWN
from .output._writing import write_documents, write_lines


def decode(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0, 1 on malformed input, 2 on invalid usage."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:  # escape characters that the encoding lacks
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
    is_valid = write(islice(found, arguments.limit), None if arguments.full else BYTES_SHOWN)
    sys.stdout.flush()
    return is_valid


def _sources(
    arguments: argparse.Namespace, expected: Expected | None
) -> Iterator[tuple[Source, Kind]]:
    for source in open_sources(arguments.inputs, arguments.format):
        key = None if expected is None else expected.api_key
        kind: Kind = arguments.kind or recognise(source.peek, key)
        if kind is Kind.BATCHES and (expected is not None or arguments.api):
            raise ConfigError(f"{source.name}: --response and --api do not apply to record batches")
        what = kind.value if source.peek(1) else "empty"
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
            f"--response {text}: unsupported version of {api_name(key)}; expected {versions[0]} to"
            f" {versions[-1]}"
        )
    return Expected(key, int(number))


def _api_key(name: str) -> int:
    return api_key(name, "--list shows the known ones")


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
