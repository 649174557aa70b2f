"""The transaction APIs as clients see them, in every version."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio

from support.calls import batch, create_topic, delete_topic, fetch, produce_request, values_of
from support.client import Client, connect
from support.nodes import connect_to
from support.transaction_calls import (
    NONE,
    Identity,
    add,
    add_batched,
    add_offsets,
    ask_identity,
    commit_in,
    end,
    identity,
    produce_in,
    transaction,
)
from trionet import Broker, open_broker
from trionet.broker.transactions._transaction import EPOCH_MAX, EXHAUSTED
from trionet.protocol import error_codes
from trionet.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from trionet.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from trionet.protocol.messages.describe_transactions import DescribeTransactionsRequest
from trionet.protocol.messages.find_coordinator import FindCoordinatorRequest
from trionet.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from trionet.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

READ_COMMITTED = 1


def name(code: int) -> str:
    return error_codes.name_of(code)


async def committed(client: Client, partition: int = 0) -> list[bytes | None]:
    """What a reader with read_committed gets, before it filters."""
    data = await fetch(client, "t", partition=partition, isolation_level=READ_COMMITTED)
    assert [] == data.aborted_transactions
    return [value for value in values_of(data) if value is not None and len(value) != 6]


async def describe(client: Client, *ids: str) -> list[Any]:
    request = DescribeTransactionsRequest(transactional_ids=list(ids))
    response: Any = await client.call(request, 0)
    return list(response.transaction_states)


async def state(client: Client, id: str = "x") -> str:
    [found] = await describe(client, id)
    assert isinstance(found.transaction_state, str)
    return found.transaction_state


# InitProducerId.


@pytest.mark.parametrize("version", range(6))
async def test_each_instance_of_a_producer_gets_the_next_epoch(
    client: Client, version: int
) -> None:
    first = await identity(client, version=version)
    again = await identity(client, version=version)

    assert (first[0], 0, 1) == (again[0], first[1], again[1])
    assert first[0] != (await identity(client, "y", version=version))[0]


@pytest.mark.parametrize(
    ("timeout_ms", "code"), [(0, 50), (-1, 50), (900_001, 50), (900_000, 0), (1, 0)]
)
async def test_a_timeout_must_be_within_the_limits(
    client: Client, timeout_ms: int, code: int
) -> None:
    answer = await ask_identity(client, transaction_timeout_ms=timeout_ms)

    assert code == answer.error_code
    assert (answer.producer_id, answer.producer_epoch) == (
        NONE if code else (answer.producer_id, 0)
    )


@pytest.mark.parametrize("expected", [(3, -1), (-1, 3)])
async def test_a_producer_id_without_an_epoch_is_invalid(
    client: Client, expected: Identity
) -> None:
    answer = await ask_identity(client, expected=expected)

    assert "INVALID_REQUEST" == name(answer.error_code)


@pytest.mark.parametrize(
    ("version", "code"),
    [(3, "INVALID_PRODUCER_EPOCH"), (4, "PRODUCER_FENCED"), (5, "PRODUCER_FENCED")],
)
async def test_a_replaced_instance_is_fenced(client: Client, version: int, code: str) -> None:
    old = await identity(client)
    await identity(client)

    answer = await ask_identity(client, expected=old, version=version)

    assert code == name(answer.error_code)


async def test_a_new_instance_aborts_what_its_predecessor_has_left(client: Client) -> None:
    await create_topic(client, "t")
    old = await identity(client)
    assert 0 == await produce_in(client, old, b"a")

    first = await ask_identity(client)
    again = await identity(client)

    assert "CONCURRENT_TRANSACTIONS" == name(first.error_code)
    assert (old[0], 2) == again
    assert "INVALID_PRODUCER_EPOCH" == name(await produce_in(client, old, b"b", sequence=1))
    data = await fetch(client, "t", isolation_level=READ_COMMITTED)
    assert [(old[0], 0)] == [
        (each.producer_id, each.first_offset) for each in data.aborted_transactions or ()
    ]


# AddPartitionsToTxn and Produce before version 12.


@pytest.mark.parametrize("version", range(4))
async def test_partitions_are_added_to_a_transaction(client: Client, version: int) -> None:
    await create_topic(client, "t", 3)
    producer = await identity(client)

    codes = await add(client, producer, {"t": [0, 2]}, version=version)

    assert {("t", 0): 0, ("t", 2): 0} == codes
    [found] = await describe(client, "x")
    assert ("Ongoing", [("t", [0, 2])]) == (
        found.transaction_state,
        [(each.topic, each.partitions) for each in found.topics],
    )


async def test_one_unknown_partition_prevents_all(client: Client) -> None:
    await create_topic(client, "t", 3)
    producer = await identity(client)

    codes = await add(client, producer, {"t": [0, 3], "u": [0], "__consumer_offsets": [0]})

    assert {
        ("t", 0): "OPERATION_NOT_ATTEMPTED",
        ("t", 3): "UNKNOWN_TOPIC_OR_PARTITION",
        ("u", 0): "UNKNOWN_TOPIC_OR_PARTITION",
        ("__consumer_offsets", 0): "TOPIC_AUTHORIZATION_FAILED",
    } == {key: name(code) for key, code in codes.items()}
    assert "Empty" == await state(client)


@pytest.mark.parametrize(
    ("version", "fenced"),
    [
        (0, "INVALID_PRODUCER_EPOCH"),
        (1, "INVALID_PRODUCER_EPOCH"),
        (2, "PRODUCER_FENCED"),
        (3, "PRODUCER_FENCED"),
    ],
)
async def test_a_wrong_producer_adds_nothing(client: Client, version: int, fenced: str) -> None:
    await create_topic(client, "t")
    id, epoch = await identity(client)

    for producer, code in (
        ((id, epoch + 1), fenced),
        ((id + 1, epoch), "INVALID_PRODUCER_ID_MAPPING"),
    ):
        codes = await add(client, producer, {"t": [0]}, version=version)
        assert [code] == [name(each) for each in codes.values()]
    for unknown, code in (("never", "INVALID_PRODUCER_ID_MAPPING"), ("", "INVALID_REQUEST")):
        codes = await add(client, (id, epoch), {"t": [0]}, id=unknown, version=version)
        assert [code] == [name(each) for each in codes.values()]


async def test_many_transactions_succeed_and_fail_each_by_itself(client: Client) -> None:
    await create_topic(client, "t", 2)
    x, y = await identity(client, "x"), await identity(client, "y")

    codes = await add_batched(
        client,
        transaction("x", x, {"t": [0, 1], "__consumer_offsets": [7]}),
        transaction("y", (y[0], 9), {"t": [0]}),
        transaction("z", y, {"u": [0]}),
        version=4,
    )

    assert {
        "x": {("t", 0): "NONE", ("t", 1): "NONE", ("__consumer_offsets", 7): "NONE"},
        "y": {("t", 0): "PRODUCER_FENCED"},
        "z": {("u", 0): "UNKNOWN_TOPIC_OR_PARTITION"},
    } == {id: {key: name(code) for key, code in found.items()} for id, found in codes.items()}
    assert {} == await add_batched(client)


async def test_to_verify_partitions_adds_none(client: Client) -> None:
    await create_topic(client, "t", 2)
    x = await identity(client)
    await add(client, x, {"t": [0]})

    codes = await add_batched(client, transaction("x", x, {"t": [0, 1]}, verify_only=True))

    assert {("t", 0): 0, ("t", 1): error_codes.TRANSACTION_ABORTABLE} == codes["x"]
    codes = await add_batched(client, transaction("x", x, {"t": [1]}, verify_only=True))
    assert {("t", 1): error_codes.TRANSACTION_ABORTABLE} == codes["x"]


@pytest.mark.parametrize("version", range(3, 12))
async def test_records_need_a_partition_that_was_added(client: Client, version: int) -> None:
    await create_topic(client, "t", 2)
    producer = await identity(client)
    await add(client, producer, {"t": [0]})

    codes = [
        await produce_in(client, producer, b"a", partition=number, version=version)
        for number in (0, 1)
    ]

    refused = "INVALID_TXN_STATE" if version <= 10 else "TRANSACTION_ABORTABLE"
    assert ["NONE", refused] == [name(code) for code in codes]
    assert [1, 0] == [(await fetch(client, "t", partition=n)).high_watermark for n in (0, 1)]


@pytest.mark.parametrize("version", [12, 13])
async def test_records_add_their_partition(client: Client, version: int) -> None:
    topic = await create_topic(client, "t", 2)
    producer = await identity(client)
    where: str | bytes = topic.topic_id if version == 13 else "t"

    assert 0 == await produce_in(client, producer, b"a", topic=where, version=version)

    [found] = await describe(client, "x")
    assert [("t", [0])] == [(each.topic, each.partitions) for each in found.topics]
    assert [] == await committed(client)
    assert 0 == (await end(client, producer)).error_code
    assert [b"a"] == await committed(client)


async def test_records_in_transactions_are_recompressed_with_the_codec_of_the_topic(
    client: Client,
) -> None:
    await create_topic(client, "t", compression_type="gzip")
    producer = await identity(client)

    assert 0 == await produce_in(client, producer, b"a")

    assert [] == await committed(client)
    assert 0 == (await end(client, producer)).error_code
    assert [b"a"] == await committed(client)


@pytest.mark.parametrize("version", [3, 11, 12])
async def test_records_of_a_wrong_producer_are_refused(client: Client, version: int) -> None:
    """PRODUCER_FENCED would stop the producer; INVALID_PRODUCER_EPOCH lets it abort."""
    await create_topic(client, "t")
    id, epoch = await identity(client)

    results = {
        "epoch": await produce_in(client, (id, epoch + 1), b"a", version=version),
        "id": await produce_in(client, (id + 1, epoch), b"a", version=version),
        "unknown": await produce_in(client, (id, epoch), b"a", id="never", version=version),
        "none": await produce_in(client, (id, epoch), b"a", id=None, version=version),
    }

    assert {
        "epoch": "INVALID_PRODUCER_EPOCH",
        "id": "INVALID_PRODUCER_ID_MAPPING",
        "unknown": "INVALID_PRODUCER_ID_MAPPING",
        "none": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    } == {key: name(code) for key, code in results.items()}


@pytest.mark.parametrize("count", [2, pytest.param(1000, marks=pytest.mark.slow)])
async def test_a_request_has_records_of_one_producer(client: Client, count: int) -> None:
    """Otherwise nothing of it is stored; a request with many partitions is handled in steps."""
    await create_topic(client, "t", count)
    first, other = await identity(client, "x"), await identity(client, "y")
    data = {
        number: batch(
            b"a",
            transactional=True,
            producer_id=other[0] if number == count - 1 else first[0],
            producer_epoch=0,
            base_sequence=0,
        )
        for number in range(count)
    }
    request = produce_request("t", data)
    request.transactional_id = "x"

    response: Any = await client.call(request, 12)

    codes = {each.error_code for each in response.responses[0].partition_responses}
    assert {error_codes.INVALID_PRODUCER_ID_MAPPING} == codes
    assert "Empty" == await state(client)
    del data[count - 1]
    request = produce_request("t", data)
    request.transactional_id = "x"
    response = await client.call(request, 12)
    assert {0} == {each.error_code for each in response.responses[0].partition_responses}
    assert 0 == (await end(client, first)).error_code
    assert [b"a"] == await committed(client)


async def test_without_verification_older_clients_need_not_add_partitions() -> None:
    """``transaction.partition.verification.enable`` can be altered while the broker runs."""
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t")
        producer = await identity(client)
        assert "INVALID_TXN_STATE" == name(await produce_in(client, producer, b"a", version=9))
        alter = AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=4,
                    resource_name="",
                    configs=[
                        AlterableConfig(
                            name="transaction.partition.verification.enable", value="false"
                        )
                    ],
                )
            ]
        )
        response: Any = await client.call(alter, 2)
        assert [0] == [each.error_code for each in response.responses]

        assert 0 == await produce_in(client, producer, b"a", version=9)


# EndTxn.


@pytest.mark.parametrize("version", range(5))
async def test_before_version_5_an_end_keeps_the_identity(client: Client, version: int) -> None:
    await create_topic(client, "t")
    producer = await identity(client)
    for sequence, commit in enumerate((True, False, True)):
        await add(client, producer, {"t": [0]})
        code = await produce_in(client, producer, b"a", sequence=sequence, version=10)
        assert 0 == code
        for _ in range(2):  # the second is a repeated request
            answer = await end(client, producer, commit=commit, version=version)
            assert (0, *NONE) == (answer.error_code, answer.producer_id, answer.producer_epoch)

    data = await fetch(client, "t", isolation_level=READ_COMMITTED)
    assert [2] == [each.first_offset for each in data.aborted_transactions or ()]


@pytest.mark.parametrize("commit", [True, False])
async def test_from_version_5_on_an_end_raises_the_epoch(client: Client, commit: bool) -> None:
    await create_topic(client, "t")
    producer = await identity(client)
    await produce_in(client, producer, b"a")

    for _ in range(2):
        answer = await end(client, producer, commit=commit)
        assert (0, producer[0], 1) == (
            answer.error_code,
            answer.producer_id,
            answer.producer_epoch,
        )
    other = await end(client, producer, commit=not commit)
    assert "INVALID_TXN_STATE" == name(other.error_code)
    assert NONE == (other.producer_id, other.producer_epoch)
    assert ("CompleteCommit" if commit else "CompleteAbort") == await state(client)


@pytest.mark.parametrize(
    ("version", "fenced"),
    [(1, "INVALID_PRODUCER_EPOCH"), (2, "PRODUCER_FENCED"), (5, "PRODUCER_FENCED")],
)
async def test_a_wrong_producer_ends_nothing(client: Client, version: int, fenced: str) -> None:
    id, epoch = await identity(client)

    results = [
        await end(client, (id, epoch + 3), version=version),
        await end(client, (id + 1, epoch), version=version),
        await end(client, (id, epoch), id="never", version=version),
        await end(client, (id, epoch), id="", version=version),
        await end(client, (id, epoch), version=version),
    ]

    assert [
        fenced,
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_PRODUCER_ID_MAPPING",
        "INVALID_REQUEST",
        "INVALID_TXN_STATE",
    ] == [name(each.error_code) for each in results]


async def test_unknown_ids_take_no_producer_ids(client: Client) -> None:
    producer = await identity(client)
    for _ in range(5):
        await end(client, producer, id="never")

    assert producer[0] + 1 == (await identity(client, "y"))[0]


async def test_a_commit_can_be_read_when_its_response_comes(client: Client) -> None:
    await create_topic(client, "t", 3)
    producer = await identity(client)
    for number in range(3):
        await produce_in(client, producer, b"a", partition=number)
    assert [[], [], []] == [await committed(client, number) for number in range(3)]

    await end(client, producer)

    assert [[b"a"]] * 3 == [await committed(client, number) for number in range(3)]


async def test_a_topic_may_be_deleted_within_a_transaction(client: Client) -> None:
    """The end is not held up, and a topic of the same name gets no marker."""
    for topic in "tu":
        await create_topic(client, topic)
    producer = await identity(client)
    for topic in "tu":
        await produce_in(client, producer, b"a", topic=topic)
    await delete_topic(client, "u")
    await create_topic(client, "u")

    answer = await end(client, producer)

    assert (0, "CompleteCommit") == (answer.error_code, await state(client))
    assert 0 == (await fetch(client, "u")).high_watermark


# Offsets.


@pytest.mark.parametrize("version", range(5))
async def test_a_group_is_added_to_a_transaction(client: Client, version: int) -> None:
    producer = await identity(client)

    assert 0 == await add_offsets(client, producer, "never seen", version=version)

    [found] = await describe(client, "x")
    assert ["__consumer_offsets"] == [each.topic for each in found.topics]
    fenced = "INVALID_PRODUCER_EPOCH" if version < 2 else "PRODUCER_FENCED"
    wrong = await add_offsets(client, (producer[0], 9), "g", version=version)
    assert fenced == name(wrong)


@pytest.mark.parametrize("version", range(6))
async def test_offsets_need_a_group_that_was_added_up_to_version_4(
    client: Client, version: int
) -> None:
    await create_topic(client, "t")
    producer = await identity(client)

    codes = await commit_in(client, producer, {"t": {0: 5}}, version=version)

    expected = ["INVALID_TXN_STATE"] * 4 + ["TRANSACTION_ABORTABLE", "NONE"]
    assert {("t", 0): expected[version]} == {key: name(code) for key, code in codes.items()}
    await add_offsets(client, producer, "g")
    assert {("t", 0): 0} == await commit_in(client, producer, {"t": {0: 5}}, version=version)


async def test_unknown_partitions_do_not_prevent_the_others(client: Client) -> None:
    await create_topic(client, "t", 2)
    producer = await identity(client)

    codes = await commit_in(client, producer, {"t": {0: 5, 9: 5}, "u": {0: 1}})

    assert {
        ("t", 0): "NONE",
        ("t", 9): "UNKNOWN_TOPIC_OR_PARTITION",
        ("u", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    } == {key: name(code) for key, code in codes.items()}


async def test_a_member_of_an_unknown_generation_is_fenced(client: Client) -> None:
    await create_topic(client, "t")
    producer = await identity(client)

    codes = await commit_in(client, producer, {"t": {0: 5}}, generation_id=3, member_id="m")

    assert ["ILLEGAL_GENERATION"] == [name(code) for code in codes.values()]


# WriteTxnMarkers and DescribeProducers.


async def write_markers(
    client: Client, producer: Identity, topics: dict[str, list[int]], version: int, **fields: Any
) -> dict[tuple[str, int], str]:
    marker = WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=numbers)
            for topic, numbers in topics.items()
        ],
        **fields,
    )
    response: Any = await client.call(WriteTxnMarkersRequest(markers=[marker, marker]), version)
    [result] = response.markers
    return {
        (topic.name, each.partition_index): name(each.error_code)
        for topic in result.topics
        for each in topic.partitions
    }


async def producers(client: Client, *partitions: int, topic: str = "t") -> list[Any]:
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=list(partitions))]
    )
    response: Any = await client.call(request, 0)
    [found] = response.topics
    return list(found.partitions)


@pytest.mark.parametrize("version", [1, 2])
async def test_an_administrator_ends_a_hanging_transaction(client: Client, version: int) -> None:
    """With what DescribeProducers says (KIP-664)."""
    await create_topic(client, "t")
    producer = await identity(client)
    await produce_in(client, producer, b"a")
    [found] = (await producers(client, 0))[0].active_producers
    assert (*producer, 0, 0, -1) == (
        found.producer_id,
        found.producer_epoch,
        found.last_sequence,
        found.current_txn_start_offset,
        found.coordinator_epoch,
    )

    codes = await write_markers(client, producer, {"t": [0, 1], "u": [0]}, version)

    assert {
        ("t", 0): "NONE",
        ("t", 1): "UNKNOWN_TOPIC_OR_PARTITION",
        ("u", 0): "UNKNOWN_TOPIC_OR_PARTITION",
    } == codes
    [found] = (await producers(client, 0))[0].active_producers
    assert (-1, 0) == (found.current_txn_start_offset, found.coordinator_epoch)


async def test_a_marker_needs_a_producer(client: Client) -> None:
    await create_topic(client, "t")

    codes = await write_markers(client, NONE, {"t": [0]}, 2)

    assert {("t", 0): "INVALID_REQUEST"} == codes


async def test_a_coordinator_epoch_from_outside_does_not_stop_markers(client: Client) -> None:
    """Any 32 bits may come; after a restart, the coordinator's epoch must still fit."""
    await create_topic(client, "t")
    codes = await write_markers(
        client, (5, 0), {"t": [0]}, 2, coordinator_epoch=2**31 - 1, transaction_version=2
    )

    assert {("t", 0): "NONE"} == codes


