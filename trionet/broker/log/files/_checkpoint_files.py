"""The small text files in a data directory: checkpoints and identities.

Byte for byte as Kafka reads and writes them:

* ``recovery-point-offset-checkpoint``, ``log-start-offset-checkpoint`` and
  ``cleaner-offset-checkpoint`` (the first offset that compaction has not cleaned): a version (0), a
  count, and one line per partition, ``topic partition offset``;
* ``meta.properties``: the cluster and broker that own the directory;
* ``partition.metadata``, in the directory of each partition: the topic id;
* ``.kafka_cleanshutdown``, which exists only after a clean shutdown.

``log-extent-checkpoint`` is ours. The problem: Kafka's checkpoints record the offset up to which
each log is on disk, but not the size of that part or the topic id, and have no checksum, so that a
corrupted digit goes unnoticed. With Kafka's checkpoints alone, startup cannot distinguish a deleted
segment from a missing one. The choice: a separate file beside Kafka's files, which takes precedence
over them. It contains a version (0), a count, one line per partition, and a CRC-32C of all of
these. Kafka ignores it. A line ends with the number of aborted transactions if there are any,
because a missing ``.txnindex`` would show their records to consumers; releases without transactions
do not know that number. After it, a compacted log has the offset up to which compaction may have
left gaps, so that a startup does not take these for damage even if the topic is not compacted any
more. A release that does not know this offset reports the file as damaged, and goes by Kafka's
files and the topic's present policy. Rejected: extending Kafka's files, because Kafka must be able
to read the directory. Also rejected: a table in the database, because logs must be readable without
the database.
"""

from __future__ import annotations

import base64
import json
import random
import re
import uuid
from collections.abc import Iterable, Mapping

import attrs

from ...._util._logging import get_logger
from ....errors import ConfigError
from ....net._network import SYSTEM
from ....protocol.records._crc32c import crc32c
from ._directory import Directory, NotRegularError

logger = get_logger("trionet.broker.log")

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
START_OFFSET_FILE = "log-start-offset-checkpoint"
CLEANER_OFFSET_FILE = "cleaner-offset-checkpoint"
META_FILE = "meta.properties"
CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
PARTITION_FILE = "partition.metadata"

PartitionKey = tuple[str, int]

_ENTRY = re.compile(r"(\S+) (\d+) (-?\d+)")
_PARTITION_MAX = 2**31 - 1
_OFFSET_MAX = 2**63 - 1
_FOLDER = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_DELETED = re.compile(r".+\.[0-9a-f]{32}-delete")
# KRaft's own log, not a topic.
_METADATA_TOPIC = "__cluster_metadata"

EXTENT_FILE = "log-extent-checkpoint"

_LINE = re.compile(rb"(\S+) ([0-9]+) ([0-9a-f]{32}) ([0-9 ]+)")


