"""Why a command has had no response, as far as its client knows."""

from __future__ import annotations

from typing import Any

import attrs

from trionet.cli.clients._connection_errors import timeout_error


@attrs.frozen
class Waiting:
    """A client that has waited."""

    responses: int = 0
    problem: str = ""

    def statistics(self) -> Any:
        return {"response-total": self.responses}

    def connection_problem(self) -> str:
        return self.problem


def said_of(client: Waiting) -> str:
    return str(timeout_error("b:1", 2, client, option="-m"))


def test_what_the_client_knows_is_said() -> None:
    for responses in (0, 3):
        problem = "broker 1 cannot be reached"
        expected = f"timed out after 2 s: {problem}; raise the limit with -m"

        assert expected == said_of(Waiting(responses, problem))


def test_silence_is_said_before_the_client_has_noticed_it() -> None:
    assert "b:1 has not responded" in said_of(Waiting())


def test_a_broker_that_has_responded_hangs() -> None:
    assert "b:1 responded earlier but no longer does" in said_of(Waiting(responses=3))
