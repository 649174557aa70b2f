"""Whose data folder it is: asked before anything in it is changed."""

from __future__ import annotations

import os

from ..errors import ConfigError
from .database import DATABASE_NAME
from .log.checkpoints import partition_of


def check_ownership(path: str) -> None:
    """Refuse partitions that no database of ours speaks of: all would be taken for deleted.

    Raises:
        ConfigError: the folder is a real Kafka's, or has lost its database.
    """
    names = os.listdir(path)
    partitions = [name for name in names if partition_of(name) is not None]
    if partitions and DATABASE_NAME not in names:
        raise ConfigError(
            f"{path} holds {len(partitions)} partitions, such as {min(partitions)}, and no"
            f" {DATABASE_NAME}: it is another broker's, or has lost its database; use an empty"
            " folder, or put the database back"
        )
