"""``trionet configs``: settings of topics, brokers, groups and client metrics in a cluster.

:mod:`.access` has the subcommands for ACLs, quotas and users.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trionet.errors import ConfigError

from .access import _acls, _quotas, _users
from .arguments._parser import Argument, Subcommands, argument, flag, option, repeatable
from .arguments._values import (
    CHANGES,
    DRY_RUN,
    INT32_MAX,
    Changes,
    change_labels,
    changes,
    is_natural,
    split_names,
)
from .clients._admin import ADMIN_ARGUMENTS, run_with_admin, with_admin_after
from .terminal._output import Table, write, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._configs import ConfigEntry, ConfigResource, ConfigResourceType

COMMANDS: Final = Subcommands()

#: Kafka's names for resource types, keyed by the words used on the command line.
_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "topic": "TOPIC",
        "broker": "BROKER",
        "logger": "BROKER_LOGGER",
        "group": "GROUP",
        "client-metrics": "CLIENT_METRICS",
    }
)
#: The name for the defaults of all brokers, used in place of a broker id.
_DEFAULT: Final = "default"


def _resource_arguments(names: str, without: str) -> tuple[Argument, Argument]:
    """Return the arguments for the type and the names of resources.

    Args:
        names: the ``nargs`` of the names, ``*`` or ``+``.
        without: ends the help text of the names; says what omitting them means.
    """
    return (
        argument("type", "TYPE", f"one of {', '.join(_TYPES)}", choices=_TYPES),
        argument(
            "names",
            "NAME",
            "names of topics, groups or client metrics subscriptions; broker ids for brokers "
            f"and loggers, '{_DEFAULT}' for the defaults of all brokers{without}",
            nargs=names,
        ),
    )


def _resource_type(word: str) -> ConfigResourceType:
    """Return Kafka's resource type for a command-line word."""
    from trionet.client.admin._configs import ConfigResourceType

    return ConfigResourceType[_TYPES[word]]


def _type_word(type: ConfigResourceType) -> str:
    """Return the command-line word for a Kafka resource type."""
    words = {name: word for word, name in _TYPES.items()}
    return words.get(type.name, type.name.lower())


def _resources(arguments: Namespace) -> list[ConfigResource]:
    """Return the given resources without duplicates.

    Raises:
        ConfigError: a broker id is not a number.
    """
    from trionet.client.admin._configs import ConfigResource

    kind = _resource_type(arguments.type)
    found = []
    for name in dict.fromkeys(arguments.names):
        text = "" if arguments.type == "broker" and name == _DEFAULT else name
        is_id = is_natural(text, INT32_MAX)
        if arguments.type in {"broker", "logger"} and text and not is_id:
            raise ConfigError(
                f"invalid broker {name!r}: expected a broker id"
                + (f", or '{_DEFAULT}' for all brokers" if arguments.type == "broker" else "")
            )
        found.append(ConfigResource(kind, text))
    return found


async def _all_resources(arguments: Namespace, admin: Admin) -> list[ConfigResource]:
    """Return all resources of the given type in the cluster.

    Raises:
        TrionetError: the resources could not be listed.
    """
    from trionet.client.admin._configs import ConfigResource

    kind = _resource_type(arguments.type)
    if arguments.type == "topic":
        names = sorted(await admin.list_topics())
    elif arguments.type in {"broker", "logger"}:
        names = [str(id) for id in sorted(await admin.nodes())]
    else:
        names = sorted(each.name for each in await admin.list_config_resources([kind]))
    return [ConfigResource(kind, name) for name in names]


def _shown_name(resource: ConfigResource) -> str:
    """Return the name of a resource as written on a command line."""
    return resource.name or _DEFAULT


@COMMANDS.command(
    "list",
    "list the resources that have their own settings",
    argument("types", "TYPE", f"only these types: {', '.join(_TYPES)}", nargs="*"),
    *ADMIN_ARGUMENTS,
    description="List the resources that have their own settings. Requires Kafka 4.1 or newer.",
)
def _run_list(arguments: Namespace) -> int:
    """Run the command and return the exit status 0."""
    for word in arguments.types:
        if word not in _TYPES:
            raise ConfigError(f"unknown type {word!r}; allowed: {', '.join(_TYPES)}")
    return run_with_admin(arguments, partial(_list, arguments))


