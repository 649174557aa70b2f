"""The settings with which a consumer fetches."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class FetchSettings:
    """A consumer's fetch settings.

    Attributes:
        bytes_min: how many bytes a node waits for before it responds (``fetch.min.bytes``).
        bytes_max: the size limit for one response, and for all buffered records
            (``fetch.max.bytes``).
        partition_bytes_max: the size limit for one partition in a response. While a partition has
            this many bytes buffered, nothing is fetched from its node
            (``max.partition.fetch.bytes``).
        decompressed_bytes_max: the size limit for one batch when it is decompressed
            (``fetch.max.decompressed.bytes``).
        wait_seconds: the longest that a node waits for ``bytes_min`` bytes (``fetch.max.wait.ms``).
        is_read_committed: whether to omit the records of aborted and open transactions
            (``isolation.level``).
        checks_crcs: whether to verify the checksum of each batch (``check.crcs``).
        rack: the rack of this consumer, used to fetch from a nearby replica (``client.rack``,
            KIP-392).
    """

    bytes_min: int = 1
    bytes_max: int = 52_428_800
    partition_bytes_max: int = 1_048_576
    decompressed_bytes_max: int = 134_217_728
    wait_seconds: float = 0.5
    is_read_committed: bool = False
    checks_crcs: bool = True
    rack: str = ""