async def test_producers_are_described_once_and_unknown_partitions_are_errors(
    client: Client,
) -> None:
    await create_topic(client, "t")

    found = await producers(client, 0, 0, 7, 0)
    [odd] = await producers(client, 0, topic="a/b")

    assert [(0, "NONE"), (7, "UNKNOWN_TOPIC_OR_PARTITION")] == [
        (each.partition_index, name(each.error_code)) for each in found
    ]
    assert "INVALID_TOPIC_EXCEPTION" == name(odd.error_code)


# DescribeTransactions and ListTransactions.


async def test_a_transaction_is_described(client: Client) -> None:
    await create_topic(client, "t", 2)
    producer = await identity(client, transaction_timeout_ms=5000)
    [empty] = await describe(client, "x")
    assert ("Empty", 5000, -1, []) == (
        empty.transaction_state,
        empty.transaction_timeout_ms,
        empty.transaction_start_time_ms,
        empty.topics,
    )
    await produce_in(client, producer, b"a", partition=1)

    [found, unknown, invalid] = await describe(client, "x", "y", "", "x")

    assert (0, "x", "Ongoing", *producer) == (
        found.error_code,
        found.transactional_id,
        found.transaction_state,
        found.producer_id,
        found.producer_epoch,
    )
    assert found.transaction_start_time_ms > 0
    assert ["TRANSACTIONAL_ID_NOT_FOUND", "INVALID_REQUEST"] == [
        name(unknown.error_code),
        name(invalid.error_code),
    ]
    await end(client, producer)
    [ended] = await describe(client, "x")
    assert ("CompleteCommit", []) == (ended.transaction_state, ended.topics)


