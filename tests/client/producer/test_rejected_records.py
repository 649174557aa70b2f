"""Records that cannot be: what is said of them, and that nothing else suffers from them."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from support.scripted_leaders import AT_ONCE, Leaders
from trionet import (
    MetadataTimeoutError,
    UndeliveredError,
    open_broker,
    open_producer,
    read_topic,
)
from trionet.errors import LocalProtocolError
from trionet.testing import MemoryNetwork

Case = tuple[Any, type[Exception], str]


class Zero:
    """What indexes a list, as numpy's numbers do."""

    def __index__(self) -> int:
        return 0


FIELDS: list[Case] = [
    ({"topic": 7}, TypeError, "topic must be str, not int"),
    ({"topic": b"t"}, TypeError, "topic must be str, not bytes"),
    ({"topic": "x" * 250}, ValueError, "250 characters; at most 249 are allowed"),
    ({"topic": "\ud800"}, ValueError, r"'\\ud800', cannot be encoded as UTF-8"),
    ({"partition": "0"}, TypeError, "partition must be int or None, not str"),
    ({"partition": 0.0}, TypeError, "partition must be int or None, not float"),
    ({"partition": False}, TypeError, "partition must be int or None, not bool"),
    ({"partition": Zero()}, TypeError, "partition must be int or None, not Zero"),
    ({"partition": -1}, ValueError, "partition must be 0 or more, or None, not -1"),
]
HEADERS: list[Case] = [
    (7, TypeError, "must be a sequence of .* pairs, not int"),
    ("ab", TypeError, "must be a sequence of .* pairs, not str"),
    ({"h": b"1"}, TypeError, "must be a sequence of .* pairs, not dict"),
    ({("h", b"1")}, TypeError, "must be a sequence of .* pairs, not set"),
    (iter([("h", b"1")]), TypeError, "must be a sequence of .* pairs, not list_iterator"),
    ([7], TypeError, "0: expected a .name, value. pair, not int"),
    (["ab"], TypeError, "0: expected a .name, value. pair, not str"),
    ([{"h", b"1"}], TypeError, "0: expected a .name, value. pair, not set"),
    ([("h",)], TypeError, "0: expected a .name, value. pair, not 1 item"),
    ([("h", b"1"), ("h", b"1", 2)], TypeError, "1: expected a .name, value. pair, not 3 items"),
    ([(b"h", b"1")], TypeError, "0: the name must be str, not bytes"),
    ([("h", "1")], TypeError, r"0: the value must be .* not str.*\.encode\(\)"),
    ([("h", 7)], TypeError, "0: the value must be bytes or None, not int"),
    ([("\ud800", b"1")], ValueError, r"0: the name, '\\ud800', cannot be encoded as UTF-8"),
]
OF_ONE: list[Case] = [
    *FIELDS,
    *[({"headers": headers}, error, f"the headers.* {text}") for headers, error, text in HEADERS],
    ({"value": "text"}, TypeError, r"the value must be bytes or None, not str; .*\.encode\(\)"),
    ({"value": {"a": 1}}, TypeError, "the value must be bytes or None, not dict"),
    ({"key": "text"}, TypeError, r"the key must be bytes or None, not str; .*\.encode\(\)"),
    ({"key": 7}, TypeError, "the key must be bytes or None, not int"),
    ({"timestamp": "1"}, TypeError, "the timestamp must be int, .* not str"),
    ({"timestamp": 1.5}, TypeError, "the timestamp must be int, .* not float"),
    ({"timestamp": True}, TypeError, "the timestamp must be int, .* not bool"),
    ({"timestamp": -1}, ValueError, "the timestamp must be 0 or more, .* not -1"),
]
OF_MANY: list[Case] = [
    *FIELDS,
    *[
        ({"headers": [(), headers]}, error, f"headers 1.* {text}")
        for headers, error, text in HEADERS
    ],
    ({"values": 7}, TypeError, "values must be a sequence with one entry per record, not int"),
    ({"keys": 7}, TypeError, "keys must be a sequence .* not int"),
    ({"headers": 7}, TypeError, "headers must be a sequence .* not int"),
    ({"timestamps": 1.5}, TypeError, "timestamps must be a sequence .* not float"),
    ({"timestamps": -1}, ValueError, "timestamps must be 0 or more, .* not -1"),
    ({"timestamps": [1, 1.5]}, TypeError, "timestamp 1 must be int, .* not float"),
    ({"timestamps": [1, True]}, TypeError, "timestamp 1 must be int, .* not bool"),
    ({"timestamps": [1, None]}, TypeError, "timestamp 1 must be int, .* not NoneType"),
    ({"timestamps": [1, -5]}, ValueError, "timestamp 1 must be 0 or more, .* not -5"),
]


