"""All settings of a consumer, in natural units."""

from __future__ import annotations

import attrs

from ..network._opening import ClientSettings
from ..network._request_settings import RequestSettings
from .coordinator._group_settings import GroupSettings
from .state._reset_strategy import LATEST, ResetStrategy

#: A consumer's requests to one node that are under way (Kafka: ConsumerNetworkClient has 100).
IN_FLIGHT_MAX = 100


@attrs.frozen(kw_only=True)
class FetchSettings:
    """How records are fetched.

    Attributes:
        bytes_min: a node answers when it has so much (``fetch.min.bytes``).
        bytes_max: of one answer, and of all that is fetched ahead (``fetch.max.bytes``).
        partition_bytes_max: of one partition in an answer; no more is fetched of a partition while
            so much of it waits to be handed out (``max.partition.fetch.bytes``).
        wait_seconds: how long a node may wait for ``bytes_min`` (``fetch.max.wait.ms``).
        is_read_committed: leave out what was aborted or is undecided (``isolation.level``).
        checks_crcs: look at the checksum of each batch (``check.crcs``).
        rack: where this consumer is, to be served nearby (``client.rack``, KIP-392).
    """

    bytes_min: int = 1
    bytes_max: int = 52_428_800
    partition_bytes_max: int = 1_048_576
    wait_seconds: float = 0.5
    is_read_committed: bool = False
    checks_crcs: bool = True
    rack: str = ""


@attrs.frozen(kw_only=True)
class ConsumerSettings:
    """All settings of a consumer.

    Attributes:
        client: of the NetworkClient below.
        fetch: how records are fetched.
        reset: where to begin without an offset (``auto.offset.reset``).
        records_max: the most in one batch of :meth:`.Consumer.batches` (``max.poll.records``).
        api_seconds: how long a question such as for offsets is asked again when it cannot be
            answered (``default.api.timeout.ms``).
        allow_auto_topic_creation: whether asking for a topic may make it
            (``allow.auto.create.topics``).
        group: how it takes part in its group; None without ``group.id``.
    """

    client: ClientSettings = attrs.field(
        default=ClientSettings(requests=RequestSettings(in_flight_max=IN_FLIGHT_MAX))
    )
    fetch: FetchSettings = attrs.field(factory=FetchSettings)
    reset: ResetStrategy = LATEST
    records_max: int = 500
    api_seconds: float = 60.0
    allow_auto_topic_creation: bool = True
    group: GroupSettings | None = None
