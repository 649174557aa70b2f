"""The seven requests, as the original responds to them: each line of its tables, over a socket."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from support.jafka_wire import (
    ALL,
    connect,
    decode_parts_of,
    entry,
    messages,
    open_peer,
)
from support.page_cache import drop_from_cache, slow_disk
from trionet.jafka import open_jafka_broker
from trionet.jafka._codec import encode_request
from trionet.jafka._requests import (
    CreaterRequest,
    DeleterRequest,
    FetchRequest,
    MultiFetchRequest,
    MultiProducerRequest,
    OffsetRequest,
    ProducerRequest,
)

ILLEGAL = ["", ".", "..", "a/b", "a\0", "a\x1f", "a\x7f", "a\x9f", "a\ue000", "a\uffff", "x" * 256]
LEGAL = ["a b", "a-b", "-", "...", ".a", "主题", "x" * 200, "😀"]
HELLO = messages(b"hello")


def folders(path: Path) -> list[str]:
    return sorted(each.name for each in path.glob("demo-*"))


# 2.1: produce.


async def test_what_was_produced_is_fetched() -> None:
    """2.1, 2.2: success is silent; the data is available at its position."""
    async with open_peer() as peer:
        await peer.produce(messages(b"hello", b"world!"))
        await peer.produce(messages(b"demo"))

        assert (0, messages(b"hello", b"world!", b"demo")) == await peer.fetch()
        assert (0, messages(b"world!", b"demo")) == await peer.fetch(len(HELLO))


async def test_partition_minus_1_is_any() -> None:
    """2.1: the server picks one, uniformly at random."""
    async with open_peer(num_partitions=3) as peer:
        for _ in range(60):
            await peer.produce(HELLO, partition=-1)
        sizes = [len((await peer.fetch(partition=number))[1]) for number in range(3)]

    assert 60 * len(HELLO) == sum(sizes)
    assert all(sizes)


@pytest.mark.parametrize("partition", [-2, 1, 2**31 - 1])
async def test_a_partition_that_does_not_exist_closes(partition: int) -> None:
    """2.1: any other negative value, or one that is not below the count, closes."""
    async with open_peer() as peer:
        assert await peer.is_closed_by(ProducerRequest("demo", partition, HELLO))


async def test_the_first_produce_creates_the_logs_of_all_partitions() -> None:
    """2.1: and before it there are none: offsets are then []."""
    async with open_peer(num_partitions=3) as peer:
        assert [[], [], []] == [await peer.offsets(partition=number) for number in range(3)]
        await peer.produce(HELLO, partition=1)
        found = [await peer.offsets(partition=number) for number in range(3)]

    assert [[0], [len(HELLO), 0], [0]] == found


@pytest.mark.parametrize(
    "bad",
    [
        entry(b"x", crc=1),
        entry(b"x", magic=2),
        entry(b"x", attributes=2),
        entry(b"not gzip", attributes=1),
        entry(gzip.compress(entry(b"x", crc=1)), attributes=1),
        entry(bytes(1001)),
        b"\xff\xff\xff\xff" + bytes(10),
    ],
    ids=["crc", "magic", "snappy", "gzip", "inner crc", "too large", "negative length"],
)
async def test_a_violation_closes_and_nothing_is_appended(bad: bytes) -> None:
    """2.1: the first violation closes; the valid entries before it are not appended either."""
    async with open_jafka_broker(max_message_size=1000) as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            assert await peer.is_closed_by(ProducerRequest("demo", 0, HELLO + bad + HELLO))
            assert (0, b"") == await other.fetch()


async def test_an_incomplete_last_entry_is_cut_off() -> None:
    """2.1: silently; the complete ones before it are appended."""
    async with open_peer() as peer:
        await peer.produce(HELLO + messages(b"world!")[:-1])

        assert (0, HELLO) == await peer.fetch()


async def test_an_incomplete_first_entry_closes() -> None:
    """2.1: if the very first entry is incomplete, it is an error."""
    async with open_peer() as peer:
        assert await peer.is_closed_by(ProducerRequest("demo", 0, HELLO[:-1]))


@pytest.mark.parametrize("stray", [b"", b"\0", b"\0\0\0"])
async def test_stray_bytes_and_an_empty_set_do_nothing(stray: bytes) -> None:
    """2.1: fewer than 4 stray bytes are ignored; an empty set is accepted."""
    async with open_peer() as peer:
        await peer.produce(stray)
        await peer.produce(HELLO + stray)

        assert (0, HELLO) == await peer.fetch()


async def test_gzip_is_stored_as_it_came() -> None:
    """3: the outer entry is what is appended and fetched."""
    packed = entry(gzip.compress(messages(b"one", b"two")), attributes=1)
    async with open_peer() as peer:
        await peer.produce(packed)

        assert (0, packed) == await peer.fetch()


async def test_a_large_set_is_appended_whole() -> None:
    """2.1: one that takes long to check is checked in a thread."""
    large = messages(*(b"%06d" % number for number in range(30_000)))
    async with open_peer() as peer:
        await peer.produce(large)

        assert (0, large) == await peer.fetch()


# 2.2: fetch.


async def test_a_fetch_is_cut_anywhere() -> None:
    """2.2: up to `max_size` bytes, possibly within an entry."""
    data = messages(b"hello", b"world!")
    async with open_peer() as peer:
        await peer.produce(data)
        for size in range(len(data) + 2):
            assert (0, data[:size]) == await peer.fetch(bytes_max=size)


async def test_alignment_is_not_checked() -> None:
    """2.2: an offset within an entry returns the bytes from there."""
    async with open_peer() as peer:
        await peer.produce(HELLO)

        assert (0, HELLO[5:]) == await peer.fetch(5)


async def test_the_end_of_the_log_is_empty_and_what_is_beyond_is_an_error() -> None:
    """2.2: visible end 0; error 1 beyond the end and before the start."""
    async with open_peer() as peer:
        await peer.produce(HELLO)

        assert (0, b"") == await peer.fetch(len(HELLO))
        assert (1, b"") == await peer.fetch(len(HELLO) + 1)
        assert (1, b"") == await peer.fetch(-1)
        assert (0, b"") == await peer.fetch(bytes_max=0)


async def test_a_topic_without_logs_is_empty_whatever_the_offset() -> None:
    """2.2: topic never created: error 0, empty."""
    async with open_peer() as peer:
        assert [(0, b"")] * 3 == [await peer.fetch(offset) for offset in (0, 10**12, -1)]


async def test_a_partition_outside_the_range_is_error_3() -> None:
    """2.2: also of a topic that was never created."""
    async with open_peer() as peer:
        assert (3, b"") == await peer.fetch(partition=1)
        await peer.produce(HELLO)
        assert (3, b"") == await peer.fetch(partition=1)
        assert (3, b"") == await peer.fetch(partition=-1)


@pytest.mark.parametrize("topic", ILLEGAL)
async def test_an_illegal_name_is_error_minus_1(topic: str) -> None:
    """2.2, 7: an illegal or empty name; the connection stays open."""
    async with open_peer() as peer:
        assert (-1, b"") == await peer.fetch(topic=topic)
        assert (0, b"") == await peer.fetch()


async def test_a_null_topic_closes() -> None:
    """2.2: a null topic closes, also in a part of a MultiFetch."""
    fetch = FetchRequest(None, 0, 0, 100)
    async with open_peer() as peer:
        assert await peer.is_closed_by(fetch)
    async with open_peer() as peer:
        assert await peer.is_closed_by(MultiFetchRequest((fetch,)))


async def test_a_fetch_never_crosses_a_segment() -> None:
    """2.2: with 720 bytes in two segments, a fetch from 0 returned the 420 of the first."""
    data = [messages(bytes(50)) for _ in range(12)]
    async with open_peer(log_file_size=410) as peer:
        for each in data:
            await peer.produce(each)

        assert (0, b"".join(data[:7])) == await peer.fetch(bytes_max=10_000)
        assert (0, b"".join(data[7:])) == await peer.fetch(420, 10_000)
        assert [720, 420, 0] == await peer.offsets()


async def test_more_than_a_little_is_sent_from_the_file() -> None:
    """2.2: whatever the size, the response is the same."""
    data = messages(*(bytes([number % 256]) * 997 for number in range(3000)))
    async with open_peer() as peer:
        await peer.produce(data)
        for size in (16_384, 16_385, len(data), 2**31 - 1):
            assert (0, data[:size]) == await peer.fetch(bytes_max=size)


@pytest.mark.parametrize("size", [1000, 50_000], ids=["copied", "sent from the file"])
async def test_what_is_not_in_the_page_cache_is_read_first(tmp_path: Path, size: int) -> None:
    """In a thread, whether the fetch comes alone or not."""
    data = messages(bytes(size))
    async with open_jafka_broker(log_dir=tmp_path) as broker:
        with await connect(broker) as peer:
            await peer.produce(data)
            [segment] = (tmp_path / "demo-0").glob("*.jafka")
            fetch = FetchRequest("demo", 0, 0, ALL)
            with slow_disk():
                drop_from_cache(segment)
                assert (0, data) == await peer.ask(fetch)
                drop_from_cache(segment)
                assert [(0, data)] * 2 == decode_parts_of(
                    await peer.ask(MultiFetchRequest((fetch, fetch)))
                )[1]


# 2.3: multifetch.


async def test_each_part_has_an_error_of_its_own() -> None:
    """2.3: the outer error is always 0, and one part does not disturb the others."""
    parts = (
        FetchRequest("demo", 0, 0, ALL),
        FetchRequest("demo", 9, 0, ALL),
        FetchRequest("demo", 0, 99, ALL),
        FetchRequest("a/b", 0, 0, ALL),
        FetchRequest("none", 0, 99, ALL),
        FetchRequest("demo", 0, 5, 3),
    )
    async with open_peer() as peer:
        await peer.produce(HELLO)
        response = decode_parts_of(await peer.ask(MultiFetchRequest(parts)))

    expected = [(0, HELLO), (3, b""), (1, b""), (-1, b""), (0, b""), (0, HELLO[5:8])]
    assert (0, expected) == response


async def test_a_response_that_nobody_reads_takes_no_memory() -> None:
    """A request of some kilobytes may have thousands of parts, each with the same messages."""
    part = FetchRequest("demo", 0, 0, 10_000)
    async with open_peer() as peer:
        await peer.produce(messages(bytes(10_000)))
        tracemalloc.start()
        try:
            await peer.send(encode_request(MultiFetchRequest((part,) * 2000)))
            assert 2000 * (10_000 + 6) + 2 == int.from_bytes(await peer.receive(4), "big")
            assert tracemalloc.get_traced_memory()[1] < 5_000_000
        finally:
            tracemalloc.stop()


async def test_no_parts_are_no_body() -> None:
    """2.3: `count = 0` gives a body of nothing, whose size is 2."""
    async with open_peer() as peer:
        assert (0, b"") == await peer.ask(MultiFetchRequest(()))


@pytest.mark.parametrize("kind", [2, 3])
@pytest.mark.parametrize("count", [-1, 1])
async def test_a_wrong_number_of_parts_closes(kind: int, count: int) -> None:
    """2.3: a negative count, or fewer parts than announced."""
    frame = (4).to_bytes(4, "big") + kind.to_bytes(2, "big") + count.to_bytes(2, "big", signed=True)
    async with open_peer() as peer:
        assert await peer.is_closed_by(frame)


async def test_as_many_parts_as_there_can_be() -> None:
    """2.3: 32767 parts."""
    request = MultiFetchRequest((FetchRequest("demo", 0, 0, 1),) * 32767)
    async with open_peer() as peer:
        await peer.produce(HELLO)
        error, parts = decode_parts_of(await peer.ask(request))

    assert (0, 32767, {(0, HELLO[:1])}) == (error, len(parts), set(parts))


# 2.4: multiproduce.


async def test_parts_are_appended_in_order() -> None:
    """2.4: in order; nothing is sent back."""
    parts = tuple(ProducerRequest("demo", 0, messages(b"%d" % number)) for number in range(250))
    async with open_peer() as peer:
        await peer.send(encode_request(MultiProducerRequest(parts)))

        assert (0, b"".join(bytes(each.messages) for each in parts)) == await peer.fetch()


async def test_the_parts_before_a_bad_one_stay(caplog: pytest.LogCaptureFixture) -> None:
    """2.4, 8.10: not atomic: part 1 stays appended, and the log says which part failed."""
    parts = [ProducerRequest("demo", 0, each) for each in (HELLO, HELLO[:-1], HELLO)]
    async with open_jafka_broker() as broker:
        with await connect(broker) as peer, await connect(broker) as other:
            assert await peer.is_closed_by(MultiProducerRequest(tuple(parts)))
            assert (0, HELLO) == await other.fetch()

    assert "part 1 of 3: the entry at byte 0" in caplog.text


async def test_the_parts_before_a_log_that_cannot_be_opened_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Valid sets are appended up to the first failure, whatever that is."""
    parts = [ProducerRequest(topic, 0, HELLO) for topic in ("demo", "gap", "demo")]
    async with open_jafka_broker(log_dir=tmp_path) as broker:
        (tmp_path / "gap-0").mkdir()
        for start in (0, 99):
            (tmp_path / "gap-0" / f"{start:020}.jafka").write_bytes(HELLO)
        with await connect(broker) as peer, await connect(broker) as other:
            assert await peer.is_closed_by(MultiProducerRequest(tuple(parts)))
            assert (0, HELLO) == await other.fetch()

    assert "the next segment starts at 99" in caplog.text


