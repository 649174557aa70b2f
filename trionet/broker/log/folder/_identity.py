"""Who a data folder belongs to: read, or written when it is new."""

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
    directory: Directory, node_id: int, cluster_id: str | None, chance: random.Random
) -> FolderIdentity:
    """Whose the folder is; one without ``meta.properties`` becomes this broker's. Blocks.

    Args:
        directory: the folder.
        node_id: the broker's ``node.id``.
        cluster_id: what its cluster id has to be; any by default, a random one if new.
        chance: what ids are drawn from.

    Raises:
        ConfigError: it belongs to another broker.
        OSError: it cannot be read or written.
    """
    where = f"{directory.path or 'memory'}: {META_FILE}"
    try:
        identity = decode_identity(directory.read(META_FILE), where)
    except FileNotFoundError:
        identity = FolderIdentity(
            cluster_id=cluster_id or random_id(chance),
            node_id=node_id,
            directory_id=random_id(chance),
        )
        if any(map(partition_of, directory.folders())):
            logger.warning(
                "%s is missing, and made again: the cluster has another id now, %s",
                where,
                identity.cluster_id,
            )
        directory.replace(META_FILE, encode_identity(identity))
    if identity.node_id != node_id:
        raise ConfigError(f"{where} is of node.id {identity.node_id}, this broker's is {node_id}")
    if cluster_id is not None and identity.cluster_id != cluster_id:
        raise ConfigError(
            f"{where} is of the cluster {identity.cluster_id}, this broker's is {cluster_id}"
        )
    return identity
