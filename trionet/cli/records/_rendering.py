"""Formats records as text, one column at a time, or as JSON lines in kcat's schema.

A format becomes one template for Python's ``%`` operator and a column per verb. Most of the time
per record is therefore spent in C, some 100 ns for common formats.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, repeat
from json.encoder import encode_basestring, encode_basestring_ascii
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import attrs

from trionet._util._text import printable
from trionet.errors import ConfigError

from ._layout import Part, Verb, inside, layout, unknown_number, written
from ._packing import PackError, Packing, each_or_null

if TYPE_CHECKING:
    from trionet.client.consumer.records._record import ConsumerBatch

Column = Callable[["ConsumerBatch"], Iterable[Any]]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: A conversion of strftime; the group matches those to seconds since the epoch.
_CONVERSION: Final = re.compile(r"%(?:([-_0^#]*[0-9]*[EO]?s)|.)", re.DOTALL)
_TEXTS: Final = "skvt"
_NUMBER_LETTERS: Final = "oSVKTdpeHi"
#: The meanings of those verbs of kcat and rpk that cannot be supported.
_UNAVAILABLE: Final = {
    "x": "the producer id",
    "y": "the producer epoch",
    "[": "the log start offset; see trionet topics offsets",
    "|": "the last stable offset; see trionet topics offsets",
    "]": "the log end offset; see trionet topics offsets",
}
_VERBS: Final = "%t %p %o %k %K %s %S %v %V %R %T %d %h %H %e %i %a"


@attrs.frozen(kw_only=True)
class Showing:
    """The options for formatting the contents of records.

    Attributes:
        null: the text for null.
        is_terminal: whether to escape control characters.
        key: the type of keys; None for raw bytes.
        value: the type of values; None for raw bytes.
    """

    null: bytes = b""
    is_terminal: bool = False
    key: Packing | None = None
    value: Packing | None = None


PLAIN: Final = Showing()


class Rendering:
    """Formats batches of records.

    Args:
        parts: the format.
        showing: the options for formatting the contents of records.

    Raises:
        ConfigError: a verb or a modifier is unknown.
    """

    def __init__(self, parts: Sequence[Part], showing: Showing = PLAIN) -> None:
        self._showing = showing
        self._next_number = 1
        self._template = b""
        self._columns: list[Column] = []
        for part in parts:
            if isinstance(part, bytes):
                self._template += part.replace(b"%", b"%%")
            else:
                self._add(part)
        self._around = _around(parts)

    def render(self, batch: ConsumerBatch) -> bytes:
        """Format all records of a batch.

        Raises:
            PackError: a key or a value cannot be decoded as its type.
        """
        text = self._rendered(batch, len(batch))
        self._next_number += len(batch)  # not before: a failed batch is retried in parts
        return text

    def _rendered(self, batch: ConsumerBatch, size: int) -> bytes:
        if not size:
            return b""
        if not self._columns:
            return self._template.replace(b"%%", b"%") * size
        if self._around is not None:
            before, after = self._around
            (column,) = self._columns
            return before + (after + before).join(column(batch)) + after
        rows = zip(*(column(batch) for column in self._columns), strict=False)
        # Limited by size, because columns of constants, such as the topic, are endless.
        return b"".join(map(self._template.__mod__, islice(rows, size)))

    def _add(self, verb: Verb) -> None:
        letter = verb.letter
        if letter in _TEXTS:
            self._add_bytes(self._text(verb))
        elif letter == "R":
            self._add_bytes(self._number(Verb("S", "big32")))
        elif letter == "d" and verb.modifier and verb.modifier.startswith("strftime"):
            self._add_bytes(_dates(verb.modifier.removeprefix("strftime")))
        elif letter in _NUMBER_LETTERS and verb.modifier is None:
            self._template += b"%d"
            self._columns.append(self._plain_number(letter))
        elif letter in _NUMBER_LETTERS:
            self._add_bytes(self._number(verb))
        elif letter == "h":
            self._add_bytes(self._headers(verb.modifier))
        elif letter == "a":
            self._add_bytes(_attribute(verb))
        else:
            raise _unknown(verb)

    def _add_bytes(self, column: Column) -> None:
        self._template += b"%b"
        self._columns.append(column)

    def _text(self, verb: Verb) -> Column:
        if verb.letter == "t":
            change = _text_change(verb)
            return lambda batch: repeat(change(batch.topic.encode()), len(batch))
        packing = self._showing.key if verb.letter == "k" else self._showing.value
        change = packing.as_text if verb.modifier is None and packing else _text_change(verb)
        nulls = self._nulls
        column = attrgetter("keys" if verb.letter == "k" else "values")
        if change is _same and not self._showing.is_terminal:
            return lambda batch: nulls(column(batch))
        shown = self._shown
        return lambda batch: nulls(each_or_null(lambda each: shown(change(each)), column(batch)))

    def _nulls(self, column: Sequence[bytes | None]) -> Sequence[bytes]:
        # all() is five times as fast as a search for None.
        if all(column) or None not in column:
            return column  # type: ignore[return-value]  # there is none
        null = self._showing.null
        return [null if each is None else each for each in column]

    def _shown(self, data: bytes) -> bytes:
        return safe(data) if self._showing.is_terminal else data

    def _number(self, verb: Verb) -> Column:
        change = written(verb.modifier or "ascii")
        column = self._plain_number(verb.letter)
        return lambda batch: map(change, column(batch))

    def _plain_number(self, letter: str) -> Column:
        if letter == "i":
            return lambda batch: range(self._next_number, self._next_number + len(batch))
        return _NUMBERS[letter]

    def _headers(self, modifier: str | None) -> Column:
        if modifier is None:
            shown = self._shown
            return lambda batch: [shown(_listed(each)) for each in batch.headers]
        parts = layout(modifier)
        for part in parts:
            if isinstance(part, Verb) and part.letter not in "kKvVsS":
                raise ConfigError(f"{part}: unknown verb; allowed in headers: %k, %K, %v and %V")
        inner = Rendering(parts, attrs.evolve(self._showing, key=None, value=None))
        return lambda batch: [inner.render(_as_batch(batch, each)) for each in batch.headers]


def safe(data: bytes) -> bytes:
    """Return the text with control characters escaped for a terminal, except newlines and tabs."""
    text = data.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text.encode()
    return b"\n".join(
        b"\t".join(printable(cell).replace("\\\\", "\\").encode() for cell in line.split("\t"))
        for line in text.split("\n")
    )


def _around(parts: Sequence[Part]) -> tuple[bytes, bytes] | None:
    """Return the literals around the only verb if its column is bytes, for a faster path."""
    verbs = [place for place, part in enumerate(parts) if isinstance(part, Verb)]
    if len(verbs) != 1:
        return None
    place = verbs[0]
    verb = parts[place]
    assert isinstance(verb, Verb)
    if verb.letter not in _TEXTS:
        return None
    before = b"".join(part for part in parts[:place] if isinstance(part, bytes))
    after = b"".join(part for part in parts[place + 1 :] if isinstance(part, bytes))
    return before, after


def _unknown(verb: Verb) -> ConfigError:
    if verb.letter in _UNAVAILABLE:
        what = _UNAVAILABLE[verb.letter]
        return ConfigError(f"{verb}: not available to a consumer: {what}")
    return ConfigError(f"{verb}: unknown verb; allowed: {_VERBS}, and %% for a percent sign")


def _same(data: bytes) -> bytes:
    return data


def _text_change(verb: Verb) -> Callable[[bytes], bytes]:
    modifier = verb.modifier
    if modifier is None:
        return _same
    if modifier == "hex":
        return lambda data: data.hex().encode()
    if modifier == "base64":
        return lambda data: b2a_base64(data, newline=False)
    if modifier == "base64raw":
        return lambda data: b2a_base64(data, newline=False).rstrip(b"=")
    if modifier.startswith("unpack"):
        packing = Packing(inside(modifier.removeprefix("unpack"), f"%{verb.letter}{{unpack"))
        return packing.as_text
    raise ConfigError(f"{verb}: unknown modifier; allowed: hex, base64, base64raw, unpack[...]")


def _lengths(column: Sequence[bytes | None]) -> Iterable[int]:
    if None not in column:
        return map(len, column)  # type: ignore[arg-type]  # there is none
    return [-1 if each is None else len(each) for each in column]


_NUMBERS: Final[dict[str, Column]] = {
    "o": lambda batch: batch.offsets,
    "T": lambda batch: batch.timestamps,
    "d": lambda batch: batch.timestamps,
    "p": lambda batch: repeat(batch.partition, len(batch)),
    "e": lambda batch: repeat(batch.leader_epoch, len(batch)),
    "K": lambda batch: _lengths(batch.keys),
    "S": lambda batch: _lengths(batch.values),
    "V": lambda batch: _lengths(batch.values),
    "H": lambda batch: map(len, batch.headers),
}


def _listed(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    """Format headers as a list in kcat's form."""
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers
    )