# 2.5: offsets.


async def test_latest_and_earliest() -> None:
    """2.5: latest of one segment with 31 bytes is [31, 0]; earliest is the first start."""
    async with open_peer() as peer:
        await peer.produce(messages(b"hello", b"world!"))

        assert [31, 0] == await peer.offsets(-1)
        assert [31] == await peer.offsets(-1, count_max=1)
        assert [0] == await peer.offsets(-2)
        assert [] == await peer.offsets(count_max=0)
        assert [] == await peer.offsets(0)
        assert [] == await peer.offsets(-3)


async def test_an_empty_partition_and_a_topic_that_was_never_created() -> None:
    """2.5: an empty partition has [0], a topic without logs []."""
    async with open_peer(num_partitions=2) as peer:
        assert [] == await peer.offsets()
        await peer.produce(HELLO, partition=1)
        assert [0] == await peer.offsets(-1)
        assert [0] == await peer.offsets(-2)


@pytest.mark.parametrize(
    "request_",
    [
        OffsetRequest("demo", 0, -1, -1),
        OffsetRequest("demo", 1, -1, 1),
        OffsetRequest("demo", -1, -1, 1),
        OffsetRequest("a/b", 0, -1, 1),
        OffsetRequest("", 0, -1, 1),
        OffsetRequest(None, 0, -1, 1),
    ],
    ids=str,
)
async def test_a_failure_of_offsets_closes(request_: OffsetRequest) -> None:
    """2.5: a negative `max_count`, a bad partition, an illegal topic."""
    async with open_peer() as peer:
        await peer.produce(HELLO)
        assert await peer.is_closed_by(request_)