async def _list(arguments: Namespace, admin: Admin) -> int:
    types = [_resource_type(word) for word in arguments.types]
    found = await admin.list_config_resources(types or None)
    rows = sorted((_type_word(each.type), _shown_name(each)) for each in found)
    write(arguments.format, Table(("type", "name"), rows))
    return 0


@COMMANDS.command(
    "describe",
    "show settings of topics, brokers, loggers, groups, client metrics",
    *_resource_arguments("*", " (default: all)"),
    flag("-a, --all", "include settings that have their default"),
    repeatable("-k, --keys KEY,...", "only these settings, including those with their default"),
    flag("--synonyms", "include where each value was looked up, in order"),
    flag("--documentation", "include each setting's documentation, if the broker provides it"),
    *ADMIN_ARGUMENTS,
)
@with_admin_after(_resources)
async def _describe(arguments: Namespace, named: list[ConfigResource], admin: Admin) -> int:
    keys = split_names(arguments.keys)
    results = await admin.describe_configs(
        named or await _all_resources(arguments, admin),
        keys=keys or None,
        include_synonyms=arguments.synonyms,
        include_documentation=arguments.documentation,
    )
    rows = [
        _row(arguments, resource, entry)
        for resource, entries in results.items()
        if isinstance(entries, dict)
        for _, entry in sorted(entries.items())
        if keys or arguments.all or not entry.is_default
    ]
    fields = ["name", "key", "value", "source", "read_only", "sensitive", "type"]
    fields += ["synonyms"] if arguments.synonyms else []
    fields += ["documentation"] if arguments.documentation else []
    table = Table(fields, rows)
    errors = results.errors.values()
    return write_results(arguments, _for_people(table), errors, table.documents(), as_csv=table)


def _row(arguments: Namespace, resource: ConfigResource, entry: ConfigEntry) -> list[Any]:
    row: list[Any] = [
        _shown_name(resource),
        entry.name,
        entry.value,
        entry.source.name,
        entry.is_read_only,
        entry.is_sensitive,
        entry.type.name,
    ]
    if arguments.synonyms:
        row.append([f"{each.source.name}:{each.name}={each.value}" for each in entry.synonyms])
    if arguments.documentation:
        row.append(entry.documentation)
    return row


def _for_people(table: Table) -> Table:
    """Return the table for the text form, with secrets marked as hidden and fewer columns."""
    rows = [
        [row[0], row[1], "(hidden)" if row[5] and row[2] is None else row[2], row[3], *row[7:]]
        for row in table.rows
    ]
    return Table([*table.fields[:4], *table.fields[7:]], rows)


@COMMANDS.command(
    "alter",
    "change settings of topics, brokers, loggers, groups, client metrics",
    *_resource_arguments("+", ""),
    *CHANGES,
    option("-f, --set-file FILE", "set the settings in this properties file"),
    DRY_RUN,
    *ADMIN_ARGUMENTS,
    description="Change the given settings and leave the others. Logger levels are FATAL, ERROR, "
    "WARN, INFO, DEBUG and TRACE.",
)
def _run_alter(arguments: Namespace) -> int:
    """Run the command and return the exit status: 0 if all were changed, 1 if some were not."""
    requested = changes(arguments)
    if arguments.set_file is not None:
        from trionet.broker.config._properties import read_properties

        # Options override the file.
        requested = {**read_properties(arguments.set_file), **requested}
    if not requested:
        raise ConfigError(
            "nothing to change: use --set, --delete, --append, --subtract or --set-file"
        )
    return run_with_admin(arguments, partial(_alter, arguments, _resources(arguments), requested))


async def _alter(
    arguments: Namespace, named: list[ConfigResource], requested: Changes, admin: Admin
) -> int:
    results = await admin.incremental_alter_configs(
        dict.fromkeys(named, requested), validate_only=arguments.dry_run
    )
    changed = change_labels(requested)
    rows = [(_shown_name(each), changed) for each, error in results.items() if error is None]
    table = Table(("name", "changed"), rows)
    return write_results(arguments, table, results.errors.values())


COMMANDS.add_nested("quotas", "show and change client quotas", _quotas.COMMANDS)
COMMANDS.add_nested("users", "show and change SCRAM credentials", _users.COMMANDS)
COMMANDS.add_nested("acls", "show and change access control lists", _acls.COMMANDS)
