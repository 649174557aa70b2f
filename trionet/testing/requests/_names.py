"""Resolves the APIs and errors that tests give by Kafka's names or numbers.

An unknown name raises an error that suggests the closest name. Otherwise, a fault with a misspelled
name would never apply, and the test would pass without testing anything.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

from ...protocol import error_codes
from ...protocol.messages.registry import APIS

KEYS = {row[1]: key for key, row in APIS.items()}

ERRORS = {
    name: code
    for name, code in vars(error_codes).items()
    if name.isupper() and isinstance(code, int) and code != error_codes.NONE
}

# Former names of errors in Kafka and its clients.
_OLDER_NAMES: Final = {
    "NOT_LEADER_FOR_PARTITION": "NOT_LEADER_OR_FOLLOWER",
    "GROUP_LOAD_IN_PROGRESS": "COORDINATOR_LOAD_IN_PROGRESS",
    "GROUP_COORDINATOR_NOT_AVAILABLE": "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR_FOR_GROUP": "NOT_COORDINATOR",
}
# How similar a name has to be to be suggested, from 0 to 1.
_NEAR: Final = 0.6

ApiName = str | int
"""An API by Kafka's name, such as ``"Produce"``, or by its key."""

ErrorName = str | int
"""An error by Kafka's name, such as ``"NOT_LEADER_OR_FOLLOWER"``, or by its code."""


def api_key(api: ApiName) -> int:
    """Return the key of an API.

    Raises:
        ValueError: the API is unknown.
    """
    if isinstance(api, int):
        if api in APIS:
            return api
        raise ValueError(f"unknown API key {api}; allowed: {min(APIS)} to {max(APIS)}, with gaps")
    if api not in KEYS:
        raise ValueError(f"unknown API {api!r}{_suggestion(api, KEYS)}")
    return KEYS[api]


def error_code(error: ErrorName) -> int:
    """Return the code of an error.

    Raises:
        ValueError: the error is unknown, or is NONE.
    """
    if isinstance(error, int):
        if error in ERRORS.values():
            return error
        raise ValueError(f"unknown error code {error}")
    error = _OLDER_NAMES.get(error, error)
    if error not in ERRORS:
        raise ValueError(f"unknown error {error!r}{_suggestion(error, ERRORS)}")
    return ERRORS[error]


def _suggestion(name: str, known: Iterable[str]) -> str:
    folded = {each.lower().replace("_", ""): each for each in known}
    wanted = str(name).lower().replace("_", "")
    found = difflib.get_close_matches(wanted, folded, n=1, cutoff=_NEAR)
    return f"; did you mean {folded[found[0]]}?" if found else ""
