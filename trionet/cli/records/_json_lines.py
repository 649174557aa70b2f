"""Formats records as JSON lines in kcat's schema."""

from __future__ import annotations

from binascii import b2a_base64
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import TYPE_CHECKING, Final

from ._packing import PackError, Packing
from ._rendering import PLAIN, Showing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trionet.client.consumer.records._record import ConsumerBatch

_TIMESTAMP_TYPES: Final = {0: "create", 1: "logappend"}


class JsonLines:
    """Formats batches of records as lines of JSON.

    A value that is not valid UTF-8 becomes null, and ``payload_base64`` contains it as base64.

    Args:
        showing: the types of keys and values, and whether the output is a terminal.
        with_value: whether to include the value in addition to the size.
        end: the delimiter after each document.
    """

    def __init__(
        self, showing: Showing = PLAIN, *, with_value: bool = True, end: bytes = b"\n"
    ) -> None:
        self._key = showing.key
        self._value = showing.value
        self._with_value = with_value
        self._end = end.decode("utf-8", "surrogateescape")
        self._quote = _quoted_for_terminals if showing.is_terminal else encode_basestring

    def render(self, batch: ConsumerBatch) -> bytes:
        """Format all records of a batch."""
        kind = _TIMESTAMP_TYPES.get(batch.timestamp_type, "unknown")
        head = f'{{"topic":{self._quote(batch.topic)},"partition":{batch.partition},"offset":'
        time = f',"tstype":"{kind}","ts":'
        quote = self._quote
        payload = self._payload if self._with_value else _size
        lines = [
            f"{head}{offset}"
            f"{'' if timestamp < 0 else f'{time}{timestamp}'}"
            f"{_headers(headers, quote) if headers else ''}"
            f",{_field('key', key, self._key, quote)},{payload(value)}}}"
            for offset, timestamp, key, value, headers in zip(
                batch.offsets,
                batch.timestamps,
                batch.keys,
                batch.values,
                batch.headers,
                strict=True,
            )
        ]
        lines.append("")
        return self._end.join(lines).encode("utf-8", "surrogateescape")

    def _payload(self, value: bytes | None) -> str:
        return _field("payload", value, self._value, self._quote)


def _quoted_for_terminals(text: str) -> str:
    # Printable text stays as it is; JSON escapes make the rest safe for a terminal.
    return encode_basestring(text) if text.isprintable() else encode_basestring_ascii(text)


def _size(value: bytes | None) -> str:
    return f'"payload_size":{-1 if value is None else len(value)}'


def _field(
    name: str, data: bytes | None, packing: Packing | None, quote: Callable[[str], str]
) -> str:
    if data is None:
        return f'"{name}":null'
    if packing is not None:
        try:
            return f'"{name}":{packing.document(data)}'
        except PackError as error:
            reason = f'"{name}_error":{encode_basestring_ascii(str(error))}'
            return f'"{name}":null,"{name}_base64":"{_base64(data)}",{reason}'
    try:
        return f'"{name}":{quote(data.decode())}'
    except UnicodeDecodeError:
        return f'"{name}":null,"{name}_base64":"{_base64(data)}"'


def _headers(headers: Sequence[tuple[str, bytes | None]], quote: Callable[[str], str]) -> str:
    """Format alternating names and values; if one is not UTF-8, also with all values as base64."""
    texts = []
    is_text = True
    for name, value in headers:
        shown = "null"
        if value is not None:
            try:
                shown = quote(value.decode())
            except UnicodeDecodeError:
                is_text = False
        texts += [quote(name), shown]
    found = f',"headers":[{",".join(texts)}]'
    if is_text:
        return found
    coded = ",".join(
        f"{quote(name)},{'null' if value is None else f'{chr(34)}{_base64(value)}{chr(34)}'}"
        for name, value in headers
    )
    return f'{found},"headers_base64":[{coded}]'


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()
