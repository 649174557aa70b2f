"""The topics that :func:`trionet.open_broker` creates when the broker starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..model._cluster import Cluster

Topics = Mapping[str, int | Mapping[str, object] | None] | Iterable[str]
"""Names; or a dict that maps each name to a number of partitions or to a dict of ``partitions`` and
topic configs, with underscores instead of dots."""

NewTopics = dict[str, tuple[int | None, dict[str, object]]]
"""Each topic's number of partitions and topic configs, keyed by name."""


def parse_topics(topics: Topics | None) -> NewTopics:
    """Parse the ``topics`` argument of :func:`trionet.open_broker`.

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


async def create_missing(cluster: Cluster, topics: NewTopics) -> None:
    """Create the topics that do not exist; those of an earlier start are left as they are.

    Raises:
        ApiError: a name, a number of partitions or a topic config is not allowed.
    """
    for name, (partitions, configs) in topics.items():
        if cluster.topics.get(name) is None:
            await create_topic(cluster, name, partitions, configs)


async def create_topic(
    cluster: Cluster, name: str, partitions: int | None, configs: Mapping[str, object]
) -> None:
    """Create a topic; the keys of configs may have underscores instead of dots.

    Raises:
        ApiError: the topic exists, or an argument is not allowed.
    """
    await cluster.create_topic(
        name,
        partitions=-1 if partitions is None else partitions,
        configs=tuple((key.replace("_", "."), _setting(value)) for key, value in configs.items()),
    )


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
