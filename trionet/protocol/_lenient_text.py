"""Decoders for requests whose strings are not valid UTF-8 (Kafka: Readable.readString).

Java replaces bytes that are not valid, and serves the request. Here the first attempt, with the
strict decoder, fails; the request is then decoded once more by a function that is derived from the
source of the strict one, as in :mod:`trionet.protocol._stepping`. So valid requests pay nothing.

A replacement takes three bytes for one. A string that becomes longer than any text in a message may
be stays invalid: it could be stored, as the id of a group, but no response could name it. (Kafka
fails when it encodes the response.)
"""

from __future__ import annotations
import __future__

import codecs
import inspect
import linecache
from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from trionet.errors import WireFormatError
from trionet.protocol._wire import TEXT_BYTES_MAX

T = TypeVar("T")

_ERRORS: Final = "trionet-replace"
_STRICT: Final = ".decode()"
_LENIENT: Final = f'.decode("utf-8", "{_ERRORS}")'

_derived: Final[dict[Callable[..., Any], Callable[..., Any]]] = {}


def _replace(error: UnicodeError) -> tuple[str, int]:
    """Decode the rest of a string, from the first invalid bytes on; see :mod:`codecs`."""
    assert isinstance(error, UnicodeDecodeError), "registered for decoding"
    data, start = error.object, error.start
    rest = data[start:].decode("utf-8", "replace")
    if start + len(rest.encode()) > TEXT_BYTES_MAX:
        raise error
    return rest, len(data)


codecs.register_error(_ERRORS, _replace)


def is_text_error(error: WireFormatError) -> bool:
    """Return whether a decoder failed at a string that is not valid UTF-8."""
    return isinstance(error.__cause__, UnicodeDecodeError)


def lenient(decode: Callable[..., T]) -> Callable[..., T]:
    """Return the form of a generated decoder that replaces bytes which are not valid UTF-8.

    Strings in tagged fields are decoded strictly all the same, and so are those that would become
    longer than TEXT_BYTES_MAX.
    """
    derived = _derived.get(decode)
    if derived is None:
        try:
            source = inspect.getsource(decode)
        except OSError:  # a frozen program has no source
            return decode
        derived = _derived[decode] = _make_lenient(decode, source)
    return derived


def _make_lenient(decode: Callable[..., T], source: str) -> Callable[..., T]:
    text = source.replace(_STRICT, _LENIENT)
    names = dict(decode.__globals__)
    file = f"<lenient {decode.__name__} of {decode.__code__.co_filename}>"
    # For the form that runs in steps, which is derived from this source.
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    flags = __future__.annotations.compiler_flag
    exec(compile(text, file, "exec", flags), names)  # noqa: S102 -- our own source
    return cast("Callable[..., T]", names[decode.__name__])
