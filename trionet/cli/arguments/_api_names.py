"""Kafka APIs by name or key, as given on a command line."""

from __future__ import annotations

import difflib
from typing import Final

from trionet.errors import ConfigError
from trionet.protocol.messages.registry import APIS

# Least similarity of a suggested name, from 0 to 1.
_SIMILARITY_MIN: Final = 0.6


def api_name(key: int) -> str:
    """Return the name of a supported API."""
    return APIS[key][1]


def api_key(name: str, hint: str) -> int:
    """Resolve an API name or key to its key.

    Args:
        name: its name, in any case, or its key.
        hint: ends the error message when no known name is similar.

    Raises:
        ConfigError: the API is unknown.
    """
    keys = {row[1].lower(): key for key, row in APIS.items()}
    key = int(name) if name.isdecimal() else keys.get(name.lower(), -1)
    if key in APIS:
        return key
    near = difflib.get_close_matches(name.lower(), keys, 1, _SIMILARITY_MIN)
    suggestion = f"did you mean {api_name(keys[near[0]])}?" if near else hint
    raise ConfigError(f"{name}: unknown API; {suggestion}")
