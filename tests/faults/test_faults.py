"""A short fault run: nobody healthy sees an error, and nothing of the others is left."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.console import Console

from faults.__main__ import show
from faults.peers import CROWDS, FAULTS
from faults.run import run
from trionet.net.wire._close_reason import CloseReason

SECONDS = 8.0
SEED = 1

# What the faults must have led to, or they were none.
REASONS = {
    CloseReason.AUTHENTICATION_FAILED,
    CloseReason.AUTHENTICATION_TIMEOUT,
    CloseReason.IDLE,
    CloseReason.INVALID_RECEIVE,
    CloseReason.PEER_CLOSED,
    CloseReason.PEER_CLOSED_IN_FRAME,
    CloseReason.PEER_RESET,
    CloseReason.REGISTER_FAILED,
    CloseReason.SEND_FAILED,
}


@pytest.mark.slow
def test_all_faults_at_once_disturb_no_other_and_leave_nothing(tmp_path: Path) -> None:
    outcome = run(SECONDS, SEED, tmp_path)
    show(outcome, Console(width=150))

    assert [] == list(outcome.complaints())
    assert {fault.__name__ for fault in FAULTS + CROWDS} == set(outcome.happened)
    assert outcome.storm["attempts"] > 0
    assert outcome.descriptors_missed > 0
    # Who comes too fast is held back in the longer runs; here there may be no time for it.
    assert outcome.after["quotas"]["delayed"]
    assert outcome.after["quotas"]["rejected"]
    assert {reason.name for reason in REASONS} <= set(outcome.after["closed"])
