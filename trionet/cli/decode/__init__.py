"""``trionet decode``: show the contents of Kafka protocol frames and record batches.

``input`` opens sources, detects their kind, and splits them into frames and batches.
``_conversation`` matches responses with requests. ``messages`` decodes each frame or batch to a
tree of plain values, and ``output`` formats the trees as text lines or JSON documents.
"""

from __future__ import annotations

import argparse

from .input._source import AUTO, FORMATS, Kind
from .output._documents import BYTES_SHOWN


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
    from ._command import decode  # loads all codecs, which --help does not need

    return decode(arguments)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"invalid count {text!r}: expected an integer of at least 0"
        )
    return int(text)
