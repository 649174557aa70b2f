"""Apache Kafka takes any batch of a producer first that it does not know, as our broker does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.cache import Unavailable
from support.first_batches import ALL, FORGOTTEN, UNWRITTEN, send_first_batches
from support.kafka_node import kafka_node
from support.produce_fates import LOST_RESPONSE, PASSED, Fate

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    try:
        with kafka_node() as (bootstrap_servers, _):
            yield bootstrap_servers
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("in_flight", [1, 2, 5])
@pytest.mark.parametrize("second", [LOST_RESPONSE, PASSED], ids=lambda fate: fate.text)
@pytest.mark.parametrize("first", UNWRITTEN.values(), ids=UNWRITTEN)
async def test_first_batch_that_is_refused_is_written_before_the_second(
    address: str, first: Fate, second: Fate, in_flight: int
) -> None:
    topic = f"{first.text}-{second.text}-{in_flight}".replace(" ", "-")
    sent = await send_first_batches(
        address, topic, {(0, 0): first, (1, 0): second}, in_flight=in_flight
    )

    assert [] == sent.acknowledged_elsewhere
    assert sent.log == ALL


async def test_batch_is_sent_again_while_its_leader_remembers_it(address: str) -> None:
    sent = await send_first_batches(address, "forgotten", FORGOTTEN, in_flight=5)

    assert [] == sent.acknowledged_elsewhere
    assert sent.log == ALL
