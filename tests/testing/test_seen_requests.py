"""The requests that a broker has got, as tests see them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import trionet
from support.calls import batch, fetch_request, produce_request
from trionet.protocol.messages.find_coordinator import FindCoordinatorRequest
from trionet.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from trionet.protocol.messages.produce import ProduceRequest
from trionet.testing import SeenRequest, ThreadedBroker, raw_peer
from trionet.testing import _seen_requests as seen_requests
from trionet.testing._seen_requests import SeenRequests


@pytest.fixture
def broker() -> Iterator[ThreadedBroker]:
    with trionet.testing.broker(topics={"t": 2, "u": 1}) as running:
        yield running


def test_requests_are_kept_with_what_became_of_them(broker: ThreadedBroker) -> None:
    with raw_peer(broker.bootstrap_servers, "me") as peer:
        peer.call(produce_request("t", batch(b"a")), 12)
        peer.call(produce_request("missing", batch(b"a")), 9)

    good, bad = broker.requests("Produce")
    assert isinstance(good.message, ProduceRequest)
    assert ("Produce", 0, 12, "me", 1) == (
        good.api,
        good.api_key,
        good.version,
        good.client_id,
        good.node,
    )
    assert [(), ("UNKNOWN_TOPIC_OR_PARTITION",)] == [good.errors, bad.errors]
    assert good.connection == bad.connection
    assert 0 <= bad.time_ms - good.time_ms < 60_000


def test_requests_are_found_by_what_they_are_about(broker: ThreadedBroker) -> None:
    with raw_peer(broker.bootstrap_servers, "me") as peer:
        peer.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
        peer.call(produce_request("u", batch(b"a")), 12)
        peer.call(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
        peer.call(FindCoordinatorRequest(coordinator_keys=["g"], key_type=1), 4)
    [first, *_] = broker.requests()

    def found(*apis: Any, **which: Any) -> list[str]:
        return [request.api for request in broker.requests(*apis, **which)]

    assert ["Metadata"] == found(topic="t")
    assert ["Produce"] == found(topic="u")
    assert ["FindCoordinator"] == found(group="g")
    assert ["Metadata", "Produce"] == found(["Metadata", 0])
    assert 4 == len(found(client_id="me", connection=first.connection, node=1))
    assert [] == found(client_id="you") + found(node=2)
    with pytest.raises(ValueError, match="the closest match is Produce"):
        broker.requests("Prodce")


def test_a_topic_by_its_id_and_a_session_are_known_by_name(broker: ThreadedBroker) -> None:
    with raw_peer(broker.bootstrap_servers) as peer:
        [topic] = peer.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12).topics
        begun = peer.call(fetch_request({topic.topic_id: {0: 0, 1: 0}}, session=(0, 0)), 13)
        peer.call(fetch_request({}, session=(begun.session_id, 1)), 13)

    first, second = broker.requests("Fetch")
    assert {("t", 0), ("t", 1)} == set(first.topics)
    assert {("t", 0), ("t", 1)} == set(second.topics)


def test_requests_can_be_forgotten(broker: ThreadedBroker) -> None:
    with raw_peer(broker.bootstrap_servers) as peer:
        peer.call(MetadataRequest(topics=[]), 12)
        broker.forget_requests()
        peer.call(produce_request("t", batch(b"a")), 12)

    assert ["Produce"] == [request.api for request in broker.requests()]


def request(number: int) -> SeenRequest:
    return SeenRequest(
        node=1,
        api="Metadata",
        version=0,
        client_id=None,
        connection="c",
        message=MetadataRequest(),
        time_ms=number,
    )


def test_of_too_many_requests_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_requests, "REQUESTS_KEPT_MAX", 3)
    seen = SeenRequests()

    for number in range(5):
        seen.add(request(number), 1)

    assert [2, 3, 4] == [each.time_ms for each in seen]
    assert 2 == seen.forgotten


def test_of_too_large_requests_the_oldest_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_requests, "REQUEST_BYTES_KEPT_MAX", 10)
    seen = SeenRequests()

    for number, size in enumerate([4, 4, 4, 100]):
        seen.add(request(number), size)

    assert [3] == [each.time_ms for each in seen]


def test_a_line_reports_what_became_of_a_request(broker: ThreadedBroker) -> None:
    with raw_peer(broker.bootstrap_servers, "me") as peer:
        peer.call(produce_request("t", batch(b"a")), 12)
        peer.call(FindCoordinatorRequest(coordinator_keys=["g"]), 4)

        one, other = broker.log().splitlines()

        [connection] = broker.connections()
    assert one.endswith(f" Produce v12 t-0 from me on {connection.id}: ok")
    assert other.endswith(f" FindCoordinator v4 group g from me on {connection.id}: ok")
    assert ("User:ANONYMOUS", 2, 1) == (
        connection.principal,
        connection.requests,
        connection.node,
    )


def test_a_line_has_nothing_that_a_terminal_obeys(broker: ThreadedBroker) -> None:
    with raw_peer(broker.bootstrap_servers, "me\x1b[2J") as peer:
        peer.call(FindCoordinatorRequest(coordinator_keys=["a\x1b]0;title\x07\n\u202egroup"]), 4)

    assert r"group a\u001b]0;title\u0007\n\u202egroup from me\u001b[2J on " in broker.log()
    assert all(line.isprintable() for line in broker.log().splitlines())
