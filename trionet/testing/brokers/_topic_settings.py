"""The topics that a broker under test starts with, as a test writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Topics = Mapping[str, int | Mapping[str, object] | None] | Iterable[str]
"""Names; or a dict of names with a number of partitions, or with a dict of ``partitions`` and topic
configs, with underscores for dots."""

NewTopics = dict[str, tuple[int | None, dict[str, object]]]
"""By name, the number of partitions and the topic configs."""


def parse_topics(topics: Topics | None) -> NewTopics:
    """Parse the ``topics`` of a test.

    Raises:
        TypeError: they are invalid.
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
        f"invalid topics={topics!r}; allowed: a list of names, or a dict of names with a number of"
        ' partitions, as in {"orders": 3}, or with a dict of topic configs'
    )
