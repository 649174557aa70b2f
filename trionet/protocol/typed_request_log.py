"""The value of a logged request, written by typed Python, which mypyc compiles.

Does what ``prefix + request_log.pack_request(...) + texts`` does. Compiled that spends most of its
time on making objects of a dozen numbers; here they go into memory as they are. It needs librt, as
:mod:`.records.typed_writer` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, write_i64_be

if TYPE_CHECKING:
    from mypy_extensions import i64

_INT32_MAX: Final = 2**31 - 1
_UINT32_COUNT: Final = 2**32


class RequestWriter:
    """Writes values one after the other, each into the same memory first."""

    def __init__(self) -> None:
        self._out = BytesWriter()

    def value(
        self,
        prefix: bytes,
        texts: bytes,
        end: i64,
        error_code: i64,
        completed_at_us: i64,
        request_bytes: i64,
        response_bytes: i64,
        request_queue_us: i64,
        local_us: i64,
        remote_us: i64,
        throttle_us: i64,
        response_queue_us: i64,
        response_send_us: i64,
        total_us: i64,
    ) -> bytes:
        """The value of a request, of what is before its ``end``, its texts, and its numbers.

        The numbers have to fit; their order, but for the texts', is that of the value.
        """
        out = self._out
        out.truncate(0)
        out.write(prefix)
        byte: int = end  # only of these does the compiler know that they may become a byte
        out.append(byte)
        byte = error_code >> 8 & 255
        out.append(byte)
        byte = error_code & 255
        out.append(byte)
        write_i64_be(out, completed_at_us)
        write_i64_be(out, _signed(request_bytes) << 32 | response_bytes)
        write_i64_be(out, _signed(request_queue_us) << 32 | local_us)
        write_i64_be(out, _signed(remote_us) << 32 | throttle_us)
        write_i64_be(out, _signed(response_queue_us) << 32 | response_send_us)
        write_i64_be(out, _signed(total_us) << 32)
        out.truncate(len(out) - 4)
        out.write(texts)
        return out.getvalue()


def _signed(number: i64) -> i64:
    """The number of 32 bits with a sign whose bytes are those of one without."""
    if number > _INT32_MAX:
        return number - _UINT32_COUNT
    return number
