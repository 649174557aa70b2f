"""APIs as people name them on a command line."""

from __future__ import annotations

import difflib
from typing import Final

from trionet.errors import ConfigError
from trionet.protocol.messages.registry import APIS

# How much alike a name has to be to be suggested, from 0 to 1.
_NEAR: Final = 0.6


def api_name(key: int) -> str:
    """The name of an API that is known here."""
    return APIS[key][1]


def api_key(name: str, hint: str) -> int:
    """The key of an API.

    Args:
        name: its name, in any case, or its key.
        hint: what to say of a name that is like no other one.

    Raises:
        ConfigError: it is not known.
    """
    keys = {row[1].lower(): key for key, row in APIS.items()}
    key = int(name) if name.isdecimal() else keys.get(name.lower(), -1)
    if key in APIS:
        return key
    near = difflib.get_close_matches(name.lower(), keys, 1, _NEAR)
    known = f"did you mean {api_name(keys[near[0]])}?" if near else hint
    raise ConfigError(f"{name}: no API that is known here; {known}")
