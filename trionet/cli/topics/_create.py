"""``trionet topics create``: create topics."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ApiError, ConfigError

from ..arguments._config_changes import key_value
from ..arguments._numbers import INT16_MAX, INT32_MAX, bounded_int, is_natural
from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._output import Table, add_format_arguments, print_message, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._topics import NewTopic


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="topic names")
    parser.add_argument(
        "-p",
        "--partitions",
        type=bounded_int(1, INT32_MAX, default=-1),
        default=-1,
        metavar="N",
        help="partitions of each topic (default: the broker's num.partitions)",
    )
    parser.add_argument(
        "-r",
        "--replicas",
        "--replication-factor",
        dest="replicas",
        type=bounded_int(1, INT16_MAX, default=-1),
        default=-1,
        metavar="N",
        help="replicas of each partition (default: the broker's default.replication.factor)",
    )
    parser.add_argument(
        "-c",
        "--set",
        "--topic-config",
        dest="set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a topic setting, such as retention.ms=86400000; may be repeated",
    )
    parser.add_argument(
        "--replica-assignment",
        metavar="ID:ID,...",
        help="the replicas of each partition, instead of -p and -r: 1:2,2:3 creates two "
        "partitions, the first with its preferred leader on broker 1",
    )
    parser.add_argument(
        "--if-not-exists", action="store_true", help="do not fail if a topic already exists"
    )
    parser.add_argument(
        "-d", "--dry-run", action="store_true", help="validate the request without creating topics"
    )
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return the exit status: 0 if all were created, 1 if some were not."""
    from trionet.client.admin._topics import NewTopic

    assignments = None
    if arguments.replica_assignment is not None:
        if (arguments.partitions, arguments.replicas) != (-1, -1):
            raise ConfigError(
                "--replica-assignment cannot be combined with --partitions or --replicas"
            )
        assignments = _assignments(arguments.replica_assignment)
    configs = dict(key_value(text, "--set") for text in arguments.set)
    topics = [
        NewTopic(name, arguments.partitions, arguments.replicas, configs, assignments)
        for name in dict.fromkeys(arguments.topics)
    ]
    return run_with_admin(arguments, partial(_create, arguments, topics))


async def _create(arguments: argparse.Namespace, topics: list[NewTopic], admin: Admin) -> int:
    from trionet.protocol.error_codes import TOPIC_ALREADY_EXISTS

    results = await admin.create_topics(topics, validate_only=arguments.dry_run)
    errors = results.errors
    for name, error in results.errors.items():
        exists = isinstance(error, ApiError) and error.error_code == TOPIC_ALREADY_EXISTS
        if arguments.if_not_exists and exists:
            print_message(arguments, f"topic {name} already exists")
            del errors[name]
    for name in results.errors:
        del results[name]
    created = results.checked().values()
    fields = ("name", "partitions", "replicas", "id")
    rows = [
        (each.name, _known(each.partitions), _known(each.replication_factor), each.id)
        for each in created
    ]
    status = write_results(
        arguments,
        Table(fields[:3], [row[:3] for row in rows]),
        errors.values(),
        Table(fields, rows).documents(),
        as_csv=Table(fields, rows),
    )
    if arguments.dry_run:
        print_message(arguments, "nothing was changed (--dry-run)")
    return status


def _known(number: int) -> int | None:
    """Return the number, or None if the broker did not report it."""
    return None if number < 0 else number


def _assignments(text: str) -> dict[int, list[int]]:
    """Parse replica assignments in Kafka's form.

    Commas separate the partitions, and colons separate the brokers of a partition.
    """
    found = {}
    for number, brokers in enumerate(text.split(",")):
        words = brokers.strip().split(":")
        if not all(is_natural(word, INT32_MAX) for word in words):
            raise ConfigError(
                f"--replica-assignment {text}: invalid replicas {brokers!r}: expected broker ids "
                "separated by colons, and commas between partitions, such as 1:2,2:3"
            )
        found[number] = [int(word) for word in words]
    return found
