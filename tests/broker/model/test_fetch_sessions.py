from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from support.calls import fetch_request
from trionet.broker.model._fetch_sessions import (
    FetchContext,
    FetchedPartition,
    FetchSession,
    FetchSessionCache,
    PartitionKey,
)
from trionet.errors import ApiError
from trionet.protocol.error_codes import (
    FETCH_SESSION_ID_NOT_FOUND,
    FETCH_SESSION_TOPIC_ID_ERROR,
    INVALID_FETCH_SESSION_EPOCH,
    NOT_LEADER_OR_FOLLOWER,
)
from trionet.protocol.messages.fetch import PartitionData

EPOCH_MAX = 2**31 - 1
BY_NAME, BY_ID = 12, 13
T1, T2 = b"\x01" * 16, b"\x02" * 16


def opened(cache: FetchSessionCache, now: float = 0, **session: Any) -> FetchContext:
    """What a fetch of partitions 0 and 1 of topic t gets, as a full one if nothing else is said."""
    session.setdefault("session", (0, 0))
    return cache.open(fetch_request({"t": {0: 0, 1: 0}}, **session), BY_NAME, now)


def begun(cache: FetchSessionCache, now: float = 0) -> FetchSession:
    session = opened(cache, now).session
    assert session is not None
    return session


def keys(context: FetchContext) -> list[PartitionKey]:
    return [partition.key for partition in context.partitions]


def code_of(cache: FetchSessionCache, request: Any, version: int = BY_NAME) -> int:
    with pytest.raises(ApiError) as raised:
        cache.open(request, version, 0)
    return raised.value.error_code


def test_a_full_fetch_with_epoch_0_begins_a_session() -> None:
    cache = FetchSessionCache(10)

    context = opened(cache)

    assert [("t", 0), ("t", 1)] == keys(context)
    assert not context.is_incremental
    assert context.session is not None
    assert 0 < context.session_id < 2**31
    assert 1 == len(cache)


def test_without_an_epoch_there_is_no_session() -> None:
    cache = FetchSessionCache(10)

    context = opened(cache, session=(0, -1))

    assert [("t", 0), ("t", 1)] == keys(context)
    assert (0, None, 0) == (context.session_id, context.session, len(cache))


def test_a_session_of_no_partitions_is_not_begun() -> None:
    cache = FetchSessionCache(10)

    context = cache.open(fetch_request({}, session=(0, 0)), BY_NAME, 0)

    assert (0, 0) == (context.session_id, len(cache))


def test_the_next_fetch_names_changes_only() -> None:
    cache = FetchSessionCache(10)
    id = begun(cache).id

    request = fetch_request({"t": {1: 7}, "u": {0: 3}}, session=(id, 1), forgotten={"t": [0, 9]})
    context = cache.open(request, BY_NAME, 0)

    assert context.is_incremental
    assert [(("t", 1), 7), (("u", 0), 3)] == [
        (partition.key, partition.fetch_offset) for partition in context.partitions
    ]


def test_epochs_go_on_with_1_after_the_largest() -> None:
    cache = FetchSessionCache(10)
    session = begun(cache)
    session.epoch = EPOCH_MAX

    opened(cache, session=(session.id, EPOCH_MAX))
    opened(cache, session=(session.id, 1))

    assert 2 == session.epoch


@pytest.mark.parametrize("epoch", [2, 3, -2, EPOCH_MAX])
def test_any_other_epoch_than_the_next_is_an_error_and_changes_nothing(epoch: int) -> None:
    cache = FetchSessionCache(10)
    session = begun(cache)
    request = fetch_request({"u": {0: 0}}, session=(session.id, epoch), forgotten={"t": [0, 1]})

    code = code_of(cache, request)

    assert INVALID_FETCH_SESSION_EPOCH == code
    assert (1, [("t", 0), ("t", 1)]) == (session.epoch, list(session.partitions))


def test_an_unknown_session_is_an_error() -> None:
    cache = FetchSessionCache(10)
    id = begun(cache).id

    code = code_of(cache, fetch_request({}, session=(id ^ 1, 1)))

    assert FETCH_SESSION_ID_NOT_FOUND == code


@pytest.mark.parametrize(("first", "second"), [(BY_NAME, BY_ID), (BY_ID, BY_NAME)])
def test_a_session_goes_on_naming_topics_as_it_began(first: int, second: int) -> None:
    cache = FetchSessionCache(10)
    topics: Mapping[Any, Mapping[int, int]] = {"t" if first == BY_NAME else T1: {0: 0}}
    context = cache.open(fetch_request(topics, session=(0, 0)), first, 0)

    code = code_of(cache, fetch_request({}, session=(context.session_id, 1)), second)

    assert FETCH_SESSION_TOPIC_ID_ERROR == code


