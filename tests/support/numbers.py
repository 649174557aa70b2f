"""The numbers that metrics are made of, as a test wants them."""

from __future__ import annotations

from collections import Counter

import attrs

from support.serving import listener
from trionet.net._selector_counters import SelectorCounters
from trionet.net.wire._close_reason import CloseReason
from trionet.net.wire._endpoint import Endpoint


@attrs.define
class Numbers:
    """The numbers of a processor, as a test wants them."""

    id: int = 0
    endpoint: Endpoint = attrs.Factory(lambda: listener(name="A"))
    closed: Counter[CloseReason] = attrs.Factory(Counter)
    counters: SelectorCounters = attrs.Factory(SelectorCounters)
    connection_count: int = 0
    connections_created: int = 0
    requests_received: int = 0
    responses_sent: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0
    response_queue_size: int = 0
    request_queue_full: int = 0
