"""``trionet cluster``: the brokers of a cluster, their log directories, and leader elections."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from trionet._util._times import time_text
from trionet.errors import ApiError, ConfigError, TrionetError

from .arguments._parser import Subcommands, argument, flag, repeatable
from .arguments._values import INT32_MAX, bounded_int
from .clients._admin import (
    ADMIN_ARGUMENTS,
    ONLY_TOPICS,
    describe_selected,
    run_with_admin,
    with_admin,
)
from .terminal._output import YES, Table, confirmed, facts, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._cluster import LogDirs

COMMANDS: Final = Subcommands()


@COMMANDS.command(
    "describe",
    "show brokers, controllers and features",
    flag("--features", "include feature versions (KIP-584)"),
    flag("--quorum", "include the controllers and their replication lag (KIP-595)"),
    *ADMIN_ARGUMENTS,
)
@with_admin
async def _describe(arguments: Namespace, admin: Admin) -> int:
    cluster = await admin.describe_cluster()
    controller = None if cluster.controller is None else cluster.controller.id
    rows = [
        (each.id, each.host, each.port, each.rack, each.id == controller)
        for _, each in sorted(cluster.brokers.items())
    ]
    brokers = Table(("id", "host", "port", "rack", "controller"), rows)
    summary = {"cluster": cluster.id, "controller": controller, "brokers": len(rows)}
    tables = [facts(summary), brokers]
    document: dict[str, Any] = {**summary, "brokers": brokers.documents()}
    errors: list[TrionetError] = []
    for is_included, name, fetch in (
        (arguments.features, "features", _features),
        (arguments.quorum, "quorum", _quorum),
    ):
        if not is_included:
            continue
        try:
            table = await fetch(admin)
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


@COMMANDS.command(
    "log-dirs",
    "show the log directories of brokers and their sizes",
    ONLY_TOPICS,
    repeatable(
        "-i, --broker-id ID",
        "only this broker; may be repeated",
        dest="broker_ids",
        type=bounded_int(0, INT32_MAX),
    ),
    flag("-p, --partitions", "list each partition"),
    *ADMIN_ARGUMENTS,
)
@with_admin
async def _log_dirs(arguments: Namespace, admin: Admin) -> int:
    from trionet.client._topic_partition import TopicPartition

    errors: list[TrionetError] = []
    partitions = None
    if arguments.topics:
        topics, errors = await describe_selected(arguments, admin)
        partitions = [
            TopicPartition(each.name, number) for each in topics for number in each.partitions
        ]
    results = await admin.describe_log_dirs(arguments.broker_ids or None, partitions)
    errors += results.errors.values()
    found = {id: dirs for id, dirs in sorted(results.items()) if isinstance(dirs, dict)}
    for dirs in found.values():
        errors += dirs.errors.values()
    return write_results(
        arguments, _by_partition(found) if arguments.partitions else _by_folder(found), errors
    )


def _by_folder(found: dict[int, LogDirs]) -> Table:
    rows = [
        (
            id,
            path,
            len(folder.replicas),
            sum(each.bytes for each in folder.replicas.values()),
            folder.total_bytes,
            folder.usable_bytes,
        )
        for id, dirs in found.items()
        for path, folder in dirs.items()
        if not isinstance(folder, Exception)
    ]
    return Table(("broker", "path", "replicas", "bytes", "disk_bytes", "free_bytes"), rows)


def _by_partition(found: dict[int, LogDirs]) -> Table:
    rows = [
        (id, *key, path, each.bytes, each.offset_lag, each.is_future)
        for id, dirs in found.items()
        for path, folder in dirs.items()
        if not isinstance(folder, Exception)
        for key, each in sorted(folder.replicas.items())
    ]
    fields = ("broker", "topic", "partition", "path", "bytes", "offset_lag", "future")
    return Table(fields, rows)


@COMMANDS.command(
    "elect-leaders",
    "trigger leader elections of partitions",
    argument("topics", "TOPIC[:N,...]", "topics, optionally with partitions", nargs="*"),
    flag("--all", "all partitions of the cluster that need an election"),
    flag(
        "--unclean",
        "allow an out-of-sync leader if no replica is in sync, which may lose records "
        "(default: elect the preferred replica if it is in sync)",
    ),
    YES,
    *ADMIN_ARGUMENTS,
)
def _run_elect_leaders(arguments: Namespace) -> int:
    from .arguments._topic_partitions import parse_topic

    if arguments.all == bool(arguments.topics):
        raise ConfigError("give either TOPIC[:N,...] or --all")
    topics = [parse_topic(text) for text in arguments.topics]
    if arguments.unclean and not confirmed(
        arguments, "elect out-of-sync replicas as leaders, which may lose records"
    ):
        return 1
    return run_with_admin(arguments, partial(_elect, arguments, topics))


async def _elect(
    arguments: Namespace, topics: list[tuple[str, list[int] | None]], admin: Admin
) -> int:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin._partitions import ElectionType
    from trionet.protocol.error_codes import ELECTION_NOT_NEEDED

    partitions = None
    if not arguments.all:
        whole = [topic for topic, numbers in topics if numbers is None]
        described = (await admin.describe_topics(whole)).checked() if whole else {}
        partitions = [
            TopicPartition(topic, number)
            for topic, numbers in topics
            for number in (described[topic].partitions if numbers is None else numbers)
        ]
    election = ElectionType.UNCLEAN if arguments.unclean else ElectionType.PREFERRED
    results = await admin.elect_leaders(partitions, election)
    errors, rows = [], []
    for key, error in sorted(results.items()):
        is_leading = isinstance(error, ApiError) and error.error_code == ELECTION_NOT_NEEDED
        if error is None or is_leading:
            rows.append((*key, error is None))
        else:
            errors.append(error)
    return write_results(arguments, Table(("topic", "partition", "elected"), rows), errors)
