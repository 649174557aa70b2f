from __future__ import annotations

import pytest

from trionet.client._topic_partition import TopicPartition
from trionet.client.consumer.fetch._fetch_session import FetchSession, RequestedPartition
from trionet.protocol import error_codes
from trionet.protocol._wire import NO_UUID
from trionet.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
IDS = {"a": b"a" * 16, "b": b"b" * 16}


def wanted(offset: int = 0, *names: TopicPartition) -> dict[TopicPartition, RequestedPartition]:
    return {each: RequestedPartition(IDS[each.topic], offset, 1000, 3) for each in names}


def filled(
    session: FetchSession, partitions: dict[TopicPartition, RequestedPartition]
) -> FetchRequest:
    request = FetchRequest()
    session.fill(request, partitions)
    return request


def asked(request: FetchRequest) -> list[tuple[str, int, int]]:
    return [
        (topic.topic, each.partition, each.fetch_offset)
        for topic in request.topics
        for each in topic.partitions
    ]


def forgotten(request: FetchRequest) -> list[tuple[str, list[int]]]:
    return [(each.topic, each.partitions) for each in request.forgotten_topics_data]


def answer(session_id: int, *names: TopicPartition, error_code: int = 0) -> FetchResponse:
    topics = [
        FetchableTopicResponse(
            topic_id=IDS[each.topic], partitions=[PartitionData(partition_index=each.partition)]
        )
        for each in names
    ]
    return FetchResponse(session_id=session_id, responses=topics, error_code=error_code)


def opened(*names: TopicPartition) -> FetchSession:
    session = FetchSession(1)
    filled(session, wanted(0, *names))
    assert session.handle_response(answer(7, *names)) is not None
    return session


def test_first_request_asks_for_all_and_for_a_session() -> None:
    request = filled(FetchSession(1), wanted(5, A0, A1, B0))

    assert (0, 0) == (request.session_id, request.session_epoch)
    assert [("a", 0, 5), ("a", 1, 5), ("b", 0, 5)] == asked(request)
    assert [IDS["a"], IDS["b"]] == [each.topic_id for each in request.topics]


def test_next_requests_name_changes_alone() -> None:
    session = opened(A0, A1, B0)
    request = filled(session, {**wanted(0, A0, B0), **wanted(9, B0)})

    assert (7, 1) == (request.session_id, request.session_epoch)
    assert [("b", 0, 9)] == asked(request)
    assert [("a", [1])] == forgotten(request)
    assert session.handle_response(answer(7, B0)) is not None
    request = filled(session, {**wanted(0, A0, A1), **wanted(9, B0)})
    assert (7, 2) == (request.session_id, request.session_epoch)
    assert [("a", 1, 0)] == asked(request)
    assert [] == forgotten(request)


def test_partitions_are_found_by_their_topics_ids() -> None:
    session = opened(A0, B0)
    filled(session, wanted(1, A0, B0))
    found = session.handle_response(answer(7, B0))

    assert found is not None
    assert [B0] == list(found)


def test_topic_that_was_made_anew_is_forgotten_under_its_old_id() -> None:
    session = opened(A0)
    anew = {A0: RequestedPartition(b"c" * 16, 0, 1000, 0)}
    request = filled(session, anew)

    assert [b"c" * 16] == [each.topic_id for each in request.topics]
    assert [b"a" * 16] == [each.topic_id for each in request.forgotten_topics_data]


def test_node_that_opens_no_session_is_asked_for_all_each_time() -> None:
    session = FetchSession(1)
    for _ in range(2):
        request = filled(session, wanted(0, A0))
        assert (0, 0, [("a", 0, 0)]) == (
            request.session_id,
            request.session_epoch,
            asked(request),
        )
        assert session.handle_response(answer(0, A0)) is not None


def test_node_may_close_a_session_in_its_response() -> None:
    session = opened(A0, A1)
    filled(session, wanted(1, A0, A1))
    assert session.handle_response(answer(0, A0)) is not None
    request = filled(session, wanted(1, A0, A1))

    assert (0, 0) == (request.session_id, request.session_epoch)
    assert 2 == len(asked(request))


@pytest.mark.parametrize(
    ("error_code", "session_id"),
    [
        (error_codes.FETCH_SESSION_ID_NOT_FOUND, 0),
        (error_codes.INVALID_FETCH_SESSION_EPOCH, 7),
        (error_codes.FETCH_SESSION_TOPIC_ID_ERROR, 7),
    ],
)
def test_refused_session_begins_anew(error_code: int, session_id: int) -> None:
    """One that the node may still have is closed by the same request."""
    session = opened(A0, A1)
    filled(session, wanted(1, A0, A1))

    assert session.handle_response(answer(0, error_code=error_code)) is None
    request = filled(session, wanted(1, A0, A1))
    assert (session_id, 0) == (request.session_id, request.session_epoch)
    assert 2 == len(asked(request))


def test_after_a_lost_connection_the_old_session_is_replaced() -> None:
    session = opened(A0)
    filled(session, wanted(1, A0))
    session.begin_anew()
    request = filled(session, wanted(1, A0))

    assert (7, 0, [("a", 0, 1)]) == (request.session_id, request.session_epoch, asked(request))


@pytest.mark.parametrize("names", [(A0,), (A0, A1, B0), ()])
def test_response_to_a_full_fetch_is_about_exactly_what_was_asked(
    names: tuple[TopicPartition, ...],
) -> None:
    session = FetchSession(1)
    filled(session, wanted(0, A0, A1))

    assert session.handle_response(answer(7, *names)) is None
    assert 0 == filled(session, wanted(0, A0, A1)).session_epoch


def test_response_without_partitions_that_throttles_is_a_response(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """KIP-219: a broker responds at once, and the client waits."""
    session = FetchSession(1)
    filled(session, wanted(0, A0, A1))
    throttled = answer(0)
    throttled.throttle_time_ms = 500

    assert {} == session.handle_response(throttled)
    assert not caplog.records
    assert 2 == len(asked(filled(session, wanted(0, A0, A1))))


def test_incremental_response_may_leave_out_but_not_add() -> None:
    session = opened(A0, A1)
    filled(session, wanted(1, A0, A1))
    assert {} == session.handle_response(answer(7))
    filled(session, wanted(2, A0, A1))
    assert session.handle_response(answer(7, B0)) is None


def test_session_speaks_of_topics_in_one_way_or_begins_anew() -> None:
    session = opened(A0)
    unknown = {A0: RequestedPartition(NO_UUID, 1, 1000, 0)}
    request = filled(session, unknown)

    assert not session.uses_topic_ids
    assert (7, 0, [("a", 0, 1)]) == (request.session_id, request.session_epoch, asked(request))


def test_epochs_begin_again_before_they_are_too_large() -> None:
    session = opened(A0)
    session._epoch = 2**31 - 1
    filled(session, wanted(1, A0))
    assert session.handle_response(answer(7)) is not None

    assert 1 == filled(session, wanted(2, A0)).session_epoch


def test_closing_says_the_final_epoch() -> None:
    session = opened(A0)
    assert session.is_open
    request = FetchRequest()
    session.closing(request)

    assert (7, -1) == (request.session_id, request.session_epoch)
    assert not session.is_open
