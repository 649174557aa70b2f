"""The worst small requests of every API: the long run is `python3 tests hostile`."""

from __future__ import annotations

import gc

import pytest
import trio

from hostile import case
from hostile.frames import TOPIC, hostile_frames
from support.client import connect
from trionet import open_broker

SIZE = 30_000
#: Of the processor's time, in one piece. In the worst of these requests there were seconds of it.
HELD_MS_MAX = 100


@pytest.mark.slow
async def test_no_request_holds_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case, "PARTITIONS", 1500)
    monkeypatch.setattr(case, "SMALL_TOPICS", 20)
    held: dict[str, float] = {}
    async with (
        open_broker(auto_create_topics_enable=False) as broker,
        trio.open_nursery() as nursery,
        connect(broker.bootstrap_servers) as client,
    ):
        await case.populate(client)
        big = broker._state.topics.get(TOPIC)
        assert big is not None
        gc.freeze()  # a collection of what other tests have left is none of a request's
        ticker = case.Ticker()
        nursery.start_soon(ticker.run)
        for served in broker._apis.advertised.ranges:
            versions = range(served.min_version, served.max_version + 1)
            for hostile in hostile_frames(served.api_key, versions, SIZE, {TOPIC: big.id}):
                _, held[hostile.name] = await case.attack(broker, hostile, ticker)
        nursery.cancel_scope.cancel()
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # without the broker, as before

    assert len(held) > 300
    assert {} == {name: ms for name, ms in held.items() if ms > HELD_MS_MAX}
