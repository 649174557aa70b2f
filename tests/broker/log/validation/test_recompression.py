"""``compression.type``: what arrives in another codec is stored in the topic's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import pytest
import trio
from trio.testing import assert_checkpoints, wait_all_tasks_blocked

from support.logs import batch
from trionet._util._off_loop import OFF_LOOP_BYTES
from trionet._util.files._log_file import Buffer
from trionet.broker.log import Log, LogConfig, MemoryDirectory
from trionet.broker.log.validation._recompression import must_recompress, recompress
from trionet.errors import ApiError
from trionet.protocol.error_codes import CORRUPT_MESSAGE, INVALID_RECORD, MESSAGE_TOO_LARGE
from trionet.protocol.records._batch import CRC_START, HEADER_SIZE, check_crc, read_header
from trionet.protocol.records._crc32c import crc32c
from trionet.protocol.records._records import decode_batch, encode_batch
from trionet.protocol.records.compression._codecs import NAMES, NONE, ZSTD, compress, decompress

T = TypeVar("T")

NOW = 5_000
TYPES = {"uncompressed": NONE, **{NAMES[codec]: codec for codec in range(1, 5)}}
each_type = pytest.mark.parametrize("wanted", list(TYPES))
each_codec = pytest.mark.parametrize("codec", list(NAMES), ids=NAMES.__getitem__)


def log_of(compression_type: str, **settings: object) -> Log:
    config = LogConfig(compression_type=compression_type, **settings)  # type: ignore[arg-type]
    return Log(MemoryDirectory(), config, now_ms=NOW)


async def recompressed(records: Buffer, log: Log, now_ms: int) -> bytes:
    return await recompress(records, log.config, log.directory, now_ms)


def with_body(codec: int, body: bytes) -> bytes:
    """A batch with a body of our choice."""
    header = read_header(batch(3))._replace(length=49 + len(body), attributes=codec)
    crc = crc32c(body, crc32c(header.pack()[CRC_START:]))
    return header._replace(crc=crc).pack() + body


@each_codec
@each_type
async def test_records_are_the_same_in_the_topics_codec(wanted: str, codec: int) -> None:
    sent = batch(30, b"value " * 9, codec=codec)
    if codec == TYPES[wanted]:
        assert not must_recompress(sent, log_of(wanted).config)
        return

    stored = await recompressed(memoryview(sent), log_of(wanted), NOW)

    header = read_header(stored)
    assert must_recompress(sent, log_of(wanted).config)
    assert (TYPES[wanted], len(stored)) == (header.codec, header.size)
    assert check_crc(stored, 0, header)
    assert decode_batch(sent) == decode_batch(stored)


@each_type
async def test_everything_else_in_the_header_stays(wanted: str) -> None:
    sent = encode_batch(
        [(1000 + 7 * number, b"key", b"value", [("h", b"1")]) for number in range(5)],
        codec=next(codec for codec in NAMES if codec != TYPES[wanted]),
        producer_id=11,
        producer_epoch=3,
        base_sequence=77,
    )

    stored = await recompressed(sent, log_of(wanted), NOW)

    before, after = read_header(sent), read_header(stored)
    left_out = {"length": 0, "crc": 0, "attributes": 0}
    assert before._replace(**left_out) == after._replace(**left_out)
    assert before.attributes & ~7 == after.attributes & ~7


async def test_batches_that_have_the_codec_are_passed_on_untouched_beside_others() -> None:
    # At a level that is not the topic's: it would come out otherwise.
    body = decode_body(batch(300, codec=0))
    own = with_body(ZSTD, compress(ZSTD, body, 19))
    other = batch(3, codec=1)

    stored = await recompressed(own + other + own, log_of("zstd"), NOW)

    middle = stored[len(own) : -len(own)]
    assert own == stored[: len(own)] == stored[-len(own) :]
    assert (ZSTD, 3) == (read_header(middle).codec, len(decode_batch(middle)))


def decode_body(sent: bytes) -> bytes:
    return decompress(read_header(sent).codec, sent[HEADER_SIZE:], 1 << 20)


@pytest.mark.parametrize(
    ("wanted", "fast", "slow"), [("gzip", 1, 9), ("lz4", 9, 17), ("zstd", -5, 19)]
)
async def test_the_topics_level_is_used(wanted: str, fast: int, slow: int) -> None:
    sent = encode_batch([(1000, None, str(number * number).encode(), []) for number in range(3000)])
    key = f"compression_{wanted}_level"

    sizes = [len(await recompressed(sent, log_of(wanted, **{key: n}), NOW)) for n in (fast, slow)]

    assert sizes[0] > sizes[1]


@each_codec
async def test_records_that_are_not_what_their_codec_says_are_refused(codec: int) -> None:
    if codec == NONE:
        return
    sent = with_body(codec, b"these are no compressed records")

    with pytest.raises(ApiError) as raised:
        await recompressed(sent, log_of("uncompressed"), NOW)

    assert INVALID_RECORD == raised.value.error_code
    assert f"not valid {NAMES[codec]}" in str(raised.value)


async def test_what_the_log_refuses_is_refused_before() -> None:
    sent = bytearray(batch(3))
    sent[-1] ^= 1

    with pytest.raises(ApiError) as raised:
        await recompressed(sent, log_of("zstd"), NOW)

    assert CORRUPT_MESSAGE == raised.value.error_code


async def test_what_gets_too_large_is_refused_by_the_log_as_by_kafka() -> None:
    # A Java producer splits its batch when it is told so.
    log = log_of("uncompressed", max_message_bytes=2000)
    sent = batch(100, b"value " * 9, codec=ZSTD)

    assert len(sent) < 2000
    with pytest.raises(ApiError) as raised:
        log.append(await recompressed(sent, log, NOW), NOW)

    assert (MESSAGE_TOO_LARGE, 0) == (raised.value.error_code, log.end_offset)


class Threads(MemoryDirectory):
    """A folder that counts what is computed in threads."""

    def __init__(self) -> None:
        super().__init__()
        self.idents: list[int] = []

    async def in_thread(
        self, work: Callable[[], T], limiter: trio.CapacityLimiter | None = None
    ) -> T:
        assert limiter is not None, "disks must not wait for those that compute"

        def noted() -> T:
            self.idents.append(threading.get_ident())
            return work()

        return await super().in_thread(noted, limiter)


@pytest.mark.parametrize(
    ("sent", "level", "threads"),
    [
        pytest.param(batch(100), 3, 0, id="little"),
        pytest.param(batch(1, bytes(OFF_LOOP_BYTES)), 3, 1, id="much"),
        pytest.param(batch(100), 19, 1, id="little-at-a-slow-level"),
        pytest.param(batch(4, bytes(OFF_LOOP_BYTES), codec=1), 3, 1, id="grows-unusually"),
        pytest.param(batch(1, bytes(200_000), codec=1) * 20, 3, 1, id="together-much"),
    ],
)
async def test_the_loop_is_not_held(sent: bytes, level: int, threads: int) -> None:
    directory = Threads()
    config = LogConfig(compression_type="zstd", compression_zstd_level=level)
    log = Log(directory, config, now_ms=NOW)

    with assert_checkpoints():
        stored = await recompressed(sent, log, NOW)

    assert threads == len(directory.idents)
    assert threading.get_ident() not in directory.idents
    assert read_header(sent).count == len(decode_batch(stored))


async def test_who_is_cancelled_before_computes_nothing() -> None:
    directory = Threads()
    log = Log(directory, LogConfig(compression_type="zstd"), now_ms=NOW)

    with trio.CancelScope() as scope:
        scope.cancel()
        await recompressed(batch(1, bytes(OFF_LOOP_BYTES)), log, NOW)

    assert scope.cancelled_caught
    assert [] == directory.idents


class OneThread(MemoryDirectory):
    """A folder whose thread waits in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = threading.Event(), threading.Event()

    async def in_thread(
        self, work: Callable[[], T], limiter: trio.CapacityLimiter | None = None
    ) -> T:
        def waits() -> T:
            self.begun.set()
            self.go_on.wait()
            return work()

        return await super().in_thread(waits, limiter)


async def test_what_has_begun_ends_although_it_is_cancelled() -> None:
    directory = OneThread()
    log = Log(directory, LogConfig(compression_type="zstd"), now_ms=NOW)
    # Whoever owns the memory may use it again as soon as this is over, and no sooner.
    sent = bytearray(batch(1, bytes(OFF_LOOP_BYTES)))
    stored: list[bytes] = []

    async def call() -> None:
        with scope:
            stored.append(await recompressed(memoryview(sent), log, NOW))

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(call)
        await trio.to_thread.run_sync(directory.begun.wait)
        scope.cancel()
        await wait_all_tasks_blocked()
        before = list(stored)
        directory.go_on.set()

    assert [] == before
    assert decode_batch(sent) == decode_batch(stored[0])
    assert 0 == log.end_offset, "it is for the caller to append it"


@pytest.mark.parametrize("records", [b"", b"x" * 100, batch(3)[:40], b"\xff" * 61])
def test_what_are_no_batches_is_left_to_the_log(records: bytes) -> None:
    assert not must_recompress(records, LogConfig(compression_type="zstd"))
