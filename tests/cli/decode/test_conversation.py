"""What a frame is, by itself or by the requests before it, and what is shown of a malformed one."""

from __future__ import annotations

import importlib

import pytest

from protocol.generator.apis import APIS
from protocol.samples import api_of
from support.calls import fetch_request
from support.decoding import codec_of, decoded, framed, only, request, response
from trionet.cli.decode._conversation import Expected
from trionet.cli.decode._messages import fields_of
from trionet.cli.decode._sources import Kind
from trionet.protocol.api_keys import API_VERSIONS, FETCH, HEARTBEAT, METADATA, PRODUCE
from trionet.protocol.error_codes import UNSUPPORTED_VERSION
from trionet.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from trionet.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from trionet.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from trionet.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from trionet.protocol.messages.produce import ProduceRequest

ASKED = request(MetadataRequest(topics=None), METADATA, 12, 7, "shop")
ANSWER = response(
    MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="a")]), METADATA, 12, 7
)


def test_a_request_says_what_it_is() -> None:
    found = only(decoded(framed(ASKED)))

    assert ("request", "Metadata", 3, 12) == tuple(
        found[name] for name in ("kind", "api", "api_key", "version")
    )
    assert {"correlation_id": 7, "client_id": "shop"} == found["header"]
    assert (0, len(ASKED) + 4, None) == (found["offset"], found["size"], found["problem"])


def test_a_response_is_known_by_its_request() -> None:
    [_, found] = decoded(framed(ASKED) + framed(ANSWER))

    assert ("response", "Metadata", 12, 1) == tuple(
        found[name] for name in ("kind", "api", "version", "answers")
    )
    assert "a" == found["body"]["brokers"][0]["host"]


def test_a_response_is_given_once() -> None:
    [_, _, third] = decoded(framed(ASKED) + framed(ANSWER) * 2)

    assert "unknown" == third["kind"]
    assert {"correlation_id": 7} == third["header"]
    assert "--response" in third["problem"]["text"]


def test_requests_without_a_response_are_not_waited_for() -> None:
    silent = request(ProduceRequest(acks=0), PRODUCE, 9, 7)
    asked = request(HeartbeatRequest(), HEARTBEAT, 4, 8)
    answer = response(HeartbeatResponse(), HEARTBEAT, 4, 7)

    assert "unknown" == decoded(framed(silent) + framed(asked) + framed(answer))[2]["kind"]


def test_a_request_whose_first_bytes_are_an_older_ones_number_is_a_request() -> None:
    """A request without a response has number 9; a Produce of version 9 begins with that."""
    first = request(MetadataRequest(topics=None), METADATA, 12, 9, "shop")
    second = request(ProduceRequest(), PRODUCE, 9, 10, "shop")

    assert ["request", "request"] == [
        found["kind"] for found in decoded(framed(first) + framed(second))
    ]
    cut = decoded(framed(first) + framed(second)[:-1])[1]
    assert ("request", "Produce") == (cut["kind"], cut["api"])


def test_a_malformed_response_is_a_response() -> None:
    found = decoded(framed(ASKED) + framed(ANSWER[:-2]))[1]

    assert ("response", "Metadata") == (found["kind"], found["api"])
    assert found["problem"]["text"].startswith("MetadataResponse: the frame ends too early")


def test_what_a_response_is_can_be_said() -> None:
    found = only(decoded(framed(ANSWER), expected=Expected(METADATA, 12)))

    assert ("response", 12, None) == (found["kind"], found["version"], found["problem"])
    assert "fitting_versions" not in found


def test_the_version_of_a_response_is_found() -> None:
    """Metadata 12 differs from all others: 11 has no topic ids, 13 ends with an error code."""
    found = only(decoded(framed(ANSWER), expected=Expected(METADATA, None)))

    assert (12, None) == (found["version"], found["problem"])
    assert "a" == found["body"]["brokers"][0]["host"]


def test_versions_that_fit_alike_are_listed() -> None:
    answer = response(HeartbeatResponse(throttle_time_ms=5), HEARTBEAT, 2)
    found = only(decoded(answer, expected=Expected(HEARTBEAT, None)))

    assert [1, 2, 3] == found["fitting_versions"]
    assert "ambiguous" not in found
    assert {"throttle_time_ms": 5, "error_code": 0, "error_code_name": "NONE"} == found["body"]


def test_versions_that_fit_and_differ_are_ambiguous() -> None:
    """Without topics, brokers and names, the bytes of one version may be those of another."""
    empty = response(MetadataResponse(), METADATA, 9)
    found = only(decoded(empty, expected=Expected(METADATA, None)))

    assert {9, 10} <= set(found["fitting_versions"])
    assert max(found["fitting_versions"]) == found["version"]


def test_no_version_that_fits_says_why() -> None:
    found = only(decoded(framed(bytes(5)), expected=Expected(METADATA, None)))

    assert found["problem"]["text"].startswith("no version of Metadata fits; as version 13: ")


def test_api_versions_gets_a_response_without_tags_in_the_header() -> None:
    asked = request(ApiVersionsRequest(), API_VERSIONS, 3)
    answer = response(ApiVersionsResponse(), API_VERSIONS, 3)
    assert 0 == codec_of(API_VERSIONS, 3).response_header_version

    assert [None, None] == [each["problem"] for each in decoded(framed(asked) + framed(answer))]


