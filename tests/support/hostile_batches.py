"""Batches whose headers say what is not so, with checksums that fit."""

from __future__ import annotations

from trionet.protocol.records._batch import CRC_START, HEADER_SIZE, read_header
from trionet.protocol.records._crc32c import crc32c


def changed(records: bytes, **fields: int) -> bytes:
    """A batch with other header fields and the checksum that fits them."""
    header = read_header(records)._replace(**fields)
    body = records[HEADER_SIZE:]
    crc = crc32c(body, crc32c(header.pack()[CRC_START:]))
    return header._replace(crc=crc).pack() + body
