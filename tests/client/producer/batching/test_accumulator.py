from __future__ import annotations

import math

import pytest
import trio

from support.accumulators import T0, T1, TOPIC, accumulator, cluster, done, drained, values
from trionet.client.producer._delivery import Delivery
from trionet.client.producer.batching._accumulator import RecordAccumulator
from trionet.errors import LocalProtocolError, RecordTooLargeError, RecordWithdrawnError
from trionet.protocol.records._batch import Bytes

ONE = cluster(1)


def append(
    records: RecordAccumulator,
    value: Bytes,
    partition: int | None = 0,
    *,
    key: Bytes | None = None,
    now: float = 0.0,
) -> Delivery:
    return records.append(TOPIC, partition, 1000, key, value, (), now)


def add(
    records: RecordAccumulator,
    value: Bytes,
    partition: int | None = 0,
    *,
    key: Bytes | None = None,
    now: float = 0.0,
) -> None:
    """A record whose delivery nobody looks at."""
    _ = append(records, value, partition, key=key, now=now)


def fill(records: RecordAccumulator, partition: int | None = 0, now: float = 0.0) -> list[bytes]:
    """Append records until one begins a second batch; all of them."""
    added: list[bytes] = []
    while True:
        added.append(b"%03d" % len(added) + b"x" * 97)
        if append(records, added[-1], partition, now=now).index == 0 and len(added) > 1:
            return added


def test_a_node_is_ready_when_a_record_begins_a_second_batch() -> None:
    """K1: until then it is not, and what is drained has the records in their order."""
    records = accumulator(ONE, linger_seconds=10.0)
    add(records, b"000" + b"x" * 97)

    assert set() == records.queues.ready(ONE, 0.0).nodes

    records = accumulator(ONE, linger_seconds=10.0)
    added = fill(records)
    before_last = len(added) - 1

    assert {1} == records.queues.ready(ONE, 0.0).nodes

    [first] = drained(records, ONE, 0.0)
    [second] = drained(records, ONE, 0.0)

    assert added[:before_last] == values([first])
    assert added[before_last:] == values([second])
    assert first.size <= 1000
    assert [] == drained(records, ONE, 0.0)


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("has_others", [False, True])
def test_a_record_larger_than_a_batch_has_its_own(compression: str, *, has_others: bool) -> None:
    """K2: it is ready at once, compressed or not."""
    records = accumulator(ONE, linger_seconds=10.0, compression=compression)
    large = b"y" * 2000
    small = [b"small"] if has_others else []
    for value in small:
        add(records, value)
    add(records, large)

    assert {1} == records.queues.ready(ONE, 0.0).nodes
    assert small == values(drained(records, ONE, 0.0) if has_others else [])

    [batch] = drained(records, ONE, 0.0)

    assert [large] == values([batch])
    assert batch.size > 2000
    assert 2000 < records.pool.bytes_max - records.pool.available - 1000 * has_others < 2200


def test_a_batch_that_is_not_full_waits_for_more() -> None:
    """K3: for ``linger.ms``."""
    records = accumulator(ONE, linger_seconds=0.01)
    add(records, b"x", now=5.0)

    before = records.queues.ready(ONE, 5.0)

    assert set() == before.nodes
    assert pytest.approx(5.01) == before.next_check_at
    assert {1} == records.queues.ready(ONE, before.next_check_at).nodes


def test_a_topic_has_to_be_known() -> None:
    records = accumulator(ONE)

    assert records.knows(TOPIC, 0)
    assert not records.knows(TOPIC, 1)
    assert not records.knows(TOPIC, -1)
    assert not records.knows("other")
    for topic, partition in [("other", None), (TOPIC, 1), (TOPIC, -1)]:
        with pytest.raises(trio.WouldBlock):
            _ = records.append(topic, partition, 1000, None, b"x", (), 0.0)

    records.queues.topics.update(cluster(1, 1))

    assert append(records, b"x", 1).outcome.topic_partition == T1


def test_a_topic_that_vanished_is_not_known_until_it_comes_back() -> None:
    records = accumulator(ONE)
    add(records, b"before")
    elsewhere = cluster(1, topic="other")
    records.queues.topics.update(elsewhere)

    assert not records.knows(TOPIC)
    with pytest.raises(trio.WouldBlock):
        add(records, b"meanwhile")
    assert {TOPIC} == records.queues.ready(elsewhere, 1.0).unknown_leaders
    assert math.inf == records.queues.ready(elsewhere, 1.0).next_check_at

    append_after = records.queues.ready(cluster(1), 1.0)

    assert {1} == append_after.nodes
    assert [b"before"] == values(drained(records, cluster(1), 1.0))


