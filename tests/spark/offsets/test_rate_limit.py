"""How much goes into a micro-batch: the batches of the connector's own suite, and what holds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from trionet.client._topic_partition import TopicPartition
from trionet.protocol._config_types import LONG_MAX
from trionet.spark.offsets._partition_offsets import Offsets
from trionet.spark.offsets._rate_limit import TriggerDelay, rate_limited

PARTITIONS = [TopicPartition("t", number) for number in range(3)]


def offsets(*numbers: int) -> Offsets:
    return dict(zip(PARTITIONS, numbers, strict=False))


def test_each_partition_gets_its_share_and_none_starves() -> None:
    """At most 10 of 101, 11 and 1: 1 of the smallest, 1 of the middle, 8 of the largest; on."""
    end = offsets(101, 11, 1)
    start = offsets(0, 0, 0)
    batches = []
    for _ in range(4):
        start = rate_limited(10, start, end, {})
        batches.append(start)

    expected = [(8, 1, 1), (17, 2, 1), (26, 3, 1), (35, 4, 1)]
    assert [offsets(*each) for each in expected] == batches


def test_the_largest_limit_is_no_limit() -> None:
    """SPARK-26718: nothing overflows."""
    assert rate_limited(LONG_MAX, offsets(5), offsets(10), {}) == offsets(10)
    assert rate_limited(LONG_MAX, offsets(5), offsets(LONG_MAX), {}) == offsets(LONG_MAX)


def test_the_first_batch_of_least_and_most_holds_at_most_the_most() -> None:
    """20 of 21, 11 and 1: the shares are rounded down."""
    assert rate_limited(20, offsets(0, 0, 0), offsets(21, 11, 1), {}) == offsets(12, 6, 1)


def test_a_new_partition_is_read_from_its_begin() -> None:
    actual = rate_limited(4, offsets(0), offsets(10, 110), {PARTITIONS[1]: 100})

    assert actual == offsets(2, 102)


def test_what_waits_nowhere_is_left_alone() -> None:
    assert rate_limited(5, offsets(7, 7), offsets(7, 7), {}) == offsets(7, 7)
    # Nobody knows where it begins: whoever plans the batch says so.
    assert rate_limited(5, {}, offsets(7), {}) == offsets(7)
    # It went back: that is for whoever looks for losses.
    assert rate_limited(5, offsets(9, 0), offsets(7, 20), {}) == offsets(7, 5)


SIZES = st.lists(st.integers(min_value=0, max_value=2**50), min_size=3, max_size=3)


@settings(max_examples=50)
@given(st.integers(min_value=1, max_value=LONG_MAX), SIZES, SIZES)
def test_a_batch_goes_on_and_never_beyond_the_end(
    limit: int, begins: list[int], sizes: list[int]
) -> None:
    start = offsets(*begins)
    end = offsets(*(begin + size for begin, size in zip(begins, sizes, strict=True)))

    actual = rate_limited(limit, start, end, {})

    assert end.keys() == actual.keys()
    assert all(start[each] <= actual[each] <= end[each] for each in end)
    assert all(actual[each] > start[each] for each in end if end[each] > start[each])
    taken = sum(actual[each] - start[each] for each in end)
    # Shares are doubles, and those below one offset are rounded up.
    assert taken <= limit * (1 + 1e-9) + len(end)


def test_a_batch_waits_until_there_is_enough_or_its_time_has_come() -> None:
    """The batches of the connector's suite: 16, then 6 too few, 18, then 10 until the delay."""
    delay = TriggerDelay(15, 5.0)
    now = 1000.0
    assert not delay.waits(offsets(0, 0, 0), offsets(10, 5, 1), {}, now)

    assert delay.waits(offsets(10, 5, 1), offsets(10, 11, 1), {}, now + 0.1)
    assert not delay.waits(offsets(10, 5, 1), offsets(21, 11, 2), {}, now + 0.2)

    assert delay.waits(offsets(21, 11, 2), offsets(26, 16, 2), {}, now + 0.3)
    assert delay.waits(offsets(21, 11, 2), offsets(26, 16, 2), {}, now + 5.1)
    assert not delay.waits(offsets(21, 11, 2), offsets(26, 16, 2), {}, now + 5.2)


def test_the_first_batch_never_waits() -> None:
    assert not TriggerDelay(1000, 900.0).waits(offsets(0), offsets(1), {}, 0.0)


def test_a_new_partition_counts_from_its_begin() -> None:
    delay = TriggerDelay(10, 900.0)
    assert not delay.waits(offsets(0), offsets(1), {}, 0.0)

    assert delay.waits(offsets(1), offsets(1, 1009), {PARTITIONS[1]: 1000}, 1.0)
    assert not delay.waits(offsets(1), offsets(1, 1010), {PARTITIONS[1]: 1000}, 1.0)
