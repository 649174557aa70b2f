"""Java's `.properties` format: keys and values, or an error that names the line."""

from __future__ import annotations

import re

from trionet.broker.config._properties import parse_properties
from trionet.errors import ConfigError

WATCHED = ("trionet.broker.config._properties",)
WORDS = (
    *(b"a=b\n", b"listeners", b":", b" ", b"\t", b"\f", b"\\", b"\\\n", b"\r\n", b"\r", b"#"),
    *(b"!", b"\\u0041", b"\\ud83d\\ude00", b"\\ud800", b"\\u", b"\\t", b"\\=", b"="),
    *("ä".encode(), b"\\\\\n"),
)
BYTES_MAX = 512


def run(data: bytes) -> None:
    try:
        found = parse_properties(data.decode("utf-8", "replace"), "file")
    except ConfigError as error:
        _check_error(str(error))
        return
    assert "" not in found
    for text in (*found, *found.values()):
        text.encode()
    assert found == parse_properties(
        "\n".join(f"{_escaped(key)}={_escaped(value)}" for key, value in found.items())
    )


def _check_error(text: str) -> None:
    assert re.match(r"file:\d+: ", text), text


def _escaped(text: str) -> str:
    """As Java stores it, with every character that could mean something escaped."""
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
