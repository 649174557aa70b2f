"""The settings of fetch requests, in seconds and bytes."""

from __future__ import annotations

import attrs


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
