"""Why a command had no answer, as far as a client knows."""

from __future__ import annotations

from typing import Any, cast

from trionet.cli.unreached import unreached


def told(**counts: int) -> str:
    statistics = {name.replace("_", "-"): count for name, count in counts.items()}
    return str(unreached("b:1", 2, cast(Any, statistics), longer="-m"))


def test_nobody_was_there() -> None:
    assert "no broker was reached at b:1" in told(response_total=0, connection_count=0)


def test_somebody_said_nothing() -> None:
    text = told(response_total=0, connection_count=1)
    assert "has answered nothing within 2 seconds" in text


def test_somebody_said_something_else_than_what_was_asked_for() -> None:
    for connections in (0, 1):
        text = told(response_total=3, connection_count=connections)
        assert "b:1 has answered, and did not finish this within 2 seconds" in text
        assert "security.protocol" not in text