# 2.6: create.


async def test_create_sets_the_number_of_partitions(tmp_path: Path) -> None:
    """2.6: the response is the number; the logs are made by the first produce."""
    async with open_jafka_broker(log_dir=tmp_path) as broker:
        with await connect(broker) as peer:
            assert 4 == await peer.create(4)
            assert [] == folders(tmp_path)
            assert (0, b"") == await peer.fetch(partition=3)
            await peer.produce(HELLO, partition=3)

    assert ["demo-0", "demo-1", "demo-2", "demo-3"] == folders(tmp_path)


async def test_create_grows_with_the_flag_off() -> None:
    """2.6: `enlarge` is decoded and then ignored: 4 over 3 returns 4 with the flag off."""
    async with open_peer() as peer:
        assert 3 == await peer.create(3)
        await peer.produce(HELLO)
        assert 3 == await peer.create(2)
        assert 4 == await peer.create(4, enlarge=0)
        await peer.produce(HELLO, partition=3)
        assert 4 == await peer.create(1)


@pytest.mark.parametrize(
    "request_",
    [CreaterRequest("demo", count, 1) for count in (-1, 10_001, 2**31 - 1)]
    + [CreaterRequest(None, 1, 1)]
    + [CreaterRequest(topic, 1, 1) for topic in ILLEGAL],
    ids=str,
)
async def test_a_failure_of_create_closes(request_: CreaterRequest) -> None:
    """2.6: a negative number or an illegal name closes; so does one that is too large."""
    async with open_peer() as peer:
        assert await peer.is_closed_by(request_)


