"""The settings of a consumer, in seconds and bytes."""

from __future__ import annotations

import attrs

from ..network._opening import ClientSettings
from ..network._request_settings import RequestSettings
from .coordinator._group_settings import GroupSettings
from .state._reset_strategy import LATEST, ResetStrategy

#: The most requests in flight to one node (Kafka: ConsumerNetworkClient has 100).
IN_FLIGHT_MAX = 100


@attrs.frozen(kw_only=True)
class FetchSettings:
    """How records are fetched.

    Attributes:
        bytes_min: a node responds when it has this much (``fetch.min.bytes``).
        bytes_max: the limit of one response, and of all fetched records (``fetch.max.bytes``).
        partition_bytes_max: the limit of one partition in a response; no more is fetched of a
            partition while this much of it waits to be handed out (``max.partition.fetch.bytes``).
        wait_seconds: how long a node may wait for ``bytes_min`` (``fetch.max.wait.ms``).
        is_read_committed: skip records of aborted and open transactions (``isolation.level``).
        checks_crcs: verify the checksum of each batch (``check.crcs``).
        rack: the rack of this consumer, to fetch from nearby (``client.rack``, KIP-392).
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
        client: of its network client.
        fetch: how records are fetched.
        reset: where to begin without an offset (``auto.offset.reset``).
        records_max: the most in one batch of :meth:`.Consumer.batches` (``max.poll.records``).
        api_seconds: how long a call such as :meth:`.Consumer.end_offsets` retries
            (``default.api.timeout.ms``).
        allow_auto_topic_creation: whether requesting a topic's metadata may create it
            (``allow.auto.create.topics``).
        group: of its group; None without ``group.id``.
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
