"""``trionet configs acls``: list, create and delete ACLs.

The options are those of kafka-acls and rpk.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from trionet._util._text import counted
from trionet.errors import ConfigError

from ..arguments._parser import Argument, Subcommands, flag, option, repeatable
from ..clients._admin import ADMIN_ARGUMENTS, with_admin_after
from ..terminal._output import YES, Table, confirmed, print_message, write, write_results

if TYPE_CHECKING:
    from trionet.client.admin._access import AclBinding, AclFilter, AclPermission, ResourceType
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._conversions import AclOperation

Acl = TypeVar("Acl")
#: Whether something is allowed or denied, and the principals and hosts; None for any.
Permission: TypeAlias = "tuple[AclPermission, Sequence[str | None], Sequence[str | None]]"

COMMANDS: Final = Subcommands()

#: Kafka's name for the resource that stands for the cluster.
_CLUSTER: Final = "kafka-cluster"
_PATTERNS: Final = ("literal", "prefixed")
_FILTER_PATTERNS: Final = (*_PATTERNS, "any", "match")
# Option and Kafka resource type.
_RESOURCES: Final = (
    ("--topic", "TOPIC"),
    ("--group", "GROUP"),
    ("--transactional-id", "TRANSACTIONAL_ID"),
    ("--delegation-token", "DELEGATION_TOKEN"),
    ("--user-principal", "USER"),
)
_FIELDS: Final = ("resource", "name", "pattern", "principal", "host", "operation", "permission")


def _acl_arguments(*, is_filter: bool) -> Iterator[Argument]:
    """Yield the options for principals, hosts, operations and resources."""
    for name, help in (
        ("--allow-principal", "allow this principal, such as User:alice, or User:* for all"),
        ("--deny-principal", "deny this principal"),
        ("--allow-host", "allow from this host (default: any)"),
        ("--deny-host", "deny from this host (default: any)"),
    ):
        yield repeatable(f"{name} NAME", help)
    yield repeatable(
        "-o, --operation NAME",
        "such as read, write, create, delete, alter, describe, describe_configs or all "
        f"(default: {'any' if is_filter else 'all'})",
    )
    for name, kind in _RESOURCES:
        what = kind.lower().replace("_", " ")
        what = "user, for the delegation tokens of that user" if kind == "USER" else what
        yield repeatable(f"{name} NAME", f"apply to this {what}; * for all")
    yield flag("--cluster", "apply to the cluster")
    yield option(
        "--resource-pattern-type, --pattern",
        "whether resource names are literal or prefixes"
        + ("; match selects all that apply to a resource of this name" if is_filter else ""),
        dest="pattern",
        choices=_FILTER_PATTERNS if is_filter else _PATTERNS,
        default="any" if is_filter else _PATTERNS[0],
    )


def _bindings(arguments: Namespace) -> list[AclBinding]:
    """Return the ACLs to create: the product of principals, hosts, operations and resources.

    Raises:
        ConfigError: no resource or principal is given, a host is given without a principal, or an
            operation is unknown.
    """
    from trionet.client.admin._access import AclBinding

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
    operations = _operations(arguments) or _operations_of("all")
    permissions: list[Permission] = [
        (permission, principals, hosts or ["*"])
        for permission, principals, hosts in _permissions(arguments)
    ]
    return _combined(AclBinding, arguments, named, operations, permissions)


def _filters(arguments: Namespace) -> list[AclFilter]:
    """Return filters that match the selected ACLs. An omitted option matches anything.

    Raises:
        ConfigError: an operation is unknown.
    """
    from trionet.client.admin._access import AclFilter, AclPermission, ResourceType
    from trionet.client.admin._conversions import AclOperation

    named: list[Any] = list(_resources(arguments)) or [(ResourceType.ANY, None)]
    operations = _operations(arguments) or [AclOperation.ANY]
    permissions: list[Permission] = [
        (permission, principals or [None], hosts or [None])
        for permission, principals, hosts in _permissions(arguments)
        if principals or hosts
    ]
    permissions = permissions or [(AclPermission.ANY, [None], [None])]
    return _combined(AclFilter, arguments, named, operations, permissions)


def _combined(
    kind: Callable[..., Acl],
    arguments: Namespace,
    named: Sequence[tuple[ResourceType, str]],
    operations: Sequence[AclOperation],
    permissions: Sequence[Permission],
) -> list[Acl]:
    from trionet.client.admin._access import PatternType

    return [
        kind(
            resource_type=resource,
            resource_name=name,
            pattern_type=PatternType[arguments.pattern.upper()],
            # A bare name is that of a user.
            principal=principal if principal is None or ":" in principal else f"User:{principal}",
            host=host,
            operation=operation,
            permission=permission,
        )
        for permission, principals, hosts in permissions
        for (resource, name), operation, principal, host in product(
            named, operations, principals, hosts
        )
    ]


def _permissions(arguments: Namespace) -> list[Permission]:
    """Return the principals and hosts that are allowed, and those that are denied."""
    from trionet.client.admin._access import AclPermission

    return [
        (AclPermission.ALLOW, arguments.allow_principal, arguments.allow_host),
        (AclPermission.DENY, arguments.deny_principal, arguments.deny_host),
    ]


def _table(entries: Sequence[AclBinding]) -> Table:
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
    return Table(_FIELDS, rows)


def _resources(arguments: Namespace) -> Iterator[tuple[ResourceType, str]]:
    from trionet.client.admin._access import ResourceType

    for flags, kind in _RESOURCES:
        for name in getattr(arguments, flags.removeprefix("--").replace("-", "_")):
            yield ResourceType[kind], name
    if arguments.cluster:
        yield ResourceType.CLUSTER, _CLUSTER


def _operations(arguments: Namespace) -> list[AclOperation]:
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


async def _found(filters: list[AclFilter], admin: Admin) -> list[AclBinding]:
    import trio

    await trio.lowlevel.checkpoint()
    return list({entry: None for each in filters for entry in await admin.describe_acls(each)})


@COMMANDS.command("list", "list ACLs", *_acl_arguments(is_filter=True), *ADMIN_ARGUMENTS)
@with_admin_after(_filters)
async def _list(arguments: Namespace, filters: list[AclFilter], admin: Admin) -> int:
    write(arguments.format, _table(await _found(filters, admin)))
    return 0


@COMMANDS.command(
    "create",
    "allow or deny operations on resources",
    *_acl_arguments(is_filter=False),
    *ADMIN_ARGUMENTS,
    description="Allow or deny operations on resources. One ACL is created for each combination of "
    "principal, host, operation and resource.",
)
@with_admin_after(_bindings)
async def _create(arguments: Namespace, entries: list[AclBinding], admin: Admin) -> int:
    results = await admin.create_acls(entries)
    created = [each for each in entries if results[each] is None]
    return write_results(arguments, _table(created), results.errors.values())


@COMMANDS.command(
    "delete",
    "delete ACLs",
    *_acl_arguments(is_filter=True),
    YES,
    *ADMIN_ARGUMENTS,
    description="Delete the matching ACLs, all of them if no option is given.",
)
@with_admin_after(_filters)
async def _delete(arguments: Namespace, filters: list[AclFilter], admin: Admin) -> int:
    found = await _found(filters, admin)
    if not found:
        print_message(arguments, "no matching ACLs")
        return 1
    if not confirmed(arguments, f"delete {counted(len(found), 'ACL')}"):
        return 1
    results = await admin.delete_acls(filters)
    deleted, errors = [], list(results.errors.values())
    for matched in results.values():
        if isinstance(matched, dict):
            errors += matched.errors.values()
            deleted += [entry for entry, error in matched.items() if error is None]
    return write_results(arguments, _table(list(dict.fromkeys(deleted))), errors)