@pytest.mark.parametrize("topic", LEGAL)
async def test_names_that_are_legal(topic: str) -> None:
    """7: spaces, `-` and Chinese text are legal."""
    async with open_peer() as peer:
        assert 1 == await peer.create(1, topic)


# 2.7: delete.


async def test_delete_returns_the_number_of_logs(tmp_path: Path) -> None:
    """2.7: 0 when the topic is unknown; the partition count survives."""
    async with open_jafka_broker(log_dir=tmp_path) as broker:
        with await connect(broker) as peer:
            await peer.create(2)
            await peer.produce(HELLO)
            assert 2 == await peer.delete("anything")
            assert [] == folders(tmp_path)
            assert (0, b"") == await peer.fetch(99)
            assert 0 == await peer.delete()
            assert 2 == await peer.create(0)
            await peer.produce(HELLO, partition=1)
            assert [len(HELLO), 0] == await peer.offsets(partition=1)


@pytest.mark.parametrize(
    "setting", ["plain:jafka", "md5:77be29f6d71ec4e310766ddf881ae6a0", "crc32:1725717671"]
)
async def test_the_password_is_needed(setting: str) -> None:
    """2.7, 10: -1 for a wrong one; null is -1 when plain, and closes when hashed."""
    async with open_peer(password=setting) as peer:
        await peer.produce(HELLO)
        assert -1 == await peer.delete("wrong")
        assert (0, HELLO) == await peer.fetch()
        assert 1 == await peer.delete("jafka")
        if setting.startswith("plain"):
            assert -1 == await peer.delete(None)
        else:
            assert await peer.is_closed_by(DeleterRequest("demo", None))


async def test_delete_of_a_null_topic_closes() -> None:
    async with open_peer() as peer:
        assert await peer.is_closed_by(DeleterRequest(None, None))


# 9.2: all of them.


async def test_the_scenario_that_touches_all_requests() -> None:
    """9.2: what the real client saw at the real server, but for the bytes of gzip."""
    packed = entry(gzip.compress(messages(b"one", b"two"), mtime=0), attributes=1)
    async with open_peer() as peer:
        await peer.produce(messages(b"demo"))
        await peer.produce(packed)
        produced = [ProducerRequest("demo", 0, messages(each)) for each in (b"a", b"b")]
        await peer.send(encode_request(MultiProducerRequest(tuple(produced))))
        error, data = await peer.fetch()

        assert (0, 89) == (error, len(data))
        assert [89, 0] == await peer.offsets()
        parts = (FetchRequest("demo", 0, 0, ALL), FetchRequest("demo", 9, 0, 9))
        response = await peer.ask(MultiFetchRequest(parts))
        assert (0, [(0, data), (3, b"")]) == decode_parts_of(response)
        assert (1, b"") == await peer.fetch(10**9)
        assert 4 == await peer.create(4, "made")
        assert 1 == await peer.delete()
