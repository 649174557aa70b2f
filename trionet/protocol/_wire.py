"""The runtime of the generated codecs: the message base class, varints, tags, arrays and errors.

The generated functions inline the common cases (one-byte varints, empty tag sections) and call this
module in all other cases. Positions are absolute and only increase. Reading past the end raises
``IndexError`` or ``struct.error``, so the length of the frame bounds all loops.

This module and the generated modules import types only for type checkers, because importing
`typing` and `collections` takes longer than importing the codecs of Produce, Fetch, Metadata and
ApiVersions.
"""

from __future__ import annotations

import struct

from trionet.errors import LocalProtocolError, WireFormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Sized
    from typing import Any, ClassVar, Final, NoReturn, Protocol, TypeAlias, TypeVar

    _M_co = TypeVar("_M_co", covariant=True)
    _Formats = dict[Any, Callable[..., Any]]

    class Decode(Protocol[_M_co]):
        """Decodes the message at a position; ``left`` limits the number of elements."""

        def __call__(self, buf: bytes | bytearray, pos: int, left: int = ..., /) -> _M_co: ...

else:
    Sized = Decode = object
    _Formats = dict

#: A part of an encoded message: bytes, or an object with a length, such as a file range, that is
#: sent by other means.
Chunk: TypeAlias = Sized

#: The records of a request; in a decoded request, a view into the frame.
Records: TypeAlias = bytes | bytearray | memoryview | None

#: The records of a response; in a decoded response, a view into the frame.
RecordsChunk: TypeAlias = Chunk | None

#: The maximum total number of array elements, arrays and tags in a request, or in a message within
#: a request. Even a request for every partition of a very large cluster does not exceed it. At the
#: limit, the decoded request takes about as much memory as the largest frame, 100 MB.
REQUEST_ELEMENTS_MAX: Final = 250_000

#: The maximum for a response, which may list all partitions of a cluster with their replicas.
RESPONSE_ELEMENTS_MAX: Final = 10_000_000

#: The maximum length of a text in bytes. Non-compact strings have an int16 length, and compact
#: strings have the same limit (Kafka: MessageDataGenerator).
TEXT_BYTES_MAX: Final = 32_767

#: The maximum number of tags per section. The schemas have at most five tags. A section is decoded
#: in one step, during which the event loop waits.
TAGS_MAX: Final = 1000

#: The types of the bound methods of the ``struct`` module in generated code.
Pack: TypeAlias = "Callable[..., bytes]"
Unpack: TypeAlias = "Callable[..., tuple[Any, ...]]"

#: The UUID that stands for no UUID (Kafka: Uuid.ZERO_UUID).
NO_UUID: Final = bytes(16)


class _Unset:
    def __repr__(self) -> str:
        return "UNSET"


#: The default argument of parameters whose default value is a new list or struct.
UNSET: Any = _Unset()

#: The errors that the generated decoders raise for malformed bytes.
MALFORMED: Final = (IndexError, struct.error, UnicodeDecodeError)

#: The errors that the generated encoders raise for invalid values.
UNENCODABLE: Final = (struct.error, TypeError, AttributeError, UnicodeEncodeError)

#: The one-byte varints.
BYTES: Final = tuple(bytes((value,)) for value in range(128))

#: The maximum count whose format is cached; the generated code also contains this number.
_SMALL_COUNT_MAX: Final = 127

#: The maximum number of cached formats per run of fields that includes arrays.
_ARRAY_FORMATS_MAX: Final = 1024

new = object.__new__


class Message:
    """The base class of all generated structs, with equality and repr based on the fields."""

    __slots__: tuple[str, ...] = ()
    _layout: tuple[str, ...] = ()
    _uuids: tuple[str, ...] = ()

    unknown_tags: tuple[tuple[int, bytes], ...]

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # mutable, as lists are

    def __repr__(self) -> str:
        parts = [
            f"{name}={self._shown(name)}"
            for name in self.__slots__
            if name != "unknown_tags" or self.unknown_tags
        ]
        return f"{type(self).__name__}({', '.join(parts)})"

    def _shown(self, name: str) -> str:
        """Format a field. Bytes are replaced by their length, as they may be large or secret."""
        value = getattr(self, name)
        if name in self._uuids and isinstance(value, bytes):
            return value.hex()
        if isinstance(value, (bytes, bytearray, memoryview)):
            return f"<{len(value)} bytes>"
        return repr(value)


