"""Waiting for what is decided elsewhere; apart, because the modules that use it are compiled."""

# Compiled by mypyc.

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ._produce_request_result import BatchOutcome

if TYPE_CHECKING:
    from ._delivery import Delivery, RecordMetadata


async def delivered(delivery: Delivery) -> RecordMetadata:
    """Wait for the outcome of one record; see :meth:`.Delivery.result`."""
    if delivery.is_done:
        await trio.lowlevel.checkpoint()
    while not delivery.is_done:
        await _news(delivery.pending)
    return delivery.result()  # noqa: ASYNC910 -- what is not done was waited for


async def until_done(outcome: BatchOutcome) -> None:  # noqa: ASYNC910 -- as above
    """Wait until the fate of all records of a batch is decided, that of its parts after a split.

    Cancellation: changes nothing.
    """
    if outcome.is_done:
        await trio.lowlevel.checkpoint()
    while not outcome.is_done:
        if outcome.parts is None:
            await _news(outcome)
            continue
        for _, part in outcome.parts:
            await until_done(part)
        return  # noqa: ASYNC910 -- as above


async def _news(outcome: BatchOutcome) -> None:
    """Wait until a batch's fate is decided, or it is split."""
    if outcome.news is None:
        outcome.news = trio.Event()
    await outcome.news.wait()
