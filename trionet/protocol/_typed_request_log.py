"""The writer of the request log: typed Python, compiled by mypyc.

It is equivalent to appending ``prefix + request_log.pack_request(...) + texts`` to a batch, which
would spend most of its time boxing a dozen integers. This module writes native integers
directly. It requires librt, as :mod:`.records._typed_writer` does.
"""

# Compiled by mypyc.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import write_i64_be

from trionet.protocol.records._typed_writer import BatchBuilder

if TYPE_CHECKING:
    from mypy_extensions import i64

#: The size of the fields from ``end`` to ``total_us``.
MIDDLE_SIZE: Final = 47

_INT32_MAX: Final = 2**31 - 1
_UINT32_COUNT: Final = 2**32


class RequestWriter:
    """Writes request log records without creating an object per field.

    Args:
        batch: the batch to which records are appended.
    """

    def __init__(self, batch: BatchBuilder) -> None:
        self._batch = batch

    def append(
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
    ) -> i64:
        """Append a request, and return the size of the batch in bytes.

        ``prefix`` contains the fields before ``end``. All numbers must fit into their fields.
        """
        batch = self._batch
        length: i64 = len(prefix) + MIDDLE_SIZE + len(texts)
        out = batch.begin_value(completed_at_us // 1000, length)
        out.write(prefix)
        byte: int = end  # mypyc converts an int to the u8 that append() takes, but not an i64
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
        batch.end_value()
        return batch.size


def _signed(number: i64) -> i64:
    """Reinterpret an unsigned 32-bit number as signed."""
    if number > _INT32_MAX:
        return number - _UINT32_COUNT
    return number
