from __future__ import annotations

import trionet
from trionet.client._api_errors import api_error, is_retriable
from trionet.client._topic_partition import TopicPartition
from trionet.protocol import error_codes


def test_an_error_says_what_was_refused_by_its_name_and_in_the_brokers_words() -> None:
    error = api_error(error_codes.INVALID_TOPIC_EXCEPTION, "topic a b", "no spaces")
    assert str(error) == "topic a b: INVALID_TOPIC_EXCEPTION: no spaces"
    assert error.error_code == error_codes.INVALID_TOPIC_EXCEPTION


def test_an_error_without_words_has_its_name() -> None:
    assert str(api_error(error_codes.NOT_COORDINATOR, "group g")) == "group g: NOT_COORDINATOR"


def test_only_what_may_do_better_later_is_retriable() -> None:
    assert is_retriable(api_error(error_codes.NOT_COORDINATOR, "group g"))
    assert not is_retriable(api_error(error_codes.INVALID_GROUP_ID, "group g"))
    assert not is_retriable(trionet.WireFormatError("cut short"))


def test_a_partition_is_written_as_kafka_writes_it() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"
