"""Consumer settings, with times in seconds and sizes in bytes."""

from __future__ import annotations

import attrs

from ..network._exchange import RequestSettings
from ..network._open_client import ClientSettings
from .coordinator._group_settings import GroupSettings
from .fetch._completed_fetch import FetchSettings
from .state._reset_strategy import LATEST, ResetStrategy

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