@pytest.mark.parametrize(("fields", "error", "text"), OF_ONE)
async def test_record_that_cannot_be_is_refused_and_harms_no_other(
    fields: dict[str, Any],
    error: type[Exception],
    text: str,
    autojump_clock: MockClock,
    leaders: Leaders,
) -> None:
    """What it shares a batch with, or what comes after it."""
    lingering = attrs.evolve(AT_ONCE, linger_seconds=0.01)
    given = {"topic": "t", "value": b"bad", **fields}
    async with leaders.producer(lingering) as producer:
        await producer.send("t", b"first")
        with pytest.raises(error, match=text):
            await producer.send(**given)
        before = producer.send_nowait("t", b"before")
        with pytest.raises(error, match=text):
            _ = producer.send_nowait(**given)
        await producer.send("t", b"last")

        assert before.is_done

    assert [b"first", b"before", b"last"] == leaders.values()


@pytest.mark.parametrize("kind", [bytearray, memoryview])
async def test_what_is_like_bytes_is_as_good(
    kind: type, autojump_clock: MockClock, leaders: Leaders
) -> None:
    async with leaders.producer(AT_ONCE) as producer:
        await producer.send("t", kind(b"first"), key=kind(b"k"))
        await (await producer.enqueue("t", kind(b"last")))

    assert [b"first", b"last"] == leaders.values()


@pytest.mark.parametrize(("fields", "error", "text"), OF_MANY)
async def test_of_records_that_cannot_be_none_is_sent(
    fields: dict[str, Any],
    error: type[Exception],
    text: str,
    autojump_clock: MockClock,
    leaders: Leaders,
) -> None:
    given = {"topic": "t", "values": [b"good", b"bad"], **fields}
    async with leaders.producer(AT_ONCE) as producer:
        await producer.send("t", b"first")
        with pytest.raises(error, match=text):
            await producer.send_batch(**given)
        await producer.send("t", b"last")

    assert [b"first", b"last"] == leaders.values()


async def test_timestamp_of_a_hook_is_looked_at_too(
    autojump_clock: MockClock, network: MemoryNetwork, leaders: Leaders
) -> None:
    async with (
        leaders.listening(),
        open_producer(
            leaders.address, network=network, on_send=lambda record: record._replace(timestamp=-7)
        ) as producer,
    ):
        with pytest.raises(ValueError, match="the timestamp must be 0 or more"):
            await producer.send("t", b"a")
        with pytest.raises(ValueError, match="timestamp 0 must be 0 or more"):
            await producer.send_batch("t", [b"a"])
        with pytest.raises(ValueError, match="keys has 2 entries, but values has 1"):
            await producer.send_batch("t", [b"a"], keys=[None, None])


async def test_batch_that_cannot_be_encoded_fails_and_holds_up_no_other(
    autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """Nor does the block wait for it: it is decided at once, and its numbers leave no gap."""
    leaders = Leaders(network, topics={"t": 1})
    settings = attrs.evolve(AT_ONCE, compression="gzip", compression_level=99)
    async with leaders.listening():
        with pytest.raises(UndeliveredError):  # noqa: PT012 - of the block's end
            async with open_producer(leaders.address, settings, network=network) as producer:
                for _ in range(2):
                    with pytest.raises(
                        LocalProtocolError, match="cannot encode the records for t-0"
                    ):
                        await producer.send("t", b"a")
                delivery = producer.send_nowait("t", b"a")

        assert trio.current_time() < 5
        with pytest.raises(LocalProtocolError, match="cannot encode"):
            delivery.result()
    assert [] == leaders.batches


async def test_no_headers_may_be_none_everywhere(
    autojump_clock: MockClock, leaders: Leaders
) -> None:
    """As other clients have it; at the beginning of a batch, and within one."""
    none: Any = None
    lingering = attrs.evolve(AT_ONCE, linger_seconds=0.01)
    async with leaders.producer(lingering) as producer:
        await producer.send("t", b"a", headers=none)
        _ = producer.send_nowait("t", b"b")
        await producer.send("t", b"c", headers=none)
        await producer.send_batch("t", [b"d", b"e"], headers=[none, none])

    assert [b"a", b"b", b"c", b"d", b"e"] == leaders.values()


@pytest.mark.parametrize(
    "header", [["h", b"1"], ("h", bytearray(b"1")), ["h", memoryview(b"1.")[::2]]]
)
async def test_a_header_is_a_tuple_or_a_list_and_its_value_any_bytes(
    header: Any, autojump_clock: MockClock, network: MemoryNetwork
) -> None:
    """At the beginning of a batch, and within one."""
    async with open_broker(network=network) as broker:
        address = broker.bootstrap_servers
        async with open_producer(address, network=network, linger_ms=10) as producer:
            await producer.send("t", b"a", headers=[header])
            _ = producer.send_nowait("t", b"b", headers=[header])
            await producer.send("t", b"c", headers=(header,))
            await producer.send_batch("t", [b"d", b"e"], headers=[[header], (header,)])
        found = await read_topic(address, "t", network=network)

    assert [[("h", b"1")]] * 5 == [record.headers for record in found]


async def test_topic_that_may_be_is_waited_for(autojump_clock: MockClock, leaders: Leaders) -> None:
    async with leaders.producer(AT_ONCE) as producer:
        with pytest.raises(MetadataTimeoutError, match="no metadata for topic 'xxx"):
            await producer.send("x" * 249, b"a")
