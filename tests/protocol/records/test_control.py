"""Control records: the types and markers of Kafka's transactions."""

from __future__ import annotations

import pytest

from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol.records._batch import check_crc, read_header
from trionet.protocol.records._records import (
    ABORT,
    COMMIT,
    NAMES,
    EndTransactionMarker,
    control_type,
    decode_batch,
    encode_marker,
    read_marker,
)

NOW = 1_700_000_000_000


@pytest.mark.parametrize("is_commit", [False, True])
def test_marker_is_read_as_it_was_written(is_commit: bool) -> None:
    marker = EndTransactionMarker(is_commit, 7)
    batch = encode_marker(
        marker, timestamp=NOW, producer_id=9, producer_epoch=2, base_offset=40, leader_epoch=3
    )
    header = read_header(batch)
    [(offset, timestamp, key, value, headers)] = decode_batch(batch)

    assert check_crc(batch, 0, header)
    assert (True, True) == (header.is_control, header.is_transactional)
    assert (40, NOW, (), 3) == (offset, timestamp, headers, header.leader_epoch)
    assert (9, 2, -1) == header[9:12]
    assert (COMMIT if is_commit else ABORT) == control_type(key)
    assert marker == read_marker(key, value)


def test_known_bytes() -> None:
    """Of a commit, written down by hand from the format's description."""
    assert EndTransactionMarker(True, 258) == read_marker(
        bytes.fromhex("0000 0001"), bytes.fromhex("0000 00000102")
    )


def test_other_types_are_no_markers() -> None:
    assert read_marker(bytes.fromhex("0000 0002"), b"of the quorum") is None
    assert "LEADER_CHANGE" == NAMES[control_type(bytes.fromhex("0000 0002"))]
    assert 99 == control_type(bytes.fromhex("0000 0063"))


def test_later_versions_may_say_more() -> None:
    later = read_marker(bytes.fromhex("0001 0000 ff"), bytes.fromhex("0001 00000005 ff"))

    assert EndTransactionMarker(False, 5) == later


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0" * 6),
        (b"\0\0\0", b"\0" * 6),
        (b"\xff\xff\0\0", b"\0" * 6),
        (b"\0\0\0\0", None),
        (b"\0\0\0\0", b"\0" * 5),
        (b"\0\0\0\0", b"\xff\xff\0\0\0\0"),
    ],
)
def test_malformed_marker_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(WireFormatError):
        read_marker(key, value)


def test_epoch_that_does_not_fit_is_our_mistake() -> None:
    with pytest.raises(LocalProtocolError, match="epoch"):
        encode_marker(
            EndTransactionMarker(True, 2**31), timestamp=NOW, producer_id=1, producer_epoch=0
        )
