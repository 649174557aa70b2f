"""Consumer settings, and their conversion from Kafka's configuration keys, with consistency checks.

(Kafka: ConsumerConfig, KafkaConsumer's constructor, Heartbeat.)

What only the member of a group needs is imported for one: Spark's source reads without a group, in
new processes, whose imports a query waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

import attrs

from ...errors import ConfigError
from .._network_settings import RequestSettings
from ..config._client_config import ClientConfig, check_config, check_nothing_beside, read_config
from ..config._client_settings import client_settings, retry_backoff
from ..config._keys import CONSUMER_KEYS
from ..network._connections import RESPONSE_LIMIT
from ..network._open_client import ClientSettings
from ..security._settings import TokenProvider
from .fetch._settings import FetchSettings
from .state._reset_strategy import LATEST, ResetStrategy

if TYPE_CHECKING:
    from .assignors import Assignor
    from .coordinator._classic_member import GroupSettings

#: The maximum number of in-flight requests per node (as in Kafka's ConsumerNetworkClient).
IN_FLIGHT_MAX = 100


@attrs.frozen(kw_only=True)
class ConsumerSettings:
    """A consumer's settings.

    Attributes:
        client: the settings of the Kafka client.
        fetch: the fetch settings.
        reset: where to start if there is no committed offset or the position is out of range
            (``auto.offset.reset``).
        records_max: the maximum size of one batch of :meth:`.Consumer.batches`
            (``max.poll.records``).
        api_timeout_seconds: the time limit for a call such as :meth:`.Consumer.end_offsets`,
            including retries (``default.api.timeout.ms``).
        allow_auto_topic_creation: whether a metadata request for a topic may create the topic
            (``allow.auto.create.topics``).
        group: the group settings; None without ``group.id``.
    """

    client: ClientSettings = attrs.field(
        default=ClientSettings(requests=RequestSettings(in_flight_max=IN_FLIGHT_MAX))
    )
    fetch: FetchSettings = attrs.field(factory=FetchSettings)
    reset: ResetStrategy = LATEST
    records_max: int = 500
    api_timeout_seconds: float = 60.0
    allow_auto_topic_creation: bool = True
    group: GroupSettings | None = None


#: The assumed size of a fetch response without its records (the same as in librdkafka).
_FETCH_OVERHEAD_BYTES: Final = 512

_STRATEGY: Final = "partition.assignment.strategy"


def consumer_settings(
    config: Mapping[str, object] | ConsumerSettings | None,
    keywords: Mapping[str, object],
    token_provider: TokenProvider | None = None,
) -> ConsumerSettings:
    """Build and validate a consumer's settings.

    Args:
        config: see :func:`.read_config`; ``partition.assignment.strategy`` may also contain custom
            assignors. A :class:`.ConsumerSettings` is also accepted, but only on its own.
        keywords: see :func:`.read_config`.
        token_provider: returns tokens for OAUTHBEARER authentication.

    Raises:
        TypeError: ``config`` is not settings, or a :class:`.ConsumerSettings` is combined with
            other settings.
        ConfigError: a key is unknown, a value is not allowed, or values contradict each other; the
            message names the keys and the allowed values.
    """
    if isinstance(config, ConsumerSettings):
        check_nothing_beside(keywords, token_provider)
        return config
    check_config(CONSUMER_KEYS, config)
    own: dict[str, Assignor] = {}
    read = read_config(
        CONSUMER_KEYS, dict(_by_name(config or {}, own)), dict(_by_name(keywords, own))
    )
    settings = ConsumerSettings(
        client=client_settings(read, in_flight_max=IN_FLIGHT_MAX, token_provider=token_provider),
        fetch=_fetch_settings(read),
        reset=ResetStrategy.parse(read.text("auto.offset.reset")),
        records_max=read.integer("max.poll.records"),
        api_timeout_seconds=read.seconds("default.api.timeout.ms"),
        allow_auto_topic_creation=read.flag("allow.auto.create.topics"),
        group=_group_settings(read, own),
    )
    read.report()
    return settings


def _fetch_settings(config: ClientConfig) -> FetchSettings:
    if config.integer("fetch.max.wait.ms") >= config.integer("request.timeout.ms"):
        raise ConfigError(
            f"fetch.max.wait.ms = {config['fetch.max.wait.ms']} must be less than"
            f" request.timeout.ms = {config['request.timeout.ms']}; otherwise every fetch that"
            " finds no records would time out"
        )
    # No broker is asked for more than the client accepts in one response.
    response_records_max = config.integer(RESPONSE_LIMIT) - _FETCH_OVERHEAD_BYTES
    return FetchSettings(
        bytes_min=config.integer("fetch.min.bytes"),
        bytes_max=min(config.integer("fetch.max.bytes"), response_records_max),
        partition_bytes_max=config.integer("max.partition.fetch.bytes"),
        decompressed_bytes_max=config.integer("fetch.max.decompressed.bytes"),
        wait_seconds=config.seconds("fetch.max.wait.ms"),
        is_read_committed=config.text("isolation.level") == "read_committed",
        checks_crcs=config.flag("check.crcs"),
        rack=config.text("client.rack"),
    )


def _group_settings(config: ClientConfig, own: Mapping[str, Assignor]) -> GroupSettings | None:
    group_id = config["group.id"]
    if group_id is None:
        _check_without_group(config)
        return None
    from .coordinator._classic_member import GroupSettings

    _check_group(config)
    # Without an interval, a background task would commit, or look for what to commit, without end.
    commit_seconds = max(0.001, config.seconds("auto.commit.interval.ms"))
    return GroupSettings(
        group_id=config.text("group.id"),
        instance_id=config.optional("group.instance.id"),
        rack_id=config.optional("client.rack"),
        session_timeout_seconds=config.seconds("session.timeout.ms"),
        heartbeat_seconds=config.seconds("heartbeat.interval.ms"),
        max_poll_interval_seconds=config.seconds("max.poll.interval.ms"),
        assignors=tuple(_assignors(config, own)),
        auto_commit_seconds=commit_seconds if config.flag("enable.auto.commit") else None,
        exclude_internal_topics=config.flag("exclude.internal.topics"),
        retry=retry_backoff(config),
        request_timeout_seconds=config.seconds("request.timeout.ms"),
        api_timeout_seconds=config.seconds("default.api.timeout.ms"),
    )


def _check_without_group(config: ClientConfig) -> None:
    if "enable.auto.commit" in config.given and config.flag("enable.auto.commit"):
        raise ConfigError(
            "enable.auto.commit = True requires group.id; set group.id, or leave out"
            " enable.auto.commit"
        )
    if "group.instance.id" in config.given:
        raise ConfigError("group.instance.id requires group.id; set both")


def _check_group(config: ClientConfig) -> None:
    for key in ("group.id", "group.instance.id"):
        if config[key] == "":
            raise ConfigError(f"{key} = '' is not allowed; set it to a name, or leave it out")
    if config.integer("heartbeat.interval.ms") >= config.integer("session.timeout.ms"):
        raise ConfigError(
            f"heartbeat.interval.ms = {config['heartbeat.interval.ms']} must be less"
            f" than session.timeout.ms = {config['session.timeout.ms']}; at most a third of"
            " that is recommended"
        )


# Assignors.


def _by_name(
    settings: Mapping[str, object], own: dict[str, Assignor]
) -> Iterator[tuple[str, object]]:
    """Yield the settings, with assignors replaced by their names and added to ``own``."""
    for name, value in settings.items():
        is_strategy = name.replace("_", ".") == _STRATEGY
        if not is_strategy or value is None or isinstance(value, str):
            yield name, value
            continue
        from .assignors import Assignor

        each_or_all = value if isinstance(value, list | tuple) else [value]
        names: list[object] = []
        for each in each_or_all:
            if isinstance(each, Assignor):
                own[each.name] = each
            names.append(each.name if isinstance(each, Assignor) else each)
        yield name, names


@cache
def _of_kafka() -> Mapping[str, Assignor]:
    """Return the assignors of Kafka by their name."""
    from .assignors import (
        CooperativeStickyAssignor,
        RangeAssignor,
        RoundRobinAssignor,
        StickyAssignor,
    )

    assignors = RangeAssignor(), RoundRobinAssignor(), StickyAssignor(), CooperativeStickyAssignor()
    return {each.name: each for each in assignors}


def _assignors(config: ClientConfig, own: Mapping[str, Assignor]) -> Iterator[Assignor]:
    of_kafka = _of_kafka()
    package = "org.apache.kafka.clients.consumer"
    of_java = {f"{package}.{type(each).__name__}": each for each in of_kafka.values()}
    known = {**of_java, **of_kafka, **own}
    names = config.names(_STRATEGY)
    if not names:
        raise ConfigError(f"{_STRATEGY} must name an assignor; allowed: {', '.join(of_kafka)}")
    for name in dict.fromkeys(names):
        if name not in known:
            raise ConfigError(
                f"{_STRATEGY} = {name!r}: unknown assignor; allowed: {', '.join(of_kafka)},"
                " their Java class names, or a custom assignor"
            )
        yield known[name]