@pytest.mark.parametrize("epoch", [-1, 0])
def test_a_full_fetch_ends_the_session_that_it_names(epoch: int) -> None:
    cache = FetchSessionCache(10)
    id = begun(cache).id

    context = opened(cache, session=(id, epoch))

    assert id != context.session_id
    assert FETCH_SESSION_ID_NOT_FOUND == code_of(cache, fetch_request({}, session=(id, 1)))


def test_a_session_that_forgets_its_last_partition_ends() -> None:
    cache = FetchSessionCache(10)
    id = begun(cache).id

    request = fetch_request({}, session=(id, 1), forgotten={"t": [0, 1]})
    context = cache.open(request, BY_NAME, 0)

    assert ([], 0, 0) == (context.partitions, context.session_id, len(cache))


def test_a_full_cache_drops_its_oldest_session_only_after_a_while() -> None:
    cache = FetchSessionCache(2, eviction_seconds=60)
    first, second = begun(cache, now=0), begun(cache, now=1)
    opened(cache, 30, session=(first.id, 1))

    too_early = opened(cache, now=60)
    in_time = opened(cache, now=61)

    assert (None, 0) == (too_early.session, too_early.session_id)
    assert [("t", 0), ("t", 1)] == keys(too_early)
    assert in_time.session is not None
    assert FETCH_SESSION_ID_NOT_FOUND == code_of(cache, fetch_request({}, session=(second.id, 1)))
    assert 2 == len(cache)


def session_of(cache: FetchSessionCache, size: int, now: float) -> FetchSession | None:
    """A session of so many partitions, if there is room for it."""
    return cache.open(
        fetch_request({"t": dict.fromkeys(range(size), 0)}, session=(0, 0)), BY_NAME, now
    ).session


def test_a_full_cache_drops_the_smallest_of_the_old_for_a_larger_one() -> None:
    """As Kafka does (KIP-227): who fetches much gains most by a session."""
    cache = FetchSessionCache(2, eviction_seconds=60)
    small, smaller = session_of(cache, 3, 0), session_of(cache, 2, 0)
    assert small is not None
    assert smaller is not None
    for each in (small, smaller):
        opened(cache, 30, session=(each.id, 1))

    assert session_of(cache, 5, 59) is None
    assert session_of(cache, 2, 61) is None
    assert session_of(cache, 3, 61) is not None
    assert [small.id] == [each.id for each in cache.sessions if each.id == small.id]
    assert cache.get(smaller.id) is None


def test_all_sessions_together_have_so_many_partitions_at_most() -> None:
    """Increments of partitions that do not exist could make one grow for ever."""
    cache = FetchSessionCache(100, elements=10)
    first = session_of(cache, 6, 0)
    assert first is not None
    assert session_of(cache, 5, 0) is None
    assert session_of(cache, 11, 1000) is None
    second = session_of(cache, 4, 0)
    assert (second is not None, 10) == (True, cache.elements)

    more = fetch_request({"t": {6: 0}}, session=(first.id, 1))
    assert FETCH_SESSION_ID_NOT_FOUND == code_of(cache, more)
    assert (1, 4) == (len(cache), cache.elements)
    assert session_of(cache, 6, 0) is not None


def test_what_is_forgotten_makes_room() -> None:
    cache = FetchSessionCache(100, elements=3)
    session = session_of(cache, 3, 0)
    assert session is not None

    cache.open(fetch_request({}, session=(session.id, 1), forgotten={"t": [0, 0, 9]}), BY_NAME, 0)
    assert 2 == cache.elements
    cache.open(fetch_request({"t": {5: 0}}, session=(session.id, 2)), BY_NAME, 0)
    assert 3 == cache.elements
    cache.open(fetch_request({}, session=(session.id, -1)), BY_NAME, 0)
    assert (0, 0) == (len(cache), cache.elements)


def test_no_slots_means_no_sessions() -> None:
    cache = FetchSessionCache(0)

    context = opened(cache, now=1e9)

    assert (0, 2, 0) == (context.session_id, len(context.partitions), len(cache))


def test_a_partition_that_was_served_is_the_last_the_next_time() -> None:
    cache = FetchSessionCache(10)
    session = begun(cache)

    session.served(("t", 0))
    session.served(("gone", 0))
    context = cache.open(fetch_request({}, session=(session.id, 1)), BY_NAME, 0)

    assert [("t", 1), ("t", 0)] == keys(context)


