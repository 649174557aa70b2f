"""Control records, the contents of batches with the control flag.

Consumers do not return control records to the application. Transaction markers commit or abort the
records of a transaction (KIP-98). Kafka's quorum controller writes the other types (KIP-595,
KIP-630).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol.records._records import encode_batch

ABORT: Final = 0
COMMIT: Final = 1

#: The names of the control record types; newer versions of Kafka may write other types.
NAMES: Final = {
    ABORT: "ABORT",
    COMMIT: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}

_VERSION: Final = 0
_key: Final = struct.Struct(">hh")  # version, type
_value: Final = struct.Struct(">hi")  # version, epoch of the coordinator


class EndTransactionMarker(NamedTuple):
    """The marker that ends a transaction (Kafka: EndTransactionMarker).

    Attributes:
        is_commit: whether the transaction was committed; False if it was aborted.
        coordinator_epoch: the epoch of the transaction coordinator, which fences coordinators of
            older epochs.
    """

    is_commit: bool
    coordinator_epoch: int


def control_type(key: bytes | None) -> int:
    """Return the type of the control record with this key.

    Raises:
        WireFormatError: the key is not a valid control record key.
    """
    if key is None or len(key) < _key.size:
        raise WireFormatError("the key of a control record is null or truncated")
    version, number = _key.unpack_from(key)
    if version < 0:
        raise WireFormatError(f"the key of a control record has an invalid version ({version})")
    return int(number)


def read_marker(key: bytes | None, value: bytes | None) -> EndTransactionMarker | None:
    """Decode a transaction marker. Returns None for a control record of another type.

    Args:
        key: the key of the control record.
        value: the value of the control record.

    Raises:
        WireFormatError: the key or the value is malformed.
    """
    number = control_type(key)
    if number not in {ABORT, COMMIT}:
        return None
    if value is None or len(value) < _value.size:
        raise WireFormatError("truncated transaction marker")
    version, epoch = _value.unpack_from(value)
    if version < 0:
        raise WireFormatError(f"a transaction marker has an invalid version ({version})")
    return EndTransactionMarker(number == COMMIT, epoch)


def encode_marker(
    marker: EndTransactionMarker,
    *,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytes:
    """Encode a batch that contains a transaction marker.

    Args:
        marker: the marker.
        timestamp: the timestamp of the record, in milliseconds.
        producer_id: the id of the producer whose transaction ends.
        producer_epoch: the producer epoch.
        base_offset: the offset of the marker.
        leader_epoch: the leader epoch of the partition.

    Raises:
        LocalProtocolError: a number does not fit into its field.
    """
    key = _key.pack(_VERSION, COMMIT if marker.is_commit else ABORT)
    try:
        value = _value.pack(_VERSION, marker.coordinator_epoch)
    except struct.error as error:
        text = f"the epoch of a transaction marker cannot be encoded: {error}"
        raise LocalProtocolError(text) from error
    return encode_batch(
        [(timestamp, key, value, ())],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