def _as_batch(batch: ConsumerBatch, headers: Sequence[tuple[str, bytes | None]]) -> ConsumerBatch:
    """Return the headers of a record as a batch of records, with the header names as keys."""
    return attrs.evolve(
        batch,
        offsets=range(len(headers)),
        timestamps=[0] * len(headers),
        keys=[name.encode() for name, _ in headers],
        values=[value for _, value in headers],
        headers=[()] * len(headers),
    )


def _dates(text: str) -> Column:
    form = inside(text, "%d{strftime")
    has_seconds = any(found[1] for found in _CONVERSION.finditer(form))

    def with_seconds(seconds: int) -> str:
        # strftime would take the time for one in the local time zone.
        return _CONVERSION.sub(lambda found: str(seconds) if found[1] else found[0], form)

    def date(timestamp: int) -> bytes:
        try:
            time = _EPOCH + timedelta(milliseconds=timestamp)
            text = with_seconds(timestamp // 1000) if has_seconds else form
            return time.strftime(text).encode()
        except (OverflowError, ValueError):
            return b"%d" % timestamp  # out of the calendar's range

    return lambda batch: map(date, batch.timestamps)


def _attribute(verb: Verb) -> Column:
    name, _, modifier = (verb.modifier or "").partition(";")
    if name != "timestamp-type":
        raise ConfigError(f"{verb}: unknown attribute; allowed: %a{{timestamp-type}}")
    try:
        change = written(modifier or "ascii")
    except ConfigError:
        raise unknown_number(modifier) from None
    return lambda batch: repeat(change(batch.timestamp_type), len(batch))


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
        broker = "" if batch.broker_id < 0 else f',"broker":{batch.broker_id}'
        quote = self._quote
        payload = self._payload if self._with_value else _size
        lines = [
            f"{head}{offset}"
            f"{'' if timestamp < 0 else f'{time}{timestamp}'}{broker}"
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