def test_a_partition_is_news_when_its_data_its_offsets_or_its_error_change() -> None:
    partition = FetchedPartition(("t", 0), 0, 1000, -1)
    same = PartitionData(high_watermark=5, log_start_offset=0, records=b"")

    told = [
        partition.has_news(data)
        for data in (
            same,
            same,
            PartitionData(high_watermark=6, log_start_offset=0, records=b""),
            PartitionData(high_watermark=6, log_start_offset=1, records=b""),
            PartitionData(high_watermark=6, log_start_offset=1, records=b""),
            PartitionData(high_watermark=6, log_start_offset=1, records=b"data"),
            PartitionData(high_watermark=6, log_start_offset=1, records=b""),
        )
    ]

    assert [True, False, True, True, False, True, False] == told


def test_an_error_is_news_until_it_is_over_and_that_is_news_too() -> None:
    partition = FetchedPartition(("t", 0), 0, 1000, -1)
    fine = PartitionData(high_watermark=5, log_start_offset=0, records=b"")
    error = PartitionData(error_code=NOT_LEADER_OR_FOLLOWER, high_watermark=-1, records=b"")

    told = [partition.has_news(data) for data in (fine, error, error, fine, fine)]

    assert [True, True, True, True, False] == told


def test_the_end_of_an_error_is_news_also_where_the_offsets_are_the_same() -> None:
    partition = FetchedPartition(("t", 0), 0, 1000, -1)
    fine = PartitionData(high_watermark=5, log_start_offset=0, records=b"")
    error = PartitionData(
        error_code=NOT_LEADER_OR_FOLLOWER, high_watermark=5, log_start_offset=0, records=b""
    )

    told = [partition.has_news(data) for data in (fine, error, fine, fine)]

    assert [True, True, True, False] == told


TOPICS = st.dictionaries(
    st.sampled_from(["t", "u"]),
    st.dictionaries(st.integers(0, 2), st.integers(0, 9), min_size=1),
    max_size=2,
)
FORGOTTEN = st.dictionaries(st.sampled_from(["t", "u"]), st.lists(st.integers(0, 2)), max_size=2)
IDS = {"t": T1, "u": T2}


class _Session:
    """What the model knows of one session."""

    def __init__(self, by_id: bool, wanted: dict[PartitionKey, int], now: int) -> None:
        self.by_id = by_id
        self.epoch = 1
        self.wanted = wanted
        self.told: dict[PartitionKey, int] = {}
        self.created = now
        self.last_used = now


