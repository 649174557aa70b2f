"""What came of a run."""

from __future__ import annotations

import attrs
import trio

from support.ledger import Violation


@attrs.frozen
class Outcome:
    """What came of a run.

    Attributes:
        seed: that it was made of.
        steps: what the clients did.
        crashes: how often the broker died.
        virtual_seconds: how long it lasted by its own clock.
        real_seconds: how long it took.
        cpu_seconds: how long it had the processor meanwhile: the same where nothing else runs.
        digest: the same for the same course of events.
        violation: the rule that was broken; empty for none.
        tail: the last events before that.
    """

    seed: int
    steps: int
    crashes: int
    virtual_seconds: float
    real_seconds: float
    cpu_seconds: float
    digest: str
    violation: str = ""
    tail: tuple[str, ...] = ()


def violation_in(error: BaseException) -> str:
    """The first violation in a group of errors; other errors are violations, too, but for ^C."""
    if isinstance(error, BaseExceptionGroup):
        found = [violation_in(each) for each in error.exceptions]
        return next(filter(None, found), "")
    if isinstance(error, trio.TooSlowError):
        return "it does not come to its end"
    if isinstance(error, Violation):
        return str(error)
    if isinstance(error, Exception):
        return f"{type(error).__name__}: {error}"
    return ""
