"""Control records: what a batch with the control flag holds in place of a message.

Consumers never see them. Those of transactions tell a reader whether what was written is to be
read (KIP-98); the others belong to Kafka's own quorum (KIP-595, KIP-630).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from trionet.errors import LocalProtocolError, WireFormatError
from trionet.protocol.records._records import encode_batch

ABORT: Final = 0
COMMIT: Final = 1

#: The types by number; numbers that are not here come from a newer Kafka.
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
    """The end of one producer's transaction in a partition (Kafka: EndTransactionMarker).

    Attributes:
        is_commit: whether what was written counts.
        coordinator_epoch: of the transaction's coordinator; an older one's word is not taken.
    """

    is_commit: bool
    coordinator_epoch: int


def control_type(key: bytes | None) -> int:
    """The type of a control record, by its key.

    Raises:
        WireFormatError: the key is none of a control record.
    """
    if key is None or len(key) < _key.size:
        raise WireFormatError("a control record has no type in its key")
    version, number = _key.unpack_from(key)
    if version < 0:
        raise WireFormatError(f"a control record's key has the version {version}")
    return int(number)


def read_marker(key: bytes | None, value: bytes | None) -> EndTransactionMarker | None:
    """The marker in a control record; None if it is a control record of another type.

    Raises:
        WireFormatError: the key or the value is none of a marker.
    """
    number = control_type(key)
    if number not in {ABORT, COMMIT}:
        return None
    if value is None or len(value) < _value.size:
        raise WireFormatError("a transaction's marker ends too early")
    version, epoch = _value.unpack_from(value)
    if version < 0:
        raise WireFormatError(f"a transaction's marker has the version {version}")
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
    """A batch with a marker, as a coordinator writes it to a partition.

    Args:
        marker: what it says.
        timestamp: in milliseconds.
        producer_id: whose transaction ends.
        producer_epoch: the producer's.
        base_offset: the marker's offset.
        leader_epoch: the partition's.

    Raises:
        LocalProtocolError: a number does not fit into its field.
    """
    key = _key.pack(_VERSION, COMMIT if marker.is_commit else ABORT)
    try:
        value = _value.pack(_VERSION, marker.coordinator_epoch)
    except struct.error as error:
        raise LocalProtocolError(f"the epoch of a marker cannot be encoded: {error}") from error
    return encode_batch(
        [(timestamp, key, value, ())],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
    )
