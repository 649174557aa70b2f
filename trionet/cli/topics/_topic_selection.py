"""The topics that a command line means, described."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..arguments._name_patterns import matching

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin.topics._topic_descriptions import TopicDescription
    from trionet.errors import TrionetError


async def chosen_names(arguments: argparse.Namespace, admin: Admin) -> list[str]:
    """The names that ``topics``, ``regex`` and ``internal`` mean.

    Raises:
        ConfigError: one is no regular expression.
        TrionetError: the topics could not be listed.
    """
    import trio

    await trio.lowlevel.checkpoint()
    names: list[str] = arguments.topics
    if names and not arguments.regex:
        return list(dict.fromkeys(names))
    internal = bool(getattr(arguments, "internal", False))
    listed = await admin.list_topics(internal=internal)
    return matching(names, listed) if names else sorted(listed)


async def describe_chosen(
    arguments: argparse.Namespace, admin: Admin
) -> tuple[list[TopicDescription], list[TrionetError]]:
    """The topics that are meant, and why some are not described.

    Raises:
        TrionetError: as :func:`chosen_names`, or the request as a whole failed.
    """
    results = await admin.describe_topics(await chosen_names(arguments, admin))
    errors = list(results.errors.values())
    for name in results.errors:
        del results[name]
    return list(results.checked().values()), errors