class Sessions(RuleBasedStateMachine):
    """The cache against a model that is a dict of dicts."""

    SLOTS = 3
    ELEMENTS = 11
    EVICTION_SECONDS = 10

    def __init__(self) -> None:
        super().__init__()
        self.cache = FetchSessionCache(self.SLOTS, self.EVICTION_SECONDS, elements=self.ELEMENTS)
        self.sessions: dict[int, _Session] = {}
        self.ended: list[int] = []
        self.now = 0

    @rule(seconds=st.integers(1, 8))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds

    @rule(topics=TOPICS, by_id=st.booleans(), data=st.data(), epoch=st.sampled_from([0, -1]))
    def full_fetch(
        self, topics: dict[str, dict[int, int]], by_id: bool, data: st.DataObject, epoch: int
    ) -> None:
        named = data.draw(st.sampled_from([0, *self.sessions, *self.ended[-2:]]), "session")
        wanted = self.wanted(topics, by_id)
        context = self.open(topics, {}, (named, epoch), by_id)
        self.end(named)
        assert not context.is_incremental
        assert wanted == {each.key: each.fetch_offset for each in context.partitions}
        begins = epoch == 0 and bool(wanted) and self.make_room(len(wanted))
        assert begins == (context.session_id != 0)
        if begins:
            assert context.session_id not in self.sessions
            self.sessions[context.session_id] = _Session(by_id, wanted, self.now)
            self.answer(context, data)

    @precondition(lambda self: self.sessions)
    @rule(topics=TOPICS, forgotten=FORGOTTEN, data=st.data())
    def next_fetch(
        self,
        topics: dict[str, dict[int, int]],
        forgotten: dict[str, list[int]],
        data: st.DataObject,
    ) -> None:
        id = data.draw(st.sampled_from(list(self.sessions)), "session")
        session = self.sessions[id]
        more = self.wanted(topics, session.by_id).keys() - session.wanted.keys()
        if self.elements() + len(more) > self.ELEMENTS:
            with pytest.raises(ApiError) as raised:
                self.open(topics, forgotten, (id, session.epoch), session.by_id)
            assert FETCH_SESSION_ID_NOT_FOUND == raised.value.error_code
            self.end(id)
            return
        context = self.open(topics, forgotten, (id, session.epoch), session.by_id)
        session.epoch += 1
        session.last_used = self.now
        self.sessions[id] = self.sessions.pop(id)
        session.wanted |= self.wanted(topics, session.by_id)
        for topic, partitions in forgotten.items():
            for index in partitions:
                key = (IDS[topic] if session.by_id else topic, index)
                session.wanted.pop(key, None)
                session.told.pop(key, None)
        assert session.wanted == {each.key: each.fetch_offset for each in context.partitions}
        if session.wanted:
            assert (True, id) == (context.is_incremental, context.session_id)
            self.answer(context, data)
        else:
            assert (False, 0) == (context.is_incremental, context.session_id)
            self.end(id)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), wrong=st.sampled_from(["epoch", "names"]), topics=TOPICS)
    def wrong_fetch(
        self, data: st.DataObject, wrong: str, topics: dict[str, dict[int, int]]
    ) -> None:
        id = data.draw(st.sampled_from(list(self.sessions)), "session")
        session = self.sessions[id]
        epoch, by_id, code = session.epoch + 1, session.by_id, INVALID_FETCH_SESSION_EPOCH
        if wrong == "names":
            epoch, by_id, code = session.epoch, not session.by_id, FETCH_SESSION_TOPIC_ID_ERROR
        with pytest.raises(ApiError) as raised:
            self.open(topics, {}, (id, epoch), by_id)
        assert code == raised.value.error_code

    @precondition(lambda self: self.ended)
    @rule(data=st.data())
    def fetch_of_an_ended_session(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(self.ended), "session")
        with pytest.raises(ApiError) as raised:
            self.open({}, {}, (id, 1), False)
        assert FETCH_SESSION_ID_NOT_FOUND == raised.value.error_code

    @invariant()
    def the_same_sessions_are_kept_in_the_same_order(self) -> None:
        assert list(self.sessions) == list(self.cache._sessions)
        assert len(self.cache) <= self.SLOTS
        assert self.elements() == self.cache.elements <= self.ELEMENTS

    def open(
        self, topics: Any, forgotten: Any, session: tuple[int, int], by_id: bool
    ) -> FetchContext:
        if by_id:
            topics = {IDS[topic]: partitions for topic, partitions in topics.items()}
            forgotten = {IDS[topic]: partitions for topic, partitions in forgotten.items()}
        request = fetch_request(topics, session=session, forgotten=forgotten)
        return self.cache.open(request, BY_ID if by_id else BY_NAME, self.now)

    def wanted(self, topics: dict[str, dict[int, int]], by_id: bool) -> dict[PartitionKey, int]:
        return {
            (IDS[topic] if by_id else topic, index): offset
            for topic, partitions in topics.items()
            for index, offset in partitions.items()
        }

    def answer(self, context: FetchContext, data: st.DataObject) -> None:
        """What the broker says must be news exactly where it differs from what it said last."""
        session = self.sessions[context.session_id]
        for partition in context.partitions:
            high_watermark = data.draw(st.integers(0, 3), "high watermark")
            is_news = partition.has_news(
                PartitionData(high_watermark=high_watermark, log_start_offset=0, records=b"")
            )
            assert (session.told.get(partition.key) != high_watermark) == is_news
            session.told[partition.key] = high_watermark

    def end(self, id: int) -> None:
        if self.sessions.pop(id, None) is not None:
            self.ended.append(id)

    def elements(self) -> int:
        return sum(len(session.wanted) for session in self.sessions.values())

    def make_room(self, size: int) -> bool:
        def is_old(at: int) -> bool:
            return self.now - at >= self.EVICTION_SECONDS

        while len(self.sessions) >= self.SLOTS or self.elements() + size > self.ELEMENTS:
            goes = next(iter(self.sessions))
            if not is_old(self.sessions[goes].last_used):
                smaller = [
                    (len(session.wanted), id)
                    for id, session in self.sessions.items()
                    if is_old(session.created) and len(session.wanted) < size
                ]
                if not smaller:
                    return False
                goes = min(smaller, key=lambda each: each[0])[1]
            self.end(goes)
        return True


TestSessions = Sessions.TestCase
