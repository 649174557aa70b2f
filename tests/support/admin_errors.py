"""What became of the items of an admin call."""

from __future__ import annotations

from trionet import ApiError
from trionet.protocol.error_codes import name_of


def code_of(outcome: object) -> str:
    """The name of the error that an item ended with."""
    assert isinstance(outcome, ApiError), outcome
    return name_of(outcome.error_code)
