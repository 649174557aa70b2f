"""Parses config resources such as ``topic orders``, ``broker 1`` and ``logger 1``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trionet.errors import ConfigError

from ..arguments._numbers import INT32_MAX, is_natural

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._configs import ConfigResource, ConfigResourceType

#: Kafka's names for resource types, keyed by the words used on the command line.
TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "topic": "TOPIC",
        "broker": "BROKER",
        "logger": "BROKER_LOGGER",
        "group": "GROUP",
        "client-metrics": "CLIENT_METRICS",
    }
)
#: The name for the defaults of all brokers, used in place of a broker id.
DEFAULT: Final = "default"


def add_resource_arguments(parser: argparse.ArgumentParser, names: str, without: str) -> None:
    """Add the arguments for the type and the names of resources.

    Args:
        parser: the parser of the command.
        names: the ``nargs`` of the names, ``*`` or ``+``.
        without: ends the help text of the names; says what omitting them means.
    """
    parser.add_argument("type", metavar="TYPE", choices=TYPES, help=f"one of {', '.join(TYPES)}")
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs=names,
        help="names of topics, groups or client metrics subscriptions; broker ids for brokers and "
        f"loggers, '{DEFAULT}' for the defaults of all brokers{without}",
    )


def resource_type(word: str) -> ConfigResourceType:
    """Return Kafka's resource type for a command-line word."""
    from trionet.client.admin._configs import ConfigResourceType

    return ConfigResourceType[TYPES[word]]


def type_word(type: ConfigResourceType) -> str:
    """Return the command-line word for a Kafka resource type."""
    words = {name: word for word, name in TYPES.items()}
    return words.get(type.name, type.name.lower())


def resources(arguments: argparse.Namespace) -> list[ConfigResource]:
    """Return the given resources without duplicates.

    Raises:
        ConfigError: a broker id is not a number.
    """
    from trionet.client.admin._configs import ConfigResource

    kind = resource_type(arguments.type)
    found = []
    for name in dict.fromkeys(arguments.names):
        text = "" if arguments.type == "broker" and name == DEFAULT else name
        is_id = is_natural(text, INT32_MAX)
        if arguments.type in {"broker", "logger"} and text and not is_id:
            raise ConfigError(
                f"invalid broker {name!r}: expected a broker id"
                + (f", or '{DEFAULT}' for all brokers" if arguments.type == "broker" else "")
            )
        found.append(ConfigResource(kind, text))
    return found


async def all_resources(arguments: argparse.Namespace, admin: Admin) -> list[ConfigResource]:
    """Return all resources of the given type in the cluster.

    Raises:
        TrionetError: the resources could not be listed.
    """
    from trionet.client.admin._configs import ConfigResource

    kind = resource_type(arguments.type)
    if arguments.type == "topic":
        names = sorted(await admin.list_topics())
    elif arguments.type in {"broker", "logger"}:
        names = [str(id) for id in sorted(await admin.nodes())]
    else:
        names = sorted(each.name for each in await admin.list_config_resources([kind]))
    return [ConfigResource(kind, name) for name in names]


def shown_name(resource: ConfigResource) -> str:
    """Return the name of a resource as written on a command line."""
    return resource.name or DEFAULT
