"""Requests that wait for their responses, node by node."""

from __future__ import annotations

import math

import pytest

from trionet.client.network._in_flight import InFlightRequest, InFlightRequests
from trionet.errors import LocalProtocolError
from trionet.protocol import api_keys
from trionet.protocol._codec import ApiVersionCodec, lookup

A, B = 1, 2


def heartbeat() -> ApiVersionCodec:
    codec = lookup(api_keys.HEARTBEAT, 4)
    assert codec is not None
    return codec


def request(
    node_id: int, correlation_id: int, *, sent_at: float = 0.0, seconds: float = 30.0
) -> InFlightRequest:
    return InFlightRequest(node_id, correlation_id, heartbeat(), None, sent_at, seconds)


def filled(*correlation_ids: int, requests_max: int = 5) -> InFlightRequests:
    in_flight = InFlightRequests(requests_max)
    for correlation_id in correlation_ids:
        in_flight.add(request(A, correlation_id))
    return in_flight


def ids(requests: list[InFlightRequest]) -> list[int]:
    return [each.correlation_id for each in requests]


def test_last_sent_is_completed_newest_first() -> None:
    """I1."""
    in_flight = filled(1, 2)

    assert 2 == in_flight.count(A)
    assert 2 == in_flight.complete_last_sent(A).correlation_id
    assert 1 == in_flight.count(A)
    assert 1 == in_flight.complete_last_sent(A).correlation_id
    assert 0 == in_flight.count(A) == len(in_flight)


def test_next_is_the_oldest() -> None:
    """I2."""
    in_flight = filled(1, 2)

    assert [1, 2] == ids([in_flight.complete_next(A), in_flight.complete_next(A)])
    assert 0 == len(in_flight)


def test_clear_gives_all_in_the_order_they_were_sent() -> None:
    """I3."""
    in_flight = filled(1, 2, 3)
    in_flight.add(request(B, 4))

    assert [1, 2, 3] == ids(in_flight.clear(A))
    assert (0, 1) == (in_flight.count(A), len(in_flight))


def test_any_late_request_makes_its_node_late() -> None:
    """I4."""
    in_flight = InFlightRequests(5)
    in_flight.add(request(A, 1, seconds=0.050))
    in_flight.add(request(B, 2, seconds=0.200))
    in_flight.add(request(B, 3, seconds=0.100))

    assert [] == in_flight.timed_out_nodes(0.050)
    assert [A] == in_flight.timed_out_nodes(0.075)
    assert [A, B] == in_flight.timed_out_nodes(0.125)
    assert [A] == in_flight.timed_out_nodes(in_flight.next_expiry())


def test_next_timeout_is_looked_for_when_an_earlier_one_would_have_come() -> None:
    """Not with each response, whose cost would grow with the number of requests in flight."""
    in_flight = InFlightRequests(5)
    in_flight.add(request(A, 1, seconds=10.0))
    in_flight.add(request(A, 2, seconds=20.0))
    assert 10.0 < in_flight.next_expiry() < 10.1
    in_flight.complete_next(A)

    assert [] == in_flight.timed_out_nodes(min(in_flight.next_expiry(), 20.0))
    assert 20.0 < in_flight.next_expiry() < 20.1
    assert [A] == in_flight.timed_out_nodes(in_flight.next_expiry())
    in_flight.clear(A)
    assert math.inf == in_flight.next_expiry()


@pytest.mark.parametrize("complete", ["complete_next", "complete_last_sent", "oldest", "last_sent"])
@pytest.mark.parametrize("is_known", [False, True])
def test_nothing_in_flight_cannot_be_completed(complete: str, is_known: bool) -> None:
    """I5."""
    in_flight = filled(*[1] * is_known)
    in_flight.clear(A)

    with pytest.raises(LocalProtocolError, match="no request to node 1 is in flight"):
        getattr(in_flight, complete)(A)


def test_time_of_throttling_does_not_make_a_response_late() -> None:
    """N12."""
    in_flight = InFlightRequests(5)
    in_flight.add(request(A, 1, seconds=10.0))

    in_flight.throttled(A, 5.0)

    assert [] == in_flight.timed_out_nodes(15.0)
    assert [A] == in_flight.timed_out_nodes(15.1)


def test_no_request_follows_one_that_has_not_left() -> None:
    """X13."""
    in_flight = InFlightRequests(2)

    assert in_flight.can_send_more(A)
    in_flight.add(request(A, 1))
    assert not in_flight.can_send_more(A)
    in_flight.last_sent(A).is_sent = True
    assert in_flight.can_send_more(A)
    in_flight.add(request(A, 2))
    in_flight.last_sent(A).is_sent = True
    assert not in_flight.can_send_more(A)  # two are the most
    in_flight.complete_next(A)
    assert in_flight.can_send_more(A)
    assert in_flight.can_send_more(B)
