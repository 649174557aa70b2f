"""``trionet cluster describe``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from trionet.errors import TrionetError

from ..arguments._times import time_text
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, facts, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.add_argument(
        "--features", action="store_true", help="also the versions of features (KIP-584)"
    )
    parser.add_argument(
        "--quorum", action="store_true", help="also the controllers, and how far they are (KIP-595)"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all is shown, 1 something could not be."""
    return run_with_admin(arguments, partial(_describe, arguments))


async def _describe(arguments: argparse.Namespace, admin: Admin) -> int:
    cluster = await admin.describe_cluster()
    controller = None if cluster.controller is None else cluster.controller.id
    rows = [
        (each.id, each.host, each.port, each.rack, each.id == controller)
        for _, each in sorted(cluster.brokers.items())
    ]
    brokers = Table(("id", "host", "port", "rack", "controller"), rows)
    about = {"cluster": cluster.id, "controller": controller, "brokers": len(rows)}
    tables = [facts(about), brokers]
    document: dict[str, Any] = {**about, "brokers": brokers.documents()}
    errors: list[TrionetError] = []
    for is_wanted, name, look in (
        (arguments.features, "features", _features),
        (arguments.quorum, "quorum", _quorum),
    ):
        if not is_wanted:
            continue
        try:
            table = await look(admin)
        except TrionetError as error:
            errors.append(error)
            continue
        tables.append(table)
        document[name] = table.documents()
    return write_results(arguments, tables, errors, document, as_csv=brokers)


async def _features(admin: Admin) -> Table:
    features = await admin.describe_features()
    rows = [
        (name, features.finalized.get(name), *features.supported.get(name, (None, None)))
        for name in sorted({*features.finalized, *features.supported})
    ]
    return Table(("feature", "version", "lowest", "highest"), rows)


async def _quorum(admin: Admin) -> Table:
    quorum = await admin.describe_metadata_quorum()
    rows = [
        (
            each.id,
            "leader" if each.id == quorum.leader else role,
            each.log_end_offset,
            quorum.high_watermark - each.log_end_offset,
            None if each.caught_up_ms is None else time_text(each.caught_up_ms),
        )
        for role, replicas in (("voter", quorum.voters), ("observer", quorum.observers))
        for each in replicas
    ]
    return Table(("node", "role", "end_offset", "lag", "caught_up"), rows)
