"""Implements the logger ``trionet.request``, which logs requests as lines of JSON at level DEBUG.

(Kafka: kafka.request.logger, RequestChannel.loggableRequest.) Each request is logged as one line
after it is decoded. To hide secrets, byte strings are replaced by their length, and the value of a
setting is redacted unless its key is known to be harmless.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from ..._util._logging import get_logger
from ...errors import ConfigError
from ...protocol import api_keys
from ...protocol._config_types import HIDDEN, PASSWORD
from ...protocol._wire import Message
from ...server._connection import Connection
from ..config._alterations import BROKER, BROKER_LOGGER, TOPIC
from ..config._broker_config import find_key
from ..config._topic_keys import TOPIC_KEYS
from ._call import Call

logger = get_logger("trionet.request")

_WITH_CONFIGURATIONS = (api_keys.ALTER_CONFIGS, api_keys.INCREMENTAL_ALTER_CONFIGS)


def log_request(call: Call, message: Any) -> None:
    """Log a request before it is handled."""
    logger.debug("%s", as_json(call, message))


def as_json(call: Call, message: Any) -> str:
    """Return a request and its origin as a line of JSON, with Kafka's field names."""
    request, codec = call.request, call.codec
    connection: Connection = request.channel.attachment
    software_name, software_version = connection.client_software
    return json.dumps(
        {
            "requestHeader": {
                "requestApiKey": codec.api_key,
                "requestApiKeyName": api_keys.name_of(codec.api_key),
                "requestApiVersion": codec.version,
                "correlationId": call.correlation_id,
                "clientId": call.client_id,
            },
            "request": _plain(loggable(codec.api_key, message)),
            "connection": request.connection_id,
            "listener": request.listener_name,
            "securityProtocol": str(request.security_protocol),
            "principal": str(request.principal),
            "clientInformation": {
                "softwareName": software_name,
                "softwareVersion": software_version,
            },
        }
    )


def loggable(api_key: int, message: Any) -> Any:
    """Return the message, or a copy in which potential secrets are redacted."""
    if api_key not in _WITH_CONFIGURATIONS:
        return message
    shown = copy.copy(message)
    shown.resources = []
    for resource in message.resources:
        of_resource = copy.copy(resource)
        of_resource.configs = [
            _without_secret(resource.resource_type, config) for config in resource.configs
        ]
        shown.resources.append(of_resource)
    return shown


def _without_secret(resource_type: int, config: Any) -> Any:
    if is_harmless(resource_type, config.name):
        return config
    hidden = copy.copy(config)
    hidden.value = HIDDEN
    return hidden


def is_harmless(resource_type: int, key: str) -> bool:
    """Return whether a setting's value may be logged; always False if the key is unknown."""
    if resource_type == BROKER:
        try:
            return find_key(key)[1] != PASSWORD
        except ConfigError:
            return False
    return resource_type == BROKER_LOGGER or (resource_type == TOPIC and key in TOPIC_KEYS)


def _plain(value: Any) -> Any:
    """Return a message as values that JSON can encode."""
    if isinstance(value, Message):
        return {
            _kafka_name(name): _plain(getattr(value, name))
            for name in value.__slots__
            if name != "unknown_tags"
        }
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<{len(value)} bytes>"
    return value


def _kafka_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
