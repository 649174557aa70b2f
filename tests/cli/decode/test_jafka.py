"""``trionet decode --jafka``: requests, responses and segments of Jafka."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.jafka_exchange import framed, text
from support.jafka_wire import entry
from trionet.cli.decode._jafka import TYPES, jafka_entries, recognise_jafka
from trionet.cli.decode._output import document, entry_lines
from trionet.cli.decode._sources import Kind, source_of
from trionet.cli.main import main
from trionet.jafka._codec import (
    encode_count,
    encode_offsets,
    encode_request,
    encode_response,
    response_head,
)
from trionet.jafka._requests import (
    CreaterRequest,
    DeleterRequest,
    FetchRequest,
    JafkaRequest,
    MultiFetchRequest,
    MultiProducerRequest,
    OffsetRequest,
    ProducerRequest,
)

DEMO = entry(b"demo")
FETCH = FetchRequest("demo", 0, 14, 1000)

Documents = list[dict[str, Any]]


def decoded(data: bytes, *, expected: int | None = None, kind: Kind | None = None) -> Documents:
    """The documents of raw bytes; their lines are made, too, and fit for a terminal."""
    source = source_of("test", data, "raw")
    found = []
    for each in jafka_entries([(source, kind or recognise_jafka(source.peek))], expected):
        for line in entry_lines(each, 200):
            assert "".join(part.text for part in line).isprintable()
        found.append(json.loads(json.dumps(document(each, None))))
    return found


def bodies(documents: Documents) -> list[Any]:
    assert [None] * len(documents) == [each["problem"] for each in documents]
    return [each["body"] for each in documents]


MESSAGE = {
    "magic": 1,
    "codec": 0,
    "codec_name": "none",
    "crc": "0xd642dfa0",
    "crc_right": True,
    "payload": {"bytes": 4, "text": "demo"},
}


def test_each_request_is_shown_with_its_fields() -> None:
    requests: list[JafkaRequest] = [
        ProducerRequest("demo", -1, DEMO),
        FETCH,
        MultiFetchRequest((FETCH, FetchRequest("other", 1, 0, 9))),
        MultiProducerRequest((ProducerRequest("demo", 0, DEMO),)),
        OffsetRequest("demo", 0, -1, 3),
        CreaterRequest("made", 4, 1),
        DeleterRequest("demo", None),
    ]

    found = decoded(b"".join(map(encode_request, requests)))

    fetch = {"topic": "demo", "partition": 0, "offset": 14, "bytes_max": 1000}
    assert [
        {"topic": "demo", "partition": -1, "messages": [MESSAGE]},
        fetch,
        {"parts": [fetch, {"topic": "other", "partition": 1, "offset": 0, "bytes_max": 9}]},
        {"parts": [{"topic": "demo", "partition": 0, "messages": [MESSAGE]}]},
        {"topic": "demo", "partition": 0, "time": -1, "time_name": "LATEST", "count_max": 3},
        {"topic": "made", "partitions": 4, "enlarge": 1},
        {"topic": "demo", "password": None},
    ] == bodies(found)
    names = [each.__name__ for each in TYPES]
    assert names == [f"{each['api']}Request" for each in found]
    assert [*range(7)] == [each["api_key"] for each in found]


def test_responses_belong_to_the_oldest_request_without_one() -> None:
    stream = [
        encode_request(FETCH),
        encode_request(ProducerRequest("demo", 0, DEMO)),  # without a response
        encode_request(OffsetRequest("demo", 0, -2, 1)),
        encode_response(DEMO + DEMO[:5]),
        encode_request(MultiFetchRequest((FETCH, FETCH))),
        encode_offsets([89, 0]),
        encode_response(response_head(0, 3) + response_head(14) + DEMO),
        encode_request(CreaterRequest("made", 4, 1)),
        encode_request(DeleterRequest("made", "x")),
        encode_count(4),
        encode_count(-1),
    ]

    found = decoded(b"".join(stream))

    responses = [each for each in found if each["kind"] == "response"]
    assert [1, 3, 5, 8, 9] == [each["answers"] for each in responses]
    assert [
        {
            "error_code": 0,
            "error_code_name": "NONE",
            "messages": [MESSAGE, {"cut_short": {"bytes": 5, "hex": "0000000a01"}}],
        },
        {"error_code": 0, "error_code_name": "NONE", "offsets": [89, 0]},
        {
            "error_code": 0,
            "error_code_name": "NONE",
            "parts": [
                {"error_code": 3, "error_code_name": "WRONG_PARTITION", "messages": []},
                {"error_code": 0, "error_code_name": "NONE", "messages": [MESSAGE]},
            ],
        },
        {"error_code": 0, "error_code_name": "NONE", "partitions": 4},
        {"error_code": 0, "error_code_name": "NONE", "deleted_partitions": -1},
    ] == bodies(responses)


@pytest.mark.parametrize("name", ["Fetch", "fetch", "FetchRequest", "1"])
def test_a_response_alone_needs_the_name_of_its_request(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = encode_response(b"", 1).hex()

    assert 1 == main(["decode", "--jafka", frame])
    assert "use --response" in capsys.readouterr().out
    assert 0 == main(["decode", "--jafka", "--response", name, "--frames", frame])
    assert "error_code: 1 OFFSET_OUT_OF_RANGE" in capsys.readouterr().out


def test_an_unknown_name_is_told_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["decode", "--jafka", "--response", "Metadata", "00000002 0000"])
    assert "'Metadata' of Jafka; expected one of 0 Producer, 1 Fetch" in capsys.readouterr().err


def test_only_the_frames_of_some_types_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    stream = encode_request(FETCH) + encode_response(b"") + encode_request(DeleterRequest("a", ""))

    assert 0 == main(["decode", "--jafka", "--json", "--api", "deleter", stream.hex()])

    [line] = capsys.readouterr().out.splitlines()
    assert {"number": 3, "api": "Deleter", "api_key": 6}.items() <= json.loads(line).items()


def test_the_known_types_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["decode", "--jafka", "--list"])
    assert ["0  Producer", "1  Fetch", "2  MultiFetch"] == [
        line.strip() for line in capsys.readouterr().out.splitlines()[:3]
    ]
    assert 0 == main(["decode", "--jafka", "--list", "--json"])
    assert {"api": "Deleter", "api_key": 6} == json.loads(capsys.readouterr().out.splitlines()[6])


def test_a_segment_is_entries_end_to_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    segment = tmp_path / "00000000000000000000.jafka"
    packed = entry(gzip.compress(DEMO + entry(b"", magic=0), mtime=0), attributes=1)
    segment.write_bytes(DEMO + packed)

    assert 0 == main(["decode", "--jafka", "--json", str(segment)])

    captured = capsys.readouterr()
    assert captured.err.endswith("00000000000000000000.jafka: raw, a message set\n")
    first, second = map(json.loads, captured.out.splitlines())
    assert (0, 14, "message", MESSAGE) == (
        first["offset"],
        first["size"],
        first["kind"],
        first["body"],
    )
    assert (14, len(packed), "gzip") == (
        second["offset"],
        second["size"],
        second["body"]["codec_name"],
    )
    old = {**MESSAGE, "magic": 0, "crc": "0x00000000", "payload": {"bytes": 0, "text": ""}}
    assert [MESSAGE, old] == second["body"]["messages"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (DEMO[:-1], "truncated: 1 of 14 bytes are missing"),
        (entry(b"demo", crc=1), "the CRC is wrong"),
        (entry(b"demo", magic=2), "invalid magic"),
        (b"\0\0\0\3\1\0\0", "too short for magic 1"),
        (entry(b"no gzip", attributes=1), "gzip"),
        (b"\xff\xff\xff\xff", "invalid length -1; cannot continue"),
    ],
)
def test_a_malformed_entry_is_a_problem(data: bytes, problem: str) -> None:
    first, second = decoded(DEMO + data, kind=Kind.BATCHES)

    assert first["problem"] is None
    assert problem in second["problem"]["text"]
    assert 14 == second["problem"]["offset"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (framed(7, text("topic")), "request type 7 is unknown"),
        (framed(1, text("topic")), "too short"),
        (encode_response(b""), "use --response"),
        (framed(1, encode_request(FETCH)[6:] + b"more"), "4 bytes left over after the request"),
        (encode_request(FETCH)[:-1], "truncated: 1 of 24 bytes missing"),
        (encode_request(ProducerRequest("t", 0, entry(b"x", crc=9))), "the CRC is wrong"),
    ],
)
def test_a_malformed_frame_is_a_problem(data: bytes, problem: str) -> None:
    [found] = decoded(data, kind=Kind.FRAMES)

    assert problem in found["problem"]["text"]


@pytest.mark.parametrize("kind", range(7))
def test_a_malformed_response_is_a_problem(kind: int) -> None:
    [found] = decoded(b"\0\0\0\1\0", expected=kind, kind=Kind.FRAMES)

    assert found["problem"] is not None


def test_a_bomb_is_not_shown_whole() -> None:
    bomb = entry(gzip.compress(entry(b"") * 200_000, mtime=0), attributes=1)

    [found] = decoded(encode_request(ProducerRequest("t", 0, bomb)))

    assert "too many messages" in found["problem"]["text"]
    assert len(found["body"]["messages"][0]["messages"]) <= 100_001


@given(st.binary(max_size=200), st.sampled_from([None, *range(7)]), st.sampled_from(list(Kind)))
def test_any_bytes_are_decoded_or_are_a_problem(
    data: bytes, expected: int | None, kind: Kind
) -> None:
    decoded(data, expected=expected, kind=kind)


def test_more_levels_of_compression_than_a_stack_has_are_a_problem() -> None:
    data = DEMO
    for _ in range(1000):
        data = entry(gzip.compress(data, 1), attributes=1)
    [found] = decoded(data)

    assert found["problem"]["text"].endswith("compressed more than 30 times")