async def list_ids(client: Client, version: int = 2, **filters: Any) -> list[str]:
    response = await client.call(ListTransactionsRequest(**filters), version)
    assert isinstance(response, ListTransactionsResponse)
    assert 0 == response.error_code
    return sorted(each.transactional_id for each in response.transaction_states)


async def test_transactions_are_listed_by_every_filter(client: Client) -> None:
    await create_topic(client, "t")
    ids = {id: await identity(client, id) for id in ("tx-1", "tx-2", "other")}
    await produce_in(client, ids["tx-1"], b"a", id="tx-1")

    assert ["other", "tx-1", "tx-2"] == await list_ids(client, 0)
    assert ["tx-1"] == await list_ids(client, 0, state_filters=["Ongoing"])
    assert ["other", "tx-2"] == await list_ids(client, 1, state_filters=["Empty", "Dead"])
    assert ["tx-2"] == await list_ids(client, 1, producer_id_filters=[ids["tx-2"][0], 99999])
    assert ["tx-1", "tx-2"] == await list_ids(client, transactional_id_pattern="tx-.*")
    assert ["other", "tx-1", "tx-2"] == await list_ids(client, transactional_id_pattern="")
    assert [] == await list_ids(client, transactional_id_pattern="tx")
    # One that has no transaction counts as old.
    assert ["other", "tx-2"] == await list_ids(client, 1, duration_filter=3_600_000)
    assert [] == await list_ids(client, transactional_id_pattern="tx-1", state_filters=["Empty"])


