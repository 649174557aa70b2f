from __future__ import annotations

import pytest

from trionet.broker.log import LogConfig


def test_defaults_are_kafkas() -> None:
    config = LogConfig()

    assert 1024**3 == config.segment_bytes
    assert 7 * 24 * 3600 * 1000 == config.segment_ms == config.retention_ms
    assert 1048588 == config.max_message_bytes
    assert 2**63 - 1 == config.flush_messages == config.flush_ms
    assert not config.stamps_append_time
    assert not config.may_have_gaps
    assert config.removes_old_segments


def test_topic_keys_become_fields_whether_numbers_or_strings() -> None:
    settings = {
        "segment.bytes": "2048",
        "retention.ms": -1,
        "message.timestamp.type": "LogAppendTime",
        "cleanup.policy": "compact,delete",
        "unclean.leader.election.enable": "false",
    }
    config = LogConfig.from_topic(settings, producer_id_expiration_ms=7)

    assert (2048, -1, 7) == (
        config.segment_bytes,
        config.retention_ms,
        config.producer_id_expiration_ms,
    )
    assert config.stamps_append_time
    assert config.may_have_gaps
    assert config.removes_old_segments
    assert not LogConfig(cleanup_policy="compact").removes_old_segments


def test_numbers_must_be_numbers() -> None:
    with pytest.raises(ValueError):
        LogConfig.from_topic({"segment.bytes": "many"})


def test_jitter_shortens_the_segment_time_differently_but_always_the_same() -> None:
    config = LogConfig(segment_ms=1000, segment_jitter_ms=400)
    ages = {f"topic-{number}": config.segment_age_ms_max(f"topic-{number}") for number in range(50)}

    assert all(600 < age <= 1000 for age in ages.values())
    assert len(set(ages.values())) > 10
    assert ages["topic-7"] == config.segment_age_ms_max("topic-7")
    assert 1000 == LogConfig(segment_ms=1000).segment_age_ms_max("topic-7")


def test_jitter_is_at_most_the_segment_time() -> None:
    config = LogConfig(segment_ms=10, segment_jitter_ms=10**6)

    assert all(0 < config.segment_age_ms_max(str(number)) <= 10 for number in range(50))