def read_varint(buf: bytes | bytearray, pos: int, first: int) -> tuple[int, int]:
    """Read the rest of an unsigned varint, and return its value and the next position."""
    value = first & 127
    shift = 7
    while first > 127:
        if shift > 28:
            raise WireFormatError("varint longer than five bytes")
        first = buf[pos]
        pos += 1
        value |= (first & 127) << shift
        shift += 7
    if value > 0x7FFFFFFF:
        raise WireFormatError("varint greater than 2147483647")
    return value, pos


def text_length(buf: bytes | bytearray, pos: int, first: int, field: str) -> tuple[int, int]:
    """Read the rest of a compact length, and return the length plus one and the next position."""
    n, pos = read_varint(buf, pos, first)
    if n > TEXT_BYTES_MAX + 1:
        raise WireFormatError(f"{field}: text of {n - 1} bytes; at most {TEXT_BYTES_MAX} allowed")
    return n, pos


def varint(value: int) -> bytes:
    """Encode an unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def text_size(n: int, field: str) -> bytes:
    """Encode the compact length of a text.

    Args:
        n: the length of the text in bytes, plus one.
        field: the name of the field in the error message.

    Raises:
        LocalProtocolError: the text is longer than TEXT_BYTES_MAX, which peers would reject.
    """
    if n > TEXT_BYTES_MAX + 1:
        raise LocalProtocolError(
            f"{field}: text of {n - 1} bytes; at most {TEXT_BYTES_MAX} allowed"
        )
    return varint(n)


def tag_count(buf: bytes | bytearray, pos: int, first: int, left: int) -> tuple[int, int, int]:
    """Read the rest of a tag count, and return the count, the next position and elements left."""
    count, pos = read_varint(buf, pos, first)
    if count > TAGS_MAX:
        raise WireFormatError(f"section of {count} tags; at most {TAGS_MAX} allowed")
    left -= count
    if left < 0 or count > len(buf) - pos:
        bad_count("tag section", count, len(buf) - pos)
    return count, pos, left


def tag_head(buf: bytes | bytearray, pos: int, last: int) -> tuple[int, int, int]:
    """Read the number and size of a tag, and return the number and the end and start of its data.

    The tag numbers of a section are strictly ascending (KIP-482).
    """
    tag, pos = read_varint(buf, pos + 1, buf[pos])
    length, pos = read_varint(buf, pos + 1, buf[pos])
    if tag <= last:
        raise WireFormatError(f"tag {tag} comes after tag {last}, but tag numbers must ascend")
    end = pos + length
    if end > len(buf):
        raise WireFormatError(f"tag {tag} extends past the end of the frame")
    return tag, end, pos


def read_tags(
    buf: bytes | bytearray, pos: int, first: int, left: int
) -> tuple[tuple[tuple[int, bytes], ...], int, int]:
    """Read a section of unknown tags.

    Returns:
        The tags as ``((number, data), ...)``, the next position and the number of elements left.
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
    """Replace the empty tag section at the end of the last chunk with one of these tags."""
    section = sorted(tags, key=_number)
    before: bytes = out[-1]  # type: ignore[assignment]  # it ends with the empty section
    parts = [before[:-1], varint(len(section))]
    last = -1
    for tag, data in section:
        if tag == last:
            raise LocalProtocolError(
                f"duplicate tag {tag}; an unknown tag must not repeat another tag or a known field"
            )
        last = tag
        parts += varint(tag), varint(len(data)), data
    out[-1] = b"".join(parts)


def _number(tag: tuple[int, bytes]) -> int:
    return tag[0]


def join_section(section: list[Sized]) -> bytes:
    """Join the chunks of a tag's data."""
    return b"".join(section)  # type: ignore[arg-type]  # tagged fields are never file ranges


