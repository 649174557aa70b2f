from __future__ import annotations

import pytest

from support.client import Client, connect
from trionet import Broker
from trionet.protocol import error_codes
from trionet.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

# The highest versions of Apache Kafka 4.2; nothing may be advertised above them, since clients
# take it for what a released broker can do. The lowest are those of Kafka 3: Kafka 4.0 has dropped
# the oldest (KIP-896).
SERVED = {
    "Produce": (0, 0, 13),
    "Fetch": (1, 0, 18),
    "ListOffsets": (2, 0, 11),
    "Metadata": (3, 0, 13),
    "OffsetCommit": (8, 0, 10),
    "OffsetFetch": (9, 0, 10),
    "FindCoordinator": (10, 0, 6),
    "JoinGroup": (11, 0, 9),
    "Heartbeat": (12, 0, 4),
    "LeaveGroup": (13, 0, 5),
    "SyncGroup": (14, 0, 5),
    "DescribeGroups": (15, 0, 6),
    "ListGroups": (16, 0, 5),
    "SaslHandshake": (17, 0, 1),
    "ApiVersions": (18, 0, 4),
    "CreateTopics": (19, 0, 7),
    "DeleteTopics": (20, 0, 6),
    "DeleteRecords": (21, 0, 2),
    "InitProducerId": (22, 0, 5),
    "OffsetForLeaderEpoch": (23, 0, 4),
    "AddPartitionsToTxn": (24, 0, 5),
    "AddOffsetsToTxn": (25, 0, 4),
    "EndTxn": (26, 0, 5),
    "WriteTxnMarkers": (27, 1, 2),
    "TxnOffsetCommit": (28, 0, 5),
    "DescribeAcls": (29, 0, 3),
    "CreateAcls": (30, 0, 3),
    "DeleteAcls": (31, 0, 3),
    "DescribeConfigs": (32, 0, 4),
    "AlterConfigs": (33, 0, 2),
    "DescribeLogDirs": (35, 0, 4),
    "SaslAuthenticate": (36, 0, 2),
    "CreatePartitions": (37, 0, 3),
    "DeleteGroups": (42, 0, 2),
    "IncrementalAlterConfigs": (44, 0, 1),
    "OffsetDelete": (47, 0, 0),
    "UpdateFeatures": (57, 0, 2),
    "DescribeCluster": (60, 0, 2),
    "DescribeProducers": (61, 0, 0),
    "DescribeTransactions": (65, 0, 0),
    "ListTransactions": (66, 0, 2),
    "ListConfigResources": (74, 0, 1),
    "DescribeTopicPartitions": (75, 0, 0),
}


async def ask(
    client: Client, version: int, name: str = "librdkafka", software_version: str = "2.3.0"
) -> ApiVersionsResponse:
    request = ApiVersionsRequest(
        client_software_name=name, client_software_version=software_version
    )
    response = await client.call(request, version)
    assert isinstance(response, ApiVersionsResponse)
    return response


@pytest.mark.parametrize("version", range(5))
async def test_exactly_what_is_served_is_advertised(client: Client, version: int) -> None:
    response = await ask(client, version)

    assert (0, 0) == (response.error_code, response.throttle_time_ms)
    assert sorted(SERVED.values()) == [
        (api.api_key, api.min_version, api.max_version) for api in response.api_keys
    ]


@pytest.mark.parametrize(
    ("version", "epoch", "supported", "finalized"),
    [(0, -1, [], []), (2, -1, [], []), (3, 0, [], [2]), (4, 0, [(0, 2)], [2])],
)
async def test_the_level_of_transactions_is_a_feature(
    client: Client, version: int, epoch: int, supported: list[tuple[int, int]], finalized: list[int]
) -> None:
    """Version 3 cannot say that a feature may have the level 0 (KIP-1022)."""
    response = await ask(client, version)

    assert epoch == response.finalized_features_epoch
    assert supported == [
        (each.min_version, each.max_version) for each in response.supported_features
    ]
    assert finalized == [each.max_version_level for each in response.finalized_features]
    assert finalized == [each.min_version_level for each in response.finalized_features]
    assert {"transaction.version"} >= {each.name for each in response.supported_features}
    assert {"transaction.version"} >= {each.name for each in response.finalized_features}


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "software_version"),
    [("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a", "1-"), ("a\n", "1"), ("ä", "1")],
)
async def test_a_client_that_names_itself_oddly_is_rejected(
    client: Client, version: int, name: str, software_version: str
) -> None:
    response = await ask(client, version, name, software_version)

    assert (error_codes.INVALID_REQUEST, []) == (response.error_code, response.api_keys)


@pytest.mark.parametrize("name", ["a", "apache-kafka-java", "a.b-c.9", "7"])
async def test_usual_names_are_accepted(client: Client, name: str) -> None:
    response = await ask(client, 3, name, "4.0.0-SNAPSHOT")

    assert error_codes.NONE == response.error_code


@pytest.mark.parametrize("version", range(5))
async def test_all_requests_in_one_version_get_the_same_response(
    broker: Broker, version: int
) -> None:
    answers = []
    for name in "abc":
        async with connect(broker.bootstrap_servers) as client:
            answers += [await ask(client, version, name) for _ in range(2)]

    [first, *others] = answers
    assert [first] * 5 == others
    assert sorted(SERVED.values()) == sorted(
        (api.api_key, api.min_version, api.max_version) for api in others[-1].api_keys
    )


async def test_a_connection_may_ask_again_and_again(client: Client) -> None:
    first = await ask(client, 0)
    again = [await ask(client, 4) for _ in range(3)]

    assert [first.api_keys] * 3 == [response.api_keys for response in again]
