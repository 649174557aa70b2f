"""Results belong to one checkpoint: with another, what is in the folder would be counted twice."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from trionet.errors import ConfigError

from ._closing import Places
from ._storage import Storage

_OF_FOLDER: Final = "_results_of"
_OF_CHECKPOINT: Final = "trionet/id"


def claim(storage: Storage, places: Places) -> None:
    """Make the folder this checkpoint's, or find that it is.

    Raises:
        ConfigError: the folder has results of another checkpoint.
    """
    owner = f"{places.folder.rstrip('/')}/{_OF_FOLDER}"
    own = f"{places.checkpoint.rstrip('/')}/{_OF_CHECKPOINT}"
    owners = storage.text(owner)
    name = storage.text(own)
    if owners and owners != name:
        raise ConfigError(
            f"{places.folder} has results of another checkpoint than {places.checkpoint}: name that"
            " checkpoint, or another folder"
        )
    if not name:
        name = uuid4().hex
        storage.write(own, name)
    if not owners:
        storage.write(owner, name)
