"""What the generated codecs share: the message base class, varints, tags, arrays and errors.

The generated functions inline the common cases (one-byte varints, empty tag sections) and come
here for the rest. Positions are absolute and only grow, and reading past the end raises
``IndexError`` or ``struct.error``, so the loops here and there are bounded by the frame's length.

Types are for type checkers alone, here and in the generated modules: `typing` and `collections`
take longer to import than the codecs of Produce, Fetch, Metadata and ApiVersions together.
"""

from __future__ import annotations

import struct

from trionet.errors import LocalProtocolError, WireFormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Sized
    from typing import Any, Final, NoReturn, Protocol, TypeAlias, TypeVar

    _M = TypeVar("_M")
    _M_co = TypeVar("_M_co", covariant=True)
    _Formats = dict[Any, Callable[..., Any]]

    class Decode(Protocol[_M_co]):
        """Decodes a message from a position on; ``left`` is how many elements it may hold."""

        def __call__(self, buf: bytes | bytearray, pos: int, left: int = ..., /) -> _M_co: ...

else:
    Sized = Decode = object
    _Formats = dict

#: One piece of an encoded message: bytes, or something with a length that is sent by other means
#: (a range of a file).
Chunk: TypeAlias = Sized

#: The records of a request: a view into the frame once decoded.
Records: TypeAlias = bytes | bytearray | memoryview | None

#: The records of a response: a view into the frame once decoded, any chunk when encoded.
RecordsChunk: TypeAlias = Chunk | None

#: What a request, or a message inside one, may hold: elements of arrays, arrays, and tags. The
#: largest requests that clients send, about each partition of a very large cluster, stay below.
#: What is decoded takes about as much memory then as the largest frame, 100 MB.
REQUEST_ELEMENTS_MAX: Final = 250_000

#: The same for responses, which repeat what a cluster has: the replicas of each partition, say.
RESPONSE_ELEMENTS_MAX: Final = 10_000_000

#: The longest text, in bytes: Kafka's older form has an int16 for it, and its compact form may not
#: hold more either (Kafka: MessageDataGenerator).
TEXT_BYTES_MAX: Final = 32_767

#: How many tags a section may hold. The schemas know five at most, and a section is read in one
#: step, whatever else waits.
TAGS_MAX: Final = 1000

#: For each version, the function that decodes a message and the one that encodes it.
Codecs: TypeAlias = "dict[int, tuple[Decode[_M], Callable[[_M, list[Sized]], None]]]"

#: Kafka's "no UUID".
NO_UUID: Final = bytes(16)


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


#: The default of parameters whose value is a fresh list or struct each time.
UNSET: Any = _Unset()

#: What malformed bytes make the generated decoders raise.
MALFORMED: Final = (IndexError, struct.error, UnicodeDecodeError)

#: What wrong values make the generated encoders raise.
UNENCODABLE: Final = (struct.error, TypeError, AttributeError, UnicodeEncodeError)

#: The one-byte varints.
BYTES: Final = tuple(bytes((value,)) for value in range(128))

#: Counts above take another way; the generated code knows this number, too.
_SMALL_COUNT_MAX: Final = 127

#: How many formats are kept for each run of fields with arrays among them.
_ARRAY_FORMATS_MAX: Final = 1024

new = object.__new__


class Message:
    """Base of all generated structs: compared and shown by their fields."""

    __slots__: tuple[str, ...] = ()
    _uuids: tuple[str, ...] = ()

    unknown_tags: tuple[tuple[int, bytes], ...]

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # mutable, as lists are

    def __repr__(self) -> str:
        parts = [
            f"{name}={self._shown(name)}"
            for name in self.__slots__
            if name != "unknown_tags" or self.unknown_tags
        ]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _shown(self, name: str) -> str:
        """Bytes are shown by their length: they may be megabytes of records, or a password."""
        value = getattr(self, name)
        if name in self._uuids and isinstance(value, bytes):
            return value.hex()
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f"<{len(value)} bytes>"
        return repr(value)


def read_varint(buf: bytes | bytearray, pos: int, first: int) -> tuple[int, int]:
    """Read the rest of an unsigned varint whose first byte was read; (value, next position)."""
    value = first & 127
    shift = 7
    while first > 127:
        if shift > 28:
            raise WireFormatError("a varint is longer than five bytes")
        first = buf[pos]
        pos += 1
        value |= (first & 127) << shift
        shift += 7
    if value > 0x7FFFFFFF:
        raise WireFormatError("a varint is above 2147483647")
    return value, pos


