"""The connections that closed last: bounded, countable by reason, and read in pages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from trionet.net.wire._close_reason import CloseReason
from trionet.server._closed_connections import (
    CLOSED_CONNECTIONS_MAX,
    TEXT_CHARS_MAX,
    ClosedConnection,
    ClosedConnections,
)


def closed(
    id: str = "c",
    reason: CloseReason = CloseReason.PEER_CLOSED,
    *,
    detail: str = "",
    principal: str = "User:ANONYMOUS",
) -> ClosedConnection:
    return ClosedConnection(
        id=id,
        reason=reason,
        detail=detail,
        peer="127.0.0.1:50123",
        listener="PLAINTEXT",
        processor=0,
        principal=principal,
        opened_at=10,
        closed_at=12.5,
        requests=3,
        bytes_received=100,
        bytes_sent=200,
    )


def ids(page: list[tuple[int, ClosedConnection]]) -> list[str]:
    """The ids of a page; each of them is its number."""
    assert [str(number) for number, _ in page] == [connection.id for _, connection in page]
    return [connection.id for _, connection in page]


def filled(count: int, count_max: int) -> ClosedConnections:
    ring = ClosedConnections(count_max)
    for number in range(count):
        ring.add(closed(str(number)))
    return ring


def test_the_age_of_a_connection_is_how_long_it_was_open() -> None:
    assert 2.5 == closed().age_seconds


def test_the_last_thousand_are_remembered_and_all_are_counted() -> None:
    ring = ClosedConnections()
    for number in range(CLOSED_CONNECTIONS_MAX + 1):
        ring.add(closed(str(number), CloseReason.IDLE if number < 2 else CloseReason.PEER_RESET))

    assert 1000 == len(ring) == len(ring.page(5000))
    assert {CloseReason.IDLE: 2, CloseReason.PEER_RESET: 999} == ring.by_reason
    assert 1001 == ring.total


def test_a_reason_that_never_was_counts_0() -> None:
    ring = ClosedConnections()

    assert 0 == ring.by_reason.get(CloseReason.IDLE, 0)
    assert [] == ring.page(10)


def test_pages_go_from_the_last_to_the_first() -> None:
    ring = filled(7, count_max=5)

    assert ["6", "5"] == ids(ring.page(2))
    assert ["4", "3"] == ids(ring.page(2, before=5))
    assert ["2"] == ids(ring.page(2, before=3))
    assert [] == ids(ring.page(2, before=2))


def test_what_closes_while_pages_are_turned_moves_nothing() -> None:
    ring = filled(4, count_max=10)
    assert ["3", "2"] == ids(ring.page(2))

    ring.add(closed("4"))

    assert ["1", "0"] == ids(ring.page(2, before=2))
    assert ["4", "3"] == ids(ring.page(2, before=1000))


def test_texts_of_a_peer_are_cut() -> None:
    connection = closed(detail="x" * 10_000, principal="y" * (TEXT_CHARS_MAX + 1))

    assert TEXT_CHARS_MAX == len(connection.detail) == len(connection.principal)
    assert connection.detail.endswith("x…")
    assert "z" * TEXT_CHARS_MAX == closed(detail="z" * TEXT_CHARS_MAX).detail


@given(st.integers(0, 30), st.integers(1, 20), st.integers(1, 7))
def test_turning_pages_shows_each_remembered_one_once(count: int, held: int, page: int) -> None:
    ring = filled(count, held)
    seen: list[str] = []
    before = None

    while found := ring.page(page, before):
        assert len(found) <= page
        seen += ids(found)
        before = found[-1][0]

    assert [str(number) for number in reversed(range(count))][:held] == seen
