"""Which of the partitions that there are a query reads."""

from __future__ import annotations

import pickle
import warnings

import pytest

from trionet.client._topic_partition import TopicPartition
from trionet.errors import ConfigError
from trionet.spark.options._subscription import (
    Assign,
    Subscribe,
    SubscribePattern,
    Subscription,
    parse_pattern,
)

EXISTING = [
    TopicPartition(topic, number)
    for topic, count in [("first", 3), ("second", 2), ("other", 2)]
    for number in range(count)
]


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        (Assign((TopicPartition("first", 2), TopicPartition("first", 0))), ["first-0", "first-2"]),
        (Assign((TopicPartition("first", 3), TopicPartition("gone", 0))), []),
        (Subscribe(("second", "first")), ["first-0", "first-1", "first-2", "second-0", "second-1"]),
        (Subscribe(("gone",)), []),
        (SubscribePattern("f.*"), ["first-0", "first-1", "first-2"]),
        (SubscribePattern("o"), ["other-0", "other-1", "second-0", "second-1"]),
        (SubscribePattern("^o"), ["other-0", "other-1"]),
    ],
)
def test_a_query_reads_what_it_names_of_what_there_is(
    subscription: Subscription, expected: list[str]
) -> None:
    """CS1, CS2, CS3, CS4: what does not exist is left out; a pattern is found anywhere."""
    assert expected == [str(each) for each in subscription.select(reversed(EXISTING))]


@pytest.mark.parametrize(
    ("subscription", "topics"),
    [
        (
            Assign((TopicPartition("b", 2), TopicPartition("a", 0), TopicPartition("b", 0))),
            ("a", "b"),
        ),
        (Subscribe(("b", "a")), ("b", "a")),
        (SubscribePattern(".*"), None),
    ],
)
def test_the_cluster_is_asked_for_no_more_topics_than_needed(
    subscription: Subscription, topics: tuple[str, ...] | None
) -> None:
    assert topics == subscription.topics
    assert subscription == pickle.loads(pickle.dumps(subscription))


@pytest.mark.parametrize(
    "text", ["(", "*", "[a-z&&[^b]]", r"\Qa.b\E", r"a\z", "(?<name>a)", "a" * 3 + "{2,1}"]
)
def test_a_pattern_that_means_something_else_in_java_is_refused(text: str) -> None:
    """Neither an error at the first batch nor topics that were not meant."""
    with (
        warnings.catch_warnings(action="ignore"),
        pytest.raises(ConfigError, match=r"subscribePattern = .*Python's re module"),
    ):
        parse_pattern(text)


@pytest.mark.parametrize("text", ["topic-.*", "^a|b$", "(?i)logs", r"events\.\d+", "a++"])
def test_a_pattern_is_a_regular_expression(text: str) -> None:
    assert SubscribePattern(text) == parse_pattern(text)