def test_records_beyond_the_limits_are_refused() -> None:
    records = accumulator(ONE, request_bytes_max=5000, buffer_bytes=4000)

    with pytest.raises(RecordTooLargeError, match=r"max\.request\.size = 5000"):
        add(records, b"x" * 5000)
    with pytest.raises(RecordTooLargeError, match=r"buffer\.memory = 4000"):
        add(records, b"x" * 4000)
    assert 4000 == records.pool.available
    assert append(records, b"x" * 3800).index == 0


def test_the_size_of_headers_counts() -> None:
    records = accumulator(ONE, request_bytes_max=5000)

    with pytest.raises(RecordTooLargeError):
        _ = records.append(TOPIC, 0, 1000, None, b"", [("h", b"x" * 5000)], 0.0)


def test_what_cannot_be_written_is_refused_and_takes_no_memory() -> None:
    """B6: an error on the way gives back what was taken."""
    records = accumulator(ONE)
    odd: list[object] = ["text", 7, [b"x"]]
    for value in odd:
        with pytest.raises(TypeError, match="bytes or None"):
            add(records, value)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="bytes or None"):
            add(records, b"x", None, key=value)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"encode it with \.encode\(\)"):
        add(records, "text")  # type: ignore[arg-type]
    with pytest.raises(LocalProtocolError):
        _ = records.append(TOPIC, 0, 2**63, None, b"x", (), 0.0)

    assert records.pool.bytes_max == records.pool.available
    assert not records.queues.begin_flush()
    assert not records.queues.has_undrained

    add(records, b"good")
    with pytest.raises(TypeError):
        add(records, "text")  # type: ignore[arg-type]

    assert [b"good"] == values(drained(records, ONE, 0.0))


def test_values_and_keys_may_be_any_bytes() -> None:
    known = cluster(1, 1, 1)
    records = accumulator(known)
    pairs: list[tuple[Bytes, Bytes]] = [
        (b"v", b"k"),
        (bytearray(b"v"), bytearray(b"k")),
        (memoryview(b"v"), memoryview(b"k")),
    ]
    deliveries = [append(records, value, None, key=key) for value, key in pairs]

    assert 1 == len({each.outcome.topic_partition for each in deliveries})
    assert [b"v"] * 3 == values(drained(records, known, 0.0))


def test_full_memory_makes_the_next_batch_wait_and_all_others_go() -> None:
    """K3: a record that finds no room does not wait for ``linger.ms``."""
    records = accumulator(ONE, linger_seconds=10.0, buffer_bytes=1000)
    add(records, b"x" * 500)
    with pytest.raises(trio.WouldBlock):
        add(records, b"x" * 500)

    assert {1} == records.queues.ready(ONE, 0.0).nodes

    [batch] = drained(records, ONE, 0.0)
    with pytest.raises(trio.WouldBlock):
        add(records, b"x" * 500)
    done(records, batch)

    assert append(records, b"x" * 500).index == 0
    assert set() == records.queues.ready(ONE, 0.0).nodes


def test_full_memory_makes_the_batches_of_all_partitions_go() -> None:
    both = cluster(1, 2)
    records = accumulator(both, linger_seconds=10.0, buffer_bytes=1000)
    add(records, b"x", 0)

    assert set() == records.queues.ready(both, 0.0).nodes

    with pytest.raises(trio.WouldBlock):
        add(records, b"x", 1)

    assert {1} == records.queues.ready(both, 0.0).nodes


def test_memory_comes_back_once() -> None:
    """B1: of a batch of the usual size, and of one that is larger."""
    records = accumulator(ONE)
    add(records, b"x")
    add(records, b"x" * 3000)
    batches = drained(records, ONE, 0.0) + drained(records, ONE, 0.0)

    assert records.pool.available < records.pool.bytes_max - 4000
    for batch in batches * 2:
        done(records, batch)
    assert records.pool.bytes_max == records.pool.available
    assert not records.queues.begin_flush()


# Records that are taken back.


def test_a_record_is_taken_back_as_long_as_its_batch_is_here() -> None:
    records = accumulator(ONE)
    kept = [append(records, b"a"), append(records, b"c")]
    mistaken = append(records, b"b")
    last = append(records, b"d")

    assert records.withdraw(mistaken)
    assert not records.withdraw(mistaken)
    with pytest.raises(RecordWithdrawnError):
        mistaken.result()

    [batch] = drained(records, ONE, 0.0)

    assert not records.withdraw(last)
    assert 3 == batch.record_count
    assert [b"a", b"c", b"d"] == values([batch])
    done(records, batch, 10)
    assert [10, 11, 12] == [each.result().offset for each in [*kept, last]]
    assert not records.withdraw(last)


