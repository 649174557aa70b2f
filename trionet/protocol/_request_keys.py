"""From the class of a request to its API."""

# Compiled by mypyc.

from __future__ import annotations

from typing import Final

from trionet.protocol._wire import Message
from trionet.protocol.messages.registry import APIS

#: The API key of each request, by the name of its class.
REQUEST_KEYS: Final = {f"{row[1]}Request": key for key, row in APIS.items()}


def api_key_of(request: Message) -> int:
    """The API that a request belongs to.

    Raises:
        ValueError: it is no request.
    """
    name = type(request).__name__
    if name not in REQUEST_KEYS:
        raise ValueError(f"{name} is no request")
    return REQUEST_KEYS[name]
