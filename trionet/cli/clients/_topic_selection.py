"""Resolves a command's topic arguments to topic names or descriptions."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ..arguments._name_patterns import matching

if TYPE_CHECKING:
    from trionet.client.admin._admin import Admin
    from trionet.client.admin._topics import TopicDescription
    from trionet.errors import TrionetError


async def selected_names(arguments: argparse.Namespace, admin: Admin) -> list[str]:
    """Return the topic names selected by the arguments ``topics``, ``regex`` and ``internal``.

    Raises:
        ConfigError: a regular expression is invalid.
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


async def describe_selected(
    arguments: argparse.Namespace, admin: Admin
) -> tuple[list[TopicDescription], list[TrionetError]]:
    """Return the descriptions of the selected topics, and the errors of failed topics.

    Raises:
        TrionetError: the topics could not be listed, or the request as a whole failed.
    """
    results = await admin.describe_topics(await selected_names(arguments, admin))
    errors = list(results.errors.values())
    for name in results.errors:
        del results[name]
    return list(results.checked().values()), errors
