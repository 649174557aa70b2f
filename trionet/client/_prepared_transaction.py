"""A transaction that its producer has left to another process, which commits or aborts it.

(KIP-939: PreparedTxnState.) The brokers know no such state: to them the transaction is open, and
any client that knows its producer id and epoch can end it, until ``transaction.timeout.ms``.
"""

from __future__ import annotations

import attrs


@attrs.frozen
class PreparedTransaction:
    """All that is needed to end a transaction; can be pickled.

    Attributes:
        transactional_id: the transactional id of the producer.
        producer_id: the producer id.
        producer_epoch: the producer epoch.
        is_v2: whether the producer has used TV2 (KIP-890), which its end must use, too.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_v2: bool
