"""``trionet decode``: show what is in frames of Kafka's protocol, and in record batches."""

from __future__ import annotations

import argparse

from .input._forms import AUTO, FORMATS, Kind
from .output._bytes_shown import BYTES_SHOWN


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
    from ._command import decode  # all codecs are more than --help needs

    return decode(arguments)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return int(text)
