"""What a request log says: bytes that are read back as what was written, alone and in columns."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trionet.errors import WireFormatError
from trionet.protocol import request_log
from trionet.protocol._typed_request_log import MIDDLE_SIZE, RequestWriter
from trionet.protocol.records import _pure_writer as pure_writer
from trionet.protocol.records import _typed_writer as typed_writer
from trionet.protocol.records._records import batch_chunks
from trionet.protocol.request_log import (
    CONNECTION_SIZE,
    GONE,
    REQUEST_SIZE,
    TEXTS,
    LoggedConnection,
    LoggedRequest,
    Origin,
    decode,
    encode,
)
from trionet.protocol.request_log_columns import CONNECTIONS, REQUESTS, decode_columns

_INT16 = st.integers(-(2**15), 2**15 - 1)
_INT32 = st.integers(-(2**31), 2**31 - 1)
_INT64 = st.integers(-(2**53), 2**53)
_UINT32 = st.integers(0, 2**32 - 1)
_UINT64 = st.integers(0, 2**64 - 1)
_TEXT = st.text(max_size=30)
_ORIGINS = st.builds(
    Origin,
    node_id=_INT32,
    processor=_UINT32,
    sample_ppm=st.integers(0, 1_000_000),
    **dict.fromkeys(TEXTS, _TEXT),
)
_SIZES_AND_TIMES = [field.name for field in attrs.fields(LoggedRequest)][6:]
_REQUESTS = st.builds(
    LoggedRequest,
    origin=_ORIGINS,
    api_key=st.integers(0, 2**15 - 1),
    api_version=st.integers(0, 2**15 - 1),
    end=st.integers(0, GONE),
    error_code=_INT16,
    completed_at_us=_INT64,
    **dict.fromkeys(_SIZES_AND_TIMES, _UINT32),
)
_CONNECTIONS = st.builds(
    LoggedConnection,
    origin=st.builds(attrs.evolve, _ORIGINS, sample_ppm=st.just(1_000_000)),
    closed_at_us=_INT64,
    open_us=_UINT64,
    requests=_UINT64,
    bytes_received=_UINT64,
    bytes_sent=_UINT64,
    reason=_TEXT,
    peer=_TEXT,
    detail=_TEXT,
)
_LOGGED = st.one_of(_REQUESTS, _CONNECTIONS)


def request(**changes: Any) -> LoggedRequest:
    numbers = dict.fromkeys(_SIZES_AND_TIMES, 0)
    origin = Origin(node_id=1, processor=0)
    given_ = {"origin": origin, "api_key": 0, "api_version": 9, "completed_at_us": 0, **numbers}
    return LoggedRequest(**{**given_, **changes})


def plain(logged: LoggedRequest | LoggedConnection) -> dict[str, object]:
    """As a row of a table."""
    fields = attrs.asdict(logged)
    origin = fields.pop("origin")
    row = {**origin, **fields}
    for name in ("completed_at", "closed_at"):
        if f"{name}_us" in row:
            row[name] = row.pop(f"{name}_us")
    return row


def rows(batch: Any) -> list[dict[str, object]]:
    """The rows of a table, with times as numbers."""
    columns = {
        name: batch[name].cast(pa.int64())
        if pa.types.is_timestamp(batch[name].type)
        else batch[name]
        for name in batch.schema.names
    }
    found: list[dict[str, object]] = pa.RecordBatch.from_pydict(columns).to_pylist()
    return found


def test_version_1_never_changes() -> None:
    logged = request(
        origin=Origin(
            node_id=1,
            processor=2,
            sample_ppm=500_000,
            listener="L",
            client_id="me",
            software_name="s",
            software_version="1",
            principal="User:a",
        ),
        end=1,
        error_code=-1,
        completed_at_us=10**15,
        request_bytes=100,
        response_bytes=200,
        request_queue_us=1,
        local_us=2,
        remote_us=3,
        throttle_us=4,
        response_queue_us=5,
        response_send_us=6,
        total_us=17,
    )
    assert encode(logged).hex() == (
        "0100010201010600000001000000020007a120"
        "0000000901ffff00038d7ea4c6800000000064000000c8"
        "00000001000000020000000300000004000000050000000600000011"
    ) + b"Lmes1User:a".hex()  # fmt: skip
    closed = LoggedConnection(
        origin=Origin(node_id=1, processor=2, listener="L"),
        closed_at_us=10**15,
        open_us=1,
        requests=2,
        bytes_received=3,
        bytes_sent=4,
        reason="IDLE",
        peer="[::1]:1",
        detail="",
    )
    assert encode(closed).hex() == (
        "010101000000000000000100000002000f424000038d7ea4c68000"
        "0000000000000001000000000000000200000000000000030000000000000004040700"
    ) + b"LIDLE[::1]:1".hex()  # fmt: skip
    assert (REQUEST_SIZE, CONNECTION_SIZE) == (70, 62)


@settings(max_examples=25)
@given(_LOGGED)
def test_what_was_written_is_read(logged: LoggedRequest | LoggedConnection) -> None:
    assert decode(encode(logged)) == logged


@settings(max_examples=15)
@given(st.lists(_LOGGED, max_size=4), st.integers(0, 3), st.booleans())
def test_columns_hold_what_the_values_do(
    logged: list[LoggedRequest | LoggedConnection], before: int, is_large: bool
) -> None:
    kind = pa.large_binary() if is_large else pa.binary()
    values = pa.array([*[b"not read"] * before, *map(encode, logged)], kind)[before:]
    requests, connections = decode_columns(values)
    assert (requests.schema, connections.schema) == (REQUESTS, CONNECTIONS)
    expected: dict[type, list[dict[str, object]]] = {LoggedRequest: [], LoggedConnection: []}
    for row, each in enumerate(logged):
        expected[type(each)].append({"row": row, **plain(each)})
    assert rows(requests) == expected[LoggedRequest]
    assert rows(connections) == expected[LoggedConnection]


@settings(max_examples=50)
@given(found=st.lists(_REQUESTS, min_size=1))
def test_both_ways_to_write_requests_make_the_same_batch(found: list[LoggedRequest]) -> None:
    """One is for the interpreter, the other one compiled."""
    plainly, typed = pure_writer.BatchBuilder(), typed_writer.BatchBuilder()
    writer = RequestWriter(typed)
    for logged in found:
        value = encode(logged)
        prefix, texts = value[: REQUEST_SIZE - MIDDLE_SIZE], value[REQUEST_SIZE:]
        numbers = [getattr(logged, field.name) for field in attrs.fields(LoggedRequest)[3:]]
        assert plainly.append(logged.completed_at_us // 1000, None, value)
        assert writer.append(prefix, texts, *numbers) == plainly.size
    assert batch_chunks(plainly) == batch_chunks(cast(Any, typed))


def test_a_long_text_is_cut_between_two_characters() -> None:
    logged = request(origin=Origin(node_id=1, processor=0, client_id="a" + "é" * 200))
    found = decode(encode(logged)).origin.client_id
    assert found == "a" + "é" * 127


def test_a_number_that_does_not_fit_is_the_largest_that_does() -> None:
    found = decode(encode(request(total_us=2**40)))
    assert isinstance(found, LoggedRequest)
    assert found.total_us == 2**32 - 1


def _broken() -> list[bytes]:
    good = encode(request())
    return [b"", b"\1", good[:-1], good + b"x", b"\2" + good[1:], good[:1] + b"\2" + good[2:]]


@pytest.mark.parametrize("value", _broken())
def test_what_is_no_such_value_is_an_error(value: bytes) -> None:
    with pytest.raises(WireFormatError, match="request log"):
        decode(value)
    with pytest.raises(WireFormatError, match="request log"):
        decode_columns(pa.array([encode(request()), value]))


def test_columns_have_no_place_for_null_or_for_what_is_not_utf8() -> None:
    with pytest.raises(WireFormatError, match="null"):
        decode_columns(pa.array([None], pa.binary()))
    value = encode(request(origin=Origin(node_id=1, processor=0, client_id="x")))[:-1] + b"\xff"
    with pytest.raises(WireFormatError, match="UTF-8"):
        decode_columns(pa.array([value]))
    assert request_log.decode(value).origin.client_id == "�"
