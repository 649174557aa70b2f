"""Ties a results folder to one checkpoint: with another, its records would be counted twice."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from trionet.errors import ConfigError

from ._closing import Outputs
from ._storage import Storage

_OF_FOLDER: Final = "_results_of"
_OF_CHECKPOINT: Final = "trionet/id"


def claim(storage: Storage, outputs: Outputs) -> None:
    """Claim the folder for this checkpoint, or verify that it is claimed already.

    Raises:
        ConfigError: the folder has results of another checkpoint.
    """
    owner = f"{outputs.folder.rstrip('/')}/{_OF_FOLDER}"
    own = f"{outputs.checkpoint.rstrip('/')}/{_OF_CHECKPOINT}"
    owners = storage.text(owner)
    name = storage.text(own)
    if owners and owners != name:
        raise ConfigError(
            f"{outputs.folder} has results of another checkpoint than {outputs.checkpoint}: give that"
            " checkpoint, or another folder"
        )
    if not name:
        name = uuid4().hex
        storage.write(own, name)
    if not owners:
        storage.write(owner, name)