def encode_offsets(offsets: Mapping[PartitionKey, int]) -> bytes:
    """Encode a checkpoint file with one offset per partition."""
    lines = ["0", str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode()


def decode_offsets(data: bytes) -> dict[PartitionKey, int]:
    """Decode a checkpoint file.

    Raises:
        ValueError: the data is malformed or incomplete.
    """
    version, count, *lines = data.decode().splitlines() + [""] * (2 - data.count(b"\n"))
    if version != "0" or not count.isdigit():
        raise ValueError(f"expected version 0 and a count, found {version!r} and {count!r}")
    offsets = {}
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise ValueError(f"invalid line {line!r}: expected topic, partition and offset")
        partition, offset = int(entry[2]), int(entry[3])
        if partition > _PARTITION_MAX or abs(offset) > _OFFSET_MAX:
            raise ValueError(
                f"invalid line {line!r}: the partition must not exceed {_PARTITION_MAX}, nor the"
                f" offset {_OFFSET_MAX}"
            )
        offsets[entry[1], partition] = offset
    if len(offsets) != int(count):
        raise ValueError(f"the count is {count}, but {len(offsets)} partitions are listed")
    return offsets


@attrs.frozen(kw_only=True)
class FolderIdentity:
    """The identity of a data directory, with 22-character ids (URL-safe base64), as in Kafka."""

    cluster_id: str
    node_id: int
    directory_id: str


def random_id(rng: random.Random = SYSTEM.rng) -> str:
    """Generate an id in Kafka's text form that cannot be taken for an option (leading dash)."""
    while True:
        text = encode_id(_uuid(rng).bytes)
        if not text.startswith("-"):
            return text


def _uuid(rng: random.Random) -> uuid.UUID:
    return uuid.UUID(bytes=rng.randbytes(16), version=4)


def encode_id(raw: bytes) -> str:
    """Encode the 16 bytes of a UUID in Kafka's text form."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_id(text: str) -> bytes:
    """Decode an id in Kafka's text form to 16 bytes.

    Raises:
        ValueError: the text is not a valid id.
    """
    raw = base64.urlsafe_b64decode(text + "==")
    if len(raw) != 16:
        raise ValueError(f"invalid id {text!r}: expected 22 characters of URL-safe base64")
    return raw


def encode_identity(identity: FolderIdentity) -> bytes:
    """Encode ``meta.properties`` as KRaft writes it (version 1)."""
    return (
        f"#\nversion=1\ncluster.id={identity.cluster_id}\nnode.id={identity.node_id}\n"
        f"directory.id={identity.directory_id}\n"
    ).encode()


def decode_identity(data: bytes, where: str) -> FolderIdentity:
    """Decode ``meta.properties``.

    Raises:
        ConfigError: the version is not supported, or a field is missing or invalid.
    """
    fields = {}
    for line in data.decode(errors="replace").splitlines():
        key, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            fields[key.strip()] = value.strip().replace("\\", "")
    if fields.get("version") != "1":
        raise ConfigError(
            f"{where} has version {fields.get('version')}; only version 1 (KRaft) is supported"
        )
    try:
        return FolderIdentity(
            cluster_id=fields["cluster.id"],
            node_id=int(fields["node.id"]),
            directory_id=fields.get("directory.id", ""),
        )
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{where} does not contain a valid cluster.id and node.id") from error


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """Encode ``partition.metadata``."""
    return f"version: 0\ntopic_id: {encode_id(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> bytes:
    """Decode ``partition.metadata`` to the topic id.

    Raises:
        ValueError: the data is malformed.
    """
    fields = dict(line.split(": ", 1) for line in data.decode().splitlines() if ": " in line)
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise ValueError("expected version 0 and a topic_id")
    return decode_id(fields["topic_id"])


def encode_clean_shutdown() -> bytes:
    """Encode ``.kafka_cleanshutdown`` without a broker epoch, which this broker does not have."""
    return json.dumps({"version": "0", "broker_epoch": "-1"}).encode()


def partition_of(folder: str) -> PartitionKey | None:
    """Return the partition that a directory with this name belongs to; None if there is none."""
    found = _FOLDER.fullmatch(folder)
    if found is None or folder.endswith("-delete") or found[1] == _METADATA_TOPIC:
        return None
    return found[1], int(found[2])


def deleted_name(topic: str, partition: int, rng: random.Random = SYSTEM.rng) -> str:
    """Return a new name for the directory of a deleted partition, which is to be removed."""
    # A directory name has at most 255 bytes, a topic name up to 249.
    return f"{topic[: 255 - 50]}-{partition}.{_uuid(rng).hex}-delete"


def stray_name(topic: str, partition: int, rng: random.Random = SYSTEM.rng) -> str:
    """Return a name under which to keep the directory of a partition that has no topic."""
    return f"{topic[: 255 - 50]}-{partition}.{_uuid(rng).hex}-stray"


def is_deleted_name(folder: str) -> bool:
    """Return whether a directory has the name of a deleted partition and must be removed."""
    return _DELETED.fullmatch(folder) is not None


@attrs.frozen
class Extent:
    """The part of one log that is on disk.

    Attributes:
        topic_id: the topic's 16-byte id; a recreated topic has a different id.
        start_offset: the log start offset.
        end_offset: the recovery point.
        base_offset: the base offset of the segment that contains or starts at the recovery point.
        position: the number of bytes in that segment before the recovery point.
        bytes_before: the total size of the segments before that segment, in bytes.
        leader_epoch: the latest leader epoch.
        aborted_transactions: the number of aborted transactions whose markers are in that part.
        cleaned_to: the offset below which compaction may have left gaps; 0 if nothing was cleaned.
    """

    topic_id: bytes
    start_offset: int
    end_offset: int
    base_offset: int
    position: int
    bytes_before: int
    leader_epoch: int
    aborted_transactions: int = 0
    cleaned_to: int = 0

    @property
    def size(self) -> int:
        """The size of the log before the recovery point, in bytes."""
        return self.bytes_before + self.position


def extent_line(key: PartitionKey, extent: Extent) -> bytes:
    """Encode the line for a partition."""
    line = (
        f"{key[0]} {key[1]} {extent.topic_id.hex()} {extent.start_offset} {extent.end_offset}"
        f" {extent.base_offset} {extent.position} {extent.bytes_before} {extent.leader_epoch}"
    )
    if extent.aborted_transactions or extent.cleaned_to:
        line += f" {extent.aborted_transactions}"
    if extent.cleaned_to:
        line += f" {extent.cleaned_to}"
    return line.encode() + b"\n"


def encode_extents(lines: Iterable[bytes]) -> bytes:
    """Encode the checkpoint file."""
    lines = list(lines)
    body = b"0\n%d\n%b" % (len(lines), b"".join(lines))
    return body + b"crc32c %08x\n" % crc32c(body)


def decode_extents(data: bytes) -> dict[PartitionKey, Extent]:
    """Decode the checkpoint file.

    Raises:
        ValueError: the data is malformed or incomplete; the message contains the byte position.
    """
    end = len(data) - len(b"crc32c 00000000\n")
    body, seal = data[: max(end, 0)], data[max(end, 0) :]
    if seal != b"crc32c %08x\n" % crc32c(body):
        raise ValueError(f"byte {max(end, 0)}: the CRC does not match the bytes before it")
    version, count, *lines = [*body.splitlines(), b"", b""][:-2] or [b"", b""]
    if version != b"0" or count != b"%d" % len(lines):
        raise ValueError("byte 0: expected version 0, a count, and that many lines")
    extents = {}
    for line in lines:
        found = _LINE.fullmatch(line)
        numbers = [int(each) for each in found[4].split()] if found else []
        if found is None or len(numbers) not in (6, 7, 8) or max(numbers) > _OFFSET_MAX:
            raise ValueError(f"byte {data.index(line)}: invalid line {line!r}")
        key = found[1].decode("ascii"), int(found[2])
        extents[key] = Extent(bytes.fromhex(found[3].decode()), *numbers)
    return extents


def identify(
    directory: Directory, node_id: int, cluster_id: str | None, rng: random.Random
) -> FolderIdentity:
    """Return the identity of a data directory, assigning it to this broker if it is new. Blocks.

    Args:
        directory: the data directory.
        node_id: the broker's ``node.id``.
        cluster_id: the expected cluster id; None accepts any id, and generates one for a new
            directory.
        rng: the random generator for ids.

    Raises:
        ConfigError: the directory belongs to another broker or cluster.
        OSError: the directory cannot be read or written.
    """
    where = f"{directory.path or 'memory'}: {META_FILE}"
    try:
        identity = decode_identity(directory.read(META_FILE), where)
    except NotRegularError as error:
        raise ConfigError(
            f"{where} is not a regular file; restore it from a backup, or remove it to start with"
            " a new cluster id"
        ) from error
    except FileNotFoundError:
        identity = FolderIdentity(
            cluster_id=cluster_id or random_id(rng),
            node_id=node_id,
            directory_id=random_id(rng),
        )
        if any(map(partition_of, directory.folders())):
            logger.warning(
                "%s was missing and has been recreated, with cluster id %s",
                where,
                identity.cluster_id,
            )
        directory.replace(META_FILE, encode_identity(identity))
    if identity.node_id != node_id:
        raise ConfigError(
            f"{where} belongs to node.id {identity.node_id}, but this broker has node.id {node_id}"
        )
    if cluster_id is not None and identity.cluster_id != cluster_id:
        raise ConfigError(
            f"{where} belongs to cluster {identity.cluster_id}, but this broker belongs to cluster"
            f" {cluster_id}"
        )
    return identity
