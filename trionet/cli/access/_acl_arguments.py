"""Entries for access as a command line names them, with the options of kafka-acls and rpk."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from trionet.errors import ConfigError

if TYPE_CHECKING:
    from trionet.client.admin.access._acl_operation import AclOperation
    from trionet.client.admin.access._acls import AclBinding, AclFilter, PatternType, ResourceType

    from ..terminal._output import Table

#: What the cluster is called as a resource.
CLUSTER: Final = "kafka-cluster"
PATTERNS: Final = ("literal", "prefixed")
FILTER_PATTERNS: Final = (*PATTERNS, "any", "match")
# Option, Kafka's type of the resource.
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
    """Describe who, what, and from where."""
    many = {"action": "append", "default": [], "metavar": "NAME"}  # type: dict[str, Any]
    parser.add_argument(
        "--allow-principal", **many, help="somebody who may, such as User:alice, or User:* for all"
    )
    parser.add_argument("--deny-principal", **many, help="somebody who may not")
    parser.add_argument(
        "--allow-host", **many, help="from where the former may (default: anywhere)"
    )
    parser.add_argument(
        "--deny-host", **many, help="from where the latter may not (default: anywhere)"
    )
    parser.add_argument(
        "-o",
        "--operation",
        **many,
        help="such as read, write, create, delete, alter, describe, describe_configs or all"
        + (" (default: any)" if is_filter else " (default: all)"),
    )
    for option, kind in _RESOURCES:
        name = kind.lower().replace("_", " ")
        name = "a user, for the tokens made for him" if kind == "USER" else f"a {name}"
        parser.add_argument(option, **many, help=f"what it is about: {name}; * for all")
    parser.add_argument("--cluster", action="store_true", help="what it is about: the cluster")
    parser.add_argument(
        "--resource-pattern-type",
        "--pattern",
        dest="pattern",
        choices=FILTER_PATTERNS if is_filter else PATTERNS,
        default="any" if is_filter else PATTERNS[0],
        help="whether names are meant as they are, or all that begin like them"
        + ("; match is whatever holds for a resource of this name" if is_filter else ""),
    )


def bindings(arguments: argparse.Namespace) -> list[AclBinding]:
    """The entries to make: everybody named may do everything named with everything named.

    Raises:
        ConfigError: something is missing, or an operation is none.
    """
    from trionet.client.admin.access._acls import AclBinding, AclPermission

    named = list(_resources(arguments))
    if not named:
        raise ConfigError("what is it about? Allowed: --topic, --group, --cluster and the like")
    if not (arguments.allow_principal or arguments.deny_principal):
        raise ConfigError("who is it about? Allowed: --allow-principal and --deny-principal")
    if arguments.allow_host and not arguments.allow_principal:
        raise ConfigError("--allow-host needs --allow-principal")
    if arguments.deny_host and not arguments.deny_principal:
        raise ConfigError("--deny-host needs --deny-principal")
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
    """The entries that are meant; what is not named may be anything.

    Raises:
        ConfigError: an operation is none.
    """
    from trionet.client.admin.access._acl_operation import AclOperation
    from trionet.client.admin.access._acls import AclFilter, AclPermission, ResourceType

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
    """Entries, in an order that does not change."""
    from ..terminal._output import Table

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
    from trionet.client.admin.access._acls import ResourceType

    for option, kind in _RESOURCES:
        for name in getattr(arguments, option.removeprefix("--").replace("-", "_")):
            yield ResourceType[kind], name
    if arguments.cluster:
        yield ResourceType.CLUSTER, CLUSTER


def _operations(arguments: argparse.Namespace) -> list[AclOperation]:
    return [each for text in arguments.operation for each in _operations_of(text)]


def _operations_of(text: str) -> list[AclOperation]:
    """Operations by name, with commas, however they are written: ``DescribeConfigs``, too."""
    from trionet.client.admin.access._acl_operation import AclOperation

    known = {each.name.replace("_", ""): each for each in AclOperation if each > AclOperation.ANY}
    found = []
    for word in text.split(","):
        operation = known.get(word.strip().replace("_", "").replace("-", "").upper())
        if operation is None:
            names = ", ".join(each.name.lower() for each in known.values())
            raise ConfigError(f"{word.strip()!r} is no operation; allowed: {names}")
        found.append(operation)
    return found


def _principal(name: str) -> str:
    """Kafka's form of a principal; a bare name is a user's."""
    return name if ":" in name else f"User:{name}"


def _pattern(arguments: argparse.Namespace) -> PatternType:
    from trionet.client.admin.access._acls import PatternType

    return PatternType[arguments.pattern.upper()]
