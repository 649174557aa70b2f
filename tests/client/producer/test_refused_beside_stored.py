"""A record that is refused for good costs its neighbours in flight nothing."""

from __future__ import annotations

import pytest

from trionet import RecordTooLargeError, open_broker, open_producer
from trionet.testing import MemoryNetwork, control, run_virtual

TOO_LARGE = bytes(300)


def test_a_record_whose_response_was_an_error_is_there_once_beside_one_that_is_too_large() -> None:
    """The leader has the first one: with the number of a new epoch it would take it once more."""

    async def main(network: MemoryNetwork) -> None:
        async with open_broker(network=network) as broker:
            kit = control(broker)
            await kit.create_topic("t", 1, max_message_bytes=200)
            async with open_producer(
                broker.bootstrap_servers, {"batch.size": 1}, network=network
            ) as producer:
                await producer.send("t", b"leader known")
                kit.faults.fail("Produce", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", executed=True)
                stored = producer.send_nowait("t", b"stored")
                refused = producer.send_nowait("t", TOO_LARGE)
                following = producer.send_nowait("t", b"following")

                await stored
                await following
                with pytest.raises(RecordTooLargeError):
                    await refused

            assert [b"leader known", b"stored", b"following"] == kit.values("t")

    run_virtual(main)