async def test_unknown_states_are_returned_and_match_nothing(client: Client) -> None:
    await identity(client)
    request = ListTransactionsRequest(state_filters=["Nothing", "PrepareEpochFence", "Dead"])

    response: Any = await client.call(request, 2)

    assert ([], ["Nothing"]) == (response.transaction_states, response.unknown_state_filters)


async def test_a_decided_transaction_has_the_identity_of_its_markers_until_all_are_written() -> (
    None
):
    """Also if its epochs are exhausted, so that the producer goes on with another id."""
    async with open_broker() as broker, connect(broker.bootstrap_servers) as client:
        await create_topic(client, "t")
        id, _ = await identity(client)
        coordinator = broker._cluster.transactions
        of = coordinator.transactions["x"]
        assert of.current is not None
        of.current = attrs.evolve(of.current, producer_epoch=EXHAUSTED)
        await produce_in(client, (id, EXHAUSTED), b"a")
        coordinator.held.append("x")
        ended = await end(client, (id, EXHAUSTED))

        [found] = await describe(client, "x")
        assert ("PrepareCommit", id, EPOCH_MAX) == (
            found.transaction_state,
            found.producer_id,
            found.producer_epoch,
        )
        assert ["x"] == await list_ids(client, producer_id_filters=[id])
        coordinator.release("x")

        [found] = await describe(client, "x")
        assert ("CompleteCommit", ended.producer_id, 0) == (
            found.transaction_state,
            found.producer_id,
            found.producer_epoch,
        )
        assert ended.producer_id != id
        assert [] == await list_ids(client, producer_id_filters=[id])


