"""What has settings, as a command line names it: ``topic orders``, ``broker 1``, ``logger 1``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from trionet.errors import ConfigError

from ..arguments._numbers import INT32_MAX, is_natural

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin.topics._configs import ConfigResource, ConfigResourceType

#: The word of a command line, and Kafka's name of it.
TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "topic": "TOPIC",
        "broker": "BROKER",
        "logger": "BROKER_LOGGER",
        "group": "GROUP",
        "client-metrics": "CLIENT_METRICS",
    }
)
#: In place of a broker's id: what holds for all brokers (Kafka: ``--entity-default``).
DEFAULT: Final = "default"


def add_resource_arguments(parser: argparse.ArgumentParser, names: str, without: str) -> None:
    """Describe the type and the names; ``names`` is how many: ``*`` or ``+``."""
    parser.add_argument("type", metavar="TYPE", choices=TYPES, help=f"one of {', '.join(TYPES)}")
    parser.add_argument(
        "names",
        metavar="NAME",
        nargs=names,
        help="names of topics, groups or subscriptions; ids of brokers, of which loggers are, too; "
        f"'{DEFAULT}' for what holds for all brokers{without}",
    )


def resource_type(word: str) -> ConfigResourceType:
    """Kafka's type."""
    from trionet.client.admin.topics._configs import ConfigResourceType

    return ConfigResourceType[TYPES[word]]


def type_word(type: ConfigResourceType) -> str:
    """The word for one of Kafka's types."""
    words = {name: word for word, name in TYPES.items()}
    return words.get(type.name, type.name.lower())


def resources(arguments: argparse.Namespace) -> list[ConfigResource]:
    """What was named, each once.

    Raises:
        ConfigError: a broker's id is none.
    """
    from trionet.client.admin.topics._configs import ConfigResource

    kind = resource_type(arguments.type)
    found = []
    for name in dict.fromkeys(arguments.names):
        text = "" if arguments.type == "broker" and name == DEFAULT else name
        is_id = is_natural(text, INT32_MAX)
        if arguments.type in {"broker", "logger"} and text and not is_id:
            raise ConfigError(
                f"{name!r} is no broker; allowed: a broker's id"
                + (f", or '{DEFAULT}' for all of them" if arguments.type == "broker" else "")
            )
        found.append(ConfigResource(kind, text))
    return found


async def all_resources(arguments: argparse.Namespace, admin: Admin) -> list[ConfigResource]:
    """All of a type that the cluster has.

    Raises:
        TrionetError: they could not be listed.
    """
    from trionet.client.admin.topics._configs import ConfigResource

    kind = resource_type(arguments.type)
    if arguments.type == "topic":
        names = sorted(await admin.list_topics())
    elif arguments.type in {"broker", "logger"}:
        names = [str(id) for id in sorted(await admin.nodes())]
    else:
        names = sorted(each.name for each in await admin.list_config_resources([kind]))
    return [ConfigResource(kind, name) for name in names]


def shown_name(resource: ConfigResource) -> str:
    """As a command line names it."""
    return resource.name or DEFAULT
