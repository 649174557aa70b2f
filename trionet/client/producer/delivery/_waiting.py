"""Waiting for the outcome of a batch."""

# Compiled by mypyc.

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from ._produce_request_result import ProduceRequestResult

if TYPE_CHECKING:
    from ._delivery import Delivery, RecordMetadata


async def delivered(delivery: Delivery) -> RecordMetadata:
    """Wait for the outcome of one record; see :meth:`.Delivery.result`."""
    if delivery.is_done:
        await trio.lowlevel.checkpoint()
    while not delivery.is_done:
        await _changed(delivery.pending)
    return delivery.result()  # noqa: ASYNC910 -- what is not done was waited for


async def until_done(outcome: ProduceRequestResult) -> None:  # noqa: ASYNC910 -- as above
    """Wait until the outcome of all records of a batch is decided; after a split, of all its parts.

    Cancellation: changes nothing.
    """
    if outcome.is_done:
        await trio.lowlevel.checkpoint()
    while not outcome.is_done:
        if outcome.parts is None:
            await _changed(outcome)
            continue
        for _, part in outcome.parts:
            await until_done(part)
        return  # noqa: ASYNC910 -- as above


async def _changed(outcome: ProduceRequestResult) -> None:
    """Wait until a batch's outcome is decided, or it is split."""
    if outcome.changed is None:
        outcome.changed = trio.Event()
    await outcome.changed.wait()