def text_length(buf: bytes | bytearray, pos: int, first: int, field: str) -> tuple[int, int]:
    """Read the rest of a text's compact length; (length plus one, next position)."""
    n, pos = read_varint(buf, pos, first)
    if n > TEXT_BYTES_MAX + 1:
        raise WireFormatError(f"{field}: a text of {n - 1} bytes; at most {TEXT_BYTES_MAX} may be")
    return n, pos


def varint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def text_size(n: int, field: str) -> bytes:
    """A text's compact length plus one; longer ones than in older versions no peer would take."""
    if n > TEXT_BYTES_MAX + 1:
        raise LocalProtocolError(
            f"{field}: a text of {n - 1} bytes; at most {TEXT_BYTES_MAX} may be"
        )
    return varint(n)


def tag_count(buf: bytes | bytearray, pos: int, first: int, left: int) -> tuple[int, int, int]:
    """Read the rest of a tag section's count: (count, next position, elements left)."""
    count, pos = read_varint(buf, pos, first)
    if count > TAGS_MAX:
        raise WireFormatError(f"a section of {count} tags; at most {TAGS_MAX} may be")
    left -= count
    if left < 0 or count > len(buf) - pos:
        bad_count("tag section", count, len(buf) - pos)
    return count, pos, left


def tag_head(buf: bytes | bytearray, pos: int, last: int) -> tuple[int, int, int]:
    """Read a tag's number and size: (number, end of its data, start of its data).

    KIP-482: the numbers of a section are ascending, each at most once.
    """
    tag, pos = read_varint(buf, pos + 1, buf[pos])
    length, pos = read_varint(buf, pos + 1, buf[pos])
    if tag <= last:
        raise WireFormatError(f"tag {tag} comes after tag {last}: tags must ascend")
    end = pos + length
    if end > len(buf):
        raise WireFormatError(f"tag {tag} is longer than the frame")
    return tag, end, pos


def read_tags(
    buf: bytes | bytearray, pos: int, first: int, left: int
) -> tuple[tuple[tuple[int, bytes], ...], int, int]:
    """Read a section of tags that are all unknown.

    Returns:
        ((number, data), ...), the next position and how many elements are left.
    """
    count, pos, left = tag_count(buf, pos, first, left)
    tags = []
    tag = -1
    for _ in range(count):
        tag, end, pos = tag_head(buf, pos, tag)
        tags.append((tag, bytes(buf[pos:end])))
        pos = end
    return tuple(tags), pos, left


def write_tags(out: list[Sized], tags: Iterable[tuple[int, bytes]]) -> None:
    """Put a section of tags in place of the empty one that the last chunk ends with."""
    section = sorted(tags, key=_number)
    before: bytes = out[-1]  # type: ignore[assignment]  # it ends with the empty section
    parts = [before[:-1], varint(len(section))]
    last = -1
    for tag, data in section:
        if tag == last:
            raise LocalProtocolError(f"tag {tag} is both a field of this version and unknown")
        last = tag
        parts += varint(tag), varint(len(data)), data
    out[-1] = b"".join(parts)


def _number(tag: tuple[int, bytes]) -> int:
    return tag[0]


def join_section(section: list[Sized]) -> bytes:
    """The data of one tag, from its chunks."""
    return b"".join(section)  # type: ignore[arg-type]  # no field with a tag is a range of a file


class ArrayReaders(_Formats):
    """Readers of arrays of numbers by the count on the wire, of which the small ones stay.

    Args:
        code: the ``struct`` format of one number.
        more: how much the count is above that of the numbers: 1 for compact arrays.
    """

    def __init__(self, code: str, more: int) -> None:
        super().__init__()
        self._code = code
        self._more = more

    def __missing__(self, count: int) -> Callable[[bytes | bytearray, int], tuple[Any, ...]]:
        numbers = max(count - self._more, 0)
        if count > _SMALL_COUNT_MAX:  # peers choose it
            return _reader_of_many(self._code, numbers)
        read = struct.Struct(f">{numbers}{self._code}").unpack_from
        self[count] = read
        return read


def _reader_of_many(code: str, count: int) -> Callable[[bytes | bytearray, int], tuple[Any, ...]]:
    def read(buf: bytes | bytearray, pos: int) -> tuple[Any, ...]:
        if count * struct.calcsize(f">{code}") > len(buf) - pos:
            bad_count("array of numbers", count, len(buf) - pos)
        return struct.unpack_from(f">{count}{code}", buf, pos)

    return read


