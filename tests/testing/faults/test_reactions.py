"""What a client has done after a fault, in words."""

from __future__ import annotations

import pytest

from trionet.protocol.messages.produce import ProduceRequest
from trionet.testing import SeenRequest
from trionet.testing.faults._reactions import reaction


def request(
    api: str,
    ms: int,
    connection: str = "first",
    errors: tuple[str, ...] | None = (),
    topic: str | None = None,
) -> SeenRequest:
    return SeenRequest(
        node=1,
        api=api,
        version=9,
        client_id="app",
        connection=connection,
        message=ProduceRequest(),
        time_ms=ms,
        topics=() if topic is None else ((topic, 0),),
        errors=errors,
    )


HIT = request("Produce", 1_000, errors=("NOT_LEADER_OR_FOLLOWER",), topic="t")
RETRY = request("Produce", 1_105, topic="t")


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ([], "nothing yet"),
        ([RETRY], "retried after 105 ms: ok"),
        ([request("Metadata", 1_003), RETRY], "Metadata after 3 ms, retried after 105 ms: ok"),
        (
            [request("ApiVersions", 1_050, "second"), request("Produce", 1_200, "second")],
            "reconnected, Produce after 200 ms",
        ),
        (
            [
                request("ApiVersions", 1_050, "second"),
                request("Produce", 31_000, "second", None, "t"),
            ],
            "reconnected, retried after 30 s: no response yet",
        ),
        (
            [request("Produce", 1_001, errors=("REQUEST_TIMED_OUT",), topic="t")],
            "retried after 1 ms: REQUEST_TIMED_OUT",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_first_requests_after_it_are_the_reaction(
    later: list[SeenRequest], expected: str
) -> None:
    assert expected == reaction(HIT, later, {"first"})


def test_a_connection_that_is_gone_is_said_so_until_the_client_is_back() -> None:
    assert "connection closed" == reaction(HIT, [], set())
    assert "retried after 105 ms: ok" == reaction(HIT, [RETRY], set())


def test_after_a_response_without_errors_the_next_request_is_no_retry() -> None:
    delayed = request("Produce", 1_000, topic="t")

    assert "next Produce after 105 ms: ok" == reaction(delayed, [RETRY], {"first"})
