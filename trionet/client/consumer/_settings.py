"""The settings of a consumer, in seconds and bytes."""

from __future__ import annotations

import attrs

from ..network._settings import ClientSettings, RequestSettings
from .coordinator._group_settings import GroupSettings
from .fetch._completed_fetch import FetchSettings
from .state._reset_strategy import LATEST, ResetStrategy

#: The most requests in flight to one node (Kafka: ConsumerNetworkClient has 100).
IN_FLIGHT_MAX = 100


@attrs.frozen(kw_only=True)
class ConsumerSettings:
    """All settings of a consumer.

    Attributes:
        client: the settings of the network client.
        fetch: how records are fetched.
        reset: where to start without an offset (``auto.offset.reset``).
        records_max: the maximum size of one batch of :meth:`.Consumer.batches`
            (``max.poll.records``).
        api_timeout_seconds: how long a call such as :meth:`.Consumer.end_offsets` retries
            (``default.api.timeout.ms``).
        allow_auto_topic_creation: whether requesting a topic's metadata may create it
            (``allow.auto.create.topics``).
        group: the settings of the group; None without ``group.id``.
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