async def test_an_invalid_pattern_is_an_error(client: Client) -> None:
    response: Any = await client.call(ListTransactionsRequest(transactional_id_pattern="a("), 2)

    assert ("INVALID_REGULAR_EXPRESSION", []) == (
        name(response.error_code),
        response.transaction_states,
    )


# Several brokers.


async def test_only_the_coordinator_of_an_id_serves_it() -> None:
    async with open_broker(brokers=2) as broker:
        await broker.move_transaction_coordinator("x", 2)
        async with connect_to(broker, 1, 2) as (wrong, right):
            found: Any = await wrong.call(FindCoordinatorRequest(key="x", key_type=1), 3)
            assert 2 == found.node_id
            producer = await identity(right)
            refused = "NOT_COORDINATOR"
            assert refused == name((await ask_identity(wrong)).error_code)
            assert refused == name((await end(wrong, producer)).error_code)
            assert refused == name(await add_offsets(wrong, producer, "g"))
            [found] = await describe(wrong, "x")
            assert refused == name(found.error_code)
            assert [] == await list_ids(wrong)
            assert ["x"] == await list_ids(right)

            await broker.move_transaction_coordinator("x", 1)
            assert (producer[0], 1) == await identity(wrong)


# Requests with many elements.


@pytest.mark.slow
async def test_requests_with_many_elements_are_served_in_steps(broker: Broker) -> None:
    """Others are served meanwhile; how fast is not tested here."""
    async with (
        connect(broker.bootstrap_servers) as client,
        connect(broker.bootstrap_servers) as other,
    ):
        await create_topic(client, "t", 2)
        producer = await identity(client)
        codes: dict[Any, int] = {}

        async def add_many() -> None:
            codes.update(await add(client, producer, {"t": range(50_000)}))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(add_many)
            assert 0 == (await identity(other, "y"))[1]
        assert 50_000 == len(codes)
        assert "OPERATION_NOT_ATTEMPTED" == name(codes["t", 0])

        ids = [str(number) for number in range(20_000)]
        found = await describe(client, *ids, *ids)
        assert ids == [each.transactional_id for each in found]
        assert [] == await list_ids(client, state_filters=ids)
        response: Any = await client.call(ListTransactionsRequest(state_filters=ids), 2)
        assert ids == response.unknown_state_filters
        assert ["x", "y"] == await list_ids(client, producer_id_filters=[*range(20_000)])


@pytest.mark.slow
async def test_long_ids_are_ids_and_match_patterns(client: Client) -> None:
    long = "ä" * 16_000
    producer = await identity(client, long)

    assert [long] == await list_ids(client, transactional_id_pattern="(ä|b)*")
    assert 0 == (await end(client, producer, id=long, commit=False)).error_code