class ArrayReaders(_Formats):
    """Readers of arrays of numbers, keyed by encoded count; small counts are cached.

    Args:
        code: the ``struct`` format of a number.
        more: the encoded count minus the number of elements: 1 for compact arrays, otherwise 0.
    """

    def __init__(self, code: str, more: int) -> None:
        super().__init__()
        self._code = code
        self._more = more

    def __missing__(self, count: int) -> Callable[[bytes | bytearray, int], tuple[Any, ...]]:
        numbers = max(count - self._more, 0)
        if count > _SMALL_COUNT_MAX:  # not cached: peers choose the count
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
    """Writers of runs of fields that include arrays of numbers, keyed by encoded counts.

    The generated code uses these writers only for counts up to 127.

    Args:
        codes: the ``struct`` format, with ``n`` in place of the number of elements.
        more: an encoded count minus the number of elements: 1 for compact arrays, otherwise 0.
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


# Formats used by many codecs, compiled once.
U_16sB: Unpack = struct.Struct(">16sB").unpack_from
U_bB: Unpack = struct.Struct(">bB").unpack_from
U_hB: Unpack = struct.Struct(">hB").unpack_from
U_iB: Unpack = struct.Struct(">iB").unpack_from
U_ihB: Unpack = struct.Struct(">ihB").unpack_from
U_oB: Unpack = struct.Struct(">?B").unpack_from
P_16s: Pack = struct.Struct(">16s").pack
P_16sB: Pack = struct.Struct(">16sB").pack
P_b: Pack = struct.Struct(">b").pack
P_bB: Pack = struct.Struct(">bB").pack
P_h: Pack = struct.Struct(">h").pack
P_hB: Pack = struct.Struct(">hB").pack
P_i: Pack = struct.Struct(">i").pack
P_iB: Pack = struct.Struct(">iB").pack
P_ih: Pack = struct.Struct(">ih").pack
P_ihB: Pack = struct.Struct(">ihB").pack
P_ix: Pack = struct.Struct(">ix").pack
P_ox: Pack = struct.Struct(">?x").pack
UA_Bni = ArrayReaders("i", 1)
PA_Bnix = ArrayWriters("Bnix", 1)


def join_array(code: str, values: Sequence[int] | Sequence[float]) -> bytes:
    """Encode numbers in the ``struct`` format ``code``."""
    return struct.pack(f">{len(values)}{code}", *values)


def malformed(message: str, error: Exception) -> WireFormatError:
    """Return the error for malformed bytes, given the exception raised in a decoder."""
    if isinstance(error, UnicodeDecodeError):
        return WireFormatError(f"{message}: a string is not valid UTF-8")
    return WireFormatError(f"{message}: the frame ends too early")


def bad_end(message: str, missing: int) -> WireFormatError:
    """Return the error for a message that extends ``missing`` bytes past its frame."""
    return WireFormatError(f"{message}: the frame ends {missing} bytes too early")


def bad_length(field: str, length: int) -> NoReturn:
    """Reject a null or negative length of a field that is not nullable."""
    raise WireFormatError(f"{field}: null or negative length (prefix {length})")


def bad_count(field: str, count: int, rest: int) -> NoReturn:
    """Reject an element count that exceeds the rest of the frame or the limit of a message.

    Each element takes at least one byte of the frame.
    """
    if count > rest:
        raise WireFormatError(f"{field}: {count} elements cannot fit into the frame")
    raise WireFormatError(
        f"{field}: {count} more elements exceed the limit (on a broker, request.max.elements)"
    )


def bad_tag(field: str) -> WireFormatError:
    """Return the error for a tag whose size does not match its field."""
    return WireFormatError(f"{field}: the size of the tag does not match its field")


def unencodable(message: str, error: Exception) -> LocalProtocolError:
    """Return the error for a message with a value that does not fit into its field."""
    return LocalProtocolError(f"{message}: a value does not fit into its field: {error}")


def missing_field(field: str) -> NoReturn:
    """Reject a value for a field that this version of the API does not have."""
    raise LocalProtocolError(f"{field} is set, but this version of the API has no such field")


def null_field(field: str) -> NoReturn:
    """Reject None for a field that is not nullable in this version of the API."""
    raise LocalProtocolError(f"{field} is None, but is not nullable in this version of the API")


def bad_uuid(field: str) -> NoReturn:
    """Reject a UUID that is not 16 bytes long."""
    raise LocalProtocolError(f"{field}: a UUID must have 16 bytes")


def uuid_text(id: bytes | bytearray) -> str:
    """Format a UUID as Kafka does: 22 characters of URL-safe base64 (Kafka: Uuid.toString)."""
    from binascii import b2a_base64  # here, because every codec imports this module

    text = b2a_base64(id, newline=False).rstrip(b"=").decode("ascii")
    return text.replace("+", "-").replace("/", "_")
