"""The small text files of a data folder, byte for byte as Kafka reads and writes them.

* checkpoints: a version (0), a count, and ``topic partition offset`` a line
  (``recovery-point-offset-checkpoint``, ``log-start-offset-checkpoint``);
* ``meta.properties``: who owns the folder;
* ``partition.metadata``: the topic's id, in each partition's folder;
* ``.kafka_cleanshutdown``: the last stop was clean.
"""

from __future__ import annotations

import base64
import json
import random
import re
import uuid
from collections.abc import Mapping

import attrs

from ....errors import ConfigError
from ....net._network import SYSTEM

RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
START_OFFSET_FILE = "log-start-offset-checkpoint"
META_FILE = "meta.properties"
CLEAN_STOP_FILE = ".kafka_cleanshutdown"
PARTITION_FILE = "partition.metadata"

PartitionKey = tuple[str, int]

_ENTRY = re.compile(r"(\S+) (\d+) (-?\d+)")
_PARTITION_MAX = 2**31 - 1
_OFFSET_MAX = 2**63 - 1
_FOLDER = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")
_DELETED = re.compile(r".+\.[0-9a-f]{32}-delete")
# KRaft keeps its own log there; it is no topic of ours.
_METADATA_TOPIC = "__cluster_metadata"


def encode_offsets(offsets: Mapping[PartitionKey, int]) -> bytes:
    """A checkpoint file of one offset per partition."""
    lines = ["0", str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return ("\n".join(lines) + "\n").encode()


def decode_offsets(data: bytes) -> dict[PartitionKey, int]:
    """Read a checkpoint file back.

    Raises:
        ValueError: it is not one, or not whole.
    """
    version, count, *lines = data.decode().splitlines() + [""] * (2 - data.count(b"\n"))
    if version != "0" or not count.isdigit():
        raise ValueError(
            f"it starts with {version!r} and {count!r}, not with version 0 and a count"
        )
    offsets = {}
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry is None:
            raise ValueError(f"{line!r} is no topic, partition and offset")
        partition, offset = int(entry[2]), int(entry[3])
        if partition > _PARTITION_MAX or abs(offset) > _OFFSET_MAX:
            raise ValueError(
                f"{line!r} is beyond partition {_PARTITION_MAX} or offset {_OFFSET_MAX}"
            )
        offsets[entry[1], partition] = offset
    if len(offsets) != int(count):
        raise ValueError(f"it announces {count} partitions and names {len(offsets)}")
    return offsets


@attrs.frozen(kw_only=True)
class FolderIdentity:
    """Who a data folder belongs to; ids are 22 characters of URL-safe base64, as Kafka's."""

    cluster_id: str
    node_id: int
    directory_id: str


def random_id(chance: random.Random = SYSTEM.chance) -> str:
    """A new id in Kafka's spelling; never one that starts with a dash, which shells take amiss."""
    while True:
        text = encode_id(_uuid(chance).bytes)
        if not text.startswith("-"):
            return text


def _uuid(chance: random.Random) -> uuid.UUID:
    return uuid.UUID(bytes=chance.randbytes(16), version=4)


def encode_id(raw: bytes) -> str:
    """16 bytes as Kafka prints a uuid."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode_id(text: str) -> bytes:
    """The 16 bytes of an id as Kafka prints it.

    Raises:
        ValueError: it is none.
    """
    raw = base64.urlsafe_b64decode(text + "==")
    if len(raw) != 16:
        raise ValueError(f"{text!r} is no id of 16 bytes")
    return raw


def encode_identity(identity: FolderIdentity) -> bytes:
    """``meta.properties`` as KRaft writes it (version 1)."""
    return (
        f"#\nversion=1\ncluster.id={identity.cluster_id}\nnode.id={identity.node_id}\n"
        f"directory.id={identity.directory_id}\n"
    ).encode()


def decode_identity(data: bytes, where: str) -> FolderIdentity:
    """Read ``meta.properties``.

    Raises:
        ConfigError: it is of another version, or a field is missing.
    """
    fields = {}
    for line in data.decode(errors="replace").splitlines():
        key, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            fields[key.strip()] = value.strip().replace("\\", "")
    if fields.get("version") != "1":
        raise ConfigError(
            f"{where} has version {fields.get('version')}; only folders of KRaft brokers "
            "(version 1) can be opened"
        )
    try:
        return FolderIdentity(
            cluster_id=fields["cluster.id"],
            node_id=int(fields["node.id"]),
            directory_id=fields.get("directory.id", ""),
        )
    except (KeyError, ValueError) as error:
        raise ConfigError(f"{where} lacks a valid cluster.id or node.id") from error


def encode_partition_metadata(topic_id: bytes) -> bytes:
    """``partition.metadata``."""
    return f"version: 0\ntopic_id: {encode_id(topic_id)}".encode()


def decode_partition_metadata(data: bytes) -> bytes:
    """The topic id in ``partition.metadata``.

    Raises:
        ValueError: it holds none.
    """
    fields = dict(line.split(": ", 1) for line in data.decode().splitlines() if ": " in line)
    if fields.get("version") != "0" or "topic_id" not in fields:
        raise ValueError("version 0 and a topic_id were expected")
    return decode_id(fields["topic_id"])


def encode_clean_stop() -> bytes:
    """``.kafka_cleanshutdown``; there are no broker epochs on one node."""
    return json.dumps({"version": "0", "broker_epoch": "-1"}).encode()


def partition_of(folder: str) -> PartitionKey | None:
    """The partition whose folder has this name; None if it is not a partition's."""
    found = _FOLDER.fullmatch(folder)
    if found is None or folder.endswith("-delete") or found[1] == _METADATA_TOPIC:
        return None
    return found[1], int(found[2])


def deleted_name(topic: str, partition: int, chance: random.Random = SYSTEM.chance) -> str:
    """What a deleted partition's folder is called until it is gone."""
    # A folder name has at most 255 bytes, a topic's name up to 249 of them.
    return f"{topic[: 255 - 50]}-{partition}.{_uuid(chance).hex}-delete"


def stray_name(topic: str, partition: int, chance: random.Random = SYSTEM.chance) -> str:
    """What the folder of a partition without a topic is called; it is never removed."""
    return f"{topic[: 255 - 50]}-{partition}.{_uuid(chance).hex}-stray"


def is_deleted_name(folder: str) -> bool:
    """Whether a folder waits for its removal."""
    return _DELETED.fullmatch(folder) is not None
