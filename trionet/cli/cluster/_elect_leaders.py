"""``trionet cluster elect-leaders``."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING

from trionet.errors import ConfigError

from ..clients._admin import run_with_admin
from ..clients._connection import add_connection_arguments
from ..terminal._confirmation import add_confirming_argument, confirmed
from ..terminal._output import Table, add_format_arguments, write_results

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    parser.add_argument(
        "topics", metavar="TOPIC[:N,...]", nargs="*", help="topics, or these partitions of them"
    )
    parser.add_argument(
        "--all", action="store_true", help="all partitions of the cluster that need it"
    )
    parser.add_argument(
        "--unclean",
        action="store_true",
        help="any replica, if no other is there: records may be lost (default: the first replica, "
        "if it is in sync)",
    )
    add_confirming_argument(parser)
    add_format_arguments(parser)
    add_connection_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the command; returns the exit status: 0 all led as they should, 1 not all."""
    from ..arguments._topic_partitions import parse_topic

    if arguments.all == bool(arguments.topics):
        raise ConfigError("either some TOPIC[:N,...] are wanted, or --all")
    topics = [parse_topic(text) for text in arguments.topics]
    if arguments.unclean and not confirmed(
        arguments, "let replicas lead that lack records, which are lost then"
    ):
        return 1
    return run_with_admin(arguments, partial(_elect, arguments, topics))


async def _elect(
    arguments: argparse.Namespace, topics: list[tuple[str, list[int] | None]], admin: Admin
) -> int:
    from trionet.client._topic_partition import TopicPartition
    from trionet.client.admin.topics._partitions import ElectionType
    from trionet.errors import ApiError
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
        is_well = isinstance(error, ApiError) and error.error_code == ELECTION_NOT_NEEDED
        if error is None or is_well:
            rows.append((*key, error is None))
        else:
            errors.append(error)
    return write_results(arguments, Table(("topic", "partition", "elected"), rows), errors)
