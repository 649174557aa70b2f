"""Opens inputs: files, standard input, and bytes given as text."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Final

from trionet._util._text import printable
from trionet.errors import ConfigError

from ._hex_dumps import TextFormError
from ._source import AUTO, BASE64, RAW, Source, source_of
from ._text_forms import read_text

STANDARD_INPUT: Final = "-"

#: The maximum size of a hex or base64 text, which is held in memory, unlike raw bytes.
TEXT_BYTES_MAX: Final = 256 * 1024 * 1024

#: The number of bytes examined to distinguish text from raw bytes.
_EXAMINED_BYTES: Final = 512
#: The minimum length of a base64 argument. Shorter arguments are treated as names of missing files.
_BASE64_LENGTH_MIN: Final = 12

_TEXT: Final = frozenset(range(0x20, 0x7F)) | set(b"\t\n\r\f")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def open_sources(arguments: Sequence[str], form: str) -> Iterator[Source]:
    """Yield the sources in order, closing each before the next one is opened.

    Args:
        arguments: file names, ``-``, or bytes as text; adjacent words of text form one source.
        form: the encoding, one of ``FORMATS``.

    Raises:
        ConfigError: an argument is neither a file nor text in a known form, a text is too long, or
            standard input is closed.
        OSError: a file cannot be read.
    """
    for is_text, words in groupby(arguments or [STANDARD_INPUT], lambda each: not _is_file(each)):
        if is_text:
            yield _of_words(list(words), form)
            continue
        for name in words:
            with _opened(name, form) as source:
                yield source


def _is_file(argument: str) -> bool:
    # The system rejects names of many megabytes with an error.
    try:
        return argument == STANDARD_INPUT or (argument != "" and Path(argument).exists())
    except (OSError, ValueError):
        return False


def _of_words(words: list[str], form: str) -> Source:
    text = " ".join(words)
    shown = printable(text if len(text) <= 40 else f"{text[:40]}...")
    if form == RAW or (form == AUTO and _looks_like_file_name(text)):
        raise ConfigError(f"{shown}: no such file, and neither hex nor base64")
    return _of_text("argument", text, form, about=shown)


def _looks_like_file_name(text: str) -> bool:
    folder = os.path.dirname(text)
    if folder and Path(folder).is_dir():
        return True
    try:
        return read_text(text)[1] == BASE64 and len(text) < _BASE64_LENGTH_MIN
    except TextFormError:
        return Path(text).suffix != "" and " " not in text


def _of_text(name: str, text: str, form: str, about: str) -> Source:
    try:
        data, read_as = read_text(text, None if form == AUTO else form)
    except TextFormError as error:
        raise ConfigError(f"{about}: {error}") from None
    return source_of(name, data, read_as)


@contextmanager
def _opened(name: str, form: str) -> Iterator[Source]:
    if name != STANDARD_INPUT:
        with open(name, "rb") as file:
            yield _of_bytes(Source(name, file), form)
        return
    if sys.stdin is None:  # a shell's <&-
        raise ConfigError("standard input is closed; give a file, hex or base64")
    if sys.stdin.isatty():
        print("trionet decode: paste the input and end it with Ctrl-D", file=sys.stderr)
    yield _of_bytes(Source("standard input", sys.stdin.buffer), form)


def _of_bytes(source: Source, form: str) -> Source:
    # Raw frames and segments start with a zero byte unless a frame exceeds 16 MB.
    if form == RAW:
        return source
    if form == AUTO and (source.peek(1) in {b"", b"\0"} or not _is_text(source)):
        return source
    raw = source.read(TEXT_BYTES_MAX)
    if source.peek(1):
        raise ConfigError(
            f"{source.name}: text input is limited to {TEXT_BYTES_MAX} bytes; convert it to raw "
            "bytes first, for instance with `xxd -r`, or use --format raw if it is not text"
        )
    text = raw.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace")
    return _of_text(source.name, text, form, printable(source.name))


def _is_text(source: Source) -> bool:
    head = source.peek(_EXAMINED_BYTES).removeprefix(_BYTE_ORDER_MARK)
    return _TEXT.issuperset(head)
