"""A leader that knows nothing of a producer takes any of its batches first.

The proxy stands between real sockets: the first batch is not written, the second one is.
"""

from __future__ import annotations

import pytest

import trionet
from support.first_batches import ALL, FORGOTTEN, UNWRITTEN, send_first_batches
from support.produce_fates import LOST_RESPONSE, PASSED, Fate


@pytest.mark.parametrize("in_flight", [1, 2, 5])
@pytest.mark.parametrize("second", [LOST_RESPONSE, PASSED], ids=lambda fate: fate.text)
@pytest.mark.parametrize("first", UNWRITTEN.values(), ids=UNWRITTEN)
async def test_first_batch_that_is_refused_is_written_before_the_second(
    first: Fate, second: Fate, in_flight: int
) -> None:
    async with trionet.open_broker() as broker:
        sent = await send_first_batches(
            broker.bootstrap_servers,
            "t",
            {(0, 0): first, (1, 0): second},
            in_flight=in_flight,
        )

    assert [] == sent.acknowledged_elsewhere
    assert sent.log == ALL


async def test_batch_is_sent_again_while_its_leader_remembers_it() -> None:
    async with trionet.open_broker() as broker:
        sent = await send_first_batches(broker.bootstrap_servers, "t", FORGOTTEN, in_flight=5)

    assert [] == sent.acknowledged_elsewhere
    assert sent.log == ALL
