"""``trionet configs quotas``: show and change client quotas."""

from __future__ import annotations

import math
from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING, Final

from trionet.errors import ConfigError

from ..arguments._parser import Subcommands, flag, repeatable
from ..arguments._values import DRY_RUN, key_value, split_names
from ..clients._admin import ADMIN_ARGUMENTS, run_with_admin, with_admin_after
from ..terminal._output import Table, write, write_results

if TYPE_CHECKING:
    from trionet.client.admin._access import QuotaFilter
    from trionet.client.admin._admin import Admin

COMMANDS: Final = Subcommands()

_TYPES: Final = ("user", "client-id", "ip")
_ENTITY: Final = (
    repeatable(
        "-n, --name TYPE=NAME",
        f"an entity; TYPE is one of {', '.join(_TYPES)}; repeated, the names combine into one "
        "entity, such as a client id of a user",
        dest="names",
    ),
    repeatable(
        "--default",
        "the default for all entities of this type without their own quota",
        dest="defaults",
        choices=_TYPES,
    ),
)


def _entity(arguments: Namespace) -> dict[str, str | None]:
    """Return the name given for each type, or None for the default entity of that type.

    Raises:
        ConfigError: a name is not ``TYPE=NAME``, or a type is unknown or given twice.
    """
    pairs: list[tuple[str, str | None]] = [key_value(text, "--name") for text in arguments.names]
    pairs += [(kind, None) for kind in arguments.defaults]
    parts: dict[str, str | None] = {}
    for kind, name in pairs:
        if kind not in _TYPES:
            raise ConfigError(f"unknown type {kind!r}; allowed: {', '.join(_TYPES)}")
        if kind in parts:
            raise ConfigError(f"{kind} is given more than once")
        parts[kind] = name
    return parts


def _entity_text(parts: tuple[tuple[str, str | None], ...]) -> str:
    """Format an entity as Kafka's tools do: ``user=alice, client-id=<default>``."""
    return ", ".join(f"{kind}={'<default>' if name is None else name}" for kind, name in parts)


def _filters(arguments: Namespace) -> list[QuotaFilter]:
    from trionet.client.admin._access import QuotaFilter, QuotaMatch

    parts = _entity(arguments)
    if repeated := [kind for kind in arguments.any if kind in parts]:
        raise ConfigError(f"{repeated[0]} is given more than once")
    return [
        *(
            QuotaFilter(kind, name, QuotaMatch.DEFAULT if name is None else QuotaMatch.EXACT)
            for kind, name in parts.items()
        ),
        *(QuotaFilter(kind) for kind in dict.fromkeys(arguments.any)),
    ]


@COMMANDS.command(
    "describe",
    "show quotas of users, client ids and addresses",
    *_ENTITY,
    repeatable("--any", "all entities of this type (default: all quotas)", choices=_TYPES),
    flag("--strict", "only entities that consist of exactly the given types"),
    *ADMIN_ARGUMENTS,
)
@with_admin_after(_filters)
async def _describe(arguments: Namespace, filters: list[QuotaFilter], admin: Admin) -> int:
    found = await admin.describe_client_quotas(filters, strict=arguments.strict)
    rows = [
        (_entity_text(entity.parts), key, value)
        for entity, values in found.items()
        for key, value in sorted(values.items())
    ]
    documents = [
        {"entity": dict(entity.parts), "quotas": values} for entity, values in found.items()
    ]
    write(arguments.format, Table(("entity", "quota", "value"), sorted(rows)), documents)
    return 0


@COMMANDS.command(
    "alter",
    "change the quotas of a user, a client id or an address",
    *_ENTITY,
    repeatable(
        "-s, --set, --add QUOTA=NUMBER",
        "set a quota: producer_byte_rate, consumer_byte_rate, request_percentage, "
        "controller_mutation_rate or connection_creation_rate; may be repeated",
    ),
    repeatable("--delete QUOTA,...", "remove these quotas"),
    DRY_RUN,
    *ADMIN_ARGUMENTS,
)
def _run_alter(arguments: Namespace) -> int:
    parts = _entity(arguments)
    if not parts:
        raise ConfigError("no entity given: use --name TYPE=NAME or --default TYPE")
    values: dict[str, float | None] = dict.fromkeys(split_names(arguments.delete))
    for text in arguments.set:
        key, value = key_value(text, "--set")
        if key in values:
            raise ConfigError(f"{key} is changed more than once; specify each quota only once")
        values[key] = _number(key, value)
    if not values:
        raise ConfigError("nothing to change: use --set or --delete")
    return run_with_admin(arguments, partial(_alter, arguments, parts, values))


def _number(key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(f"invalid value {text!r} for {key}: expected a number")
    return number


async def _alter(
    arguments: Namespace,
    parts: dict[str, str | None],
    values: dict[str, float | None],
    admin: Admin,
) -> int:
    from trionet.client.admin._access import QuotaEntity

    results = await admin.alter_client_quotas(
        {QuotaEntity(parts): values}, validate_only=arguments.dry_run
    )
    rows = [
        (_entity_text(entity.parts), key, value)
        for entity, error in results.items()
        if error is None
        for key, value in sorted(values.items())
    ]
    table = Table(("entity", "quota", "value"), rows)
    return write_results(arguments, table, results.errors.values())
