"""A job is asked to stop by a signal, which interrupts nothing."""

from __future__ import annotations

import signal

import pytest

from trionet.spark.pipeline._session import Stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_request_to_stop_and_no_exception(number: signal.Signals) -> None:
    with Stop.on_signals() as stop:
        assert not stop.is_requested
        signal.raise_signal(number)
        assert stop.is_requested


def test_the_handlers_are_those_of_before_when_the_block_is_over() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    with Stop.on_signals():
        assert before != (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))

    assert before == (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
