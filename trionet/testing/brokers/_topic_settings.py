"""The topics that a broker for tests begins with, as a test may write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Topics = Mapping[str, int | Mapping[str, object] | None] | Iterable[str]
"""Names; or names, each with how many partitions it has, or with a dict of ``partitions`` and the
topic's own settings, with underscores for dots."""

Wanted = dict[str, tuple[int | None, dict[str, object]]]
"""By the name of each topic, how many partitions it gets and its own settings."""


def wanted_topics(topics: Topics | None) -> Wanted:
    """What a test means by its ``topics``.

    Raises:
        TypeError: it is none of what is allowed.
    """
    if topics is None:
        return {}
    if isinstance(topics, Mapping):
        return {_name(name): _topic(name, value) for name, value in topics.items()}
    if isinstance(topics, str) or not isinstance(topics, Iterable):
        raise _wrong(topics)
    return {_name(name): (None, {}) for name in topics}


def _topic(name: str, value: object) -> tuple[int | None, dict[str, object]]:
    if isinstance(value, Mapping):
        settings = dict(value)
        return _topic(name, settings.pop("partitions", None))[0], settings
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value, {}
    raise _wrong({name: value})


def _name(name: object) -> str:
    if isinstance(name, str):
        return name
    raise _wrong(name)


def _wrong(topics: object) -> TypeError:
    return TypeError(
        f"topics={topics!r} is not allowed; allowed: a list of names, or a dict of names, each with"
        ' how many partitions it has, as in {"orders": 3}, or with a dict of its settings'
    )
