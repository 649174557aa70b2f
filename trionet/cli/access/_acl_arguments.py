"""Parses ACLs on the command line, with the options of kafka-acls and rpk."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from trionet.errors import ConfigError

from ..terminal._output import Table

if TYPE_CHECKING:
    from trionet.client.admin._access import AclBinding, AclFilter, PatternType, ResourceType
    from trionet.client.admin._conversions import AclOperation


#: Kafka's name for the resource that stands for the cluster.
CLUSTER: Final = "kafka-cluster"
PATTERNS: Final = ("literal", "prefixed")
FILTER_PATTERNS: Final = (*PATTERNS, "any", "match")
# Option and Kafka resource type.
_RESOURCES: Final = (
    ("--topic", "TOPIC"),
    ("--group", "GROUP"),
    ("--transactional-id", "TRANSACTIONAL_ID"),
    ("--delegation-token", "DELEGATION_TOKEN"),
    ("--user-principal", "USER"),
)
FIELDS: Final = (
    "resource",
    "name",
    "pattern",
    "principal",
    "host",
    "operation",
    "permission",
)


def add_acl_arguments(parser: argparse.ArgumentParser, *, is_filter: bool) -> None:
    """Add the options for principals, hosts, operations and resources."""
    repeatable: dict[str, Any] = {"action": "append", "default": [], "metavar": "NAME"}
    parser.add_argument(
        "--allow-principal",
        **repeatable,
        help="allow this principal, such as User:alice, or User:* for all",
    )
    parser.add_argument("--deny-principal", **repeatable, help="deny this principal")
    parser.add_argument("--allow-host", **repeatable, help="allow from this host (default: any)")
    parser.add_argument("--deny-host", **repeatable, help="deny from this host (default: any)")
    parser.add_argument(
        "-o",
        "--operation",
        **repeatable,
        help="such as read, write, create, delete, alter, describe, describe_configs or all"
        + (" (default: any)" if is_filter else " (default: all)"),
    )
    for option, kind in _RESOURCES:
        name = kind.lower().replace("_", " ")
        name = "user, for the delegation tokens of that user" if kind == "USER" else name
        parser.add_argument(option, **repeatable, help=f"apply to this {name}; * for all")
    parser.add_argument("--cluster", action="store_true", help="apply to the cluster")
    parser.add_argument(
        "--resource-pattern-type",
        "--pattern",
        dest="pattern",
        choices=FILTER_PATTERNS if is_filter else PATTERNS,
        default="any" if is_filter else PATTERNS[0],
        help="whether resource names are literal or prefixes"
        + ("; match selects all that apply to a resource of this name" if is_filter else ""),
    )


def bindings(arguments: argparse.Namespace) -> list[AclBinding]:
    """Return the ACLs to create: the product of principals, hosts, operations and resources.

    Raises:
        ConfigError: no resource or principal is given, a host is given without a principal, or an
            operation is unknown.
    """
    from trionet.client.admin._access import AclBinding, AclPermission

    named = list(_resources(arguments))
    if not named:
        raise ConfigError(
            "no resource given: use --topic, --group, --cluster or another resource option"
        )
    if not (arguments.allow_principal or arguments.deny_principal):
        raise ConfigError("no principal given: use --allow-principal or --deny-principal")
    if arguments.allow_host and not arguments.allow_principal:
        raise ConfigError("--allow-host requires --allow-principal")
    if arguments.deny_host and not arguments.deny_principal:
        raise ConfigError("--deny-host requires --deny-principal")
    pattern = _pattern(arguments)
    return [
        AclBinding(
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern,
            principal=_principal(principal),
            host=host,
            operation=operation,
            permission=permission,
        )
        for permission, principals, hosts in (
            (AclPermission.ALLOW, arguments.allow_principal, arguments.allow_host),
            (AclPermission.DENY, arguments.deny_principal, arguments.deny_host),
        )
        for (kind, name), operation, principal, host in product(
            named, _operations(arguments) or _operations_of("all"), principals, hosts or ["*"]
        )
    ]


def filters(arguments: argparse.Namespace) -> list[AclFilter]:
    """Return filters that match the selected ACLs. An omitted option matches anything.

    Raises:
        ConfigError: an operation is unknown.
    """
    from trionet.client.admin._access import AclFilter, AclPermission, ResourceType
    from trionet.client.admin._conversions import AclOperation

    anything: list[Any] = [(ResourceType.ANY, None)]
    both = (
        (AclPermission.ALLOW, arguments.allow_principal, arguments.allow_host),
        (AclPermission.DENY, arguments.deny_principal, arguments.deny_host),
    )
    permissions = [
        (permission, principals or [None], hosts or [None])
        for permission, principals, hosts in both
        if principals or hosts
    ] or [(AclPermission.ANY, [None], [None])]
    pattern = _pattern(arguments)
    return [
        AclFilter(
            resource_type=kind,
            resource_name=name,
            pattern_type=pattern,
            principal=None if principal is None else _principal(principal),
            host=host,
            operation=operation,
            permission=permission,
        )
        for permission, principals, hosts in permissions
        for (kind, name), operation, principal, host in product(
            list(_resources(arguments)) or anything,
            _operations(arguments) or [AclOperation.ANY],
            principals,
            hosts,
        )
    ]


def acl_table(entries: list[AclBinding]) -> Table:
    """Return the ACLs as a sorted table."""
    rows = sorted(
        (
            each.resource_type.name,
            each.resource_name,
            each.pattern_type.name,
            each.principal,
            each.host,
            each.operation.name,
            each.permission.name,
        )
        for each in entries
    )
    return Table(FIELDS, rows)


def _resources(arguments: argparse.Namespace) -> Iterator[tuple[ResourceType, str]]:
    from trionet.client.admin._access import ResourceType

    for option, kind in _RESOURCES:
        for name in getattr(arguments, option.removeprefix("--").replace("-", "_")):
            yield ResourceType[kind], name
    if arguments.cluster:
        yield ResourceType.CLUSTER, CLUSTER


def _operations(arguments: argparse.Namespace) -> list[AclOperation]:
    return [each for text in arguments.operation for each in _operations_of(text)]


def _operations_of(text: str) -> list[AclOperation]:
    """Parse comma-separated operations, such as ``describe_configs`` or ``DescribeConfigs``."""
    from trionet.client.admin._conversions import AclOperation

    known = {each.name.replace("_", ""): each for each in AclOperation if each > AclOperation.ANY}
    found = []
    for word in text.split(","):
        operation = known.get(word.strip().replace("_", "").replace("-", "").upper())
        if operation is None:
            names = ", ".join(each.name.lower() for each in known.values())
            raise ConfigError(f"unknown operation {word.strip()!r}; allowed: {names}")
        found.append(operation)
    return found


def _principal(name: str) -> str:
    """Return a principal in the form ``TYPE:NAME``; a bare name gets the type ``User``."""
    return name if ":" in name else f"User:{name}"


def _pattern(arguments: argparse.Namespace) -> PatternType:
    from trionet.client.admin._access import PatternType

    return PatternType[arguments.pattern.upper()]
