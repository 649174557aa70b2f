"""What `trionet decode` is given: all of it is shown, and nothing that a terminal obeys."""

from __future__ import annotations

import json

from fuzz.script import Script
from trionet.cli.decode._conversation import Expected, entries
from trionet.cli.decode._output import document, entry_lines
from trionet.cli.decode._sources import Kind, TextFormError, read_text, source_of
from trionet.cli.decode._split import recognise
from trionet.protocol._codec import schema_versions
from trionet.protocol.messages.registry import APIS

WATCHED = ("trionet.cli.decode",)
WORDS = (
    *(b"\0\0\0\x13\0\3\0\x0c\0\0\0\7\0\4shop\0\0\1\0\0", b"\0\0\0\x0a", b"\xff\xff", b"\0\x12\0\0"),
    *(b"\0\0\0\0\0\0\0\0\0\0\0\x0e", b"\x1b[31m", b"\0\0\0\x02\0\0", b"\\x00", b"AAAAEw=="),
    *(b"0000000 00 00\n", b"00000000: 0000 0014  ....\n", b"*\n", b"{0x00,", b"b'\\x00'"),
)
BYTES_MAX = 2048

KINDS = (None, Kind.FRAMES, Kind.BARE, Kind.BATCHES)
KEYS = (None, *sorted(APIS))
SHOWN = (None, 0, 1, 200)


def run(data: bytes) -> None:
    script = Script(data)
    options, key = script.byte(), KEYS[script.byte() % len(KEYS)]
    raw = script.rest()
    if options & 64:
        raw = _read(raw)
    kind = KINDS[options % 4]
    expected = None if key is None or kind is Kind.BATCHES else _expected(key, options & 32 != 0)
    source = source_of("fuzz", raw, "raw")
    kind = kind or recognise(source.peek, key)
    ends = 0
    for entry in entries([(source, kind)], None if kind is Kind.BATCHES else expected):
        assert ends <= entry.offset
        ends = entry.offset + entry.size
        assert ends <= len(raw)
        assert entry.problem is None or 0 <= entry.problem.offset <= len(raw), entry.problem
        shown = SHOWN[options >> 2 & 3]
        for line in entry_lines(entry, shown):
            assert "".join(part.text for part in line).isprintable()
        assert json.loads(json.dumps(document(entry, shown)))["kind"] == entry.kind


def _expected(key: int, has_version: bool) -> Expected:
    return Expected(key, schema_versions(key)[-1] if has_version else None)


def _read(text: bytes) -> bytes:
    try:
        return read_text(text.decode("utf-8", "replace"))[0]
    except TextFormError:
        return b""