class ArrayWriters(_Formats):
    """Writers of fixed fields with arrays of numbers among them, by the counts on the wire.

    The generated code asks for none with a count above 127.

    Args:
        codes: the ``struct`` format, with ``n`` in place of the number of numbers.
        more: how much a count is above that number: 1 for compact arrays.
    """

    def __init__(self, codes: str, more: int) -> None:
        super().__init__()
        self._codes = codes.replace("n", "{}")
        self._more = more

    def __missing__(self, counts: int | tuple[int, ...]) -> Callable[..., bytes]:
        each = counts if isinstance(counts, tuple) else (counts,)
        numbers = [max(count - self._more, 0) for count in each]
        write = struct.Struct(">" + self._codes.format(*numbers)).pack
        if len(self) < _ARRAY_FORMATS_MAX:
            self[counts] = write
        return write


# The formats that at least ten of the generated modules use, made once.
U_16sB = struct.Struct(">16sB").unpack_from
U_bB = struct.Struct(">bB").unpack_from
U_hB = struct.Struct(">hB").unpack_from
U_iB = struct.Struct(">iB").unpack_from
U_ihB = struct.Struct(">ihB").unpack_from
U_oB = struct.Struct(">?B").unpack_from
P_16s = struct.Struct(">16s").pack
P_16sB = struct.Struct(">16sB").pack
P_b = struct.Struct(">b").pack
P_bB = struct.Struct(">bB").pack
P_h = struct.Struct(">h").pack
P_hB = struct.Struct(">hB").pack
P_i = struct.Struct(">i").pack
P_iB = struct.Struct(">iB").pack
P_ih = struct.Struct(">ih").pack
P_ihB = struct.Struct(">ihB").pack
P_ix = struct.Struct(">ix").pack
P_ox = struct.Struct(">?x").pack
UA_Bni = ArrayReaders("i", 1)
PA_Bnix = ArrayWriters("Bnix", 1)


def join_array(code: str, values: Sequence[int] | Sequence[float]) -> bytes:
    """Numbers as the ``struct`` format ``code`` writes them."""
    return struct.pack(f">{len(values)}{code}", *values)


def malformed(message: str, error: Exception) -> WireFormatError:
    """The error for bytes that a decoder stumbled over."""
    if isinstance(error, UnicodeDecodeError):
        return WireFormatError(f"{message}: a string is not UTF-8")
    return WireFormatError(f"{message}: the frame ends too early")


def bad_end(message: str, missing: int) -> WireFormatError:
    """The error for a message that reaches ``missing`` bytes beyond its frame."""
    return WireFormatError(f"{message}: the frame ends {missing} bytes too early")


def bad_length(field: str, length: int) -> NoReturn:
    """Refuse a null or negative length where the schema has none."""
    raise WireFormatError(f"{field}: null or negative length (prefix {length})")


def bad_count(field: str, count: int, rest: int) -> NoReturn:
    """Refuse elements that are too many: for the ``rest`` of the frame, as each of them takes at
    least one byte, or for the limit of elements in a message.
    """
    if count > rest:
        raise WireFormatError(f"{field}: {count} elements cannot fit into the frame")
    raise WireFormatError(
        f"{field}: {count} more elements are too many; the limit of a broker's requests is "
        "request.max.elements"
    )


def bad_tag(field: str) -> WireFormatError:
    """The error for a tag whose size is not that of its field."""
    return WireFormatError(f"{field}: the tag's size is not its field's")


def unencodable(message: str, error: Exception) -> LocalProtocolError:
    """The error for a message holding a value that its field cannot carry."""
    return LocalProtocolError(f"{message} holds a value that its field cannot carry: {error}")


def missing_field(field: str) -> NoReturn:
    """Refuse to drop a value that this version has no field for."""
    raise LocalProtocolError(f"{field} is set, but this version of the API has no such field")


def null_field(field: str) -> NoReturn:
    """Refuse null where this version has no way to write it."""
    raise LocalProtocolError(f"{field} is None, which this version of the API cannot carry")


def bad_uuid(field: str) -> NoReturn:
    """Refuse a UUID that is not 16 bytes."""
    raise LocalProtocolError(f"{field}: a UUID is 16 bytes")
