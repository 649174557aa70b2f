"""Reads the identity of a data directory, or assigns one to a new data directory."""

from __future__ import annotations

import logging
import random

from ....errors import ConfigError
from ..files._checkpoint_files import (
    META_FILE,
    FolderIdentity,
    decode_identity,
    encode_identity,
    partition_of,
    random_id,
)
from ..files._directory import Directory

logger = logging.getLogger("trionet.broker.log")


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
