"""Parses the topics that a broker under test creates at startup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Topics = Mapping[str, int | Mapping[str, object] | None] | Iterable[str]
"""Names; or a dict that maps each name to a number of partitions or to a dict of ``partitions`` and
topic configs, with underscores instead of dots."""

NewTopics = dict[str, tuple[int | None, dict[str, object]]]
"""Each topic's number of partitions and topic configs, keyed by name."""


def parse_topics(topics: Topics | None) -> NewTopics:
    """Parse the ``topics`` argument of :func:`trionet.testing.broker`.

    Raises:
        TypeError: ``topics`` is invalid.
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
        f"invalid topics={topics!r}; expected a list of names, or a dict that maps each name to a"
        ' number of partitions, such as {"orders": 3}, or to a dict of topic configs'
    )
