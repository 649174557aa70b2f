r"""A parser for Java's ``.properties`` format, the format of Kafka's ``server.properties``.

A key ends at the first ``=``, ``:`` or whitespace. A backslash at the end of a line continues the
line. Elsewhere, it escapes one character, or introduces the character's code as ``\uXXXX``
(Java: Properties.load).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from ..._util.files._regular_file import read_regular_file
from ...errors import ConfigError

#: The maximum size of a file. Real configuration files are a few kilobytes long.
PROPERTIES_BYTES_MAX: Final = 1024 * 1024

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")


def read_properties(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read a properties file; see :func:`parse_properties`.

    The file may be a pipe, such as a shell's ``<(command)``. It is decoded as UTF-8 or, if it is
    not valid UTF-8, as ISO 8859-1, the encoding that Java uses.

    Raises:
        ConfigError: the file cannot be read, or a line is malformed.
    """
    try:
        data = read_regular_file(path, PROPERTIES_BYTES_MAX, takes_pipes=True)
    except OSError as error:
        raise ConfigError(f"cannot read {os.fspath(path)}: {error.strerror}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("iso-8859-1")
    return parse_properties(text, os.fspath(path))


def parse_properties(text: str, source: str = "<text>") -> dict[str, str]:
    r"""Parse keys and values; if a key is repeated, the last value wins, as in Java.

    Args:
        text: the text of the file, whose lines end with ``\n``, ``\r`` or both.
        source: the name of the source, for error messages.

    Raises:
        ConfigError: lines have no key or a malformed ``\u`` escape; its ``args`` are a problem for
            each such line, which begins with ``source:line:``.
    """
    properties: dict[str, str] = {}
    problems: list[str] = []
    for number, line in _logical_lines(text):
        try:
            key, value = _parse(line, f"{source}:{number}")
        except ConfigError as error:
            problems.extend(error.args)
        else:
            properties[key] = value
    if problems:
        raise ConfigError(*problems)
    return properties


def _parse(line: str, where: str) -> tuple[str, str]:
    key_end, value_start = _split(line)
    key = _unescape(line[:key_end], where)
    if not key:
        raise ConfigError(f"{where}: no key before {line[key_end:]!r}; expected key=value")
    return key, _unescape(line[value_start:], where)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each logical line with its line number, skipping comments and joining continuations."""
    joined: list[str] = []
    first = 0
    for number, raw in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        line = raw.lstrip(_BLANK)
        if not any(joined):
            # Only here: a continuation of a non-empty line is never a comment.
            joined, first = [], number
            if not line or line[0] in "#!":
                continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            joined.append(line[:-1])
            continue
        yield first, "".join((*joined, line))
        joined = []
    if any(joined):
        yield first, "".join(joined)


def _split(line: str) -> tuple[int, int]:
    """Return the indexes of the end of the key and the start of the value.

    The separator is ``=``, ``:`` or whitespace, which may also surround one ``=`` or ``:``.
    """
    end = 0
    while end < len(line) and line[end] not in _BLANK + "=:":
        end += 2 if line[end] == "\\" else 1
    end = min(end, len(line))
    value = line[end:].lstrip(_BLANK)
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(_BLANK)
    return end, len(line) - len(value)


def _unescape(text: str, where: str) -> str:
    if "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while (backslash := text.find("\\", position)) >= 0:
        parts.append(text[position:backslash])
        escaped = text[backslash + 1 : backslash + 2]
        position = backslash + 2
        if escaped == "u":
            digits = text[position : position + 4]
            if len(digits) < 4 or not _HEX_DIGITS.issuperset(digits):
                raise ConfigError(
                    f"{where}: malformed escape {text[backslash : position + 4]!r}; expected \\u"
                    " and four hexadecimal digits (write a literal backslash twice)"
                )
            parts.append(chr(int(digits, 16)))
            position += 4
        else:
            parts.append(_ESCAPES.get(escaped, escaped))
    parts.append(text[position:])
    # Java's characters are UTF-16 code units, so two escapes may form a surrogate pair.
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