def test_a_batch_of_which_all_was_taken_back_is_none() -> None:
    records = accumulator(ONE)
    mistaken = [append(records, b"a"), append(records, b"b")]

    for delivery in mistaken:
        assert records.withdraw(delivery)

    assert records.pool.bytes_max == records.pool.available
    assert not records.queues.has_undrained
    assert not records.queues.begin_flush()
    assert not records.queues.ready(ONE, 1.0).nodes
    assert all(each.outcome.is_done for each in mistaken)

    again = append(records, b"c")

    assert [b"c"] == values(drained(records, ONE, 0.0))
    assert not again.is_done


def test_what_was_taken_back_stays_away_when_the_batch_is_split() -> None:
    records = accumulator(ONE)
    deliveries = [append(records, b"%d" % number) for number in range(6)]
    records.withdraw(deliveries[1])
    [batch] = drained(records, ONE, 0.0)
    records.queues.split_and_reenqueue(batch, 0.0)
    records.queues.deallocate(batch)
    base = 0
    sent: list[bytes | None] = []
    while records.queues.has_undrained:
        [part] = drained(records, ONE, 0.0)
        sent += values([part])
        count = part.record_count
        done(records, part, base)
        base += count

    assert [b"0", b"2", b"3", b"4", b"5"] == sent
    kept = deliveries[:1] + deliveries[2:]
    assert list(range(5)) == [each.result().offset for each in kept]


def test_a_record_of_no_producer_here_is_not_taken_back() -> None:
    theirs = append(accumulator(ONE), b"x")
    records = accumulator(ONE)

    assert not records.withdraw(theirs)

    add(records, b"y")

    assert not records.withdraw(theirs)


# The end.


def test_nothing_is_taken_after_the_end_and_the_rest_goes_at_once() -> None:
    """B9: whoever asks for memory then is told, and what is given back is counted."""
    records = accumulator(ONE, linger_seconds=10.0)
    add(records, b"x")
    records.close()

    with pytest.raises(trio.ClosedResourceError):
        add(records, b"y")
    assert {1} == records.queues.ready(ONE, 0.0).nodes

    [batch] = drained(records, ONE, 0.0)
    done(records, batch)

    assert records.pool.bytes_max == records.pool.available


def test_a_flush_makes_all_go_until_it_ends() -> None:
    """K11: however it ends."""
    records = accumulator(ONE, linger_seconds=10.0)
    delivery = append(records, b"x")
    outcomes = records.queues.begin_flush()

    assert [delivery.outcome] == outcomes
    assert {1} == records.queues.ready(ONE, 0.0).nodes

    records.queues.begin_flush()
    records.queues.end_flush()

    assert {1} == records.queues.ready(ONE, 0.0).nodes

    records.queues.end_flush()

    assert set() == records.queues.ready(ONE, 0.0).nodes


def test_aborting_all_fails_what_was_sent_and_what_was_not() -> None:
    """K12: nothing is left incomplete."""
    records = accumulator(ONE)
    sent = append(records, b"sent")
    [batch] = drained(records, ONE, 0.0)
    waiting = append(records, b"waiting")
    error = LocalProtocolError("the end")

    assert batch in records.queues.abort_incomplete(error)

    for delivery in (sent, waiting):
        with pytest.raises(LocalProtocolError, match="the end"):
            delivery.result()
    assert not records.queues.begin_flush()
    assert not records.queues.has_undrained
    assert records.pool.bytes_max == records.pool.available
    # Its response comes late, and changes nothing.
    assert not batch.outcome.complete(0)
    records.queues.deallocate(batch)
    assert records.pool.bytes_max == records.pool.available


def test_aborting_what_waits_leaves_what_was_sent() -> None:
    """K13."""
    records = accumulator(ONE)
    sent = append(records, b"sent")
    [batch] = drained(records, ONE, 0.0)
    waiting = append(records, b"waiting")

    [aborted] = records.queues.abort_undrained(LocalProtocolError("the end"))

    assert T0 == aborted.topic_partition
    assert waiting.is_done
    assert not sent.is_done
    assert records.queues.begin_flush()

    done(records, batch, 7)

    assert 7 == sent.result().offset
    assert not records.queues.begin_flush()