@pytest.mark.parametrize("version", [3, 30])
def test_a_refused_version_of_api_versions_gets_a_response_in_version_0(version: int) -> None:
    """KIP-511; also for a version that nobody here knows."""
    asked = bytearray(request(ApiVersionsRequest(), API_VERSIONS, 3))
    asked[3] = version
    refusal = ApiVersionsResponse(
        error_code=UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=API_VERSIONS, min_version=0, max_version=4)],
    )
    [first, second] = decoded(framed(bytes(asked)) + framed(response(refusal, API_VERSIONS, 0)))

    assert (version == 30) is (first["problem"] is not None)
    assert None is second["problem"]
    assert "UNSUPPORTED_VERSION" == second["body"]["error_code_name"]
    assert 4 == second["body"]["api_keys"][0]["max_version"]


def test_an_unknown_version_shows_the_header_and_which_are_known() -> None:
    asked = bytearray(ASKED)
    asked[3] = 60
    found = only(decoded(framed(bytes(asked))))

    assert ("request", "Metadata", 60) == (found["kind"], found["api"], found["version"])
    assert "unsupported version 60 of Metadata; expected 0 to 13" == found["problem"]["text"]
    assert "shop" == found["header"]["client_id"]


def test_garbage_is_unknown_and_the_next_frame_is_read() -> None:
    [garbage, found] = decoded(framed(b"\xff" * 20) + framed(ASKED), kind=Kind.FRAMES)

    assert "unknown" == garbage["kind"]
    assert None is found["problem"]


def test_what_follows_a_message_is_counted() -> None:
    found = only(decoded(framed(ASKED + b"abc")))

    assert "3 bytes left over after the message" == found["problem"]["text"]
    assert 4 + len(ASKED) == found["problem"]["offset"]


def test_unknown_tags_are_shown() -> None:
    head = ASKED.index(b"shop") + 4
    tagged = ASKED[:head] + bytes.fromhex("01 09 02 6869") + ASKED[head + 1 : -1]
    found = only(decoded(framed(tagged + bytes.fromhex("01 05 01 ff"))))

    assert None is found["problem"]
    assert [{"tag": 9, "data": {"bytes": 2, "text": "hi"}}] == found["header"]["unknown_tags"]
    assert [{"tag": 5, "data": {"bytes": 1, "hex": "ff"}}] == found["body"]["unknown_tags"]


FETCH_ASKED = request(fetch_request({"orders": {0: 5, 1: 6}}), FETCH, 12)


def test_a_cut_frame_is_shown_as_far_as_it_goes() -> None:
    cut = framed(FETCH_ASKED)[: -(len(FETCH_ASKED) - FETCH_ASKED.index(b"orders") - 6 - 1 - 33 - 4)]
    found = only(decoded(cut))

    [topic] = found["body"]["topics"]
    assert "orders" == topic["topic"]
    assert [{"partition": 0, "fetch_offset": 5}] == [
        {name: each[name] for name in ("partition", "fetch_offset")}
        for each in topic["partitions"]
        if each
    ]
    missing = len(framed(FETCH_ASKED)) - len(cut)
    assert found["problem"]["text"].startswith(
        f"truncated: {missing} of {len(FETCH_ASKED)} bytes are missing; FetchRequest: "
    )
    assert "after topics[0].partitions[" in found["problem"]["text"]


def test_a_malformed_field_is_named_with_its_offset() -> None:
    at = FETCH_ASKED.index(b"orders") + 6
    bad = bytearray(FETCH_ASKED)
    bad[at] = 0  # a null array
    found = only(decoded(framed(bytes(bad))))

    assert "FetchTopic.partitions: null or negative length" in found["problem"]["text"]
    assert 4 + at + 1 == found["problem"]["offset"]
    assert [{"topic": "orders"}] == found["body"]["topics"]
    assert 500 == found["body"]["max_wait_ms"] or "max_wait_ms" in found["body"]


def test_the_next_frame_is_read() -> None:
    [bad, good] = decoded(framed(FETCH_ASKED[:-5]) + framed(FETCH_ASKED))

    assert bad["problem"] is not None
    assert None is good["problem"]


@pytest.mark.parametrize("end", range(len(FETCH_ASKED) + 4))
def test_every_cut_is_a_problem(end: int) -> None:
    for found in decoded(framed(FETCH_ASKED)[:end], kind=Kind.FRAMES):
        assert found["problem"] is not None
        assert found["problem"]["offset"] <= end


@pytest.mark.parametrize(
    ("version", "present", "absent"),
    [
        (4, {"replica_id", "topics"}, {"session_id", "rack_id", "cluster_id", "replica_state"}),
        (7, {"session_id", "forgotten_topics_data"}, {"rack_id"}),
        (12, {"cluster_id", "rack_id"}, {"replica_state"}),
        (15, {"replica_state"}, {"replica_id"}),
    ],
)
def test_fields_come_and_go_with_versions(
    version: int, present: set[str], absent: set[str]
) -> None:
    fields = set(fields_of(FetchRequest._layout, version))

    assert present <= fields
    assert not absent & fields
    assert (version >= 13) is ("topic_id" in fields_of(FetchTopic._layout, version))
    assert (version >= 9) is ("current_leader_epoch" in fields_of(FetchPartition._layout, version))


@pytest.mark.slow
def test_fields_are_those_of_the_schema() -> None:
    for module_name in APIS:
        module = importlib.import_module(f"trionet.protocol.messages.{module_name}")
        for declared in api_of(module_name).messages.values():
            for version, struct in declared.versions.items():
                shown = fields_of(getattr(module, declared.name)._layout, version)

                assert {field.name for field in struct.fields} == set(shown), (declared, version)
